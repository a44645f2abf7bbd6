//! Whom the law holds back until somebody mends something, or until an answer comes: when they are looked at again.
use super::*;
use crate::{
    dispatch::candidate::Candidate,
    eligibility::{ContactRecord, RING_MS, Rule, Terms, Verdict},
    hours::{CallingHours, Hours},
    law::{self, GateKind, Judgement, LegalRecord},
};

const SECONDS: i64 = 5;
const HALF_AN_HOUR: i64 = 1_800;

fn in_seconds(seconds: i64) -> Verdict {
    Verdict::Wait(Some(noon().plus_seconds(seconds)))
}

/// A whole window of them; those behind may be reached.
#[test]
fn some_of_a_window_that_is_held_are_put_off() {
    for (rule, seconds) in [
        (Rule::Register, HALF_AN_HOUR),
        (Rule::CallerId, HALF_AN_HOUR),
        (Rule::Reassigned, SECONDS),
    ] {
        let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 40, "UTC");
        let held = tenant.rows[&campaign_id(0)].iter().cloned().map(|contact| Candidate {
            address: contact.reachable_at(),
            contact,
            verdict: Verdict::Wait(None),
            rule: Some(rule),
            law_rule: None,
            judged: None,
        });
        let held: Vec<Candidate> = held.collect();
        let queue = tenant.queue_mut(0);
        queue.take_fresh("UTC", held, false, noon());
        let settled: Vec<Candidate> = std::iter::from_fn(|| queue.pop_settled()).collect();
        assert_eq!(settled.len(), 16, "{rule:?}");
        assert!(
            settled.iter().all(|candidate| candidate.verdict == in_seconds(seconds)),
            "{rule:?}"
        );
    }
}

#[test]
fn who_waits_for_an_answer_that_is_on_its_way_waits_for_seconds() {
    let tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 1, "UTC");
    let queue = tenant.queue(0);
    // What holds it, is somebody being asked, had its time come: what becomes of it.
    for (kind, is_being_asked, is_due, expected) in [
        (
            GateKind::Register,
            false,
            true,
            (Rule::Register, in_seconds(HALF_AN_HOUR)),
        ),
        (
            GateKind::CallerId,
            true,
            true,
            (Rule::CallerId, in_seconds(HALF_AN_HOUR)),
        ),
        // There is nobody to ask, or nobody answers.
        (
            GateKind::Reassigned,
            false,
            true,
            (Rule::Reassigned, in_seconds(HALF_AN_HOUR)),
        ),
        (
            GateKind::Reassigned,
            true,
            true,
            (Rule::Reassigned, in_seconds(SECONDS)),
        ),
        // A register that is asked over an API; a consent may depend on one.
        (GateKind::Register, true, true, (Rule::Register, in_seconds(SECONDS))),
        (GateKind::Consent, true, true, (Rule::Consent, in_seconds(SECONDS))),
        // Of those who are fresh the whole window decides.
        (
            GateKind::Reassigned,
            true,
            false,
            (Rule::Reassigned, Verdict::Wait(None)),
        ),
    ] {
        let whom = Contact {
            next_attempt_at: is_due.then(noon),
            ..contact(0, 0, "UTC")
        };
        let asked = law::Asked {
            kind,
            rule: "us.some".into(),
            verdict: law::Verdict::Wait(None),
        };
        let record = ContactRecord {
            has_number: true,
            judgement: Some(Judgement { asked: vec![asked] }),
            legal: LegalRecord {
                is_being_asked,
                ..LegalRecord::default()
            },
            ..ContactRecord::default()
        };
        let terms = Terms {
            caps: &queue.plan.caps,
            ends_at: None,
            ring_ms: RING_MS,
            suspended_since: None,
            credits_gone: false,
            behind_ms: 0,
        };
        let always = CallingHours::Hours(Hours::new(Vec::new()));
        let found = queue.first_no(&whom, &record, &always, &terms, noon());
        assert_eq!(found, Some(expected), "{kind:?} {is_being_asked} {is_due}");
    }
}
