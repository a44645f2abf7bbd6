use super::*;
use crate::{contact::machine::Attempt, effect::Hint};
use entities::{
    ids::{CampaignId, ContactId, Owned, SmsId, TenantId},
    ledger::What,
    sms_message::{Direction, Encoding},
    values::{Env, Metadata},
};
use proptest::prelude::*;
use uuid::Uuid;

const NOW: i64 = 1_000_000;

fn now() -> Moment {
    Moment::from_millis(NOW)
}

fn sms(phase: Phase) -> Sms {
    let open = matches!(phase, Phase::Scheduled | Phase::Queued | Phase::Sending);
    Sms {
        id: SmsId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        env: Env::Live,
        phase,
        direction: Direction::Outbound,
        to_number: "+12025550123".parse().unwrap(),
        from_number: None,
        body: "Hello".into(),
        encoding: Encoding::Gsm7,
        segments: 1,
        delivered_at: None,
        campaign_id: None,
        contact_id: None,
        client_reference_id: None,
        metadata: Metadata::default(),
        scheduled_at: None,
        send_by: None,
        wake_at: open.then(now),
        attempts: i32::from(!matches!(phase, Phase::Scheduled | Phase::Queued | Phase::Canceled)),
        price_cents: Cents(3),
        held_cents: Cents(if phase == Phase::Sending { 3 } else { 0 }),
        cost_cents: Cents(0),
        settled: !open,
        error_code: None,
        error_message: None,
        provider_message_id: None,
        version: 1,
        created_at: now(),
        sent_at: None,
        ended_at: None,
    }
}

fn unknown() -> Sms {
    Sms {
        error_code: Some(UNKNOWN_OUTCOME.into()),
        ..sms(Phase::Failed)
    }
}

fn tried() -> Sms {
    Sms {
        attempts: 1,
        held_cents: Cents(3),
        ..sms(Phase::Queued)
    }
}

fn fault() -> Fault {
    Fault::new("code", "words")
}

fn report(progress: Progress) -> Command {
    Command::Report(Report {
        provider_message_id: Some("SM1".into()),
        progress,
    })
}

fn busy() -> Command {
    Command::Busy {
        retry_after: None,
        why: fault(),
    }
}

fn lost() -> Command {
    Command::Lost { why: "gone".into() }
}

/// One of each kind.
fn commands() -> Vec<Command> {
    vec![
        Command::Tick,
        Command::Begin,
        Command::Bar(Bar::Dnc),
        Command::Bar(Bar::NotConfigured),
        Command::Bar(Bar::CampaignOver),
        Command::Bar(Bar::TooLate),
        Command::Bar(Bar::Sender),
        Command::Wait(Block::Credits),
        Command::Wait(Block::Suspension),
        Command::Wait(Block::Pause),
        Command::Taken(Some("SM1".into())),
        busy(),
        Command::Refused(fault()),
        Command::Refused(Fault::new(OPTED_OUT, "")),
        lost(),
        report(Progress::OnItsWay),
        report(Progress::Delivered),
        report(Progress::Undelivered(fault())),
        report(Progress::Failed(fault())),
        Command::Cancel,
    ]
}

const PHASES: [Phase; 9] = [
    Phase::Scheduled,
    Phase::Queued,
    Phase::Sending,
    Phase::Sent,
    Phase::Delivered,
    Phase::Undelivered,
    Phase::Failed,
    Phase::Canceled,
    Phase::Received,
];

#[test]
fn every_move_of_the_table() {
    use Phase::*;
    let on = |progress: Progress| report(progress);
    let table = [
        (sms(Scheduled), Command::Tick, Queued),
        (sms(Scheduled), Command::Bar(Bar::Dnc), Failed),
        (sms(Scheduled), Command::Cancel, Canceled),
        (sms(Queued), Command::Begin, Sending),
        (sms(Queued), Command::Bar(Bar::Dnc), Failed),
        (sms(Queued), Command::Bar(Bar::NotConfigured), Failed),
        (sms(Queued), Command::Bar(Bar::Sender), Failed),
        (sms(Queued), Command::Cancel, Canceled),
        (tried(), Command::Begin, Sending),
        (tried(), Command::Cancel, Canceled),
        (tried(), on(Progress::OnItsWay), Sent),
        (tried(), on(Progress::Delivered), Delivered),
        (sms(Sending), Command::Tick, Failed),
        (sms(Sending), Command::Taken(None), Sent),
        (sms(Sending), busy(), Queued),
        (sms(Sending), Command::Refused(fault()), Failed),
        (sms(Sending), on(Progress::OnItsWay), Sent),
        (sms(Sending), on(Progress::Delivered), Delivered),
        (sms(Sending), on(Progress::Undelivered(fault())), Undelivered),
        (sms(Sending), on(Progress::Failed(fault())), Failed),
        (sms(Sent), on(Progress::Delivered), Delivered),
        (sms(Sent), on(Progress::Undelivered(fault())), Undelivered),
        (sms(Sent), on(Progress::Failed(fault())), Failed),
        (unknown(), on(Progress::OnItsWay), Sent),
        (unknown(), on(Progress::Delivered), Delivered),
        (unknown(), on(Progress::Undelivered(fault())), Undelivered),
    ];
    for (before, command, expected) in table {
        let (after, _) = transition(before.clone(), command.clone(), now()).unwrap();
        assert_eq!(after.phase, expected, "{:?} {command:?}", before.phase);
    }
}

/// Every state and every command: what is in no line of the table moves nothing, or is refused.
#[test]
fn nothing_else_moves() {
    use Phase::*;
    for phase in PHASES {
        for command in commands() {
            let before = sms(phase);
            let moved = matches!(
                (phase, &command),
                (Scheduled, Command::Tick | Command::Bar(_) | Command::Cancel)
                    | (Queued, Command::Tick | Command::Begin | Command::Bar(_) | Command::Wait(_) | Command::Cancel)
                    | (
                        Sending,
                        Command::Tick
                            | Command::Taken(_)
                            | Command::Busy { .. }
                            | Command::Refused(_)
                            | Command::Lost { .. }
                            | Command::Report(_)
                    )
                    | (Sent, Command::Report(_))
                    // Only the provider's id is noted.
                    | (Sent | Delivered | Undelivered | Failed, Command::Taken(_))
            );
            let refused = match (phase, &command) {
                (Queued, Command::Begin) => false,
                (_, Command::Begin) => true,
                (Scheduled | Queued | Canceled, Command::Cancel) => false,
                (_, Command::Cancel) => true,
                _ => false,
            };
            match transition(before.clone(), command.clone(), now()) {
                Err(Error::InvalidState { .. }) => assert!(refused, "{phase:?} {command:?}"),
                Err(error) => panic!("{phase:?} {command:?}: {error}"),
                Ok((after, effects)) => {
                    assert!(!refused, "{phase:?} {command:?}");
                    assert_eq!(after != before, moved, "{phase:?} {command:?}");
                    assert!(moved || effects.is_empty(), "{phase:?} {command:?}");
                }
            }
        }
    }
}

#[test]
fn the_intent_comes_with_everything_that_it_stands_by() {
    let (after, effects) = transition(sms(Phase::Queued), Command::Begin, now()).unwrap();
    let [
        Effect::Fact(Fact::Require(Guard::Reachable(person))),
        Effect::Fact(Fact::SaveSend(send)),
        Effect::Fact(Fact::Move(hold)),
    ] = effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (person.address.as_str(), person.channel),
        ("+12025550123", Channel::Sms.dnc())
    );
    assert_eq!((send.n, send.message_id, send.sent_at), (1, after.id.0, now()));
    assert!(matches!(hold.what, What::Hold { cents: Cents(3), .. }));
    assert_eq!(after.wake_at, Some(now().plus_seconds(UNKNOWN_AFTER_SECONDS)));
    // Tried again: the hold is there already.
    let (_, effects) = transition(tried(), Command::Begin, now()).unwrap();
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Fact(Fact::Move(_)))),
        "{effects:?}"
    );
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Fact(Fact::SaveSend(send)) if send.n == 2))
    );
}

#[test]
fn refusals_that_pass_follow_the_plan_and_what_the_provider_asks_for() {
    let mut row = sms(Phase::Queued);
    let mut at = now();
    for delay in DELAYS {
        row = transition(row, Command::Begin, at).unwrap().0;
        row = transition(row, busy(), at).unwrap().0;
        assert_eq!((row.phase, row.wake_at), (Phase::Queued, Some(at.plus(delay))));
        at = at.plus(delay);
    }
    row = transition(row, Command::Begin, at).unwrap().0;
    let (row, effects) = transition(row, busy(), at).unwrap();
    assert_eq!((row.phase, row.attempts), (Phase::Failed, 9));
    assert!(
        matches!(&effects[..], [Effect::Fact(Fact::Move(given_back))] if matches!(given_back.what, What::Settle { cost: Cents(0), .. }))
    );
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
    let (row, effects) = transition(sms(Phase::Queued), Command::Begin, now()).unwrap();
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
    assert_eq!(effects.len(), 1, "what was held is given back");
    let (row, effects) = transition(row, report(Progress::Delivered), late.plus_seconds(60)).unwrap();
    assert_eq!(
        (row.phase, row.error_code, row.cost_cents),
        (Phase::Delivered, None, Cents(0))
    );
    assert!(effects.is_empty(), "settled once");
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
fn a_blocked_workspaces_message_waits_a_day() {
    let (row, _) = transition(sms(Phase::Queued), Command::Wait(Block::Credits), now()).unwrap();
    assert_eq!((row.phase, row.wake_at), (Phase::Queued, Some(now().plus_seconds(60))));
    assert_eq!(row.error_code.as_deref(), Some("insufficient_credits"));
    let (row, _) = transition(row, Command::Wait(Block::Credits), now().plus_seconds(24 * 3600)).unwrap();
    assert_eq!(row.phase, Phase::Failed);
}

/// One of a campaign.
fn written(phase: Phase) -> Sms {
    Sms {
        campaign_id: Some(CampaignId(Uuid::from_u128(8))),
        contact_id: Some(ContactId(Uuid::from_u128(9))),
        wake_at: (phase == Phase::Sent)
            .then(|| now().plus_seconds(REPORT_SECONDS))
            .or(sms(phase).wake_at),
        ..sms(phase)
    }
}

/// What its contact is told, and that its campaign is told with it.
fn told(effects: &[Effect]) -> Option<Attempt> {
    let attempts: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Fact(Fact::FinishAttempt { contact, attempt }) => Some((contact, attempt)),
            _ => None,
        })
        .collect();
    let campaigns: Vec<_> = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Hint(Hint::MessageEnded(_))))
        .collect();
    assert_eq!(attempts.len(), campaigns.len(), "{effects:?}");
    match (&attempts[..], &campaigns[..]) {
        ([], []) => None,
        ([(contact, attempt)], [Effect::Hint(Hint::MessageEnded(campaign))]) => {
            let owner = (TenantId(Uuid::from_u128(2)), Env::Live);
            assert_eq!(**contact, Owned::new(owner.0, owner.1, ContactId(Uuid::from_u128(9))));
            assert_eq!(*campaign, Owned::new(owner.0, owner.1, CampaignId(Uuid::from_u128(8))));
            Some((*attempt).clone())
        }
        _ => panic!("told twice: {effects:?}"),
    }
}

#[test]
fn its_end_is_its_contacts_attempt() {
    use Phase::*;
    let failure = |code: &'static str| Fault::new(code, "words");
    let begun = Sms {
        error_code: Some(UNKNOWN_OUTCOME.into()),
        ..written(Failed)
    };
    let table = [
        (written(Sent), report(Progress::Delivered), Some(Ending::Arrived)),
        (written(Sending), report(Progress::Delivered), Some(Ending::Arrived)),
        (
            written(Sent),
            report(Progress::Undelivered(failure("undelivered"))),
            Some(Ending::NotArrived),
        ),
        (
            written(Sent),
            report(Progress::Failed(failure("provider_failed"))),
            Some(Ending::NotArrived),
        ),
        (
            written(Sending),
            Command::Refused(failure("provider_rejected")),
            Some(Ending::NotArrived),
        ),
        (
            written(Sending),
            Command::Refused(failure("invalid_number")),
            Some(Ending::Final),
        ),
        (
            written(Sent),
            report(Progress::Failed(failure(OPTED_OUT))),
            Some(Ending::Final),
        ),
        (written(Sending), Command::Tick, Some(Ending::Final)),
        (written(Queued), Command::Bar(Bar::Dnc), Some(Ending::Final)),
        (written(Queued), Command::Bar(Bar::CampaignOver), Some(Ending::Final)),
        (written(Queued), Command::Bar(Bar::TooLate), Some(Ending::NotArrived)),
        (written(Queued), Command::Bar(Bar::Sender), Some(Ending::NotArrived)),
        (
            written(Queued),
            Command::Bar(Bar::NotConfigured),
            Some(Ending::NotArrived),
        ),
        (written(Queued), Command::Cancel, Some(Ending::Final)),
        // Not an end.
        (written(Sending), Command::Taken(None), None),
        (written(Sending), busy(), None),
        (written(Sending), lost(), None),
        (written(Sending), report(Progress::OnItsWay), None),
        (written(Queued), Command::Wait(Block::Pause), None),
        (written(Sent), Command::Tick, None),
        // Its contact was told when it was given up.
        (begun.clone(), report(Progress::OnItsWay), None),
        (begun, report(Progress::Delivered), None),
    ];
    for (row, command, ending) in table {
        let (_, effects) = transition(row.clone(), command.clone(), now()).unwrap();
        let attempt = told(&effects);
        assert_eq!(
            attempt.as_ref().map(|attempt| attempt.ending),
            ending,
            "{:?} {command:?}",
            row.phase
        );
        if let Some(attempt) = attempt {
            let arrived = attempt.ending == Ending::Arrived;
            assert_eq!(
                (attempt.row.0, attempt.reached, attempt.answered),
                (row.id.0, arrived, arrived)
            );
        }
        // A message of its own tells nobody.
        let own = Sms {
            campaign_id: None,
            contact_id: None,
            ..row
        };
        assert_eq!(told(&transition(own, command, now()).unwrap().1), None);
    }
}

#[test]
fn a_contact_waits_a_quarter_of_an_hour_for_the_report() {
    let (row, effects) = transition(written(Phase::Sending), Command::Taken(None), now()).unwrap();
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

#[test]
fn a_paused_campaigns_message_waits_a_day_as_well() {
    let (row, effects) = transition(written(Phase::Queued), Command::Wait(Block::Pause), now()).unwrap();
    assert_eq!(
        (row.error_code.as_deref(), told(&effects)),
        (Some("campaign_paused"), None)
    );
    let (row, effects) = transition(row, Command::Wait(Block::Pause), now().plus_seconds(24 * 3600)).unwrap();
    assert_eq!(
        (row.phase, told(&effects).unwrap().ending),
        (Phase::Failed, Ending::NotArrived)
    );
}

fn any_command() -> impl Strategy<Value = Command> {
    prop::sample::select(commands())
}

proptest! {
    /// Whatever happens in whatever order: settled at most once and by what was held; never handed over while it may have been
    /// taken; a last word stands, but for one that nobody knew.
    #[test]
    fn any_life(steps in prop::collection::vec((any_command(), 0..900i64), 1..60)) {
        let (mut row, mut at) = (sms(Phase::Queued), now());
        let (mut held, mut charged, mut settled, mut may_have_left) = (0, 0, 0, false);
        for (command, seconds) in steps {
            at = at.plus_seconds(seconds);
            let before = row.clone();
            let Ok((after, effects)) = transition(row.clone(), command.clone(), at) else { continue };
            for effect in &effects {
                match effect {
                    Effect::Fact(Fact::Move(movement)) => match movement.what {
                        What::Hold { cents, .. } => held += cents.0,
                        What::Settle { held: by, cost, .. } => {
                            settled += 1;
                            prop_assert_eq!(by.0, held);
                            charged += cost.0;
                        }
                        _ => prop_assert!(false, "{:?}", movement),
                    },
                    Effect::Fact(Fact::SaveSend(_)) => {
                        prop_assert!(!may_have_left, "handed over again");
                        may_have_left = true;
                    }
                    _ => {}
                }
            }
            if matches!(command, Command::Busy { .. }) && before.phase == Phase::Sending {
                may_have_left = false;
            }
            prop_assert!(held <= 3 && settled <= 1);
            prop_assert_eq!(after.cost_cents.0, charged);
            if matches!(before.phase, Phase::Delivered | Phase::Undelivered | Phase::Canceled) {
                prop_assert_eq!(after.phase, before.phase);
            }
            let open = matches!(after.phase, Phase::Scheduled | Phase::Queued | Phase::Sending);
            prop_assert_eq!(after.wake_at.is_some(), open, "{:?}", after.phase);
            prop_assert!(open || held == 0 || settled == 1, "a hold is left open");
            prop_assert_eq!(next_deadline(&after).is_some(), open);
            row = after;
        }
    }

    /// Its contact is told once that it has ended, and then it is at an end, or as good as that.
    #[test]
    fn its_contact_is_told_once(steps in prop::collection::vec((any_command(), 0..900i64), 1..60)) {
        let (mut row, mut at, mut ends) = (written(Phase::Queued), now(), 0);
        for (command, seconds) in steps {
            at = at.plus_seconds(seconds);
            let Ok((after, effects)) = transition(row.clone(), command, at) else { continue };
            ends += usize::from(told(&effects).is_some());
            row = after;
            prop_assert!(ends <= 1);
            prop_assert_eq!(next_deadline(&row).is_none(), ends == 1, "{:?}", row.phase);
        }
    }

    #[test]
    fn two_ticks_are_one(phase in prop::sample::select(PHASES.to_vec()), seconds in 0..2000i64) {
        let at = now().plus_seconds(seconds);
        let (once, _) = transition(sms(phase), Command::Tick, at).unwrap();
        let (twice, effects) = transition(once.clone(), Command::Tick, at).unwrap();
        prop_assert_eq!(once, twice);
        prop_assert!(effects.is_empty());
    }
}

#[test]
fn a_campaigns_next_attempt_stands_only_while_it_runs() {
    let runs = |row| {
        let (_, effects) = transition(row, Command::Begin, now()).unwrap();
        effects
            .into_iter()
            .filter(|effect| matches!(effect, Effect::Fact(Fact::Require(Guard::Runs(_)))))
            .collect::<Vec<_>>()
    };
    let campaign = written(Phase::Queued).campaign_id.unwrap();
    assert_eq!(
        runs(written(Phase::Queued)),
        [Effect::Fact(Fact::Require(Guard::Runs(campaign)))]
    );
    let own = Sms {
        campaign_id: None,
        ..written(Phase::Queued)
    };
    assert_eq!(runs(own), []);
}
