use super::*;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// Every sample talk starts here.
fn started() -> Moment {
    at(100)
}

fn words(role: Speaker, content: &str) -> Utterance {
    let content = content.to_owned();
    Utterance {
        role,
        is_own: false,
        content,
        ms: 0,
        ago_ms: None,
        is_open: false,
        audio: None,
    }
}

fn say(log: &mut Log, role: Speaker, content: &str, (from, until): (i64, i64)) -> Option<Turn> {
    log.utter(words(role, content), (started(), at(from), at(until)))
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "look_up".to_owned(),
        arguments: json!({ "day": "monday" }),
    }
}

fn answer(key: &str, value: &str) -> Answered {
    Answered {
        key: key.to_owned(),
        question: "When?".to_owned(),
        value: value.into(),
        evidence_turn: None,
    }
}

#[test]
fn words_and_functions_stand_in_seconds_since_the_start() {
    let mut log = Log::default();
    assert!(log.is_empty());
    let said = say(&mut log, Speaker::Agent, "Hello.", (101, 103)).unwrap();
    let asked = log.called(call("a"), true, (started(), at(104))).unwrap();
    let told = log.returned("a".into(), "7".into(), 4.5).unwrap();
    assert_eq!(log.turns, [said.clone(), asked.clone(), told.clone()]);
    assert_eq!(
        (said.content.as_deref(), said.t, said.end_t),
        (Some("Hello."), 1.0, Some(3.0))
    );
    // A turn that is purely a tool call has no content. Source: specification, "Transcript turn".
    assert_eq!(
        (asked.role, asked.content, asked.t, asked.end_t),
        (Speaker::Agent, None, 4.0, None)
    );
    assert_eq!(asked.tool_calls, [call("a")]);
    assert_eq!(
        (told.role, told.content.as_deref(), told.tool_call_id.as_deref()),
        (Speaker::Tool, Some("7"), Some("a"))
    );
    assert!(!log.is_empty());
}

#[test]
fn something_that_happened_is_enough_not_to_be_empty() {
    let mut log = Log::default();
    log.note("keys_pressed", Some("1#".into()), at(5));
    assert!(!log.is_empty());
    let entry = &log.timeline[0];
    assert_eq!(
        (entry.at, entry.kind.as_str(), entry.detail.as_deref()),
        (at(5), "keys_pressed", Some("1#"))
    );
}

#[test]
fn a_cut_shortens_the_agents_last_words_and_nobody_elses() {
    let mut log = Log::default();
    say(&mut log, Speaker::Agent, "First.", (100, 101));
    say(&mut log, Speaker::Agent, "Second, and longer.", (102, 106));
    say(&mut log, Speaker::User, "Wait!", (104, 105));
    log.cut("Second,".into(), 1_500, 3.5);
    let said: Vec<_> = log
        .turns
        .iter()
        .map(|turn| (turn.content.as_deref().unwrap(), turn.end_t))
        .collect();
    assert_eq!(
        said,
        [("First.", Some(1.0)), ("Second,", Some(3.5)), ("Wait!", Some(5.0))]
    );
    // Nobody was speaking.
    let mut silent = Log::default();
    silent.cut("?".into(), 1_000, 1.0);
    assert_eq!(silent, Log::default());
}

/// Of ten seconds that it meant to say, whatever speed the line has, and also where the line stood still for a while.
#[test]
fn a_sound_ends_where_its_words_do() {
    let mut log = Log::default();
    for second in [100, 102] {
        let spoken = Utterance {
            audio: Some(Bytes::from(vec![0; 80_000])),
            ..words(Speaker::Agent, "A long story.")
        };
        let ends = (started(), at(second), at(second + 2));
        assert!(log.utter(spoken, ends).is_some());
    }
    log.cut("A".into(), 2_500, 2.5);
    let lengths = |log: &Log| log.sounds.iter().map(|(_, sound)| sound.len()).collect::<Vec<_>>();
    assert_eq!(lengths(&log), [80_000, 20_000]);
    assert_eq!(lengths(&log.clone().closed(Some(started()), at(110))), [80_000, 20_000]);
    assert_eq!(lengths(&log.closed(Some(started()), at(101))), [40_000, 0]);
}

#[test]
fn what_is_known_later_stands_where_it_began_but_not_before_what_was_said_meanwhile() {
    let mut log = Log::default();
    assert_eq!(log.last_begun(started()), started());
    let moment = at(101).plus_millis(1);
    log.utter(words(Speaker::Agent, "Hello."), (started(), moment, at(103)));
    assert_eq!(log.last_begun(started()), moment, "to the millisecond");
}

#[test]
fn the_words_said_so_far_take_until_the_last_ones_end() {
    let mut log = Log::default();
    assert_eq!(log.spoken_until(started()), started());
    say(&mut log, Speaker::User, "Hello?", (101, 104));
    log.returned("a".into(), "7".into(), 2.0);
    assert_eq!(log.spoken_until(started()), at(104), "functions are not spoken");
    say(&mut log, Speaker::Agent, "Yes?", (105, 107));
    assert_eq!(log.spoken_until(started()), at(107));
    log.cut("Y".into(), 250, 5.25);
    assert_eq!(log.spoken_until(started()), at(105).plus(Duration::from_millis(250)));
}

#[test]
fn at_the_end_the_last_words_end_too() {
    let mut log = Log::default();
    say(&mut log, Speaker::Agent, "Before.", (101, 102));
    say(&mut log, Speaker::Agent, "While it ended.", (103, 109));
    let closed = log.closed(Some(started()), at(105));
    let ends: Vec<_> = closed.turns.iter().map(|turn| turn.end_t).collect();
    assert_eq!(ends, [Some(2.0), Some(5.0)]);
}

#[test]
fn at_the_end_what_is_still_awaited_is_canceled() {
    let mut log = Log::default();
    log.called(call("own"), true, (started(), at(101)));
    log.called(call("answered"), true, (started(), at(102)));
    log.called(call("built_in"), false, (started(), at(103)));
    log.returned("answered".into(), "7".into(), 3.0);
    log.returned("unknown".into(), "7".into(), 3.0);
    let closed = log.closed(Some(started()), at(110));
    let canceled = Invocation {
        name: "look_up".into(),
        status: InvocationStatus::Canceled,
        duration_ms: 9_000,
    };
    assert_eq!(
        closed.invocations,
        [canceled],
        "a built-in tool is no function of the user's"
    );
    // Closed once, it has nothing more to cancel.
    assert_eq!(
        closed.clone().closed(Some(started()), at(120)).invocations,
        closed.invocations
    );
}

#[test]
fn a_call_that_nobody_answered_is_closed_as_it_is() {
    let mut log = Log::default();
    log.note("keys_sent", None, at(1));
    assert_eq!(log.clone().closed(None, at(5)), log);
}

#[test]
fn the_last_answer_to_a_question_counts() {
    let mut log = Log::default();
    for (key, value) in [("day", "monday"), ("size", "small"), ("day", "friday")] {
        log.answer(answer(key, value));
    }
    assert_eq!(log.answers, [answer("size", "small"), answer("day", "friday")]);
}

#[test]
fn more_than_it_may_have_is_not_kept() {
    let mut log = Log::default();
    for nth in 0..2_001 {
        let kept = say(&mut log, Speaker::User, "Well.", (101, 102)).is_some();
        assert_eq!(kept, nth < 2_000);
        log.note("keys_pressed", None, at(101));
        log.invoked(Some(Invocation {
            name: "look_up".into(),
            status: InvocationStatus::Succeeded,
            duration_ms: 1,
        }));
    }
    assert_eq!(log.called(call("late"), true, (started(), at(103))), None);
    assert_eq!(log.returned("late".into(), "7".into(), 4.0), None);
    assert_eq!(
        (log.turns.len(), log.timeline.len(), log.invocations.len()),
        (2_000, 2_000, 2_000)
    );
}

#[test]
fn sound_is_kept_with_the_place_of_its_turn_up_to_32_mib() {
    let sound = |mib: usize| Some(Bytes::from(vec![0xff; mib * 1024 * 1024]));
    let mut log = Log::default();
    for (content, audio) in [
        ("a", sound(20)),
        ("b", None),
        ("c", sound(13)),
        ("d", sound(12)),
        ("e", sound(1)),
    ] {
        let spoken = Utterance {
            audio,
            ..words(Speaker::Agent, content)
        };
        assert!(log.utter(spoken, (started(), at(101), at(102))).is_some(), "{content}");
    }
    let places: Vec<_> = log
        .sounds
        .iter()
        .map(|(place, sound)| (*place, sound.len() >> 20))
        .collect();
    assert_eq!(
        places,
        [(0, 20), (3, 12)],
        "the words of the others are kept, not their sound"
    );
    // A turn that is not kept has no sound either.
    let mut full = Log {
        turns: vec![log.turns[0].clone(); 2_000],
        ..Log::default()
    };
    let spoken = Utterance {
        audio: sound(1),
        ..words(Speaker::Agent, "late")
    };
    assert_eq!(full.utter(spoken, (started(), at(101), at(102))), None);
    assert!(full.sounds.is_empty());
}

#[test]
fn its_transcript_is_all_of_it() {
    let mut log = Log::default();
    say(&mut log, Speaker::User, "Hello?", (101, 102));
    log.note("opt_out", None, at(103));
    log.called(call("a"), true, (started(), at(104)));
    let closed = log.closed(Some(started()), at(105));
    let session_id = SessionId(Uuid::from_u128(1));
    let stored = closed.transcript(session_id);
    let all = (stored.turns.0, stored.timeline.0, stored.invocations.0);
    assert_eq!(all, (closed.turns, closed.timeline, closed.invocations));
    assert_eq!(stored.session_id, session_id);
}

/// Whoever talks for long fills no memory, and other things still find their place in the timeline.
#[test]
fn answers_are_counted_for_long_and_told_for_a_while() {
    let mut log = Log::default();
    assert_eq!(log.latency(), None);
    let marks = TurnMarks::of([None, None, None, None, None, Some(700)]).unwrap();
    for nth in 0..2_500 {
        log.measured(&marks, at(101 + nth));
    }
    let (turns, p50_ms, p95_ms) = (2_000, 700, 700);
    assert_eq!(log.latency(), Some(Latency { turns, p50_ms, p95_ms }));
    assert_eq!(log.timeline.len(), 500);
    log.note("opt_out", None, at(3_000));
    assert_eq!(log.timeline.len(), 501);
}
