//! What only an e-mail does: it may be one that cannot be made, and nobody reports of it later.
use super::*;
use crate::email::machine::{Undeliverable, unsent};
use entities::{
    email_message::{Kind, Phase},
    ids::EmailId,
};

fn email(phase: Phase) -> Email {
    let open = matches!(
        phase,
        Phase::Scheduled | Phase::Queued | Phase::Sending | Phase::Deferred
    );
    let tried = matches!(phase, Phase::Sending | Phase::Deferred);
    let key = TenantScoped::new(TenantId(Uuid::from_u128(2)), Env::Live, EmailId(Uuid::from_u128(1)));
    Email {
        phase,
        wake_at: open.then(now),
        attempts: i32::from(tried),
        price_cents: Cents(2),
        held_cents: Cents(if tried { 2 } else { 0 }),
        settled: !open,
        legal: Some(MessageLegal::default()),
        ..unsent(
            key,
            "ann@example.com".into(),
            "Hello".into(),
            Kind::Transactional,
            now(),
        )
    }
}

fn unbuilt() -> Command<Undeliverable> {
    Command::Own(Undeliverable::Unbuilt {
        why: "no such header".into(),
    })
}

fn bounced() -> Command<Undeliverable> {
    Command::Own(Undeliverable::Bounced(fault()))
}

impl Sample for Email {
    const NAME: &'static str = "email";
    const TO: (&'static str, DncChannel) = ("ann@example.com", DncChannel::Email);
    const PRICE: Cents = Cents(2);
    const WAITS: Phase = Phase::Deferred;
    const TRIES: i32 = 11;
    const BLOCKED_HOURS: i64 = 48;
    const OPEN: &'static [Phase] = &[Phase::Scheduled, Phase::Queued, Phase::Sending, Phase::Deferred];
    const LAST: &'static [Phase] = &[Phase::Sent, Phase::Bounced, Phase::Failed, Phase::Canceled];
    const PAUSE: i64 = 9000;

    fn of(phase: Phase) -> Email {
        email(phase)
    }
    fn tried() -> Email {
        email(Phase::Deferred)
    }
    fn all() -> Vec<(&'static str, Email)> {
        vec![
            ("Scheduled", email(Phase::Scheduled)),
            ("Queued", email(Phase::Queued)),
            ("Sending", email(Phase::Sending)),
            ("Deferred", email(Phase::Deferred)),
            ("Sent", email(Phase::Sent)),
            ("Bounced", email(Phase::Bounced)),
            ("Failed", email(Phase::Failed)),
            ("Canceled", email(Phase::Canceled)),
        ]
    }
    fn written(self) -> Email {
        Email {
            campaign_id: Some(CampaignId(Uuid::from_u128(8))),
            contact_id: Some(ContactId(Uuid::from_u128(9))),
            ..self
        }
    }
    fn alone(self) -> Email {
        Email {
            campaign_id: None,
            contact_id: None,
            ..self
        }
    }
    fn own_commands() -> Vec<(&'static str, Command<Undeliverable>)> {
        vec![("Unbuilt", unbuilt()), ("Bounced", bounced())]
    }
    fn own_ends() -> Vec<(Email, Command<Undeliverable>, Option<Ending>)> {
        use Phase::*;
        vec![
            (email(Sending), Command::Taken(None), Some(Ending::Arrived)),
            (email(Sending), bounced(), Some(Ending::Final)),
            (email(Sending), unbuilt(), Some(Ending::Final)),
            (email(Sending), lost(), Some(Ending::Final)),
        ]
    }
}

#[test]
fn deferrals_last_for_a_day_and_a_half() {
    let whole: Duration = Email::DELAYS.iter().sum();
    assert!((24..=48).contains(&(whole.as_secs() / 3600)), "{whole:?}");
}

#[test]
fn what_could_not_be_made_was_never_sent() {
    for phase in [Phase::Queued, Phase::Deferred, Phase::Sending] {
        let before = email(phase);
        let (after, _) = transition(before.clone(), unbuilt(), now()).unwrap();
        let begun = i32::from(phase == Phase::Sending);
        assert_eq!(after.attempts, before.attempts - begun, "{phase:?}");
        assert_eq!(
            (after.sent_at, after.error_code.as_deref()),
            (None, Some("invalid_message"))
        );
    }
}
