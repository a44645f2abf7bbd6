//! To which of a trunk's addresses a request goes, and when another one may be tried.
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long an address is left alone after it failed.
const REST: Duration = Duration::from_secs(30);
/// Addresses of one trunk that are kept.
const MAX_TARGETS: usize = 16;

/// A trunk's addresses in the order in which DNS wants them.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    list: Vec<Target>,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    address: SocketAddr,
    rests_until: Option<Instant>,
}

impl Targets {
    /// What was looked up anew. Those that rest go on resting.
    pub fn set(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let mut list: Vec<Target> = Vec::new();
        for address in addresses.into_iter().take(MAX_TARGETS) {
            let known = self.list.iter().find(|target| target.address == address);
            let rests_until = known.and_then(|target| target.rests_until);
            if !list.iter().any(|target| target.address == address) {
                list.push(Target { address, rests_until });
            }
        }
        self.list = list;
    }

    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.list.iter().map(|target| target.address)
    }

    /// Has the address failed a moment ago? One that is not known has not.
    pub fn rests(&self, address: SocketAddr, now: Instant) -> bool {
        let target = self.list.iter().find(|target| target.address == address);
        target.is_some_and(|target| target.rests_until.is_some_and(|until| now < until))
    }

    /// The first that does not rest and is not in `tried`; if all rest, the one that is ready first: a call is better tried than
    /// refused without a try. `None` if all were tried, or there are none.
    pub fn next(&self, tried: &[SocketAddr], now: Instant) -> Option<SocketAddr> {
        let left = || self.list.iter().filter(move |target| !tried.contains(&target.address));
        let ready = left().find(|target| target.rests_until.is_none_or(|until| now >= until));
        let soonest = || left().min_by_key(|target| target.rests_until);
        ready.or_else(soonest).map(|target| target.address)
    }

    /// A request to the address failed.
    pub fn failed(&mut self, address: SocketAddr, now: Instant) {
        let target = self.list.iter_mut().find(|target| target.address == address);
        if let Some(target) = target {
            target.rests_until = Some(now + REST);
        }
    }

    /// The address answered.
    pub fn answered(&mut self, address: SocketAddr) {
        let target = self.list.iter_mut().find(|target| target.address == address);
        if let Some(target) = target {
            target.rests_until = None;
        }
    }
}

/// How an INVITE at one address ended without a dialog.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// Refused connection, failed TLS, an ICMP message: it did not arrive.
    Unreachable,
    /// Nobody answered in 64·T1.
    Silence,
    Answer {
        code: u16,
        /// Was there a provisional answer of 101 to 199 before?
        rang: bool,
        has_retry_after: bool,
        /// Its phrase says that too many calls were placed: whoever reads phrases knows.
        names_a_limit: bool,
    },
}

/// May the call be tried at the trunk's next address? Only where it cannot have rung; and where the carrier's limit is reached,
/// its other addresses count the same limit. Source: RFC 3263, section 4.3, narrowed.
pub fn may_fail_over(ending: Ending) -> bool {
    match ending {
        Ending::Unreachable => true,
        // The INVITE may be ringing there.
        Ending::Silence => false,
        Ending::Answer {
            code: 503,
            rang: false,
            has_retry_after: false,
            names_a_limit: false,
        } => true,
        Ending::Answer { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 5060))
    }

    #[test]
    fn an_address_that_failed_rests() {
        let now = Instant::now();
        let mut targets = Targets::default();
        targets.set([1, 2, 1].map(address));
        assert_eq!(targets.addresses().count(), 2);
        assert_eq!(targets.next(&[], now), Some(address(1)));
        targets.failed(address(1), now);
        assert!(targets.rests(address(1), now) && !targets.rests(address(1), now + REST));
        assert!(!targets.rests(address(2), now) && !targets.rests(address(9), now));
        assert_eq!(targets.next(&[], now), Some(address(2)));
        assert_eq!(targets.next(&[], now + REST), Some(address(1)));
        targets.set([1, 2].map(address));
        assert_eq!(
            targets.next(&[], now),
            Some(address(2)),
            "a new look-up does not wake it"
        );
        targets.failed(address(2), now + Duration::from_secs(1));
        assert_eq!(
            targets.next(&[], now + Duration::from_secs(1)),
            Some(address(1)),
            "the soonest of all that rest"
        );
        assert_eq!(targets.next(&[address(1)], now), Some(address(2)));
        assert_eq!(targets.next(&[1, 2].map(address), now), None);
        targets.answered(address(1));
        targets.answered(address(9));
        targets.failed(address(9), now);
        assert_eq!(targets.next(&[], now), Some(address(1)));
        assert_eq!(Targets::default().next(&[], now), None);
    }

    #[test]
    fn only_a_call_that_cannot_have_rung_is_tried_elsewhere() {
        let answer = |code, rang, has_retry_after, names_a_limit| Ending::Answer {
            code,
            rang,
            has_retry_after,
            names_a_limit,
        };
        let table = [
            (Ending::Unreachable, true),
            (Ending::Silence, false),
            (answer(503, false, false, false), true),
            (answer(503, true, false, false), false),
            (answer(503, false, true, false), false),
            (answer(503, false, false, true), false),
            (answer(500, false, false, false), false),
            (answer(486, false, false, false), false),
        ];
        for (ending, expected) in table {
            assert_eq!(may_fail_over(ending), expected, "{ending:?}");
        }
    }
}
