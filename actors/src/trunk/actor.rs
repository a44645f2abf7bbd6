//! The actor of one trunk: as long as a number uses the trunk, or it registers, it keeps a task going that speaks with the peer
//! (`Watch`), and begins another one when the settings change. The actor waits for no answer of the peer.
//!
//! A panic of the task is the actor's, which is restarted as all are. Nothing is dialled over the trunk of a parked one; others
//! go on.
use super::{board::TrunkState, elsewhere, watch::Watch};
use crate::deps::Deps;
use actix::prelude::*;
use adapters::trunk::peering::{Mute, Peering};
use entities::{
    Error, Result,
    ids::{TenantId, TrunkId},
    number,
    sip_trunk::{self, Model},
};
use rules::effect::DispatchHint;
use runtime::{
    clock::{Busy, Clock},
    registry::{Child, Link, Stop, tell_itself},
};
use std::{panic::resume_unwind, time::Duration};
use tokio::sync::oneshot;

/// Look at the rows: its settings may have changed, or nobody may need it any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Look(Busy);
impl Look {
    pub fn new(clock: &Clock) -> Self {
        Look(clock.busy())
    }
}

/// Until settings that could not be read are read again.
const AGAIN: Duration = Duration::from_secs(5);
/// Longer than its task takes to part from the peer.
const PARTING: Duration = Duration::from_secs(4);

pub struct Trunk {
    deps: Deps,
    link: Link<Self>,
    watching: Option<Watching>,
    /// Why nobody can, as it was logged: once.
    mute: Option<Mute>,
}

/// The task that speaks with its peer.
struct Watching {
    peering: Peering,
    stop: oneshot::Sender<()>,
    /// Closed when it has ended.
    ended: oneshot::Receiver<()>,
}

impl Watching {
    async fn end(self) {
        // It may have ended by itself.
        let _ = self.stop.send(());
        let _ = tokio::time::timeout(PARTING, self.ended).await;
    }
}

impl Trunk {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Trunk {
            deps,
            link,
            watching: None,
            mute: None,
        }
    }

    /// The rows say that this is what is to be done, or nothing.
    fn follow(&mut self, row: Option<Model>, busy: Busy, ctx: &mut Context<Self>) {
        let wanted = row.as_ref().map(Peering::of);
        let is_as_wanted = match (&self.watching, &wanted) {
            (Some(watching), Some(wanted)) => watching.peering == *wanted,
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => true,
        };
        if is_as_wanted {
            if self.watching.is_none() {
                // What was noted of it while nobody could speak with its peer goes, too.
                self.leave();
            }
            return;
        }
        let before = self.watching.take();
        // With the mailbox shut: never do two speak for one trunk.
        let ending = async move {
            if let Some(before) = before {
                before.end().await;
            }
        };
        ctx.wait(ending.into_actor(self).map(move |(), trunk, ctx| {
            let _busy = busy;
            match row {
                Some(row) => trunk.begin(&row, ctx),
                None => trunk.leave(),
            }
        }));
    }

    fn begin(&mut self, row: &Model, ctx: &mut Context<Self>) {
        let Some(phones) = self.deps.carriers.phones.clone() else {
            return self.link.rest();
        };
        if self.deps.trunks.try_calls_again(row.id) {
            self.deps
                .router
                .dispatcher(row.tenant_id, DispatchHint::CampaignsChanged);
        }
        let watch = match Watch::new(self.deps.clone(), phones, row) {
            Ok(watch) => watch,
            Err(why) => {
                if self.mute.as_ref() != Some(&why) {
                    tracing::warn!(trunk = %row.id, workspace = %row.tenant_id, %why, "a SIP trunk cannot be used");
                    self.mute = Some(why);
                }
                // It stays, so that nothing is dialled over it; the next look tries again.
                return self.note_down();
            }
        };
        self.mute = None;
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = oneshot::channel::<()>();
        let task = self.deps.runtime.spawn(async move {
            // Dropped with the task, however that ends.
            let _ending = ending;
            watch.run(stopped).await;
        });
        self.watching = Some(Watching {
            peering: Peering::of(row),
            stop,
            ended,
        });
        ctx.spawn(task.into_actor(self).map(|ended, trunk, _| {
            if let Err(error) = ended
                && error.is_panic()
            {
                trunk.watching = None;
                trunk.note_down();
                resume_unwind(error.into_panic());
            }
        }));
    }

    /// Nobody speaks with its peer: nothing is dialled over it.
    fn note_down(&self) {
        let (tenant, trunk) = self.link.id;
        let state = TrunkState {
            up: false,
            ..TrunkState::default()
        };
        if self.deps.trunks.set(trunk, state) {
            self.deps.router.dispatcher(tenant, DispatchHint::CampaignsChanged);
        }
    }

    /// Nobody needs it any more.
    fn leave(&mut self) {
        let (_, trunk) = self.link.id;
        if let Some(phones) = &self.deps.carriers.phones {
            elsewhere::publish(&self.deps, self.link.id, &[]);
            self.deps.trunks.forget(trunk);
            phones.line().sources().forget(trunk);
            phones.forget_account(trunk);
            self.mute = None;
            // A series cannot be taken back: from now on it says nothing.
            metrics::gauge!("callboard_trunk_up", "trunk" => trunk.to_string()).set(f64::NAN);
        }
        self.link.rest();
    }
}

/// Its row, if somebody has to speak with its peer: it registers, or a number uses it.
async fn wanted(deps: &Deps, (tenant, id): (TenantId, TrunkId)) -> Result<Option<Model>> {
    let row = match sip_trunk::load(&deps.db.read, tenant, id).await {
        Ok(row) => row,
        Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_wanted = row.definition.register.enabled || number::is_on_trunk(&deps.db.read, tenant, id).await?;
    Ok(is_wanted.then_some(row))
}

/// Tells the actors of all trunks that somebody has to speak with. At boot that is what starts them.
pub async fn look_at_all(deps: &Deps) -> Result<()> {
    const AT_ONCE: u64 = 1_000;
    if deps.carriers.phones.is_none() {
        return Ok(());
    }
    let used = number::trunks_in_use(&deps.db.read).await?;
    let mut after = None;
    loop {
        let page = sip_trunk::all_after(&deps.db.read, deps.share(), after, AT_ONCE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        for row in page {
            if row.definition.register.enabled || used.contains(&row.id) {
                deps.router.trunk(row.tenant_id, row.id);
            }
        }
    }
}

impl Actor for Trunk {
    type Context = Context<Self>;
}

impl Supervised for Trunk {
    fn restarting(&mut self, ctx: &mut Context<Self>) {
        // Its task hears that the other end is gone, and parts; the next one has another Call-ID.
        self.watching = None;
        tell_itself(ctx, Look::new(&self.deps.clock));
    }
}

impl Child for Trunk {
    type Id = (TenantId, TrunkId);
    const KIND: &'static str = "trunk";
}

impl Handler<Look> for Trunk {
    type Result = ();
    fn handle(&mut self, Look(busy): Look, ctx: &mut Context<Self>) {
        let (deps, id) = (self.deps.clone(), self.link.id);
        let reading = async move { wanted(&deps, id).await };
        ctx.wait(reading.into_actor(self).map(move |found, trunk, ctx| match found {
            Ok(row) => trunk.follow(row, busy, ctx),
            Err(error) => {
                tracing::warn!(%error, "a SIP trunk's settings could not be read; looking again");
                let again = trunk.deps.clock.alarm(trunk.deps.clock.now().plus(AGAIN));
                ctx.spawn(again.into_actor(trunk).map(|busy, _, ctx| tell_itself(ctx, Look(busy))));
            }
        }));
    }
}

impl Handler<Stop> for Trunk {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        match (stop, self.watching.take()) {
            (Stop::Idle, Some(watching)) => {
                self.watching = Some(watching);
                self.link.stay();
            }
            (Stop::Shutdown, Some(watching)) => {
                let ending = watching.end().into_actor(self);
                ctx.wait(ending.map(|(), _, ctx| ctx.stop()));
            }
            (Stop::Idle | Stop::Shutdown, None) => ctx.stop(),
        }
    }
}
