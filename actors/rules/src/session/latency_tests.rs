use super::*;

type Raw = [Option<i64>; 6];

/// Endpoint, text, token, clause, sound, packet.
const WHOLE: Raw = [Some(592), Some(740), Some(1_090), Some(1_190), Some(1_290), Some(1_302)];

fn with(stage: Stage, ms: Option<i64>) -> Raw {
    let mut marks = WHOLE;
    marks[stage as usize] = ms;
    marks
}

#[test]
fn what_can_be_is_believed_and_nothing_else() {
    use Stage::*;
    let told = |marks: Raw| TurnMarks::of(marks).map(|turn| turn.to_string());
    let whole = "endpoint 592 ms, text 740 ms, token 1090 ms, clause 1190 ms, sound 1290 ms, packet 1302 ms";
    for (what, marks, wanted) in [
        ("a whole turn", WHOLE, Some(whole)),
        (
            "a turn of which the packet is all",
            [None, None, None, None, None, Some(0)],
            Some("packet 0 ms"),
        ),
        (
            "the longest",
            [None, None, None, None, None, Some(LONGEST_MS)],
            Some("packet 120000 ms"),
        ),
        ("nothing was sent", with(Packet, None), None),
        ("a clock went back", with(Packet, Some(-1)), None),
        ("a clock leapt", with(Packet, Some(LONGEST_MS + 1)), None),
        ("as far as it can", with(Packet, Some(i64::MAX)), None),
        (
            "one mark is nonsense",
            with(Text, Some(-3)),
            Some("endpoint 592 ms, token 1090 ms, clause 1190 ms, sound 1290 ms, packet 1302 ms"),
        ),
        (
            "another",
            with(Sound, Some(i64::MIN)),
            Some("endpoint 592 ms, text 740 ms, token 1090 ms, clause 1190 ms, packet 1302 ms"),
        ),
        (
            "words that came after the answer",
            with(Text, Some(2_000)),
            Some("endpoint 592 ms, text 2000 ms, token 1090 ms, clause 1190 ms, sound 1290 ms, packet 1302 ms"),
        ),
        (
            "an answer that was begun early",
            [Some(592), Some(220), Some(500), Some(510), Some(580), Some(592)],
            Some("endpoint 592 ms, text 220 ms, token 500 ms, clause 510 ms, sound 580 ms, packet 592 ms"),
        ),
        ("sent before the turn was over", with(Endpoint, Some(1_303)), None),
        ("sent before it sounded", with(Sound, Some(1_303)), None),
        ("a clause before its token", with(Token, Some(1_191)), None),
        ("a sound before its clause", with(Clause, Some(1_291)), None),
    ] {
        assert_eq!(told(marks).as_deref(), wanted, "{what}");
    }
}

#[test]
fn each_that_was_waited_for_has_its_share() {
    for (what, marks, transcription, brain, voice) in [
        ("a whole turn", WHOLE, Some(148), Some(350), Some(100)),
        (
            "words that were not waited for",
            with(Stage::Text, Some(1_200)),
            Some(608),
            Some(498),
            Some(100),
        ),
        (
            "an answer that was begun early",
            [Some(592), Some(220), Some(500), Some(510), Some(580), Some(592)],
            Some(0),
            Some(0),
            Some(70),
        ),
        (
            "a brain that hears and speaks by itself",
            [Some(592), None, Some(900), Some(900), None, Some(910)],
            None,
            Some(308),
            None,
        ),
        (
            "nothing but the packet",
            [None, None, None, None, None, Some(9)],
            None,
            None,
            None,
        ),
    ] {
        let shares = TurnMarks::of(marks).unwrap().shares();
        let wanted = Shares {
            transcription,
            brain,
            voice,
        };
        assert_eq!(shares, wanted, "{what}");
    }
}

#[test]
fn a_talk_has_the_middle_and_the_slow_end_of_its_turns() {
    assert_eq!(summary(&[]), None);
    let hundred: Vec<u32> = (1..=100).rev().map(|nth| nth * 10).collect();
    for (packets, p50_ms, p95_ms) in [
        (&[700][..], 700, 700),
        (&[900, 100], 100, 900),
        (&[300, 100, 200], 200, 300),
        (&hundred, 500, 950),
        (&[u32::MAX], i32::MAX, i32::MAX),
    ] {
        let turns = i32::try_from(packets.len()).unwrap();
        let wanted = Latency { turns, p50_ms, p95_ms };
        assert_eq!(summary(packets), Some(wanted), "{packets:?}");
    }
}

/// The marks are kept by their place.
#[test]
fn stages_stand_in_their_order() {
    for (place, stage) in Stage::ALL.into_iter().enumerate() {
        assert_eq!(stage as usize, place, "{}", stage.name());
    }
}
