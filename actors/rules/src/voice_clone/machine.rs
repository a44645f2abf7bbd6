//! A clone of a voice: pending -> training -> ready | failed; pending, failed -> training. Ready is final. But for training,
//! each of them can be deleted; a deleted one waits until nothing of it is left.
//!
//! A training is a run: it is told once when it begins and once when it ends. Its row says when it ends at the latest
//! (`deadline`) and, before the provider is asked, that it was (`submitted_at`): after a crash nobody asks it again for
//! that run. What an earlier run may have left with the provider is cleared away between runs.
//!
//! | State | Tick | Train | AddSamples | Prove | Rename | Delete | Examined | Made | Refused | Erased | EraseFailed |
//! |---|---|---|---|---|---|---|---|---|---|---|---|
//! | pending | begins | begins | adds | proves | renames | dooms | refused | leftovers | - | - | - |
//! | training | works on, or times out | refused | refused | proves | renames | refused | submits | ready | fails | - | - |
//! | ready | clears leftovers | refused | refused | proves | renames | dooms | refused | leftovers | leftovers | cleared | again |
//! | failed | clears leftovers | begins | adds | proves | renames | dooms | refused | leftovers | leftovers | cleared | again |
//! | deleted | erases | not found | not found | not found | not found | not found | not found | leftovers | leftovers | gone | again |
//!
//! What proves that the person has agreed is given once, and not replaced: then `Prove` is refused.
//!
//! `Examined`, `Made` and `Refused` count for the run that they name; of another run they are like those of another state.
use crate::{
    effect::{Effect, Fact, Work},
    event::{VoiceCloneTrainingFailed, VoiceCloneTrainingStarted, VoiceCloneTrainingSucceeded},
    machine::Machine,
};
use entities::{
    Error, Result,
    ids::{TenantScoped, VoiceId},
    values::Moment,
    voice::{Consent, Maker, Model as Row, Status, sample::Model as Sample},
};

#[derive(Clone, Debug)]
pub enum Command {
    /// Look at the time.
    Tick,
    Rename {
        name: String,
        language: Option<String>,
    },
    /// They lie in the store.
    AddSamples(Vec<Sample>),
    /// The person who speaks has agreed, and this file shows it. It lies in the store.
    Prove {
        consent: Box<Consent>,
        file: Box<Sample>,
    },
    /// Once more, after a failure.
    Train,
    /// Nothing is wrong with enough of the samples: what follows is the provider's.
    Examined {
        run: i32,
        samples: Vec<Sample>,
    },
    /// The provider has made it.
    Made {
        run: i32,
        provider_voice_id: String,
    },
    /// There will be no voice from this run.
    Refused {
        run: i32,
        refusal: Refusal,
        samples: Vec<Sample>,
    },
    Delete,
    /// What the provider had of these runs, and of a deleted voice everything, is gone.
    Erased {
        until_run: i32,
    },
    EraseFailed {
        why: String,
    },
}

/// Why a run ended without a voice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    /// What is wrong and what to do, for the user.
    pub message: String,
    /// The provider may have made one all the same.
    pub leftovers: bool,
}

/// `error_code` of a voice and of `voice_clone.training_failed`. The first four are the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Fewer than three.
    InsufficientSamples,
    /// Shorter than 30 seconds.
    SampleTooShort,
    SampleTooQuiet,
    /// The operator has taken clones from the workspace's plan.
    VoiceCloneDisabledOnPlan,
    /// Too much of it is cut off at full scale.
    SampleClipped,
    /// No WAV, MP3, FLAC or Ogg Vorbis with one or two channels.
    SampleUnreadable,
    /// The provider says no, or cannot be reached.
    ProviderError,
    /// It took too long.
    TimedOut,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InsufficientSamples => "insufficient_samples",
            Code::SampleTooShort => "sample_too_short",
            Code::SampleTooQuiet => "sample_too_quiet",
            Code::VoiceCloneDisabledOnPlan => "voice_clone_disabled_on_plan",
            Code::SampleClipped => "sample_clipped",
            Code::SampleUnreadable => "sample_unreadable",
            Code::ProviderError => "provider_error",
            Code::TimedOut => "timed_out",
        }
    }
}

/// Samples of a voice.
pub const MAX_SAMPLES: i32 = 25;
/// Work that nobody reports on is done again after this.
const LEASE_SECONDS: i64 = 60;
/// A provider that was given up may finish its work all the same: only then it is looked for what it left.
const AFTERMATH_SECONDS: i64 = 300;

/// A voice's row, and what the operator decides about trainings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voice {
    pub row: Row,
    /// A training takes no longer.
    pub training_seconds: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pending,
    Training,
    Ready,
    Failed,
    Deleted,
}

fn stage(row: &Row) -> Stage {
    match (row.deleted_at, row.status) {
        (Some(_), _) => Stage::Deleted,
        (None, Status::Pending) => Stage::Pending,
        (None, Status::Training) => Stage::Training,
        (None, Status::Ready) => Stage::Ready,
        (None, Status::Failed) => Stage::Failed,
    }
}

/// The whole life of a cloned voice. Pure.
pub fn transition(voice: Voice, command: Command, now: Moment) -> Result<(Voice, Vec<Effect>)> {
    use Stage::*;
    let Voice { row, training_seconds } = voice;
    let (row, effects) = match (stage(&row), command) {
        (Pending, Command::Tick) | (Pending | Failed, Command::Train) => begin(row, training_seconds, now),
        (Training, Command::Tick) if row.deadline.is_some_and(|at| now >= at) => time_out(row, now),
        (Training, Command::Tick) if is_due(&row, now) => {
            let key = row.key();
            (lease(row, now), vec![Work::TrainVoice(key).into()])
        }
        (Ready | Failed | Deleted, Command::Tick) if is_due(&row, now) => {
            let key = row.key();
            (lease(row, now), vec![Work::EraseVoice(key).into()])
        }
        (Pending | Failed, Command::AddSamples(samples)) => add(row, samples, now)?,
        (Pending | Training | Ready | Failed, Command::Prove { consent, file }) if row.consent.is_none() => {
            prove(row, *consent, *file, now)
        }
        (Pending | Training | Ready | Failed, Command::Rename { name, language }) => {
            (rename(row, name, language, now), Vec::new())
        }
        (Training, Command::Examined { run, samples }) if run == row.run && row.submitted_at.is_none() => {
            submit(row, samples, now)
        }
        (Training, Command::Made { run, provider_voice_id }) if run == row.run => succeed(row, provider_voice_id, now),
        (Training, Command::Refused { run, refusal, samples }) if run == row.run => fail(row, refusal, samples, now),
        (Pending | Ready | Failed, Command::Delete) => doom(row, now),
        // The provider repeats itself: that is the voice we have.
        (Ready, Command::Made { provider_voice_id, .. })
            if row.provider_voice_id.as_deref() == Some(&provider_voice_id) =>
        {
            (row, Vec::new())
        }
        // It came too late: nobody will use it.
        (Pending | Training | Ready | Failed | Deleted, Command::Made { .. }) => (left_over(row, now), Vec::new()),
        (Training | Ready | Failed | Deleted, Command::Refused { refusal, .. }) if refusal.leftovers => {
            (left_over(row, now), Vec::new())
        }
        (Ready | Failed, Command::Erased { until_run }) if until_run >= row.run => {
            let mut row = row;
            (row.leftovers, row.wake_at, row.tries) = (false, None, 0);
            (row, Vec::new())
        }
        (Deleted, Command::Erased { until_run }) if until_run >= row.run => gone(row),
        (Ready | Failed | Deleted, Command::EraseFailed { why }) => (again(row, &why, now), Vec::new()),
        // Ticks come early, and work that was done twice reports twice: no change, not an error.
        (Training | Ready | Failed | Deleted, Command::Tick)
        | (Pending | Training, Command::Erased { .. } | Command::EraseFailed { .. })
        | (Ready | Failed | Deleted, Command::Erased { .. })
        | (Pending | Training | Ready | Failed | Deleted, Command::Refused { .. }) => (row, Vec::new()),
        (Training, Command::Train) => return Err(refused(&row, "be trained", "it is already being trained")),
        (Ready, Command::Train) => return Err(refused(&row, "be trained", "it is ready to be used")),
        (Training, Command::AddSamples(_)) => {
            return Err(refused(&row, "take samples", "wait until the training has ended"));
        }
        (Ready, Command::AddSamples(_)) => return Err(refused(&row, "take samples", "create another voice from them")),
        (Pending | Training | Ready | Failed, Command::Prove { .. }) => {
            return Err(refused(
                &row,
                "be given another consent",
                "create another voice for another consent",
            ));
        }
        (Training, Command::Delete) => return Err(refused(&row, "be deleted", "wait until the training has ended")),
        (Pending | Training | Ready | Failed, Command::Examined { .. }) => {
            return Err(refused(&row, "be submitted", "that training is over"));
        }
        (
            Deleted,
            Command::Train
            | Command::AddSamples(_)
            | Command::Prove { .. }
            | Command::Rename { .. }
            | Command::Delete
            | Command::Examined { .. },
        ) => return Err(Error::NotFound("voice")),
    };
    Ok((Voice { row, training_seconds }, effects))
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(voice: &Voice) -> Option<Moment> {
    let row = &voice.row;
    match stage(row) {
        Stage::Training => row.wake_at.into_iter().chain(row.deadline).min(),
        Stage::Pending | Stage::Ready | Stage::Failed | Stage::Deleted => row.wake_at,
    }
}

fn refused(row: &Row, command: &'static str, hint: &'static str) -> Error {
    let state = match stage(row) {
        Stage::Pending => "pending",
        Stage::Training => "training",
        Stage::Ready => "ready",
        Stage::Failed => "failed",
        Stage::Deleted => "deleted",
    };
    Error::InvalidState {
        kind: "voice",
        state,
        command,
        hint,
    }
}

fn is_due(row: &Row, now: Moment) -> bool {
    row.wake_at.is_some_and(|at| now >= at)
}

fn lease(mut row: Row, now: Moment) -> Row {
    row.wake_at = Some(now.plus_seconds(LEASE_SECONDS));
    row
}

/// From ten seconds on, doubled with each failure, an hour at most.
fn again(mut row: Row, why: &str, now: Moment) -> Row {
    row.wake_at = Some(now.plus_seconds((10_i64 << row.tries.clamp(0, 9)).min(3600)));
    row.tries = row.tries.saturating_add(1);
    if row.deleted_at.is_some() {
        row.error_message = Some(why.to_owned());
    }
    row
}

fn begin(mut row: Row, training_seconds: i64, now: Moment) -> (Row, Vec<Effect>) {
    row.status = Status::Training;
    row.run = row.run.saturating_add(1);
    row.deadline = Some(now.plus_seconds(training_seconds));
    (row.submitted_at, row.error_code, row.error_message) = (None, None, None);
    (row.tries, row.updated_at) = (0, now);
    let row = lease(row, now);
    let started = VoiceCloneTrainingStarted {
        voice_id: row.id.0,
        name: row.name.clone(),
        samples: row.samples,
    };
    let effects = vec![Effect::emit(started), Work::TrainVoice(row.key()).into()];
    (row, effects)
}

fn rename(row: Row, name: String, language: Option<String>, now: Moment) -> Row {
    Row {
        name,
        language,
        updated_at: now,
        ..row
    }
}

/// The provider is asked after the commit that says so.
fn submit(row: Row, samples: Vec<Sample>, now: Moment) -> (Row, Vec<Effect>) {
    let mut row = lease(row, now);
    row.submitted_at = Some(now);
    (row, vec![Fact::SaveVoiceSamples(samples).into()])
}

/// It waits, deleted, until nothing of it is left.
fn doom(row: Row, now: Moment) -> (Row, Vec<Effect>) {
    let key = row.key();
    let mut row = lease(row, now);
    (row.deleted_at, row.updated_at, row.tries) = (Some(now), now, 0);
    (row, vec![Work::EraseVoice(key).into()])
}

fn add(mut row: Row, samples: Vec<Sample>, now: Moment) -> Result<(Row, Vec<Effect>)> {
    row.samples = row
        .samples
        .saturating_add(i32::try_from(samples.len()).unwrap_or(i32::MAX));
    if row.samples > MAX_SAMPLES {
        let why = format!(
            "would make {} samples of this voice; it takes {MAX_SAMPLES}",
            row.samples
        );
        return Err(Error::invalid("samples", why));
    }
    row.updated_at = now;
    Ok((row, vec![Fact::SaveVoiceSamples(samples).into()]))
}

fn prove(row: Row, consent: Consent, file: Sample, now: Moment) -> (Row, Vec<Effect>) {
    let row = Row {
        consent: Some(consent),
        updated_at: now,
        ..row
    };
    (row, vec![Fact::SaveVoiceSamples(vec![file]).into()])
}

fn succeed(mut row: Row, provider_voice_id: String, now: Moment) -> (Row, Vec<Effect>) {
    row.status = Status::Ready;
    row.provider_voice_id = Some(provider_voice_id);
    (row.ready_at, row.updated_at) = (Some(now), now);
    let row = rest(row, now);
    let succeeded = VoiceCloneTrainingSucceeded {
        voice_id: row.id.0,
        name: row.name.clone(),
        ready_at: now,
    };
    (row, vec![Effect::emit(succeeded)])
}

fn time_out(row: Row, now: Moment) -> (Row, Vec<Effect>) {
    let refusal = Refusal {
        code: Code::TimedOut,
        message: "the training took too long; train the voice again".into(),
        leftovers: row.submitted_at.is_some() && row.provider != Maker::Sandbox,
    };
    fail(row, refusal, Vec::new(), now)
}

fn fail(mut row: Row, refusal: Refusal, samples: Vec<Sample>, now: Moment) -> (Row, Vec<Effect>) {
    row.status = Status::Failed;
    row.updated_at = now;
    row.error_code = Some(refusal.code.as_str().into());
    row.error_message = Some(refusal.message.clone());
    row.leftovers |= refusal.leftovers;
    let row = rest(row, now);
    let failed = VoiceCloneTrainingFailed {
        voice_id: row.id.0,
        name: row.name.clone(),
        error_code: refusal.code.as_str().into(),
        error_message: refusal.message,
    };
    let mut effects = vec![Effect::emit(failed)];
    if !samples.is_empty() {
        effects.insert(0, Fact::SaveVoiceSamples(samples).into());
    }
    (row, effects)
}

/// After a run nothing is left to do, but for what it left over.
fn rest(mut row: Row, now: Moment) -> Row {
    (row.deadline, row.submitted_at, row.tries) = (None, None, 0);
    row.wake_at = row.leftovers.then(|| now.plus_seconds(AFTERMATH_SECONDS));
    row
}

/// A training that runs meanwhile comes first.
fn left_over(mut row: Row, now: Moment) -> Row {
    row.leftovers = true;
    if matches!(stage(&row), Stage::Ready | Stage::Failed | Stage::Deleted) {
        row.wake_at = Some(now);
    }
    row
}

/// Of a deleted voice its row is left, and says nothing.
fn gone(mut row: Row) -> (Row, Vec<Effect>) {
    (row.leftovers, row.wake_at, row.tries, row.samples) = (false, None, 0, 0);
    (row.provider_voice_id, row.error_message) = (None, None);
    let id = row.id;
    (row, vec![Fact::ForgetVoiceSamples(id).into()])
}

impl Machine for Voice {
    type Key = VoiceId;
    type Command = Command;
    const KIND: &'static str = "voice";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> TenantScoped<VoiceId> {
        self.row.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.row.version
    }
}

/// The id of the voice that there is wherever the service runs.
pub const ALWAYS_THERE: &str = "builtin:tones";

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
