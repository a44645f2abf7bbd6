//! What a lane hears, and what it then does.
use crate::{
    commit::Committed,
    delivery::{
        queue::Item,
        report::Report,
        settle::{EndpointState, Tried},
    },
};
use entities::{delivery::Model as Delivery, ids::DeliveryId, values::Moment};
use std::collections::HashSet;
use uuid::Uuid;

/// What a lane hears.
#[derive(Debug)]
pub enum LaneEvent<T> {
    Started,
    /// These deliveries have just been committed.
    Arrived(Vec<Item>),
    /// The endpoint's settings have changed.
    Changed,
    /// Its rows may hold something to send.
    Woken,
    /// A read is over; it has the settings if they were asked for.
    Read {
        settings: Option<LaneSettings<T>>,
        due: Due,
    },
    ReadFailed,
    /// An attempt is over.
    Attempted(Attempted),
    /// The commit under way stands; this is what became of its deliveries and of their endpoint.
    Committed {
        deliveries: Vec<Delivery>,
        endpoint_state: EndpointState,
    },
    /// It does not stand; the outcomes come back.
    CommitFailed(Vec<Tried>),
    /// The pause after a commit that failed is over.
    BackedOff,
    /// The moment has come for which the timer was set.
    Rang,
    /// After [`LaneAct::Rest`]: all that was sent before has been heard.
    MayGo,
    /// The service ends.
    Shutdown,
}

/// What a lane does.
#[derive(Debug)]
pub enum LaneAct<T> {
    /// Answered by [`LaneEvent::Read`] or [`LaneEvent::ReadFailed`].
    Read(ReadRows),
    /// Answered by [`LaneEvent::Attempted`], whatever happens.
    Begin(Begin<T>),
    /// Counted on the lane's standing; one at a time. Answered by [`LaneEvent::Committed`] or [`LaneEvent::CommitFailed`].
    Commit(Vec<Tried>),
    /// Answered by [`LaneEvent::BackedOff`].
    BackOff,
    /// In place of the one before; a moment that is past rings at once.
    SetTimer(Option<Moment>),
    /// "I have nothing to do": answered by [`LaneEvent::MayGo`].
    Rest,
    /// Takes a `Rest` back.
    Stay,
    Stop,
}

/// What a lane must know of its endpoint.
#[derive(Debug)]
pub struct LaneSettings<T> {
    /// `None`: nothing is sent.
    pub target: Option<T>,
    pub endpoint_state: EndpointState,
}

/// What is due.
#[derive(Debug)]
pub struct Due {
    pub deliveries: Vec<Item>,
    pub more: bool,
    pub next_due_at: Option<Moment>,
}

#[derive(Debug)]
pub struct ReadRows {
    pub with_settings: bool,
    pub limit: usize,
    /// Not to be read: they wait in the queue, or are under way.
    pub in_hand: HashSet<DeliveryId>,
}

#[derive(Debug)]
pub struct Begin<T> {
    pub target: T,
    pub delivery: Delivery,
    pub event: Committed,
    /// Which attempt of the lane it is.
    pub number: u64,
}

#[derive(Debug)]
pub struct Attempted {
    pub delivery: Delivery,
    /// Of its event.
    pub subject: Uuid,
    pub number: u64,
    pub report: Report,
}
