//! What tells SMS and e-mails apart: all of it, as far as their common life asks for it.
use super::Fault;
use crate::{
    contact::machine::Ending,
    effect::{Effect, Fact, Work},
};
use entities::{
    ids::{CampaignId, ContactId, TenantScoped},
    law::MessageLegal,
    message_send::Channel,
    values::{Cents, E164, Moment},
};
use std::{
    fmt::{Debug, Display},
    hash::Hash,
    time::Duration,
};
use uuid::Uuid;

/// A row that is handed over, and what is its own.
pub trait Outgoing: Clone + PartialEq + Unpin + Send + 'static {
    type Id: Copy + Eq + Hash + Debug + Display + Into<Uuid> + Send + Unpin + 'static;
    /// How far it is, as it is stored.
    type Phase: Copy + Debug + PartialEq + Send + 'static;
    /// What nothing else is told.
    type Own: Clone + Debug + Send + Unpin + 'static;

    const CHANNEL: Channel;
    const HAND_OVER: fn(TenantScoped<Self::Id>) -> Work;
    const QUEUED: Self::Phase;
    /// Waits for another try.
    const AGAIN: Self::Phase;
    const SENDING: Self::Phase;
    const FAILED: Self::Phase;
    const CANCELED: Self::Phase;
    /// Waiting time after the 1st, 2nd, … refusal that may pass; then it has failed.
    const DELAYS: &'static [Duration];
    /// A blocked workspace's message is given up after this.
    const BLOCKED_FOR_SECONDS: i64;
    /// In words: why it is not sent at all.
    const ON_DNC: &'static str;
    const NOT_CONFIGURED: &'static str;
    const SENDER_UNVERIFIED: &'static str;

    fn seen(&self) -> Seen<Self>;
    fn moved(&mut self) -> Moved<'_, Self::Phase>;
    fn stage(&self) -> Stage;
    /// A number in E.164, or an e-mail address in lower case.
    fn address(&self) -> &str;
    /// The number that it shows.
    fn shows(&self) -> Option<E164>;

    /// It was taken; what was said to that.
    fn taken(self, answer: Option<String>, now: Moment) -> (Self, Vec<Effect>);
    /// The same, of one of which more is known already.
    fn taken_late(self, _answer: Option<String>) -> Self {
        self
    }
    /// It may or may not have been taken.
    fn lost(self, why: String, now: Moment) -> (Self, Vec<Effect>);
    /// Why nobody will ever know whether it was sent.
    fn why_unknown(&self) -> String;
    /// What else a refusal means.
    fn heed(&self, _fault: &Fault) -> Option<Effect> {
        None
    }
    fn own(self, command: Self::Own, now: Moment) -> (Self, Vec<Effect>);
    /// What it said goes, and what only it knows of the other side; whom it went to stays, for what refers to it.
    fn forget(&mut self, now: Moment) -> Option<Fact>;
    /// What its end means to its campaign's contact.
    fn ending(&self) -> Ending;
}

/// What a row tells, by its columns' names: those that both tables have.
pub struct Seen<M: Outgoing> {
    pub key: TenantScoped<M::Id>,
    pub phase: M::Phase,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub scheduled_at: Option<Moment>,
    pub send_by: Option<Moment>,
    pub wake_at: Option<Moment>,
    pub attempts: i32,
    pub price_cents: Cents,
    pub held_cents: Cents,
    pub cost_cents: Cents,
    pub error_code: Option<String>,
    pub version: i32,
    pub created_at: Moment,
    pub deleted_at: Option<Moment>,
    /// The provider's own id, or what the mail server said.
    pub provider_message_id: Option<String>,
    /// What it is in the words of the law; `None`: the service says it by itself.
    pub legal: Option<MessageLegal>,
}

/// What of a row moves.
pub struct Moved<'row, Phase> {
    pub phase: &'row mut Phase,
    pub wake_at: &'row mut Option<Moment>,
    pub attempts: &'row mut i32,
    pub held_cents: &'row mut Cents,
    pub cost_cents: &'row mut Cents,
    pub settled: &'row mut bool,
    pub error_code: &'row mut Option<String>,
    pub error_message: &'row mut Option<String>,
    pub version: &'row mut i32,
    pub ended_at: &'row mut Option<Moment>,
}

/// `seen` and `moved`, of a row that has a `key` and these columns.
macro_rules! columns {
    () => {
        fn seen(&self) -> $crate::message::outgoing::Seen<Self> {
            $crate::message::outgoing::Seen {
                key: self.key(),
                phase: self.phase,
                campaign_id: self.campaign_id,
                contact_id: self.contact_id,
                scheduled_at: self.scheduled_at,
                send_by: self.send_by,
                wake_at: self.wake_at,
                attempts: self.attempts,
                price_cents: self.price_cents,
                held_cents: self.held_cents,
                cost_cents: self.cost_cents,
                error_code: self.error_code.clone(),
                version: self.version,
                created_at: self.created_at,
                deleted_at: self.deleted_at,
                provider_message_id: self.provider_message_id.clone(),
                legal: self.legal.clone(),
            }
        }
        fn moved(&mut self) -> $crate::message::outgoing::Moved<'_, Self::Phase> {
            $crate::message::outgoing::Moved {
                phase: &mut self.phase,
                wake_at: &mut self.wake_at,
                attempts: &mut self.attempts,
                held_cents: &mut self.held_cents,
                cost_cents: &mut self.cost_cents,
                settled: &mut self.settled,
                error_code: &mut self.error_code,
                error_message: &mut self.error_message,
                version: &mut self.version,
                ended_at: &mut self.ended_at,
            }
        }
    };
}

/// A row that goes out at once, by itself and for nothing, and of which nothing has become yet: with these columns of its own.
macro_rules! unsent_row {
    ($row:ident, $key:ident, $now:ident, { $($own:tt)* }) => {
        $row {
            id: $key.id,
            tenant_id: $key.tenant_id,
            env: $key.env,
            phase: <$row as $crate::message::outgoing::Outgoing>::QUEUED,
            campaign_id: None,
            contact_id: None,
            legal: None,
            client_reference_id: None,
            metadata: entities::values::Metadata::default(),
            scheduled_at: None,
            send_by: None,
            wake_at: Some($now),
            attempts: 0,
            price_cents: entities::values::Cents(0),
            held_cents: entities::values::Cents(0),
            cost_cents: entities::values::Cents(0),
            settled: false,
            error_code: None,
            error_message: None,
            provider_message_id: None,
            version: 1,
            created_at: $now,
            sent_at: None,
            ended_at: None,
            deleted_at: None,
            $($own)*
        }
    };
}
pub(crate) use columns;
pub(crate) use unsent_row;

/// How far it is, as far as all go the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waits for its time.
    Scheduled,
    /// Waits for its sender: for the first time, or once more.
    Queued,
    /// May have left: it is never handed over a second time from here.
    Sending,
    /// It was taken, and a report of it may come; who has it.
    Sent(&'static str),
    /// It has come to an end, as it is told; why it is too late to cancel it.
    Over(&'static str, &'static str),
    Canceled,
}
