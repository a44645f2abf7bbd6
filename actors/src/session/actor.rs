//! The shell's bindings for sessions.
use super::machine::{self, Command, Course, PLACED_WITHIN_MS, Phase, Session, Talk};
use crate::{deps::Deps, effect::Effect, shell::Stored, writer::Commit};
use entities::{
    Result,
    ids::{Owned, SessionId},
    session::Consent,
    values::Moment,
};

impl Stored for Session {
    type Key = SessionId;
    type Command = Command;
    const KIND: &'static str = "session";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<SessionId>) -> Result<Self> {
        let row = entities::session::load(&deps.db.read, id).await?;
        let mut session = Session::from_row(row, deps.base_url.clone())?;
        // When somebody last spoke is in no row.
        if let Phase::Conversing(talk) = &mut session.phase {
            talk.quiet_from = deps.clock.now();
        }
        Ok(session)
    }
    fn owner(&self) -> Owned<SessionId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        machine::transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        machine::next_deadline(self)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.sessions.push(self.row());
    }
    /// Ringing and what is being said go with the next step of the call; a crash ends the call anyway.
    fn differs(&self, before: &Self) -> bool {
        self.course() != before.course() || self.call != before.call
    }
    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Awaiting | Phase::Ended(_))
    }
    /// A live session that this process does not carry was cut off by a crash. One whose moment has passed without its being
    /// placed, while everything stood still, goes back to the queue before anybody takes its silence for an answer.
    fn recovery(&self, deps: &Deps) -> Option<Command> {
        match &self.phase {
            Phase::Dialing { dialed_at: began, .. } | Phase::Conversing(Talk { started_at: began, .. })
                if !deps.calls.contains(self.call.id) =>
            {
                let last_seen = deps.heartbeat.last_seen(*began, deps.clock.now());
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
    /// What was said is kept in memory until the end: a commit that failed must not cost it.
    fn carry_over(&mut self, before: &Self) {
        if let (Phase::Conversing(talk), Phase::Conversing(known)) = (&mut self.phase, &before.phase) {
            self.log.clone_from(&before.log);
            let course = std::mem::replace(&mut talk.course, Course::Talking);
            *talk = known.clone();
            // A wish that was committed after all is not told again.
            if matches!(course, Course::Leaving { .. } | Course::Transferring { .. }) {
                talk.course = course;
            }
            if self.call.consent == Consent::Granted {
                talk.recorded_from.get_or_insert(known.quiet_from);
            }
        }
    }
    fn version(&self) -> i32 {
        self.version
    }
    /// A call that has ended since the dispatcher's commit is in hand no more.
    fn may_be_adopted(&self, deps: &Deps) -> bool {
        deps.calls.contains(self.call.id)
    }
    fn found_stale(deps: &Deps, id: Owned<SessionId>) {
        deps.calls.forget_contact(id.id);
    }
}
