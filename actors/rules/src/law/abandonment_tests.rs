use super::*;
use WhyAbandoned::*;
use proptest::prelude::*;

/// A person who was answered after half a second, and hung up after a minute.
const SERVED: PickedUp = PickedUp {
    by: Some(AnsweredBy::Human),
    first_sound_ms: Some(500),
    was_kept_waiting: false,
    was_left_alone: false,
    has_doubt: false,
    lasted_ms: 60_000,
    ended: Ended::ByThem,
};

#[test]
fn what_is_abandoned_and_what_is_not() {
    let silent = PickedUp {
        first_sound_ms: None,
        ..SERVED
    };
    let unknown = PickedUp { by: None, ..silent };
    let by = |who| PickedUp {
        by: Some(who),
        ..silent
    };
    let sounded = |ms| PickedUp {
        first_sound_ms: Some(ms),
        ..SERVED
    };
    let lost = |was_heard| Ended::Lost { was_heard };
    for (source, call, expected) in [
        ("16 CFR 310.4(b)(4)(iii): at two seconds", sounded(2_000), Counts::Live),
        (
            "16 CFR 310.4(b)(4)(iii): later",
            sounded(2_001),
            Counts::Abandoned(LateSound),
        ),
        (
            "310.4(b)(1)(iv): never, and the person has hung up after two seconds",
            PickedUp {
                lasted_ms: 2_000,
                ..silent
            },
            Counts::Abandoned(Silence),
        ),
        (
            "310.4(b)(1)(iv): the person has hung up before",
            PickedUp {
                lasted_ms: 1_999,
                ..silent
            },
            Counts::Live,
        ),
        (
            "the line counts from the end of the greeting",
            PickedUp {
                was_kept_waiting: true,
                lasted_ms: 1_000,
                ..silent
            },
            Counts::Abandoned(Silence),
        ),
        (
            "no brain: the stored message came in time, and is no agent",
            PickedUp {
                was_left_alone: true,
                ..SERVED
            },
            Counts::Abandoned(NoBrain),
        ),
        (
            "too late, and then the stored message",
            PickedUp {
                was_left_alone: true,
                ..sounded(2_050)
            },
            Counts::Abandoned(LateSound),
        ),
        (
            "no agent: we have hung up within two seconds",
            PickedUp {
                lasted_ms: 400,
                ended: Ended::ByUs,
                ..silent
            },
            Counts::Abandoned(NoAgent),
        ),
        (
            "we have hung up, and nothing ever came",
            PickedUp {
                ended: Ended::ByUs,
                ..silent
            },
            Counts::Abandoned(Silence),
        ),
        (
            "a crash in the talk",
            PickedUp {
                ended: lost(true),
                ..SERVED
            },
            Counts::Live,
        ),
        (
            "a crash before any sound",
            PickedUp {
                ended: lost(true),
                ..silent
            },
            Counts::Abandoned(Silence),
        ),
        (
            "a crash while it was only played",
            PickedUp {
                ended: lost(false),
                ..silent
            },
            Counts::Live,
        ),
        (
            "in doubt it is a person",
            PickedUp {
                by: Some(AnsweredBy::Unknown),
                ..sounded(2_400)
            },
            Counts::Abandoned(LateSound),
        ),
        ("a machine", by(AnsweredBy::Voicemail), Counts::NotLive),
        (
            "a person who was taken for a machine",
            PickedUp {
                has_doubt: true,
                ..by(AnsweredBy::Voicemail)
            },
            Counts::Abandoned(Detector),
        ),
        ("a menu", by(AnsweredBy::Ivr), Counts::NotLive),
        ("a fax", by(AnsweredBy::Fax), Counts::NotLive),
        (
            "whoever has gone at once",
            PickedUp {
                lasted_ms: 1_500,
                ..unknown
            },
            Counts::NotLive,
        ),
        (
            "whoever has waited",
            PickedUp {
                lasted_ms: 2_500,
                ..unknown
            },
            Counts::Abandoned(Silence),
        ),
        (
            "no agent for whoever it was",
            PickedUp {
                ended: Ended::ByUs,
                ..unknown
            },
            Counts::Abandoned(NoAgent),
        ),
        (
            "a crash, for whoever it was",
            PickedUp {
                ended: lost(true),
                ..unknown
            },
            Counts::Abandoned(NoAgent),
        ),
        (
            "the same in the sandbox",
            PickedUp {
                ended: lost(false),
                ..unknown
            },
            Counts::NotLive,
        ),
    ] {
        assert_eq!(counts(&call), expected, "{source}");
    }
}

fn picked_up() -> impl Strategy<Value = PickedUp> {
    let by = prop_oneof![
        Just(None),
        Just(Some(AnsweredBy::Human)),
        Just(Some(AnsweredBy::Unknown)),
        Just(Some(AnsweredBy::Voicemail)),
        Just(Some(AnsweredBy::Ivr)),
        Just(Some(AnsweredBy::Fax)),
    ];
    let ended = prop_oneof![
        Just(Ended::ByThem),
        Just(Ended::ByUs),
        Just(Ended::Lost { was_heard: true }),
        Just(Ended::Lost { was_heard: false }),
    ];
    let signs = any::<(bool, bool, bool)>();
    (by, proptest::option::of(0u32..5_000), signs, 0i64..10_000, ended).prop_map(
        |(by, first_sound_ms, (was_kept_waiting, was_left_alone, has_doubt), lasted_ms, ended)| PickedUp {
            by,
            first_sound_ms,
            was_kept_waiting,
            was_left_alone,
            has_doubt,
            lasted_ms,
            ended,
        },
    )
}

proptest! {
    /// A sound that comes later never makes a call less abandoned.
    #[test]
    fn a_later_sound_is_never_better(call in picked_up(), ms in 0u32..5_000, more in 0u32..5_000) {
        let at = |ms| counts(&PickedUp { first_sound_ms: Some(ms), ..call });
        if at(ms).why_abandoned().is_some() {
            prop_assert!(at(ms + more).why_abandoned().is_some());
        }
    }

    /// Whoever hangs up by himself within two seconds was not kept waiting by anybody.
    #[test]
    fn who_hangs_up_at_once_is_not_abandoned_by_silence(call in picked_up(), lasted_ms in 0i64..2_000) {
        let call = PickedUp { lasted_ms, was_kept_waiting: false, ended: Ended::ByThem, first_sound_ms: None, ..call };
        prop_assert_ne!(counts(&call), Counts::Abandoned(Silence));
    }

    #[test]
    fn the_brake_is_monotone(live in 0i64..10_000, abandoned in 0i64..500, permille in 0u32..100, hours in prop_oneof![Just(24u32), Just(720)]) {
        let limit = AbandonmentLimit { limit_permille: 30, brake_permille: permille, hours };
        let held = |live, abandoned| {
            let fact = AbandonmentFact { day: (live, abandoned), month: (live, abandoned) };
            brake(&fact, &limit)
        };
        if held(live, abandoned) {
            prop_assert!(held(live, abandoned + 1));
        } else {
            prop_assert!(!held(live + 1, abandoned));
        }
    }
}
