//! How each trunk stands: noted by those who speak with its peer, for those who dial and for those who ask. Known to this process
//! alone, and found out anew by the next.
use crate::switchboard::line;
use adapters::trunk::on_the_wire;
use entities::{ids::TrunkId, sip_trunk::Transport, values::Moment};
use sip::targets::Targets;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// What its peer has shown.
#[derive(Clone, Debug, PartialEq)]
pub struct TrunkState {
    /// The peer answers, and where we have to register, we are.
    pub up: bool,
    /// It has asked for a rest: nothing is dialled over it before then.
    pub paused_until: Option<Moment>,
    pub registered: Option<Binding>,
    /// It does not take us for who we are: nothing is dialled over it until its settings change or it takes us again.
    pub refused: Option<Refused>,
    pub targets: Vec<Target>,
}

/// How a trunk is that nobody has heard of: whoever dials over it finds out.
impl Default for TrunkState {
    fn default() -> Self {
        TrunkState {
            up: true,
            paused_until: None,
            registered: None,
            refused: None,
            targets: Vec::new(),
        }
    }
}

impl TrunkState {
    pub fn takes_calls(&self) -> bool {
        self.up && self.refused.is_none()
    }
}

/// Its registrar knows us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// By a clock that nobody sets, as the registrar counts.
    ends_at: Instant,
    until: Moment,
}

impl Binding {
    pub fn new(ends_at: Instant, at: Instant, now: Moment) -> Self {
        let until = now.plus(ends_at.saturating_duration_since(at));
        Binding { ends_at, until }
    }

    /// As it was told first, unless our time has moved otherwise since: where a wall clock that was set is believed, it leaps, and
    /// the binding does not.
    pub fn until(&self, at: Instant, now: Moment) -> Moment {
        let anew = Binding::new(self.ends_at, at, now).until;
        if anew.millis().abs_diff(self.until.millis()) > MOVED_MS {
            anew
        } else {
            self.until
        }
    }
}

/// Less than this is how both clocks are read one after the other.
const MOVED_MS: u64 = 5_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub sip_code: u16,
    /// In the peer's words.
    pub reason: String,
}

/// One of the addresses that its host leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub address: SocketAddr,
    pub transport: Transport,
    /// It has not failed a moment ago.
    pub up: bool,
}

/// Where its peer is, and what is known of each of these addresses.
#[derive(Clone, Debug)]
pub struct Peer {
    pub targets: Targets,
    pub transport: Transport,
    /// What a certificate has to name: the next hop's host, wherever its servers are. Source: RFC 5922, section 4.
    pub name: Arc<str>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    state: Option<TrunkState>,
    peer: Option<Peer>,
    /// Calls are refused for who we say we are, whatever its registration says.
    calls_refused: Option<Refused>,
    more_legs: i64,
    calls_per_second: Option<f64>,
}

impl Entry {
    /// Nothing is known of it.
    fn is_empty(&self) -> bool {
        self.state.is_none()
            && self.peer.is_none()
            && self.calls_refused.is_none()
            && self.more_legs <= 0
            && self.calls_per_second.is_none()
    }
}

/// What a dispatcher wants to know of a trunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    pub takes_calls: bool,
    pub paused_until: Option<Moment>,
    /// Legs beside those of the calls that take a slot.
    pub more_legs: i64,
}

/// Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct TrunkBoard(Arc<Mutex<HashMap<TrunkId, Entry>>>);

impl TrunkBoard {
    fn lock(&self) -> MutexGuard<'_, HashMap<TrunkId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is known now, and says whether that changes what is dialled: then its workspace's dispatcher is to be told. A
    /// rest that was asked for is not cut short. Once it is known where its peer is, `targets` says nothing.
    pub fn set(&self, trunk: TrunkId, mut state: TrunkState) -> bool {
        let mut all = self.lock();
        let entry = all.entry(trunk).or_default();
        let before = entry.state.take().unwrap_or_default();
        state.paused_until = state.paused_until.max(before.paused_until);
        let changes = (before.takes_calls(), before.paused_until) != (state.takes_calls(), state.paused_until);
        entry.state = Some(state);
        changes
    }

    /// It has asked for a rest until then. Whoever reads that from a peer bounds it.
    pub fn rest(&self, trunk: TrunkId, until: Moment) {
        let mut all = self.lock();
        let state = all.entry(trunk).or_default().state.get_or_insert_default();
        state.paused_until = state.paused_until.max(Some(until));
    }

    /// Its calls are refused for who we say we are: none is dialled until its settings change. Answers whether that is new.
    pub fn refuse_calls(&self, trunk: TrunkId, why: Refused) -> bool {
        self.lock()
            .entry(trunk)
            .or_default()
            .calls_refused
            .replace(why)
            .is_none()
    }

    /// Its settings have changed: it may take us for who we say we are. Answers whether its calls were refused: then its workspace's
    /// dispatcher is to be told.
    pub fn try_calls_again(&self, trunk: TrunkId) -> bool {
        let mut all = self.lock();
        all.get_mut(&trunk)
            .is_some_and(|entry| entry.calls_refused.take().is_some())
    }

    /// Where its peer is. Addresses that rest go on resting; `None`: nobody knows.
    pub fn leads_to(&self, trunk: TrunkId, peer: Option<(Transport, Arc<str>, Vec<SocketAddr>)>) {
        let mut all = self.lock();
        let entry = all.entry(trunk).or_default();
        entry.peer = peer.map(|(transport, name, addresses)| {
            let mut targets = entry.peer.take().map(|peer| peer.targets).unwrap_or_default();
            targets.set(addresses);
            Peer {
                targets,
                transport,
                name,
            }
        });
    }

    /// To where the next request goes, or the next try of a call of which these addresses were tried: see [`Targets::next`].
    pub fn next_target(&self, trunk: TrunkId, tried: &[SocketAddr], now: Instant) -> Option<line::Target> {
        let all = self.lock();
        let peer = all.get(&trunk)?.peer.as_ref()?;
        Some(line::Target {
            address: peer.targets.next(tried, now)?,
            transport: on_the_wire(peer.transport),
            name: peer.name.clone(),
        })
    }

    /// A request to the address did not arrive, or was not answered: others come first for half a minute.
    pub fn target_failed(&self, trunk: TrunkId, address: SocketAddr, now: Instant) {
        self.of_targets(trunk, |targets| targets.failed(address, now));
    }

    pub fn target_answered(&self, trunk: TrunkId, address: SocketAddr) {
        self.of_targets(trunk, |targets| targets.answered(address));
    }

    fn of_targets(&self, trunk: TrunkId, note: impl FnOnce(&mut Targets)) {
        let mut all = self.lock();
        if let Some(peer) = all.get_mut(&trunk).and_then(|entry| entry.peer.as_mut()) {
            note(&mut peer.targets);
        }
    }

    /// It is deleted, or nobody speaks with its peer any more. Legs that are still there count on.
    pub fn forget(&self, trunk: TrunkId) {
        let mut all = self.lock();
        if let Some(entry) = all.get_mut(&trunk) {
            entry.state = None;
            entry.peer = None;
            entry.calls_refused = None;
            entry.calls_per_second = None;
        }
        all.retain(|_, entry| !entry.is_empty());
    }

    /// May a call be placed over it, as far as is known?
    pub fn is_up(&self, trunk: TrunkId) -> bool {
        self.seen(trunk).takes_calls
    }

    /// `None`: nobody has said anything of it.
    pub fn state(&self, trunk: TrunkId) -> Option<TrunkState> {
        let all = self.lock();
        let entry = all.get(&trunk)?;
        let mut state = entry.state.clone()?;
        state.refused = state.refused.or_else(|| entry.calls_refused.clone());
        if let Some(peer) = &entry.peer {
            state.targets = peer.shown(Instant::now());
        }
        Some(state)
    }

    pub fn seen(&self, trunk: TrunkId) -> Seen {
        let all = self.lock();
        let entry = all.get(&trunk);
        let state = entry.and_then(|entry| entry.state.as_ref());
        Seen {
            takes_calls: state.is_none_or(TrunkState::takes_calls)
                && entry.is_none_or(|entry| entry.calls_refused.is_none()),
            paused_until: state.and_then(|state| state.paused_until),
            more_legs: entry.map_or(0, |entry| entry.more_legs),
        }
    }

    /// A second leg of a call that is handed over takes a channel until it is dropped.
    pub fn second_leg(&self, trunk: TrunkId) -> SecondLeg {
        self.lock().entry(trunk).or_default().more_legs += 1;
        SecondLeg {
            board: self.clone(),
            trunk,
        }
    }

    /// At which rate its workspace's dispatcher dials over it.
    pub fn paced(&self, trunk: TrunkId, calls_per_second: f64) {
        self.lock().entry(trunk).or_default().calls_per_second = Some(calls_per_second);
    }

    /// Nobody dials over them any more: whoever begins to does so at the rates of their rows.
    pub fn unpaced<'a>(&self, trunks: impl Iterator<Item = &'a TrunkId>) {
        let mut all = self.lock();
        for trunk in trunks {
            if let Some(entry) = all.get_mut(trunk) {
                entry.calls_per_second = None;
            }
        }
        all.retain(|_, entry| !entry.is_empty());
    }

    /// `None`: nobody dials over it.
    pub fn calls_per_second(&self, trunk: TrunkId) -> Option<f64> {
        self.lock().get(&trunk)?.calls_per_second
    }
}

impl Peer {
    fn shown(&self, now: Instant) -> Vec<Target> {
        let target = |address| Target {
            address,
            transport: self.transport,
            up: !self.targets.rests(address, now),
        };
        self.targets.addresses().map(target).collect()
    }
}

/// A channel in use, beside that of its call.
#[derive(Debug)]
pub struct SecondLeg {
    board: TrunkBoard,
    trunk: TrunkId,
}

impl Drop for SecondLeg {
    fn drop(&mut self) {
        let mut all = self.board.lock();
        if let Some(entry) = all.get_mut(&self.trunk) {
            entry.more_legs -= 1;
            if entry.is_empty() {
                all.remove(&self.trunk);
            }
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
