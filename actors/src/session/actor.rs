//! The shell's bindings for sessions.
use crate::{deps::Deps, recording::spooling, shell::Stored};
use entities::{
    Result,
    ids::{SessionId, TenantScoped},
};
use rules::{
    commit::Commit,
    session::{
        command::Command,
        machine::{ActiveCall, PLACED_WITHIN_MS, Phase, Session},
    },
};

impl Stored for Session {
    async fn load(deps: &Deps, id: TenantScoped<SessionId>) -> Result<Self> {
        let row = entities::session::load(&deps.db.read, id).await?;
        let mut session = Session::from_row(row, deps.base_url.clone())?;
        // When somebody last spoke is in no row.
        if let Phase::Conversing(talk) = &mut session.phase {
            talk.quiet_from = deps.clock.now();
        }
        Ok(session)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.sessions.push(self.row());
    }
    /// A live session that this process does not carry was cut off by a crash. One whose moment has passed without its being
    /// placed, while everything stood still, goes back to the queue before anybody takes its silence for an answer.
    fn recovery(&self, deps: &Deps) -> Option<Command> {
        match &self.phase {
            Phase::Dialing { dialed_at: began, .. } | Phase::Conversing(ActiveCall { started_at: began, .. })
                if !deps.calls.contains(self.call.id) =>
            {
                let last_seen = deps.last_seen(self.call.tenant_id, *began);
                Some(Command::Lose { last_seen })
            }
            Phase::Dialing { dialed_at, .. }
                if !deps.calls.is_placed(self.call.id)
                    && deps.clock.now() > dialed_at.plus_millis(PLACED_WITHIN_MS) =>
            {
                Some(Command::Requeue { dialed_at: *dialed_at })
            }
            Phase::Scheduled { .. }
            | Phase::Awaiting
            | Phase::Queued { .. }
            | Phase::Dialing { .. }
            | Phase::Conversing(_)
            | Phase::Ended(_) => None,
        }
    }
    /// A talk that is recorded from a moment whose commit was in doubt.
    fn resume(&self, deps: &Deps) {
        if let Phase::Conversing(talk) = &self.phase
            && talk.recorded_from.is_some()
        {
            spooling::begin(deps, &self.call);
        }
    }
    /// A call that has ended since the dispatcher's commit is in hand no more.
    fn may_be_adopted(&self, deps: &Deps) -> bool {
        deps.calls.contains(self.call.id)
    }
    fn committed(&self, before: &Self, deps: &Deps) {
        deps.traces.committed(before, self, &deps.ids);
    }
    fn found_stale(deps: &Deps, id: TenantScoped<SessionId>) {
        deps.calls.forget_contact(id.id);
    }
}
