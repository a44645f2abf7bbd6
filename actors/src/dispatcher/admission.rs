//! What is let in between two rounds: a call that comes in, which takes a slot, if one is free; and a second leg of a call that is
//! there, which takes its turn at the trunk's rate.
use super::{
    state::{self, State},
    trunks,
};
use crate::{
    call::in_hand::Call,
    deps::Deps,
    router::{Admitted, Turn},
};
use entities::{Error, Result, boxed, changes::Guard, ids::TrunkId, values::Moment};
use rules::{commit::Commit, dispatch::concurrency::Slot, session::machine::Session};

impl State {
    /// A call that has come in takes a slot, if one is free, and is answered.
    #[boxed]
    pub async fn admit(&mut self, deps: &Deps, session: Session, call: Call, mut commit: Commit) -> Result<Admitted> {
        let env = session.call.env;
        self.outdated |= self.sees_lifted(deps).await?;
        let funds = state::funds(deps, self.known.tenant).await?;
        if self.snapshot.is_blocked(env) || deps.is_draining() {
            return Ok(Admitted::Blocked);
        }
        // Less is available than a moment ago, when its hold was decided: whoever asked decides anew.
        if !funds.cover(env, session.call.hold_cents) {
            return Err(Error::Stale);
        }
        if !self.snapshot.slots().tenant_has_one_for_inbound(env) {
            return Ok(Admitted::NoSlot);
        }
        // A limit or a suspension holds from its commit on.
        let guard = Guard::Free(self.known.tenant, env, self.known.version);
        commit.changes.guards.push(guard);
        let (id, leg) = (session.call.id, call.leg.clone());
        // Before the commit, so that nobody takes the call for one that a crash cut off.
        deps.calls.insert(id, call);
        if let Err(error) = deps.writer.commit(self.known.tenant.into(), commit).await {
            deps.calls.remove(id);
            return Err(error);
        }
        self.snapshot.live.insert(id, Slot::of(&session));
        deps.calls.place(id, |_| deps.carriers.take(deps, leg));
        deps.router.sessions().adopt(session);
        Ok(Admitted::Yes)
    }

    /// When one more leg may go over that trunk: its token is taken. `None`: not by then, or the trunk takes none.
    pub fn take_turn(&mut self, deps: &Deps, trunk: TrunkId, by: Moment) -> Option<Turn> {
        let trunks = &mut self.snapshot.trunks;
        trunks::look(deps, trunks);
        let at = trunks.take_turn(trunk, deps.clock.now(), by)?;
        Some(Turn {
            at,
            limiter: self.limiter.clone(),
            calls_per_second: trunks.live.get(&trunk)?.pace.rate(),
        })
    }
}
