//! Whose a message is: Call-IDs, and the mailbox of whoever speaks under each. Nothing but the Call-ID decides; transactions,
//! dialogs and retransmissions are its owner's.
use sip::message::{Message, Transport};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::mpsc;

/// Messages that wait for one owner. More are dropped: UDP loses messages, too, and their senders repeat them.
const MAILBOX: usize = 64;
/// Legs, registrations and keep-alives at once.
const MOST: usize = 20_000;

/// From where a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub address: SocketAddr,
    pub transport: Transport,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are messages, and none of them is kept for long"
)]
pub enum Arrival {
    Message {
        message: Message,
        source: Source,
    },
    /// What was sent under this Call-ID last cannot have arrived: no connection.
    Undelivered,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    Taken,
    /// Nobody speaks under that Call-ID.
    Nobody,
    /// Its owner does not keep up.
    Full,
}

#[derive(Debug, PartialEq, Eq)]
pub enum NotEntered {
    /// Somebody speaks under that Call-ID already.
    Taken,
    /// There are as many as we can bear.
    Full,
}

struct Entry {
    number: u64,
    mailbox: mpsc::Sender<Arrival>,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<HashMap<Arc<str>, Entry>>,
    last_number: AtomicU64,
}

/// Cloning is cheap.
#[derive(Clone, Default)]
pub struct CallTable(Arc<Shared>);

impl CallTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, messages with that Call-ID come to this mailbox, until it is dropped.
    pub fn register(&self, call_id: &str) -> Result<Mailbox, NotEntered> {
        let mut calls = self.lock();
        if calls.contains_key(call_id) {
            return Err(NotEntered::Taken);
        }
        if calls.len() >= MOST {
            return Err(NotEntered::Full);
        }
        let (mailbox, arrivals) = mpsc::channel(MAILBOX);
        let number = self.0.last_number.fetch_add(1, Ordering::Relaxed);
        let call_id: Arc<str> = call_id.into();
        calls.insert(call_id.clone(), Entry { number, mailbox });
        drop(calls);
        Ok(Mailbox {
            table: self.clone(),
            call_id,
            number,
            arrivals,
        })
    }

    pub fn knows(&self, call_id: &str) -> bool {
        self.lock().contains_key(call_id)
    }

    pub fn deliver(&self, call_id: &str, arrival: Arrival) -> Delivery {
        let calls = self.lock();
        let Some(entry) = calls.get(call_id) else {
            return Delivery::Nobody;
        };
        match entry.mailbox.try_send(arrival) {
            Ok(()) => Delivery::Taken,
            Err(mpsc::error::TrySendError::Full(_)) => Delivery::Full,
            // Its owner is dropping it at this moment.
            Err(mpsc::error::TrySendError::Closed(_)) => Delivery::Nobody,
        }
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What comes under one Call-ID.
pub struct Mailbox {
    table: CallTable,
    call_id: Arc<str>,
    number: u64,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Mailbox {
    pub fn call_id(&self) -> &Arc<str> {
        &self.call_id
    }

    /// The next one. It waits for ever if nothing comes: `select!` it with a deadline. Safe to be dropped.
    pub async fn arrived(&mut self) -> Arrival {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            // The table holds the sender as long as this stands.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let mut calls = self.table.lock();
        if calls
            .get(&self.call_id)
            .is_some_and(|entry| entry.number == self.number)
        {
            calls.remove(&self.call_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_id_has_one_owner_until_that_is_gone() {
        let table = CallTable::default();
        assert_eq!(table.deliver("a", Arrival::Undelivered), Delivery::Nobody);
        let mut mailbox = table.register("a").unwrap();
        assert_eq!(table.register("a").err(), Some(NotEntered::Taken));
        assert_eq!(table.deliver("a", Arrival::Undelivered), Delivery::Taken);
        assert!(matches!(mailbox.arrived().await, Arrival::Undelivered));
        for _ in 0..MAILBOX {
            assert_eq!(table.deliver("a", Arrival::Undelivered), Delivery::Taken);
        }
        assert_eq!(table.deliver("a", Arrival::Undelivered), Delivery::Full);
        drop(mailbox);
        assert!(table.is_empty());
        assert!(table.register("a").is_ok());
    }
}
