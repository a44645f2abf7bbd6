//! Where a talk's steps go: to the session's actor, or, in a dry run, to the same machine without any actor.
use crate::deps::Deps;
use entities::{
    Result, boxed,
    ids::{SessionId, TenantScoped},
};
use rules::session::{
    command::Command,
    machine::{self, Session},
};
use std::time::Duration;

pub enum SessionLink {
    Live {
        deps: Deps,
        session: TenantScoped<SessionId>,
    },
    /// A session that exists in memory only.
    Dry(Box<Session>, entities::values::Moment),
}

impl SessionLink {
    pub fn is_live(&self) -> bool {
        matches!(self, SessionLink::Live { .. })
    }

    /// In the order of its being told; nothing waits for it.
    pub fn tell(&mut self, command: Command) {
        match self {
            SessionLink::Live { deps, session } => {
                deps.router.sessions().tell(*session, command);
            }
            SessionLink::Dry(..) => {
                if let Err(error) = self.step(command) {
                    tracing::debug!(%error, "a dry run's step was refused");
                }
            }
        }
    }

    /// Says whether it was accepted.
    #[boxed]
    pub async fn ask(&mut self, command: Command) -> Result<()> {
        if let SessionLink::Live { deps, session } = self {
            return deps.router.sessions().request(*session, command).await.map(drop);
        }
        self.step(command)
    }

    fn step(&mut self, command: Command) -> Result<()> {
        let SessionLink::Dry(session, now) = self else {
            return Ok(());
        };
        let (after, _) = machine::transition((**session).clone(), command, *now)?;
        // The end takes the log away, to be stored; a dry run shows it.
        let log = session.log.clone();
        **session = after;
        if matches!(session.phase, machine::Phase::Ended(_)) {
            session.log = log;
        }
        Ok(())
    }

    /// Time that passes in a dry run.
    pub fn pass(&mut self, ms: u64) {
        if let SessionLink::Dry(_, now) = self {
            *now = now.plus(Duration::from_millis(ms));
            self.tell(Command::Tick);
        }
    }
}
