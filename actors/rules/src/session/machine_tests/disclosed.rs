//! What the service has said for the law, and how strictly a recording is asked for.
use super::*;
use entities::session::{CallLegal, ConsentAsked, Disclose, Disclosure};

/// The sample call, of which the law is known.
fn lawful(change: impl FnOnce(&mut CallLegal)) -> Row {
    call_with(|options| {
        let mut legal = CallLegal::default();
        change(&mut legal);
        options.legal = Some(legal);
    })
}

#[test]
fn what_was_said_is_kept_with_the_call_and_shown_in_its_timeline() {
    let session = after(talk_of(lawful(|_| ())), disclosed_until(14), 15);
    let kept = Disclosure {
        kinds: vec![DisclosureKind::Ai, DisclosureKind::Name],
        language: "en-US".into(),
        text_sha256: "ab".repeat(32),
        started_ms: 1_000,
        completed_ms: 4_000,
        is_cut_off: false,
    };
    assert_eq!(session.call.disclosures(), [kept]);
    let entry = session.log.timeline.last().unwrap();
    assert_eq!(
        (entry.kind.as_str(), entry.detail.as_deref()),
        ("disclosed", Some("ai, name (en-US): heard whole"))
    );
    let unknown = after(talk_of(call()), disclosed_until(14), 15);
    assert!(unknown.call.disclosures().is_empty() && unknown.call.options.legal.is_none());
    assert_eq!(unknown.log.timeline.last().unwrap().kind, "disclosed");
}

#[test]
fn what_is_only_played_is_stored_with_the_next_step() {
    for (env, is_stored) in [(Env::Live, true), (Env::Test, false)] {
        let mut row = lawful(|_| ());
        row.env = env;
        let before = talk_of(row);
        let told = after(before.clone(), disclosed_until(14), 15);
        assert_eq!(told.differs(&before), is_stored, "{env:?}");
        // A commit that failed is decided anew from the rows.
        let mut reloaded = before.clone();
        reloaded.carry_over(&told);
        assert_eq!(reloaded.call.disclosures(), told.call.disclosures(), "{env:?}");
    }
}

/// The last question counts, though it is the only news.
#[test]
fn a_question_of_consent_that_is_not_stored_yet_outlives_a_commit_that_failed() {
    let mut row = recorded(ConsentMode::Verbal);
    row.env = Env::Test;
    row.options.legal = Some(CallLegal::default());
    let first = after(talk_of(row), consent_asked(), 12);
    let again = after(first.clone(), consent_asked(), 17);
    assert!(!again.differs(&first));
    let mut reloaded = first;
    reloaded.carry_over(&again);
    assert_eq!(reloaded.call.consent_asked().unwrap().asked_ms, 7_000);
}

/// One that is said over and over fills no row.
#[test]
fn only_so_many_are_kept() {
    let mut session = talk_of(lawful(|_| ()));
    for second in 0..70 {
        session = after(session, disclosed_until(12 + second), 12 + second);
    }
    let said = &session.call.options.legal.as_ref().unwrap().said;
    assert_eq!((said.disclosures.len(), said.more), (64, 6));
}

#[test]
fn a_question_of_consent_and_its_answer_are_kept() {
    let asked = |answer: Option<bool>, answered_ms| {
        Some(ConsentAsked {
            basis: ConsentMode::Verbal,
            asked_ms: 2_000,
            answer,
            answered_ms,
        })
    };
    let row = || {
        let mut row = recorded(ConsentMode::Verbal);
        row.options.legal = Some(CallLegal::default());
        row
    };
    let open = after(talk_of(row()), consent_asked(), 12);
    assert_eq!(open.call.consent_asked(), asked(None, None));
    for granted in [true, false] {
        let answered = after(open.clone(), Command::Consent(granted), 15);
        assert_eq!(answered.call.consent_asked(), asked(Some(granted), Some(5_000)));
    }
    let again = after(open, consent_asked(), 17);
    assert_eq!(
        again.call.consent_asked().unwrap().asked_ms,
        7_000,
        "the last one counts"
    );
}

/// The stricter of what the agent says and what the law wants; a live call is at least told of.
#[test]
fn a_recording_is_asked_for_as_strictly_as_the_law_wants() {
    use ConsentMode::{None as Untold, Notice, Verbal};
    let told = || {
        Some(Disclose {
            kinds: vec![DisclosureKind::Recording],
            repeat_minutes: None,
        })
    };
    for (env, own, law, disclose, wanted) in [
        (Env::Test, Untold, None, None, Untold),
        (Env::Test, Untold, Some(Verbal), None, Verbal),
        (Env::Test, Untold, None, told(), Notice),
        (Env::Test, Verbal, Some(Notice), None, Verbal),
        (Env::Live, Untold, None, None, Notice),
        (Env::Live, Untold, Some(Untold), None, Notice),
        (Env::Live, Notice, Some(Verbal), None, Verbal),
        (Env::Live, Verbal, Some(Notice), told(), Verbal),
    ] {
        let mut row = recorded(own);
        row.env = env;
        row.options.legal = Some(CallLegal {
            recording: law,
            disclose,
            ..CallLegal::default()
        });
        let session = talk_of(row);
        let pending = session.call.consent == Consent::Pending;
        assert_eq!(
            (session.call.recorded().unwrap().consent, pending),
            (wanted, wanted == Verbal),
            "{env:?} {own:?} {law:?}"
        );
    }
    let mut unknown = recorded(Untold);
    unknown.env = Env::Live;
    assert_eq!(
        unknown.recorded().unwrap().consent,
        Untold,
        "of an unknown law nothing is said"
    );
    assert!(
        lawful(|legal| legal.recording = Some(Verbal)).recorded().is_none(),
        "nothing is recorded"
    );
}
