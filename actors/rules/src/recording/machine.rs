//! A recording: processing -> completed | pending_purge | failed; each of them -> purged. Purged is final.
//!
//! The row says what is to be done, and when (`wake_at`); its actor stores and erases the sound and tells what came of it.
//! A crash in between does it once more: storing replaces, and what is gone can be erased again.
use crate::{
    effect::{Effect, Work},
    event::{SessionOptOutRecordingPendingPurge, SessionOptOutRecordingPurged, SessionRecordingCompleted},
    machine::Machine,
};
use entities::{
    Result,
    ids::{RecordingId, TenantScoped},
    recording::{Model as Recording, PurgeReason, Status, Synthetic},
    session,
    values::Moment,
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Command {
    /// Look at the time.
    Tick,
    /// The sound is in the store.
    Stored(Box<Stored>),
    StoreFailed {
        why: String,
        /// What was heard lies in a spool, and nowhere else.
        spooled: bool,
    },
    /// There is nothing to store: its spool has failed, or was lost.
    NoSound {
        why: String,
    },
    /// There is no sound in the store any more.
    Erased,
    EraseFailed {
        why: String,
    },
    /// It proves a consent that must be kept until then.
    Kept {
        until: Moment,
    },
    /// It must be gone: the API wants that, or the other side never agreed to it, which was understood only after the call.
    Delete,
    /// The other side wants no more calls, which was understood only after the call: it is kept until then at most.
    OptOut {
        purge_after: Moment,
    },
}

/// What was stored.
#[derive(Clone, Debug)]
pub struct Stored {
    pub call: Arc<session::Model>,
    /// Where it can be heard.
    pub recording_url: String,
    pub duration_ms: i64,
    pub bytes: i64,
    pub sha256: String,
    /// What it says of itself.
    pub synthetic: Synthetic,
}

/// Tries to store a sound that was made for that; then there is none.
const MAX_TRIES: i32 = 6;
/// The only copy of what was heard is tried to be stored for so long after the call's end: 72 h.
const SPOOLED_SECONDS: i64 = 72 * 3_600;
/// Work that nobody reports on is done again after this.
const LEASE_SECONDS: i64 = 300;

/// The whole life of a recording. Pure.
pub fn transition(row: Recording, command: Command, now: Moment) -> (Recording, Vec<Effect>) {
    use Status::*;
    match (row.status, command) {
        (Processing, Command::Tick) if is_due(&row, now) => {
            let key = row.key();
            (lease(row, now), vec![Work::StoreSound(key).into()])
        }
        (Completed | PendingPurge | Failed, Command::Tick) if is_due(&row, now) => {
            let key = row.key();
            (lease(row, now), vec![Work::EraseSound(key).into()])
        }
        (Processing, Command::Stored(stored)) => complete(row, *stored, now),
        (Processing, Command::StoreFailed { why, spooled }) if may_still_be_stored(&row, spooled, now) => {
            (again(row, why, now), Vec::new())
        }
        (Processing, Command::StoreFailed { why, .. } | Command::NoSound { why }) => give_up(row, why),
        (Completed | PendingPurge | Failed, Command::Erased) => purge(row, now),
        (Completed | PendingPurge | Failed, Command::EraseFailed { why }) => (again(row, why, now), Vec::new()),
        (Completed | PendingPurge | Failed, Command::Kept { until }) => (keep(row, until), Vec::new()),
        (Processing, Command::Delete) => (at_once(doom(row, now), now), Vec::new()),
        (Completed | PendingPurge | Failed, Command::Delete) => {
            let key = row.key();
            (lease(doom(row, now), now), vec![Work::EraseSound(key).into()])
        }
        (Processing | Completed, Command::OptOut { purge_after }) if is_kept(&row) => opt_out(row, purge_after),
        // Ticks come early, and work that was done twice reports twice: no change, not an error.
        (Processing | Completed | PendingPurge | Failed | Purged, Command::Tick)
        | (Processing, Command::Erased | Command::EraseFailed { .. } | Command::Kept { .. })
        | (
            Completed | PendingPurge | Failed,
            Command::Stored(_) | Command::StoreFailed { .. } | Command::NoSound { .. },
        )
        | (Processing | Completed | PendingPurge | Failed, Command::OptOut { .. })
        | (
            Purged,
            Command::Stored(_)
            | Command::StoreFailed { .. }
            | Command::NoSound { .. }
            | Command::Erased
            | Command::EraseFailed { .. }
            | Command::Kept { .. }
            | Command::Delete
            | Command::OptOut { .. },
        ) => (row, Vec::new()),
    }
}

/// The next moment at which `Tick` can matter. One that is kept for days needs no actor: its row says when it does.
pub fn next_deadline(row: &Recording) -> Option<Moment> {
    row.wake_at.filter(|_| row.status == Status::Processing)
}

fn is_due(row: &Recording, now: Moment) -> bool {
    row.wake_at.is_some_and(|at| now >= at)
}

/// What is to be erased by now is not worth another try.
fn may_still_be_stored(row: &Recording, spooled: bool, now: Moment) -> bool {
    let is_doomed = row.purge_after.is_some_and(|at| at <= now);
    let has_time = match spooled {
        true => now < row.created_at.plus_seconds(SPOOLED_SECONDS),
        false => row.tries.saturating_add(1) < MAX_TRIES,
    };
    has_time && !is_doomed
}

fn lease(mut row: Recording, now: Moment) -> Recording {
    row.wake_at = Some(now.plus_seconds(LEASE_SECONDS));
    row
}

/// From ten seconds on, doubled with each failure, an hour at most, and not beyond the time at which it is to be erased.
fn again(mut row: Recording, why: String, now: Moment) -> Recording {
    let next = now.plus_seconds((10_i64 << row.tries.clamp(0, 9)).min(3600));
    let erased_at = row.purge_after.filter(|at| *at > now);
    row.wake_at = Some(erased_at.map_or(next, |at| at.min(next)));
    row.tries = row.tries.saturating_add(1);
    row.error = Some(why);
    row
}

fn give_up(mut row: Recording, why: String) -> (Recording, Vec<Effect>) {
    row.status = Status::Failed;
    row.tries = 0;
    row.error = Some(why);
    row.wake_at = row.purge_after;
    let spool = erase_spool(&row);
    (row, vec![spool])
}

/// Once nothing more is made of it.
fn erase_spool(row: &Recording) -> Effect {
    let session = TenantScoped::new(row.tenant_id, row.env, row.session_id);
    Work::EraseSpool(session).into()
}

/// Not only when it would be tried again.
fn at_once(mut row: Recording, now: Moment) -> Recording {
    row.wake_at = row.wake_at.map(|at| at.min(now));
    row
}

fn doom(mut row: Recording, now: Moment) -> Recording {
    row.purge_after = Some(row.purge_after.map_or(now, |at| at.min(now)));
    row.purge_reason = row
        .purge_reason
        .filter(|why| *why == PurgeReason::OptOut)
        .or(Some(PurgeReason::Deleted));
    row
}

/// Whoever has to prove the consent must be able to hear it.
fn keep(mut row: Recording, until: Moment) -> Recording {
    row.purge_after = Some(until);
    row.wake_at = Some(until);
    (row.tries, row.error) = (0, None);
    row
}

/// As long as everybody's, or for ever.
fn is_kept(row: &Recording) -> bool {
    matches!(row.purge_reason, None | Some(PurgeReason::Retention))
}

/// Whoever opts out is not kept for longer than everybody else.
fn opt_out(mut row: Recording, purge_after: Moment) -> (Recording, Vec<Effect>) {
    let purge_after = row.purge_after.map_or(purge_after, |at| at.min(purge_after));
    row.purge_after = Some(purge_after);
    row.purge_reason = Some(PurgeReason::OptOut);
    // One that is still being stored gets there with its sound.
    if row.status == Status::Completed {
        row.status = Status::PendingPurge;
        row.wake_at = Some(purge_after);
    }
    let pending = SessionOptOutRecordingPendingPurge {
        session_id: row.session_id,
        recording_id: row.id,
        purge_after,
    };
    (row, vec![Effect::emit(pending)])
}

fn complete(mut row: Recording, stored: Stored, now: Moment) -> (Recording, Vec<Effect>) {
    (row.tries, row.error) = (0, None);
    row.status = match row.purge_reason {
        Some(PurgeReason::OptOut) => Status::PendingPurge,
        Some(PurgeReason::Retention | PurgeReason::Deleted) | None => Status::Completed,
    };
    // Nobody is told of a sound that is not wanted any more.
    if row.purge_after.is_some_and(|at| at <= now) {
        let key = row.key();
        return (lease(row, now), vec![Work::EraseSound(key).into()]);
    }
    row.duration_ms = Some(stored.duration_ms);
    row.bytes = Some(stored.bytes);
    row.sha256 = Some(stored.sha256);
    row.synthetic = Some(stored.synthetic);
    row.completed_at = Some(now);
    row.wake_at = row.purge_after;
    let call = stored.call;
    let completed = SessionRecordingCompleted {
        session_id: call.id,
        campaign_id: call.campaign_id,
        contact_id: call.contact_id,
        from_number: call.from_number.clone(),
        to_number: call.to_number.clone(),
        phone_number: call.phone_number().cloned(),
        email: call.email.clone(),
        first_name: call.first_name.clone(),
        last_name: call.last_name.clone(),
        recording_id: row.id,
        status: Status::Completed,
        channels: row.channels,
        started_at: call.started_at,
        ended_at: call.ended_at,
        duration_seconds: row.duration_ms.and_then(|ms| i32::try_from(ms / 1000).ok()),
        recording_url: stored.recording_url,
    };
    let spool = erase_spool(&row);
    (row, vec![Effect::emit(completed), spool])
}

fn purge(mut row: Recording, now: Moment) -> (Recording, Vec<Effect>) {
    row.status = Status::Purged;
    row.purged_at = Some(now);
    (row.wake_at, row.error) = (None, None);
    let purged = SessionOptOutRecordingPurged {
        session_id: row.session_id,
        recording_id: row.id,
        purged_at: now,
    };
    let after_opt_out = row.purge_reason == Some(PurgeReason::OptOut);
    (row, after_opt_out.then(|| Effect::emit(purged)).into_iter().collect())
}

impl Machine for Recording {
    type Key = RecordingId;
    type Command = Command;
    const KIND: &'static str = "recording";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> TenantScoped<RecordingId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        Ok(transition(self, command, now))
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.version
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
