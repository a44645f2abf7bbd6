//! The carrier of live calls: what dispatcher and sessions ask of it, and the service at its start and end.
//!
//! A placed call becomes a task; a panic in it ends that call and no other. At the start the calls that a killed process left are
//! ended before anything is dialled.
use super::{
    admission, broken,
    moments::until,
    orders::{LiveCall, ORDERS},
    orphans,
    outbound::{self, Given},
    phones::Switchboard,
};
use crate::{
    call::leg::{Control, Leg},
    carrier::Carrier,
    deps::Deps,
};
use entities::{
    Result, boxed,
    ids::{SessionId, TenantId},
    session::EndedBy,
};
use futures_util::FutureExt;
use media::bridge::MediaBridge;
use rules::session::command::Command;
use runtime::supervise::panic_text;
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// What a talk can be told before it listens.
const INBOX: usize = 16;
/// How often it is looked whether the last leg is gone.
const LOOK: Duration = Duration::from_millis(50);

impl Carrier for Switchboard {
    fn place(&self, deps: &Deps, leg: Arc<Leg>) {
        let session = leg.session();
        let (bridge, heard) = MediaBridge::new();
        let (inbox, told) = mpsc::channel(INBOX);
        let (ended, watched) = watch::channel(false);
        let its_end = watched.clone();
        let given = Given {
            leg,
            bridge,
            ways: (heard, told),
            orders: mpsc::channel(ORDERS),
            ended: watched,
        };
        let call = LiveCall {
            inbox,
            ended,
            taken: None,
        };
        // Before its task can end.
        self.live().insert(session.id, call);
        let (deps, switchboard) = (deps.clone(), self.clone());
        deps.runtime.clone().spawn(async move {
            let placed = outbound::place(&deps, &switchboard, given);
            let placed = AssertUnwindSafe(placed).catch_unwind().await;
            switchboard.forget_call(session.id, &its_end);
            if let Err(panic) = placed {
                tracing::error!(panic = panic_text(&*panic), "a call panicked");
                broken::clear(&deps, &switchboard, session.id, Some(session)).await;
            }
        });
    }

    fn hang_up(&self, session: SessionId) {
        // A room's, which is nobody's here; or one that has ended by itself.
        if let Some(call) = self.live().get(&session) {
            call.ended.send_replace(true);
        }
    }

    fn control(&self, _: &Deps, session: SessionId, control: Control) -> bool {
        // Heard when what is being said is over, which takes its real time: no clock waits for it.
        let live = self.live();
        live.get(&session)
            .is_some_and(|call| call.inbox.try_send((control, None)).is_ok())
    }
}

impl Switchboard {
    /// Listens from now on, and ends what the process before has left. Before anything is registered or dialled.
    #[boxed]
    pub async fn start(&self, deps: &Deps) -> Result<()> {
        let Some(arriving) = self.take_arriving() else {
            return Ok(());
        };
        deps.runtime.spawn(admission::run(deps.clone(), self.clone(), arriving));
        self.listen(deps);
        // A node has no workspace yet: see `take_over`.
        match deps.fence.leases().node() {
            None => orphans::sweep(deps, self, None).await,
            Some(_) => Ok(()),
        }
    }

    /// Ends what another node has left of these workspaces. Before any of them is registered or dialled for.
    #[boxed]
    pub async fn take_over(&self, deps: &Deps, of: &[TenantId]) -> Result<()> {
        orphans::sweep(deps, self, Some(of)).await
    }

    fn listen(&self, deps: &Deps) {
        let _inside = deps.runtime.enter();
        if let Err(error) = self.sockets.start(&deps.runtime, deps.outbound.tls()) {
            tracing::error!(%error, "not all sockets of sip_bind can be listened on: live calls fail");
        }
    }

    /// A call that has come in was given its slot.
    pub fn take(&self, deps: &Deps, leg: Arc<Leg>) {
        let session = leg.session();
        let taken = self.live().get_mut(&session.id).and_then(|call| call.taken.take());
        if taken.is_none_or(|taken| taken.send(leg).is_err()) {
            // Its caller has gone meanwhile.
            deps.router.sessions().tell(session, Command::HangUp(EndedBy::Caller));
        }
    }

    /// Waits until nothing is on the wire any more, or for so long: what is left is ended by the next process.
    #[boxed]
    pub async fn settle(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.legs() > 0 && Instant::now() < end {
            until(Some(Instant::now() + LOOK)).await;
        }
    }
}
