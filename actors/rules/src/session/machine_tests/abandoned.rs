//! What a call that we have placed counts as at its end, and who is left alone for it.
use super::*;
use crate::effect::Placed;
use entities::{
    rest::RestCause,
    session::WhyAbandoned::{self, Detector, LateSound, NoAgent, NoBrain, Silence},
};

fn placed(effects: &[Effect]) -> Placed {
    let counted = effects.iter().find_map(|effect| match effect {
        Effect::Fact(Fact::CountCall(counted)) => counted.placed.clone(),
        _ => None,
    });
    counted.unwrap()
}

fn live_call() -> Row {
    Row {
        env: Env::Live,
        ..call()
    }
}

/// Each command at its second; answers the end, and what it adds to the counts.
fn after_all(session: Session, commands: &[(Command, i64)]) -> (Session, Placed) {
    let (mut session, mut told) = (session, Vec::new());
    for (command, seconds) in commands {
        let (next, effects) = transition(session, command.clone(), at(*seconds)).unwrap();
        session = next;
        told.extend(effects);
    }
    (session, placed(&told))
}

fn sound_after(ms: u32) -> Command {
    Command::FirstSound { ms, greeted: true }
}
fn agent_says() -> Command {
    utter(Speaker::Agent, "Hello, this is Mia.", 1_000)
}
fn gone() -> Command {
    Command::HangUp(EndedBy::Caller)
}

#[test]
fn what_a_call_counts_as() {
    let answered_by = |row: Row, by| (Session::dialed(row, url(), at(0)).0, (answer_by(by), 10));
    let human = AnsweredBy::Human;
    // What happens after the answer at 10 s: is it live, and why is it abandoned?
    type Case = (
        &'static str,
        Row,
        AnsweredBy,
        Vec<(Command, i64)>,
        (bool, Option<WhyAbandoned>),
    );
    let table: Vec<Case> = vec![
        (
            "in time",
            live_call(),
            human,
            vec![(sound_after(2_000), 12), (gone(), 20)],
            (true, None),
        ),
        (
            "too late",
            live_call(),
            human,
            vec![(sound_after(2_001), 13), (gone(), 20)],
            (true, Some(LateSound)),
        ),
        (
            "the first one counts",
            live_call(),
            human,
            vec![(sound_after(90), 11), (sound_after(9_000), 19), (gone(), 20)],
            (true, None),
        ),
        ("never", live_call(), human, vec![(gone(), 20)], (true, Some(Silence))),
        ("gone before", live_call(), human, vec![(gone(), 11)], (true, None)),
        (
            "kept waiting",
            live_call(),
            human,
            vec![(Command::KeptWaiting, 11), (gone(), 11)],
            (true, Some(Silence)),
        ),
        (
            "the sound overtook that",
            live_call(),
            human,
            vec![(sound_after(1_990), 12), (Command::KeptWaiting, 12), (gone(), 20)],
            (true, None),
        ),
        (
            "no brain",
            live_call(),
            human,
            vec![(left_alone(), 10), (sound_after(300), 11), (fault(), 20)],
            (true, Some(NoBrain)),
        ),
        (
            "it failed later",
            live_call(),
            human,
            vec![(sound_after(300), 11), (fault(), 20)],
            (true, None),
        ),
        (
            "no agent",
            live_call(),
            human,
            vec![(fault(), 11)],
            (true, Some(NoAgent)),
        ),
        ("a machine", live_call(), AnsweredBy::Voicemail, vec![], (false, None)),
        ("a fax", live_call(), AnsweredBy::Fax, vec![], (false, None)),
        (
            "a menu",
            live_call(),
            AnsweredBy::Ivr,
            vec![(gone(), 20)],
            (false, None),
        ),
        (
            "the sandbox hears what is said",
            call(),
            human,
            vec![(agent_says(), 10), (gone(), 20)],
            (true, None),
        ),
        (
            "and not what is said too late",
            call(),
            human,
            vec![(agent_says(), 13), (gone(), 20)],
            (true, Some(LateSound)),
        ),
        (
            "the sandbox without a brain",
            call(),
            human,
            vec![(left_alone(), 10), (agent_says(), 10), (fault(), 11)],
            (true, Some(NoBrain)),
        ),
    ];
    for (what, row, by, then, expected) in table {
        let (session, answer) = answered_by(row, by);
        let all: Vec<_> = std::iter::once(answer).chain(then).collect();
        let (ended, placed) = after_all(session, &all);
        assert_eq!((placed.is_live, placed.abandoned), expected, "{what}");
        assert_eq!(
            (ended.abandonment(), ended.row().abandoned),
            (expected.1, expected.1),
            "{what}"
        );
        let rests: Vec<_> = expected
            .1
            .map(|_| (RestCause::Abandoned, placed.ended_at))
            .into_iter()
            .collect();
        assert_eq!(placed.rests(), rests, "{what}");
    }
}

#[test]
fn a_person_who_is_taken_for_a_machine_is_abandoned() {
    let picked_up = after(Session::dialed(live_call(), url(), at(0)).0, Command::PickUp, 6);
    let (_, placed) = after_all(
        picked_up.clone(),
        &[(Command::Doubt, 9), (answer_by(AnsweredBy::Voicemail), 12)],
    );
    assert_eq!((placed.is_live, placed.abandoned), (true, Some(Detector)));
    // Whoever leaves a message, or talks to it, does not hang up on anybody.
    let row = Row {
        env: Env::Live,
        ..for_machines(VoicemailAction::LeaveMessage)
    };
    let picked_up = after(Session::dialed(row, url(), at(0)).0, Command::PickUp, 6);
    let told = [
        (Command::Doubt, 9),
        (answer_by(AnsweredBy::Voicemail), 12),
        (Command::MessageLeft, 30),
    ];
    let (_, placed) = after_all(picked_up, &told);
    assert_eq!((placed.is_live, placed.abandoned), (false, None));
}

#[test]
fn who_was_picked_up_by_is_unknown_and_nobody_came() {
    let picked_up = after(Session::dialed(live_call(), url(), at(0)).0, Command::PickUp, 6);
    for (command, seconds, expected) in [
        (gone(), 7, None),
        (gone(), 9, Some(Silence)),
        (fault(), 7, Some(NoAgent)),
        (Command::Shutdown, 7, Some(NoAgent)),
        (Command::Tick, 36, Some(NoAgent)),
    ] {
        let (_, placed) = after_all(picked_up.clone(), &[(command.clone(), seconds)]);
        assert_eq!(
            (placed.is_live, placed.abandoned),
            (expected.is_some(), expected),
            "{command:?}"
        );
    }
}

/// The row says whether somebody was talked with: the process that had it in memory is gone.
#[test]
fn a_crash_abandons_only_those_who_had_heard_nothing() {
    let talk = talk_of(live_call());
    for (session, expected) in [
        (after(talk.clone(), sound_after(400), 11), None),
        (talk, Some(Silence)),
        (talk_of(call()), None), // only played
    ] {
        let read = Session::from_row(session.row(), url()).unwrap();
        let (_, placed) = after_all(read, &[(lose_at(20), 40)]);
        assert_eq!((placed.is_live, placed.abandoned), (true, expected));
    }
}

#[test]
fn a_no_is_followed_by_a_rest() {
    let row = call_with(|options| options.declined_codes = vec!["not_interested".into()]);
    let said_no = |placed: &Placed| placed.rests() == [(RestCause::Declined, placed.ended_at)];
    let talk = after(talk_of(row.clone()), agent_says(), 10);
    let (_, placed) = after_all(talk.clone(), &[(dispose("not_interested"), 15), (gone(), 20)]);
    assert!(said_no(&placed));
    let (_, placed) = after_all(
        talk.clone(),
        &[(dispose("not_interested"), 15), (dispose("sold"), 16), (gone(), 20)],
    );
    assert!(placed.rests().is_empty(), "the last one counts");
    // Found out after the end.
    let ended = after(talk, gone(), 20);
    let told = causes_of(ended.clone(), evaluated("not_interested", Evaluator::Llm));
    assert!(told.contains(&"Decline".to_owned()), "{told:?}");
    let told = causes_of(ended, evaluated("sold", Evaluator::Llm));
    assert!(!told.contains(&"Decline".to_owned()), "{told:?}");
}

fn causes_of(session: Session, command: Command) -> Vec<String> {
    kinds(&transition(session, command, at(50)).unwrap().1)
}

#[test]
fn turned_down_by_hand_is_a_no_and_turned_down_by_a_network_is_none() {
    let declined = |state_of: &str, refusal| {
        let (_, placed) = after_all(state(state_of), &[(refuse(refusal), 6)]);
        (placed.declined_at.is_some(), placed.is_blocked)
    };
    assert_eq!(declined("ringing", Refusal::Declined), (true, false));
    assert_eq!(
        declined("dialing", Refusal::Declined),
        (false, false),
        "it has not rung"
    );
    assert_eq!(declined("ringing", Refusal::Blocked("blocked".into())), (false, true));
    assert_eq!(declined("ringing", Refusal::Busy), (false, false));
}

#[test]
fn only_calls_that_we_have_placed_count() {
    let (_, effects) = transition(state("taken in"), gone(), at(20)).unwrap();
    let counted = effects.iter().find_map(|effect| match effect {
        Effect::Fact(Fact::CountCall(counted)) => Some(counted.placed.clone()),
        _ => None,
    });
    assert_eq!(counted, Some(None));
}
