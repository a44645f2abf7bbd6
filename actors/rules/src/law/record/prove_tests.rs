use super::*;
use crate::law::{GateKind, Verdict, tests::facts};

/// As it is recorded when it is made.
fn recorded() -> AttemptBody {
    let facts = facts("US-CA 2026-12-01T12:00");
    let law = Law::untouched();
    AttemptBody {
        law: law.pack.version.clone(),
        operator: None,
        observed: false,
        asked: judge(law, &facts).asked,
        facts,
        overrides: Vec::new(),
        attempt_no: 1,
        contact_id: None,
        agent_id: None,
        agent_version: None,
        voice_id: None,
        text_sha256: None,
    }
}

fn difference(body: &AttemptBody) -> Option<String> {
    prove(body, Law::untouched())
        .err()
        .map(|difference| difference.to_string())
}

#[test]
fn what_was_recorded_comes_out_again_also_from_its_text() {
    let body = recorded();
    assert!(body.asked.len() > 3, "{:?}", body.asked);
    assert_eq!(difference(&body), None);
    let text = serde_json::to_string(&body).unwrap();
    let read: AttemptBody = serde_json::from_str(&text).unwrap();
    assert_eq!(read, body);
    assert_eq!(difference(&read), None);
    assert!(
        text.len() < 4_000,
        "{} bytes: a row is written for each attempt",
        text.len()
    );
}

#[test]
fn the_first_difference_is_named() {
    let rule = recorded().asked[1].rule.clone();
    let starts = |change: fn(&mut AttemptBody)| {
        let mut body = recorded();
        change(&mut body);
        difference(&body).unwrap()
    };
    let verdict = starts(|body| body.asked[1].verdict = Verdict::Overridden);
    assert!(verdict.starts_with(&format!("{rule}: comes out as")), "{verdict}");
    let missing = starts(|body| drop(body.asked.remove(1)));
    assert!(
        missing.starts_with(&format!("{rule}: was not asked where")),
        "{missing}"
    );
    let last = starts(|body| drop(body.asked.pop()));
    assert!(last.ends_with("was not asked"), "{last}");
    let more = starts(|body| {
        body.asked.push(Asked {
            kind: GateKind::Hours,
            rule: "us.invented".into(),
            verdict: Verdict::Yes,
        })
    });
    assert_eq!(more, "us.invented: was asked, and does not concern this attempt");
    // A fact that was changed makes a rule say something else: at three in the morning nobody is called.
    let facts = starts(|body| body.facts.at = body.facts.at.plus_seconds(-9 * 3600));
    assert!(
        facts.contains("comes out as") || facts.contains("was not asked"),
        "{facts}"
    );
}
