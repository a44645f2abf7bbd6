//! The switchboard itself: sockets, ports, identifiers, accounts of trunks, and the calls on it: all that the tasks of calls
//! share.
//!
//! It counts, too: the INVITEs of each source in a second, and the legs on the wire, which a shutdown waits for.
use super::{
    account::Account,
    faults::{Faults, Part},
    line::{Line, Target},
    messages::Messages,
    orders::LiveCall,
    sockets::{INBOX, Incoming, OpenSockets, Served},
    sources::SourceTable,
    table::CallTable,
};
use crate::trunk::options::SipOptions;
use entities::ids::{SessionId, TrunkId};
use media::{rtp::ports::Ports, threads::MediaThreads};
use sip::identity::Identity;
use std::{
    collections::HashMap,
    net::SocketAddr,
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// INVITEs of one trunk in a second, beside twice of those that it takes itself.
const LEAST: f64 = 20.0;
/// Of a message over a connection: who sends it byte by byte keeps nobody's place.
const WHOLE_WITHIN: Duration = Duration::from_secs(20);
/// In which a peer over UDP takes a connection, or takes none: a call waits for it.
const CONNECTS_WITHIN: Duration = Duration::from_millis(500);
/// One that takes none is not asked again for so long; of so many.
const NOT_ASKED_FOR: Duration = Duration::from_secs(600);
const MOST_WITHOUT_STREAMS: usize = 1_000;

fn most_of(account: &Account) -> f64 {
    2.0 * account.row.definition.max_calls_per_second.get() + LEAST
}

/// INVITEs of the current second, by all trunks of their source: whoever shares a carrier's trunks with others, and has addresses of his
/// own beside, takes nothing from them.
#[derive(Default)]
struct Arrivals {
    second: u64,
    counts: HashMap<Vec<TrunkId>, f64>,
}

impl Arrivals {
    /// With this one.
    fn count(&mut self, trunks: &[TrunkId], second: u64) -> f64 {
        if self.second != second {
            self.second = second;
            self.counts.clear();
        }
        let count = self.counts.entry(trunks.to_vec()).or_default();
        *count += 1.0;
        *count
    }
}

/// Cloning is cheap.
#[derive(Clone)]
pub struct Switchboard(Arc<Shared>);

pub struct Shared {
    pub(super) line: Line,
    pub(super) sockets: Arc<OpenSockets>,
    /// What every identifier of a call is derived from: the next process has it, too.
    pub(super) identity: Arc<Identity>,
    pub(super) secret: [u8; 32],
    pub(super) ports: Arc<Ports>,
    pub(super) threads: Arc<MediaThreads>,
    live: Mutex<HashMap<SessionId, LiveCall>>,
    accounts: Mutex<HashMap<TrunkId, Arc<Account>>>,
    arrivals: Mutex<Arrivals>,
    /// Peers over UDP that took no connection, and until when they are not asked again.
    without_streams: Mutex<HashMap<SocketAddr, Instant>>,
    /// Legs of which something is on the wire.
    legs: AtomicUsize,
    /// Of messages to callers whom no agent takes: they have no slot, but they have ports.
    pub(super) messages: Arc<Messages>,
    /// Until it is started.
    arriving: Mutex<Option<mpsc::Receiver<Incoming>>>,
    faults: Faults,
}

impl Deref for Switchboard {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Switchboard {
    /// Takes the ports; nothing is listened to before it is started. `secret`: the database's own, which outlives the process.
    /// Fails with the setting and what to do about it.
    pub fn open(options: &SipOptions, secret: [u8; 32], threads: Arc<MediaThreads>) -> Result<Self, String> {
        let (inbox, arriving) = mpsc::channel(INBOX);
        let (calls, sources) = (CallTable::default(), SourceTable::default());
        let served = Served {
            calls: calls.clone(),
            sources: sources.clone(),
            inbox,
            whole_within: WHOLE_WITHIN,
        };
        let sockets = Arc::new(OpenSockets::open(options, served)?);
        let ports = Ports::new(options.bind.ip(), options.rtp_ports.clone(), rand::random());
        let ports = ports.map_err(|why| format!("rtp_ports: {why}"))?;
        let line = Line::new(sockets.clone(), calls, sources);
        Ok(Switchboard(Arc::new(Shared {
            line,
            sockets,
            identity: Arc::new(Identity::new(&secret)),
            secret,
            ports,
            threads,
            live: Mutex::default(),
            accounts: Mutex::default(),
            arrivals: Mutex::default(),
            without_streams: Mutex::default(),
            legs: AtomicUsize::new(0),
            messages: Arc::default(),
            arriving: Mutex::new(Some(arriving)),
            faults: Faults::default(),
        })))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// How trunks' actors speak.
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// What identifiers and answers to challenges are derived from.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    pub(super) fn take_arriving(&self) -> Option<mpsc::Receiver<Incoming>> {
        lock(&self.arriving).take()
    }

    pub(super) fn live(&self) -> MutexGuard<'_, HashMap<SessionId, LiveCall>> {
        lock(&self.live)
    }

    /// The task of that call has ended. One that was placed again meanwhile stays. `its_end`: of that task.
    pub(super) fn forget_call(&self, session: SessionId, its_end: &watch::Receiver<bool>) {
        let mut live = self.live();
        if live
            .get(&session)
            .is_some_and(|call| call.ended.subscribe().same_channel(its_end))
        {
            live.remove(&session);
        }
    }

    /// As it was known, if it has not changed since.
    pub(super) fn account(&self, trunk: TrunkId, version: i32) -> Option<Arc<Account>> {
        let accounts = lock(&self.accounts);
        accounts
            .get(&trunk)
            .filter(|account| account.row.version == version)
            .cloned()
    }

    pub(super) fn keep_account(&self, account: Arc<Account>) {
        lock(&self.accounts).insert(account.row.id, account);
    }

    /// It is deleted.
    pub fn forget_account(&self, trunk: TrunkId) {
        lock(&self.accounts).remove(&trunk);
    }

    /// Does one more INVITE from there fit into this second? `Some(false)`: it is told that it does not; `None`: not even that.
    /// `at`: by a clock that nobody sets, for a second of our time lasts two where a wall clock was set back.
    pub(super) fn admits(&self, trunks: &[TrunkId], at: Duration) -> Option<bool> {
        let accounts = lock(&self.accounts);
        let most: f64 = trunks
            .iter()
            .map(|trunk| accounts.get(trunk).map_or(LEAST, |account| most_of(account)))
            .sum();
        drop(accounts);
        let count = lock(&self.arrivals).count(trunks, at.as_secs());
        match count {
            count if count <= most => Some(true),
            count if count <= 2.0 * most => Some(false),
            _ => None,
        }
    }

    /// May what is too long for a datagram go there over TCP?
    pub(super) async fn takes_streams(&self, target: &Target) -> bool {
        let now = Instant::now();
        {
            let mut known = lock(&self.without_streams);
            known.retain(|_, until| *until > now);
            if known.contains_key(&target.address) {
                return false;
            }
        }
        let takes = self.sockets.takes_streams(target.address, CONNECTS_WITHIN).await;
        let mut known = lock(&self.without_streams);
        if !takes && known.len() < MOST_WITHOUT_STREAMS {
            known.insert(target.address, now + NOT_ASKED_FOR);
        }
        takes
    }

    /// Legs of which something is on the wire.
    pub fn legs(&self) -> usize {
        self.legs.load(Ordering::Relaxed)
    }

    /// RTP ports that are in use, in pairs.
    pub fn ports_in_use(&self) -> usize {
        self.ports.taken()
    }

    /// Test switch: the next of these that looks panics, once.
    pub fn fail_next(&self, part: Part) {
        self.faults.set(part);
    }

    /// Is it this one? Asked once: then it no longer is.
    pub fn is_to_fail(&self, part: Part) -> bool {
        self.faults.take(part)
    }

    /// Lets the ports go, without a word to any peer.
    pub fn close(&self) {
        self.sockets.close();
    }
}

/// One leg on the wire, as long as it is kept.
pub struct OnTheWire(Switchboard);

impl OnTheWire {
    pub fn new(switchboard: &Switchboard) -> Self {
        switchboard.legs.fetch_add(1, Ordering::Relaxed);
        OnTheWire(switchboard.clone())
    }
}

impl Drop for OnTheWire {
    fn drop(&mut self) {
        self.0.legs.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn each_second_and_each_source_counts_for_itself() {
        let mut arrivals = Arrivals::default();
        let [one, other] = [1, 2].map(|id| TrunkId(Uuid::from_u128(id)));
        // From an address of one of them, of the other, and of both.
        let of = [vec![one], vec![other], vec![one, other]];
        let counted = [(0, 0), (0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 1)];
        let counts = counted.map(|(source, second): (usize, u64)| arrivals.count(&of[source], second));
        assert_eq!(counts, [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
        assert_eq!(arrivals.counts.len(), 2);
    }
}
