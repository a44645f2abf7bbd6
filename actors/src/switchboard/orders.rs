//! What a call's task can be told: by its talk (`Order`), by the API (`Told`), and by the end of its session.
use crate::call::leg::{Control, Leg};
use entities::values::E164;
use runtime::clock::Busy;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Orders that a call has not looked at yet.
pub const ORDERS: usize = 64;

#[derive(Debug)]
pub enum Order {
    /// Keys that the agent presses.
    Press(String),
    /// Somebody else is called to take over; then who is told how that went. Who drops his end wants nobody any more.
    HandOver {
        to: E164,
        done: oneshot::Sender<Result<(), String>>,
    },
}

/// What a talk is told.
pub type Told = (Control, Option<Busy>);

/// A call of this process, from outside.
pub struct LiveCall {
    pub inbox: mpsc::Sender<Told>,
    /// Its session has ended: it is hung up.
    pub ended: watch::Sender<bool>,
    /// Of one that has come in and waits for its slot: who is told that it has one.
    pub taken: Option<oneshot::Sender<Arc<Leg>>>,
}

/// Resolves when its session has ended, or nobody can tell any more.
pub async fn has_ended(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}
