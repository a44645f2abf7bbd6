use super::*;
use crate::effect::Hint;
use entities::{
    email_message::Kind,
    ids::{CampaignId, ContactId, EmailId, TenantId},
    ledger::What,
    values::{Env, Metadata},
};
use proptest::prelude::*;
use uuid::Uuid;

fn now() -> Moment {
    Moment::from_millis(1_000_000)
}

fn email(phase: Phase) -> Email {
    let open = matches!(
        phase,
        Phase::Scheduled | Phase::Queued | Phase::Sending | Phase::Deferred
    );
    let tried = matches!(phase, Phase::Sending | Phase::Deferred);
    Email {
        id: EmailId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        env: Env::Live,
        phase,
        to_address: "ann@example.com".into(),
        from_name: None,
        reply_to: None,
        subject: "Hello".into(),
        kind: Kind::Transactional,
        campaign_id: None,
        contact_id: None,
        client_reference_id: None,
        metadata: Metadata::default(),
        scheduled_at: None,
        send_by: None,
        wake_at: open.then(now),
        attempts: i32::from(tried),
        price_cents: Cents(2),
        held_cents: Cents(if tried { 2 } else { 0 }),
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

fn fault() -> Fault {
    Fault::new("code", "words")
}

fn busy() -> Command {
    Command::Busy { why: fault() }
}

/// One of each kind.
fn commands() -> Vec<Command> {
    vec![
        Command::Tick,
        Command::Begin,
        Command::Bar(Bar::Dnc),
        Command::Bar(Bar::CampaignOver),
        Command::Bar(Bar::TooLate),
        Command::Wait(Block::Credits),
        Command::Wait(Block::Suspension),
        Command::Wait(Block::Pause),
        Command::Unbuilt {
            why: "no such header".into(),
        },
        Command::Taken(Some("250 ok".into())),
        busy(),
        Command::Bounced(fault()),
        Command::Refused(fault()),
        Command::Lost { why: "gone".into() },
        Command::Cancel,
    ]
}

const PHASES: [Phase; 8] = [
    Phase::Scheduled,
    Phase::Queued,
    Phase::Sending,
    Phase::Deferred,
    Phase::Sent,
    Phase::Bounced,
    Phase::Failed,
    Phase::Canceled,
];

/// Every state and every command: where it leads; `None`: refused; the same state: nothing is moved.
#[test]
fn every_state_and_every_command() {
    use Phase::*;
    for phase in PHASES {
        for command in commands() {
            let expected = match (phase, &command) {
                (Scheduled, Command::Tick) => Some(Queued),
                (Sending, Command::Tick) => Some(Failed),
                (Queued | Deferred, Command::Begin) => Some(Sending),
                (_, Command::Begin) => None,
                (Scheduled | Queued | Deferred, Command::Bar(_)) => Some(Failed),
                (Queued | Deferred | Sending, Command::Unbuilt { .. }) => Some(Failed),
                (Sending, Command::Taken(_)) => Some(Sent),
                (Sending, Command::Busy { .. }) => Some(Deferred),
                (Sending, Command::Bounced(_)) => Some(Bounced),
                (Sending, Command::Refused(_) | Command::Lost { .. }) => Some(Failed),
                (Scheduled | Queued | Deferred | Canceled, Command::Cancel) => Some(Canceled),
                (_, Command::Cancel) => None,
                (same, _) => Some(same),
            };
            let before = email(phase);
            match (transition(before.clone(), command.clone(), now()), expected) {
                (Err(Error::InvalidState { .. }), None) => {}
                (Ok((after, effects)), Some(expected)) => {
                    assert_eq!(after.phase, expected, "{phase:?} {command:?}");
                    let taken_up =
                        matches!(command, Command::Tick | Command::Wait(_)) && matches!(phase, Queued | Deferred);
                    assert!(after != before || effects.is_empty(), "{phase:?} {command:?}");
                    assert_eq!(after != before, expected != phase || taken_up, "{phase:?} {command:?}");
                }
                (got, expected) => panic!("{phase:?} {command:?}: {got:?}, not {expected:?}"),
            }
        }
    }
}

#[test]
fn the_intent_comes_with_everything_that_it_stands_by() {
    let (after, effects) = transition(email(Phase::Queued), Command::Begin, now()).unwrap();
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
        ("ann@example.com", Channel::Email.dnc())
    );
    assert_eq!((send.n, send.message_id), (1, after.id.0));
    assert!(matches!(hold.what, What::Hold { cents: Cents(2), .. }));
    let (_, effects) = transition(email(Phase::Deferred), Command::Begin, now()).unwrap();
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Fact(Fact::Move(_)))),
        "the hold is there already"
    );
}

#[test]
fn deferrals_follow_the_plan_for_a_day_and_a_half() {
    let whole: Duration = DELAYS.iter().sum();
    assert!((24..=48).contains(&(whole.as_secs() / 3600)), "{whole:?}");
    let (mut row, mut at) = (email(Phase::Queued), now());
    for delay in DELAYS {
        row = transition(row, Command::Begin, at).unwrap().0;
        row = transition(row, busy(), at).unwrap().0;
        assert_eq!((row.phase, row.wake_at), (Phase::Deferred, Some(at.plus(delay))));
        at = at.plus(delay);
    }
    row = transition(row, Command::Begin, at).unwrap().0;
    let (row, effects) = transition(row, busy(), at).unwrap();
    assert_eq!((row.phase, row.attempts), (Phase::Failed, 11));
    assert!(
        matches!(&effects[..], [Effect::Fact(Fact::Move(back))] if matches!(back.what, What::Settle { cost: Cents(0), .. }))
    );
}

/// One of a campaign.
fn written(phase: Phase) -> Email {
    Email {
        campaign_id: Some(CampaignId(Uuid::from_u128(8))),
        contact_id: Some(ContactId(Uuid::from_u128(9))),
        ..email(phase)
    }
}

/// How its contact is told that it has ended, and that its campaign is told with it.
fn told(effects: &[Effect]) -> Option<Ending> {
    let ends: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Fact(Fact::FinishAttempt { contact, attempt }) => Some((contact.id, attempt.row.0, attempt.ending)),
            _ => None,
        })
        .collect();
    let campaigns = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Hint(Hint::MessageEnded(_))))
        .count();
    assert_eq!(ends.len(), campaigns, "{effects:?}");
    match ends[..] {
        [] => None,
        [(contact, row, ending)] => {
            assert_eq!((contact.0, row), (Uuid::from_u128(9), Uuid::from_u128(1)));
            Some(ending)
        }
        _ => panic!("told twice: {effects:?}"),
    }
}

#[test]
fn what_could_not_be_made_was_never_sent() {
    for phase in [Phase::Queued, Phase::Deferred, Phase::Sending] {
        let before = email(phase);
        let unbuilt = Command::Unbuilt {
            why: "no such header".into(),
        };
        let (after, _) = transition(before.clone(), unbuilt, now()).unwrap();
        let begun = i32::from(phase == Phase::Sending);
        assert_eq!(after.attempts, before.attempts - begun, "{phase:?}");
        assert_eq!(
            (after.sent_at, after.error_code.as_deref()),
            (None, Some("invalid_message"))
        );
    }
}

#[test]
fn its_end_is_its_contacts_attempt() {
    use Phase::*;
    let table = [
        (Sending, Command::Taken(None), Some(Ending::Arrived)),
        (Sending, Command::Bounced(fault()), Some(Ending::Final)),
        (
            Sending,
            Command::Refused(Fault::new("provider_rejected", "")),
            Some(Ending::NotArrived),
        ),
        (Sending, Command::Lost { why: "gone".into() }, Some(Ending::Final)),
        (Sending, Command::Tick, Some(Ending::Final)),
        (Deferred, Command::Bar(Bar::Dnc), Some(Ending::Final)),
        (Deferred, Command::Bar(Bar::CampaignOver), Some(Ending::Final)),
        (Deferred, Command::Bar(Bar::TooLate), Some(Ending::NotArrived)),
        (Deferred, Command::Cancel, Some(Ending::Final)),
        (Sending, busy(), None),
        (Deferred, Command::Begin, None),
        (Deferred, Command::Wait(Block::Pause), None),
    ];
    for (phase, command, ending) in table {
        let (row, effects) = transition(written(phase), command.clone(), now()).unwrap();
        assert_eq!(told(&effects), ending, "{phase:?} {command:?}");
        assert_eq!(next_deadline(&row).is_none(), ending.is_some(), "{phase:?} {command:?}");
        let (_, effects) = transition(email(phase), command, now()).unwrap();
        assert_eq!(told(&effects), None, "a message of its own tells nobody");
    }
}

proptest! {
    /// Its contact is told once that it has ended, and then it has.
    #[test]
    fn its_contact_is_told_once(steps in prop::collection::vec((prop::sample::select(commands()), 0..9000i64), 1..60)) {
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

    /// Whatever happens in whatever order: settled at most once and by what was held; never handed over while it may have been
    /// taken; the last word stands.
    #[test]
    fn any_life(steps in prop::collection::vec((prop::sample::select(commands()), 0..9000i64), 1..60)) {
        let (mut row, mut at) = (email(Phase::Queued), now());
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
            prop_assert!(held <= 2 && settled <= 1);
            prop_assert_eq!(after.cost_cents.0, charged);
            if matches!(before.phase, Phase::Sent | Phase::Bounced | Phase::Failed | Phase::Canceled) {
                prop_assert_eq!(after.phase, before.phase);
            }
            let open = matches!(after.phase, Phase::Scheduled | Phase::Queued | Phase::Sending | Phase::Deferred);
            prop_assert_eq!(after.wake_at.is_some(), open, "{:?}", after.phase);
            prop_assert!(open || held == 0 || settled == 1, "a hold is left open");
            row = after;
        }
    }

    #[test]
    fn two_ticks_are_one(phase in prop::sample::select(PHASES.to_vec()), seconds in 0..2000i64) {
        let at = now().plus_seconds(seconds);
        let (once, _) = transition(email(phase), Command::Tick, at).unwrap();
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
    let own = Email {
        campaign_id: None,
        ..written(Phase::Queued)
    };
    assert_eq!(runs(own), []);
}
