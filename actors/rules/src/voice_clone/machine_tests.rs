//! What a cloned voice does, line by line; then what holds for every voice, whatever its provider does.
use super::*;
use crate::event::Event;
use entities::{
    ids::{TenantId, VoiceId},
    values::{Env, Text},
    voice::{ConsentEvidence, sample::EVIDENCE},
};
use proptest::prelude::*;
use uuid::Uuid;

const TRAINING: i64 = 600;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

fn born(provider: Maker) -> Voice {
    let row = Row {
        id: VoiceId(Uuid::from_u128(7)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        env: Env::Live,
        name: "Ann".into(),
        language: None,
        provider,
        provider_voice_id: None,
        status: Status::Pending,
        samples: 3,
        run: 0,
        deadline: None,
        submitted_at: None,
        leftovers: false,
        wake_at: Some(at(0)),
        tries: 0,
        error_code: None,
        error_message: None,
        consent_attested_at: at(0),
        consent: None,
        ready_at: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
        deleted_at: None,
    };
    Voice {
        row,
        training_seconds: TRAINING,
    }
}

fn sample(place: i32) -> Sample {
    Sample {
        id: Uuid::from_u128(100 + place.unsigned_abs() as u128).into(),
        tenant_id: TenantId(Uuid::from_u128(2)),
        voice_id: VoiceId(Uuid::from_u128(7)),
        place,
        stored: true,
        file_name: "a.wav".into(),
        format: None,
        bytes: 1,
        sha256: "ab".into(),
        duration_ms: None,
        loudness_lufs: None,
        fault: None,
        created_at: at(0),
    }
}

fn refusal(leftovers: bool) -> Refusal {
    Refusal {
        code: Code::ProviderError,
        message: "it said no".into(),
        leftovers,
    }
}

fn examined(run: i32) -> Command {
    Command::Examined {
        run,
        samples: vec![sample(0)],
    }
}
fn made(run: i32) -> Command {
    Command::Made {
        run,
        provider_voice_id: format!("v{run}"),
    }
}
fn refused_by(run: i32, leftovers: bool) -> Command {
    Command::Refused {
        run,
        refusal: refusal(leftovers),
        samples: Vec::new(),
    }
}
fn erased(until_run: i32) -> Command {
    Command::Erased { until_run }
}
fn erase_failed() -> Command {
    Command::EraseFailed { why: "away".into() }
}
fn add(count: i32) -> Command {
    Command::AddSamples((0..count).map(sample).collect())
}
fn rename() -> Command {
    Command::Rename {
        name: "Bea".into(),
        language: Some("de".into()),
    }
}

fn prove() -> Command {
    let evidence = ConsentEvidence {
        file_name: "statement.wav".into(),
        bytes: 1,
        sha256: "cd".into(),
    };
    let consent = Consent {
        speaker_name: Text::parse("Ann Bell").unwrap(),
        given_at: at(-100),
        statement: Text::parse("I agree that my voice is cloned.").unwrap(),
        reference: None,
        evidence,
        recorded_at: at(0),
    };
    Command::Prove {
        consent: Box::new(consent),
        file: Box::new(sample(EVIDENCE)),
    }
}

/// After these commands, each at its second.
fn after(commands: &[(Command, i64)]) -> Voice {
    commands
        .iter()
        .fold(born(Maker::Elevenlabs), |voice, (command, seconds)| {
            transition(voice, command.clone(), at(*seconds)).unwrap().0
        })
}

/// Its state, and what an outsider sees of the effects.
fn shown(outcome: Result<(Voice, Vec<Effect>)>) -> String {
    let (voice, effects) = match outcome {
        Ok(next) => next,
        Err(Error::NotFound(_)) => return "not found".into(),
        Err(Error::InvalidState { .. }) => return "refused".into(),
        Err(Error::Invalid { field, .. }) => return format!("bad {field}"),
        Err(other) => panic!("{other}"),
    };
    let state = match stage(&voice.row) {
        Stage::Pending => "pending",
        Stage::Training => "training",
        Stage::Ready => "ready",
        Stage::Failed => "failed",
        Stage::Deleted => "deleted",
    };
    let mut words = vec![state.to_owned()];
    words.extend(voice.row.leftovers.then(|| "leftovers".to_owned()));
    words.extend(effects.iter().map(|effect| match effect {
        Effect::Fact(Fact::Emit(Event::VoiceCloneTrainingStarted(event))) => format!("started({})", event.samples),
        Effect::Fact(Fact::Emit(Event::VoiceCloneTrainingSucceeded(_))) => "succeeded".into(),
        Effect::Fact(Fact::Emit(Event::VoiceCloneTrainingFailed(event))) => format!("failed({})", event.error_code),
        Effect::Work(Work::TrainVoice(_)) => "train".into(),
        Effect::Work(Work::EraseVoice(_)) => "erase".into(),
        Effect::Fact(Fact::SaveVoiceSamples(samples)) => format!("save({})", samples.len()),
        Effect::Fact(Fact::ForgetVoiceSamples(_)) => "forget".into(),
        other => panic!("{other:?}"),
    }));
    words.join(" ")
}

/// Every state with every command.
#[test]
fn every_transition() {
    let pending = || born(Maker::Elevenlabs);
    let training = || after(&[(Command::Tick, 0)]);
    let submitted = || after(&[(Command::Tick, 0), (examined(1), 5)]);
    let ready = || after(&[(Command::Tick, 0), (examined(1), 5), (made(1), 9)]);
    let proved = || after(&[(Command::Tick, 0), (examined(1), 5), (made(1), 9), (prove(), 10)]);
    let failed = || after(&[(Command::Tick, 0), (refused_by(1, false), 5)]);
    let littered = || after(&[(Command::Tick, 0), (examined(1), 5), (refused_by(1, true), 6)]);
    let deleted = || after(&[(Command::Tick, 0), (refused_by(1, false), 5), (Command::Delete, 8)]);
    let gone = || {
        after(&[
            (Command::Tick, 0),
            (refused_by(1, false), 5),
            (Command::Delete, 8),
            (erased(1), 9),
        ])
    };
    #[rustfmt::skip]
    let table: Vec<(Voice, Command, i64, &str)> = vec![
        (pending(), Command::Tick, 0, "training started(3) train"),
        (pending(), Command::Train, 0, "training started(3) train"),
        (pending(), add(2), 0, "pending save(2)"),
        (pending(), add(23), 0, "bad samples"),
        (pending(), prove(), 0, "pending save(1)"),
        (pending(), rename(), 0, "pending"),
        (pending(), Command::Delete, 0, "deleted erase"),
        (pending(), examined(0), 0, "refused"),
        (pending(), made(0), 0, "pending leftovers"),
        (pending(), refused_by(0, false), 0, "pending"),
        (pending(), erased(0), 0, "pending"),
        (pending(), erase_failed(), 0, "pending"),

        (training(), Command::Tick, 59, "training"),
        (training(), Command::Tick, 60, "training train"),
        (training(), Command::Tick, 599, "training train"),
        (training(), Command::Tick, 600, "failed failed(timed_out)"),
        (training(), Command::Train, 1, "refused"),
        (training(), add(1), 1, "refused"),
        (training(), prove(), 1, "training save(1)"),
        (training(), rename(), 1, "training"),
        (training(), Command::Delete, 1, "refused"),
        (training(), examined(1), 1, "training save(1)"),
        (training(), examined(2), 1, "refused"),
        (training(), made(1), 1, "ready succeeded"),
        (training(), made(0), 1, "training leftovers"),
        (training(), refused_by(1, false), 1, "failed failed(provider_error)"),
        (training(), refused_by(0, false), 1, "training"),
        (training(), refused_by(0, true), 1, "training leftovers"),
        (training(), erased(1), 1, "training"),
        (training(), erase_failed(), 1, "training"),

        (submitted(), Command::Tick, 64, "training"),
        (submitted(), Command::Tick, 65, "training train"),
        (submitted(), Command::Tick, 600, "failed leftovers failed(timed_out)"),
        (submitted(), examined(1), 6, "refused"),
        (submitted(), made(1), 6, "ready succeeded"),
        (submitted(), refused_by(1, false), 6, "failed failed(provider_error)"),
        (submitted(), refused_by(1, true), 6, "failed leftovers failed(provider_error)"),

        (ready(), Command::Tick, 10_000, "ready"),
        (ready(), Command::Train, 10, "refused"),
        (ready(), add(1), 10, "refused"),
        (ready(), prove(), 10, "ready save(1)"),
        (proved(), prove(), 11, "refused"),
        (proved(), Command::Delete, 11, "deleted erase"),
        (ready(), rename(), 10, "ready"),
        (ready(), Command::Delete, 10, "deleted erase"),
        (ready(), examined(1), 10, "refused"),
        (ready(), made(1), 10, "ready"),
        (ready(), made(0), 10, "ready leftovers"),
        (ready(), refused_by(1, false), 10, "ready"),
        (ready(), refused_by(1, true), 10, "ready leftovers"),
        (ready(), erased(1), 10, "ready"),
        (ready(), erase_failed(), 10, "ready"),

        (failed(), Command::Tick, 10_000, "failed"),
        (failed(), Command::Train, 10, "training started(3) train"),
        (failed(), add(1), 10, "failed save(1)"),
        (failed(), prove(), 10, "failed save(1)"),
        (failed(), rename(), 10, "failed"),
        (failed(), Command::Delete, 10, "deleted erase"),
        (failed(), examined(1), 10, "refused"),
        (failed(), made(1), 10, "failed leftovers"),
        (failed(), refused_by(1, false), 10, "failed"),
        (failed(), refused_by(1, true), 10, "failed leftovers"),
        (failed(), erased(1), 10, "failed"),
        (failed(), erase_failed(), 10, "failed"),

        (littered(), Command::Tick, 305, "failed leftovers"),
        (littered(), Command::Tick, 306, "failed leftovers erase"),
        (littered(), erased(0), 7, "failed leftovers"),
        (littered(), erased(1), 7, "failed"),
        (littered(), erase_failed(), 7, "failed leftovers"),
        (littered(), Command::Train, 7, "training leftovers started(3) train"),

        (deleted(), Command::Tick, 9, "deleted"),
        (deleted(), Command::Tick, 68, "deleted erase"),
        (deleted(), Command::Train, 9, "not found"),
        (deleted(), add(1), 9, "not found"),
        (deleted(), prove(), 9, "not found"),
        (deleted(), rename(), 9, "not found"),
        (deleted(), Command::Delete, 9, "not found"),
        (deleted(), examined(1), 9, "not found"),
        (deleted(), made(1), 9, "deleted leftovers"),
        (deleted(), refused_by(1, false), 9, "deleted"),
        (deleted(), refused_by(1, true), 9, "deleted leftovers"),
        (deleted(), erased(1), 9, "deleted forget"),
        (deleted(), erased(0), 9, "deleted"),
        (deleted(), erase_failed(), 9, "deleted"),

        (gone(), Command::Tick, 10_000, "deleted"),
        (gone(), made(1), 10, "deleted leftovers"),
    ];
    for (voice, command, seconds, expected) in table {
        let before = format!("{:?} {command:?} at {seconds}", voice.row.status);
        assert_eq!(shown(transition(voice, command, at(seconds))), expected, "{before}");
    }
}

#[test]
fn a_failure_says_why_until_the_next_run() {
    let failed = after(&[(Command::Tick, 0), (refused_by(1, false), 5)]);
    assert_eq!(failed.row.error_code.as_deref(), Some("provider_error"));
    assert_eq!(failed.row.error_message.as_deref(), Some("it said no"));
    let again = transition(failed, Command::Train, at(9)).unwrap().0;
    assert_eq!((again.row.error_code, again.row.run), (None, 2));
}

#[test]
fn an_erasure_that_fails_is_tried_again_ever_more_slowly() {
    let mut voice = after(&[(Command::Tick, 0), (refused_by(1, false), 5), (Command::Delete, 8)]);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let now = voice.row.wake_at.unwrap();
        voice = transition(voice, erase_failed(), now).unwrap().0;
        pauses.push(voice.row.wake_at.unwrap().since(now).as_secs());
    }
    assert_eq!(pauses[..4], [10, 20, 40, 80]);
    assert_eq!(pauses[9..], [3600, 3600, 3600]);
}

fn any_command() -> impl Strategy<Value = Command> {
    let run = 0..4_i32;
    prop_oneof![
        4 => Just(Command::Tick),
        2 => Just(Command::Train),
        1 => (1..4_i32).prop_map(add),
        1 => Just(prove()),
        1 => Just(rename()),
        1 => Just(Command::Delete),
        2 => run.clone().prop_map(examined),
        2 => run.clone().prop_map(made),
        2 => (run.clone(), any::<bool>()).prop_map(|(run, leftovers)| refused_by(run, leftovers)),
        1 => run.prop_map(erased),
        1 => Just(erase_failed()),
    ]
}

proptest! {
    /// Each run is told once when it begins and once when it ends; a second tick changes nothing; a tick at the deadline does.
    #[test]
    fn runs_are_told_once(steps in prop::collection::vec((any_command(), 0..400_i64), 1..60)) {
        let (mut voice, mut now, mut open, mut begun) = (born(Maker::Elevenlabs), 0, false, 0);
        for (command, pause) in steps {
            now += pause;
            let Ok((next, effects)) = transition(voice.clone(), command, at(now)) else { continue };
            for effect in &effects {
                match effect {
                    Effect::Fact(Fact::Emit(Event::VoiceCloneTrainingStarted(_))) => {
                        prop_assert!(!open, "it has begun already");
                        (open, begun) = (true, begun + 1);
                    }
                    Effect::Fact(Fact::Emit(_)) => {
                        prop_assert!(open, "it has not begun, or has ended already");
                        open = false;
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(open, stage(&next.row) == Stage::Training);
            prop_assert_eq!(begun, next.row.run);
            // One ends a run whose time is over, one begins to clear up after it; then there is nothing left to do.
            let tick = |voice: &Voice| transition(voice.clone(), Command::Tick, at(now)).unwrap();
            let settled = tick(&tick(&next).0).0;
            let (again, effects) = tick(&settled);
            prop_assert!(again == settled && effects.is_empty(), "a tick more changes nothing");
            if let Some(deadline) = next_deadline(&next) {
                let (ticked, _) = transition(next.clone(), Command::Tick, deadline.max(at(now))).unwrap();
                prop_assert!(ticked != next, "a tick at the deadline changes something");
            }
            voice = next;
        }
    }
}
