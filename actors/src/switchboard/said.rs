//! What was said on a leg, for the timeline of its session: once, when nothing more of it is awaited.
//!
//! A session that has ended has no log any more: then the entry is added to what is stored of it.
use crate::deps::Deps;
use entities::{
    ids::{SessionId, TenantScoped},
    transcript::Entry,
};
use rules::{
    commit::Commit,
    session::{command::Command, machine::Phase},
};
use sip::{
    ladder::{Direction, Ladder},
    message::Message,
};
use std::time::Instant;

const KIND: &str = "sip_ladder";

type Key = TenantScoped<SessionId>;

#[derive(Default)]
pub struct Said {
    ladder: Ladder,
    /// `None`: it has none, or was told.
    session: Option<Key>,
}

impl Said {
    pub fn belongs_to(&mut self, session: Key) {
        self.session = Some(session);
    }

    pub fn sent(&mut self, bytes: &[u8]) {
        self.ladder.record_sent(bytes, Instant::now());
    }

    pub fn received(&mut self, message: &Message) {
        self.ladder.record(Direction::Received, message, Instant::now());
    }

    fn take(&mut self) -> Option<(Key, String)> {
        let session = self.session.take()?;
        (!self.ladder.is_empty()).then(|| (session, self.ladder.to_string()))
    }

    /// Before the session is told how its call ends.
    pub fn tell(&mut self, deps: &Deps) {
        if let Some((session, detail)) = self.take() {
            deps.router
                .sessions()
                .tell(session, Command::Note { kind: KIND, detail });
        }
    }

    /// The session may have ended meanwhile.
    pub fn tell_late(&mut self, deps: &Deps) {
        if let Some((session, detail)) = self.take() {
            let deps = deps.clone();
            deps.runtime
                .clone()
                .spawn(async move { note_late(&deps, session, detail).await });
        }
    }
}

async fn note_late(deps: &Deps, key: Key, detail: String) {
    let entry = Entry {
        at: deps.clock.now(),
        kind: KIND.to_owned(),
        detail: Some(detail.clone()),
    };
    let note = Command::Note { kind: KIND, detail };
    // Its end stands before this is answered, and what was said with it.
    let is_over = match deps.router.sessions().insist(key, note).await {
        Ok(session) => matches!(session.phase, Phase::Ended(_)) && session.call.deleted_at.is_none(),
        Err(error) => return tracing::debug!(%error, "what was said on a leg is in no timeline"),
    };
    if !is_over {
        return;
    }
    let mut commit = Commit::default();
    commit.changes.timeline_entries.push((key.id, entry));
    if let Err(error) = deps.writer.commit(key.tenant_id.into(), commit).await {
        tracing::warn!(%error, "what was said on a leg is in no timeline");
    }
}
