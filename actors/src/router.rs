//! Whom a message can reach: actors are told and asked by what they are, by those who do not know how they live. The supervision
//! tree is the one router.
use crate::call::in_hand::Call;
use entities::{
    Result, delivery, email_message,
    ids::{EndpointId, TenantId, TenantScoped, TrunkId},
    recording, sms_message,
    values::Moment,
    webhook_endpoint,
};
use futures_util::future::BoxFuture;
use rules::{
    campaign::machine::Campaign,
    commit::{Commit, Committed},
    dispatch::last_second::LastSecondLimiter,
    effect::{DispatchHint, Effect},
    machine::Machine,
    room::machine::Room,
    session::machine::Session,
    voice_clone::machine::Voice,
};
use std::sync::Arc;

/// One method for each kind of actor.
pub trait Router: Send + Sync {
    fn campaigns(&self) -> &dyn Mailbox<Campaign>;
    fn sessions(&self) -> &dyn Mailbox<Session>;
    fn rooms(&self) -> &dyn Mailbox<Room>;
    fn recordings(&self) -> &dyn Mailbox<recording::Model>;
    fn sms(&self) -> &dyn Mailbox<sms_message::Model>;
    fn emails(&self) -> &dyn Mailbox<email_message::Model>;
    fn voices(&self) -> &dyn Mailbox<Voice>;
    fn endpoints(&self) -> &dyn Mailbox<webhook_endpoint::Model>;

    fn dispatcher(&self, tenant: TenantId, hint: DispatchHint);
    /// A call that has come in, or somebody who joins a room: is there a slot? Then the call is taken.
    fn admit(&self, tenant: TenantId, arrival: Arrival) -> BoxFuture<'_, Result<Admitted>>;
    /// One more leg of a call of the tenant's is to go over that trunk: when may it? Its token is taken. `None`: not by then.
    fn turn(&self, tenant: TenantId, trunk: TrunkId, by: Moment) -> BoxFuture<'_, Result<Option<Turn>>>;
    fn lane(&self, endpoint: TenantScoped<EndpointId>, hint: LaneHint);
    /// A trunk's settings may have changed, or who uses it.
    fn trunk(&self, tenant: TenantId, trunk: TrunkId);
    /// There are mails to users.
    fn mailer(&self);
    /// Is one left alone because it panics? What it was told is lost: it has to be told again.
    fn any_parked(&self) -> bool;

    /// Begins the work and tells the hints, after the commit that decided them.
    fn perform(&self, effects: Vec<Effect>);
}

/// All actors of one kind: the one with that id is started if it does not run.
pub trait Mailbox<M: Machine>: Send + Sync {
    /// Nobody awaits what becomes of it: a passing failure is tried again, and what a crash loses is found in the rows.
    fn tell(&self, id: TenantScoped<M::Key>, command: M::Command);
    /// Tells, and awaits what became of it, however long it takes to find out.
    fn insist(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<M>>;
    /// For somebody who decides what a failure means; the outer error is that the entity could not be asked. Entities never ask each
    /// other: they speak by rows and hints.
    fn ask(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<Result<M>>>;
    /// Asks for a caller who does not wait long: after ten seconds the entity is busy.
    fn request(&self, id: TenantScoped<M::Key>, command: M::Command) -> BoxFuture<'_, Result<M>>;
    /// A state that has just been committed by somebody else: saves the actor from loading it.
    fn adopt(&self, state: M);
}

/// A call, with the rows that say so.
pub struct Arrival {
    pub session: Session,
    pub call: Call,
    pub commit: Commit,
}

/// When a leg may leave, and what holds it to the trunk's rate in its last second.
pub struct Turn {
    pub at: Moment,
    pub limiter: Arc<LastSecondLimiter>,
    /// The trunk's, at the moment.
    pub calls_per_second: f64,
}

/// What a lane is told.
pub enum LaneHint {
    /// Its rows may hold something to send.
    Wake,
    /// The endpoint's settings have changed.
    Changed,
    /// These deliveries have just been committed.
    Arrived(Vec<(delivery::Model, Committed)>),
}

/// What became of a call that has come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    Yes,
    /// All slots are taken.
    NoSlot,
    /// The workspace may not make or take calls now.
    Blocked,
}
