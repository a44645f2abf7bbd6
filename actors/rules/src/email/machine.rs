//! An e-mail: scheduled -> queued -> sending -> sent | deferred | bounced | failed; deferred -> sending | failed; scheduled,
//! queued, deferred -> canceled.
//!
//! Nobody reports later what became of it: `sent` is its end, and where the connection was lost after the message's end, or the
//! service crashed, it has failed with `unknown_outcome`.
use crate::{
    contact::machine::Ending,
    effect::{Effect, Fact, Work},
    message::{
        Fault, INVALID_MESSAGE, UNKNOWN_OUTCOME, is_final, machine,
        outgoing::{Outgoing, Stage, columns, unsent_row},
    },
};
use entities::{
    email_message::{Kind, Model as Email, Phase},
    ids::{EmailId, TenantScoped},
    message_send::Channel,
    values::{E164, Moment},
};
use std::time::Duration;

pub use crate::message::machine::begin;
pub type Command = machine::Command<Undeliverable>;

/// It goes to nobody, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undeliverable {
    /// It cannot be made: nothing was handed to anybody, even if that was about to be done.
    Unbuilt { why: String },
    /// The server takes nothing for this recipient.
    Bounced(Fault),
}

/// One that goes out at once, by itself and for nothing, and of which nothing has become yet.
pub fn unsent(key: TenantScoped<EmailId>, to_address: String, subject: String, kind: Kind, now: Moment) -> Email {
    unsent_row!(Email, key, now, {
        to_address,
        from_name: None,
        reply_to: None,
        subject,
        kind,
    })
}

impl Outgoing for Email {
    type Id = EmailId;
    type Phase = Phase;
    type Own = Undeliverable;

    const CHANNEL: Channel = Channel::Email;
    const HAND_OVER: fn(TenantScoped<EmailId>) -> Work = Work::SendEmail;
    const QUEUED: Phase = Phase::Queued;
    const AGAIN: Phase = Phase::Deferred;
    const SENDING: Phase = Phase::Sending;
    const FAILED: Phase = Phase::Failed;
    const CANCELED: Phase = Phase::Canceled;
    /// A day and a half in all. Servers that greylist want minutes, a broken one hours.
    const DELAYS: &'static [Duration] = &[
        Duration::from_secs(60),
        Duration::from_secs(5 * 60),
        Duration::from_secs(15 * 60),
        Duration::from_secs(30 * 60),
        Duration::from_secs(3600),
        Duration::from_secs(2 * 3600),
        Duration::from_secs(4 * 3600),
        Duration::from_secs(8 * 3600),
        Duration::from_secs(10 * 3600),
        Duration::from_secs(10 * 3600),
    ];
    const BLOCKED_FOR_SECONDS: i64 = 48 * 3600;
    const ON_DNC: &'static str = "the address is on the do-not-call list";
    const NOT_CONFIGURED: &'static str = "no mail server is configured";
    const SENDER_UNVERIFIED: &'static str = "its sender is no longer verified";

    columns!();

    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Scheduled => Stage::Scheduled,
            Phase::Queued | Phase::Deferred => Stage::Queued,
            Phase::Sending => Stage::Sending,
            Phase::Sent => Stage::Over("sent", "the mail server has it"),
            Phase::Bounced => Stage::Over("bounced", "it has ended"),
            Phase::Failed => Stage::Over("failed", "it has ended"),
            Phase::Canceled => Stage::Canceled,
        }
    }
    fn address(&self) -> &str {
        &self.to_address
    }
    fn shows(&self) -> Option<E164> {
        None
    }

    fn taken(mut self, reply: Option<String>, now: Moment) -> (Self, Vec<Effect>) {
        self.phase = Phase::Sent;
        self.provider_message_id = reply;
        self.wake_at = None;
        (self.error_code, self.error_message) = (None, None);
        (self.sent_at, self.ended_at) = (Some(now), Some(now));
        let price = self.price_cents;
        let mut effects = machine::settle(&mut self, price);
        effects.extend(machine::finish_attempt(&self));
        effects.extend(machine::outcome(&self, now));
        (self, effects)
    }
    fn lost(self, why: String, now: Moment) -> (Self, Vec<Effect>) {
        machine::fail(self, Fault::new(UNKNOWN_OUTCOME, why), now)
    }
    fn why_unknown(&self) -> String {
        "it is not known whether it was sent: the service was interrupted meanwhile".into()
    }
    fn own(mut self, command: Undeliverable, now: Moment) -> (Self, Vec<Effect>) {
        use Phase::*;
        match (self.phase, command) {
            (Queued | Deferred | Sending, Undeliverable::Unbuilt { why }) => {
                let was_begun = self.phase == Sending;
                if was_begun {
                    self.attempts -= 1;
                }
                let (row, mut effects) = machine::fail(self, Fault::new(INVALID_MESSAGE, why), now);
                // Its intent is on record, and it was the only one.
                if was_begun && row.attempts == 0 {
                    effects.extend(machine::outcome(&row, now));
                }
                (row, effects)
            }
            (Sending, Undeliverable::Bounced(fault)) => {
                machine::explain(&mut self, fault);
                machine::end(self, Bounced, now)
            }
            (Scheduled | Sent | Bounced | Failed | Canceled, Undeliverable::Unbuilt { .. })
            | (Scheduled | Queued | Deferred | Sent | Bounced | Failed | Canceled, Undeliverable::Bounced(_)) => {
                (self, Vec::new())
            }
        }
    }
    fn forget(&mut self, now: Moment) -> Option<Fact> {
        self.subject.clear();
        self.metadata = Default::default();
        (self.from_name, self.reply_to, self.client_reference_id) = (None, None, None);
        // A mail server likes to repeat whom it knows, or does not.
        (self.error_message, self.provider_message_id) = (None, None);
        self.deleted_at = Some(now);
        Some(Fact::ForgetEmail(self.id))
    }
    fn ending(&self) -> Ending {
        let code = self.error_code.as_deref().unwrap_or_default();
        match self.phase {
            Phase::Sent => Ending::Arrived,
            Phase::Failed if !is_final(code) => Ending::NotArrived,
            _ => Ending::Final,
        }
    }
}
