//! What only an SMS does: it is reported of, and waits for that.
use super::*;
use crate::sms::machine::{Progress, REPORT_SECONDS, Report, unsent};
use entities::{ids::SmsId, sms_message::Phase};

fn sms(phase: Phase) -> Sms {
    let open = matches!(phase, Phase::Scheduled | Phase::Queued | Phase::Sending);
    let key = TenantScoped::new(TenantId(Uuid::from_u128(2)), Env::Live, SmsId(Uuid::from_u128(1)));
    let tried = !matches!(phase, Phase::Scheduled | Phase::Queued | Phase::Canceled);
    Sms {
        phase,
        wake_at: open.then(now),
        attempts: i32::from(tried),
        price_cents: Cents(3),
        held_cents: Cents(if phase == Phase::Sending { 3 } else { 0 }),
        settled: !open,
        legal: Some(MessageLegal::default()),
        ..unsent(key, "+12025550123".parse().unwrap(), "Hello".into(), now())
    }
}

fn unknown() -> Sms {
    Sms {
        error_code: Some(UNKNOWN_OUTCOME.into()),
        ..sms(Phase::Failed)
    }
}

fn report(progress: Progress) -> Command<Report> {
    Command::Own(Report {
        provider_message_id: Some("SM1".into()),
        progress,
    })
}

impl Sample for Sms {
    const NAME: &'static str = "sms";
    const TO: (&'static str, DncChannel) = ("+12025550123", DncChannel::Sms);
    const PRICE: Cents = Cents(3);
    const WAITS: Phase = Phase::Queued;
    const TRIES: i32 = 9;
    const BLOCKED_HOURS: i64 = 24;
    const OPEN: &'static [Phase] = &[Phase::Scheduled, Phase::Queued, Phase::Sending];
    // `sent` is reported of, and one that nobody knew has failed until it is.
    const LAST: &'static [Phase] = &[Phase::Delivered, Phase::Undelivered, Phase::Canceled];
    const PAUSE: i64 = 900;

    fn of(phase: Phase) -> Sms {
        sms(phase)
    }
    fn tried() -> Sms {
        Sms {
            attempts: 1,
            held_cents: Cents(3),
            ..sms(Phase::Queued)
        }
    }
    fn all() -> Vec<(&'static str, Sms)> {
        vec![
            ("Scheduled", sms(Phase::Scheduled)),
            ("Queued", sms(Phase::Queued)),
            ("Tried", Sms::tried()),
            ("Sending", sms(Phase::Sending)),
            ("Sent", sms(Phase::Sent)),
            ("Delivered", sms(Phase::Delivered)),
            ("Undelivered", sms(Phase::Undelivered)),
            ("Failed", sms(Phase::Failed)),
            ("Unknown", unknown()),
            ("Canceled", sms(Phase::Canceled)),
            ("Received", sms(Phase::Received)),
        ]
    }
    fn written(self) -> Sms {
        let late = now().plus_seconds(REPORT_SECONDS);
        Sms {
            campaign_id: Some(CampaignId(Uuid::from_u128(8))),
            contact_id: Some(ContactId(Uuid::from_u128(9))),
            wake_at: (self.phase == Phase::Sent).then_some(late).or(self.wake_at),
            ..self
        }
    }
    fn alone(self) -> Sms {
        Sms {
            campaign_id: None,
            contact_id: None,
            ..self
        }
    }
    fn own_commands() -> Vec<(&'static str, Command<Report>)> {
        vec![
            ("OnItsWay", report(Progress::OnItsWay)),
            ("Delivered", report(Progress::Delivered)),
            ("Undelivered", report(Progress::Undelivered(fault()))),
            ("GivenUp", report(Progress::Failed(fault()))),
        ]
    }
    fn own_ends() -> Vec<(Sms, Command<Report>, Option<Ending>)> {
        use Phase::*;
        let failure = |code| Fault::new(code, "words");
        let undelivered = report(Progress::Undelivered(failure("undelivered")));
        let failed = report(Progress::Failed(failure("provider_failed")));
        let opted_out = report(Progress::Failed(failure(OPTED_OUT)));
        vec![
            (sms(Sent), report(Progress::Delivered), Some(Ending::Arrived)),
            (sms(Sending), report(Progress::Delivered), Some(Ending::Arrived)),
            (sms(Sent), undelivered, Some(Ending::NotArrived)),
            (sms(Sent), failed, Some(Ending::NotArrived)),
            (sms(Sent), opted_out, Some(Ending::Final)),
            // Not an end.
            (sms(Sending), Command::Taken(None), None),
            (sms(Sending), lost(), None),
            (sms(Sending), report(Progress::OnItsWay), None),
            (sms(Sent), Command::Tick, None),
            // Its contact was told when it was given up.
            (unknown(), report(Progress::OnItsWay), None),
            (unknown(), report(Progress::Delivered), None),
        ]
    }
}

#[test]
fn a_provider_may_ask_for_a_longer_pause() {
    for (asked, expected) in [(1, 10), (90, 90), (999_999, 6 * 3600)] {
        let command = Command::Busy {
            retry_after: Some(Duration::from_secs(asked)),
            why: fault(),
        };
        let (row, _) = transition(sms(Phase::Sending), command, now()).unwrap();
        assert_eq!(row.wake_at, Some(now().plus_seconds(expected)), "{asked}");
    }
}

#[test]
fn an_answer_that_is_lost_is_waited_for_and_then_unknown_and_the_truth_still_comes_in() {
    let (row, effects) = transition(sms(Phase::Queued), Command::Begin(None), now()).unwrap();
    assert_eq!(effects.len(), 3);
    let (row, effects) = transition(row, lost(), now()).unwrap();
    assert_eq!(
        (row.phase, row.phase.status(), effects.len()),
        (Phase::Sending, Phase::Queued.status(), 0)
    );
    let late = now().plus_seconds(UNKNOWN_AFTER_SECONDS);
    assert_eq!(next_deadline(&row), Some(late));
    let (row, _) = transition(row, Command::Tick, late.plus_millis(-1)).unwrap();
    assert_eq!(row.phase, Phase::Sending);
    let (row, effects) = transition(row, Command::Tick, late).unwrap();
    assert_eq!(
        (row.phase, row.error_code.as_deref()),
        (Phase::Failed, Some(UNKNOWN_OUTCOME))
    );
    let is_recorded = |effect: &&Effect| matches!(effect, Effect::Fact(Fact::CloseAttempt(_)));
    assert_eq!(effects.len(), 2, "what was held is given back, and its end recorded");
    assert_eq!(effects.iter().filter(is_recorded).count(), 1);
    let (row, effects) = transition(row, report(Progress::Delivered), late.plus_seconds(60)).unwrap();
    assert_eq!(
        (row.phase, row.error_code, row.cost_cents),
        (Phase::Delivered, None, Cents(0))
    );
    assert!(effects.iter().all(|effect| is_recorded(&effect)), "settled once");
}

/// Source: 47 CFR 64.1200(a)(12), a text that confirms an opt-out.
#[test]
fn what_the_service_answers_by_itself_is_no_attempt() {
    for (row, command) in [
        (sms(Phase::Sending), Command::Taken(Some("SM1".into()))),
        (sms(Phase::Sending), Command::Refused(fault())),
        (sms(Phase::Sent), report(Progress::Delivered)),
    ] {
        let is_recorded = |row| {
            let (_, effects) = transition(row, command.clone(), now()).unwrap();
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::Fact(Fact::CloseAttempt(_))))
        };
        assert!(is_recorded(row.clone()), "{command:?}");
        assert!(!is_recorded(Sms { legal: None, ..row }), "{command:?}");
    }
}

#[test]
fn who_opted_out_with_the_provider_is_put_on_the_list() {
    let opted_out = || Fault::new(OPTED_OUT, "");
    for (row, command) in [
        (sms(Phase::Sending), Command::Refused(opted_out())),
        (sms(Phase::Sent), report(Progress::Failed(opted_out()))),
        (sms(Phase::Sending), report(Progress::Undelivered(opted_out()))),
    ] {
        let (_, effects) = transition(row, command, now()).unwrap();
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::Fact(Fact::StopTexts { .. }))),
            "{effects:?}"
        );
    }
}

#[test]
fn a_contact_waits_a_quarter_of_an_hour_for_the_report() {
    let (row, effects) = transition(sms(Phase::Sending).written(), Command::Taken(None), now()).unwrap();
    let late = now().plus_seconds(REPORT_SECONDS);
    assert_eq!((told(&effects), next_deadline(&row)), (None, Some(late)));
    let (row, effects) = transition(row, Command::Tick, late.plus_millis(-1)).unwrap();
    assert_eq!((told(&effects), row.phase), (None, Phase::Sent));
    let (row, effects) = transition(row, Command::Tick, late).unwrap();
    let attempt = told(&effects).unwrap();
    assert_eq!((attempt.ending, attempt.actual_cost_cents), (Ending::Arrived, Cents(3)));
    assert_eq!((row.phase, next_deadline(&row)), (Phase::Sent, None));
    // Whatever is reported later, the message says so, and its contact was told already.
    let (row, effects) = transition(row, report(Progress::Undelivered(fault())), late.plus_seconds(1)).unwrap();
    assert_eq!((row.phase, told(&effects)), (Phase::Undelivered, None));
    // Without a contact nobody waits.
    let (row, _) = transition(sms(Phase::Sending), Command::Taken(None), now()).unwrap();
    assert_eq!(next_deadline(&row), None);
}
