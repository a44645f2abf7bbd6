//! Whose packets are heard, and where ours go: symmetric RTP with its guards. Pure: it knows no clock.
//!
//! Sound goes to where it comes from, for behind a NAT the address in the SDP is not the one that works. So whoever sends first
//! could take a call over; hence only the SDP's own address, at any port, and the trunk's media addresses may begin, and only
//! one move is allowed, after a silence. An SDP may point at a third party, who never asked for our packets ("voice hammer",
//! RFC 5245, section 18.5.1): whoever sends nothing back gets no more.
use ipnet::IpNet;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The old address must have been silent for so long before another one counts.
const MOVES_AFTER: Duration = Duration::from_secs(2);
/// What comes from the old address for so long after another one was named was on its way. Longer than that would be deafness to a peer
/// whose sound comes from the same address as before, whatever its SDP says: one behind a NAT or an SBC.
const ON_ITS_WAY: Duration = Duration::from_millis(300);
/// Nothing came back for so long since the first packet of ours: nothing more is sent there.
const UNANSWERED: Duration = Duration::from_secs(10);

/// What is made of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Known,
    First,
    Moved,
    /// Not heard.
    Stranger,
}

#[derive(Clone, Debug)]
pub struct Source {
    /// The SDP's.
    announced: SocketAddr,
    /// Media addresses of the trunk.
    allowed: Vec<IpNet>,
    /// The SDP's address cannot be right: whoever sends first.
    any_first: bool,
    current: Option<SocketAddr>,
    heard_at: Option<Instant>,
    has_moved: bool,
    /// Of our first packet there.
    sent_at: Option<Instant>,
    /// Where sound came from before another SDP, and when that came.
    left: Option<(SocketAddr, Instant)>,
}

impl Source {
    pub fn new(announced: SocketAddr, allowed: Vec<IpNet>, any_first: bool) -> Self {
        Source {
            announced: canonical(announced),
            allowed,
            any_first,
            current: None,
            heard_at: None,
            has_moved: false,
            sent_at: None,
            left: None,
        }
    }

    /// Changes nothing: what it means is taken down by [`heard`](Self::heard) when the packet has proved good.
    pub fn judge(&self, from: SocketAddr, now: Instant) -> Judgement {
        let from = canonical(from);
        let is_of_ours = from.ip() == self.announced.ip()
            || self.allowed.iter().any(|net| net.contains(&from.ip()))
            || self.any_first && self.current.is_none();
        let may_begin = is_of_ours && !self.is_left(from, now);
        let is_silent = self
            .heard_at
            .is_none_or(|at| now.saturating_duration_since(at) >= MOVES_AFTER);
        match self.current {
            Some(current) if current == from => Judgement::Known,
            None if may_begin => Judgement::First,
            // The old address went on for a while, but this is the one that was named.
            Some(current) if from == self.announced && self.left.is_some_and(|(left, _)| left == current) => {
                Judgement::First
            }
            Some(_) if may_begin && is_silent && !self.has_moved => Judgement::Moved,
            None | Some(_) => Judgement::Stranger,
        }
    }

    /// What was on its way when another address was named would draw our sound back to the old one.
    fn is_left(&self, from: SocketAddr, now: Instant) -> bool {
        from != self.announced
            && self
                .left
                .is_some_and(|(left, at)| left == from && now.saturating_duration_since(at) < ON_ITS_WAY)
    }

    /// A good packet came from there.
    pub fn heard(&mut self, from: SocketAddr, judgement: Judgement, now: Instant) {
        match judgement {
            Judgement::Stranger => return,
            Judgement::Known => {}
            Judgement::First => self.current = Some(canonical(from)),
            Judgement::Moved => {
                self.current = Some(canonical(from));
                self.has_moved = true;
            }
        }
        self.heard_at = Some(now);
    }

    /// Where to send; the first time counts as the beginning.
    pub fn target(&mut self, now: Instant) -> Option<SocketAddr> {
        if self.current.is_some() {
            return self.current;
        }
        let nowhere = self.announced.ip().is_unspecified() || self.announced.port() == 0;
        if self.any_first || nowhere {
            return None;
        }
        let sent_at = *self.sent_at.get_or_insert(now);
        (now.saturating_duration_since(sent_at) < UNANSWERED).then_some(self.announced)
    }

    /// The call has been picked up: who had nothing to say before is given the time once more.
    pub fn expect_again(&mut self) {
        self.sent_at = None;
    }

    /// RTCP has the next port, unless it goes with RTP. Source: RFC 3550, section 11.
    pub fn control_target(&mut self, is_muxed: bool, now: Instant) -> Option<SocketAddr> {
        let target = self.target(now)?;
        match is_muxed {
            true => Some(target),
            false => Some(SocketAddr::new(target.ip(), target.port().checked_add(1)?)),
        }
    }

    /// RTCP may come from any port of whoever is heard.
    pub fn is_control(&self, from: SocketAddr) -> bool {
        let from = canonical(from).ip();
        self.current
            .map_or(from == self.announced.ip(), |current| current.ip() == from)
    }

    /// Another SDP: the same address keeps what is known of it.
    pub fn retarget(&mut self, announced: SocketAddr, allowed: Vec<IpNet>, any_first: bool, now: Instant) {
        if canonical(announced) == self.announced && any_first == self.any_first {
            self.allowed = allowed;
        } else {
            let left = self.current.map(|left| (left, now));
            *self = Source {
                left,
                ..Source::new(announced, allowed, any_first)
            };
        }
    }
}

/// A socket for both families sees IPv4 senders as IPv6 ones.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const SDP: &str = "203.0.113.7:4000";

    fn of(allowed: &[&str], any_first: bool) -> Source {
        let allowed = allowed.iter().map(|net| net.parse().unwrap()).collect();
        Source::new(at(SDP), allowed, any_first)
    }

    #[test]
    fn who_may_begin() {
        use Judgement::{First, Stranger};
        let now = Instant::now();
        for (what, source, from, wanted) in [
            ("the SDP's address", of(&[], false), SDP, First),
            ("another port of it", of(&[], false), "203.0.113.7:9", First),
            ("as IPv6", of(&[], false), "[::ffff:203.0.113.7]:4000", First),
            ("somebody else", of(&[], false), "203.0.113.8:4000", Stranger),
            ("the trunk's", of(&["198.51.100.0/24"], false), "198.51.100.9:1", First),
            (
                "beside the trunk's",
                of(&["198.51.100.0/24"], false),
                "198.51.101.9:1",
                Stranger,
            ),
            ("behind a NAT", of(&[], true), "192.0.2.1:1", First),
        ] {
            assert_eq!(source.judge(at(from), now), wanted, "{what}");
        }
    }

    #[test]
    fn one_move_after_a_silence_and_no_other() {
        let start = Instant::now();
        let mut source = of(&["198.51.100.0/24"], false);
        let first = at("203.0.113.7:5000");
        source.heard(first, source.judge(first, start), start);
        assert_eq!(source.target(start), Some(first));
        assert_eq!(source.judge(first, start), Judgement::Known);
        let second = at("198.51.100.1:7000");
        assert_eq!(source.judge(second, start + ms(1_999)), Judgement::Stranger);
        assert_eq!(source.judge(second, start + ms(2_000)), Judgement::Moved);
        // A bad packet of such a sender has moved nothing.
        assert_eq!(source.target(start + ms(2_000)), Some(first));
        source.heard(second, Judgement::Moved, start + ms(2_000));
        assert_eq!(source.target(start + ms(2_000)), Some(second));
        assert_eq!(
            source.judge(first, start + ms(60_000)),
            Judgement::Stranger,
            "it has moved once"
        );
        // A new SDP begins anew, the same one does not.
        source.retarget(at(SDP), Vec::new(), false, start);
        assert_eq!(source.target(start), Some(second));
        source.retarget(at("203.0.113.9:6000"), Vec::new(), false, start);
        assert_eq!(source.target(start), Some(at("203.0.113.9:6000")));
    }

    /// The old port's last packets are still under way when a re-INVITE has named another one of the same machine.
    #[test]
    fn the_port_that_was_left_does_not_draw_sound_back() {
        let start = Instant::now();
        let (old, new) = (at(SDP), at("203.0.113.7:6000"));
        let mut source = of(&[], false);
        source.heard(old, Judgement::First, start);
        source.retarget(new, Vec::new(), false, start);
        assert_eq!(source.judge(old, start + ms(299)), Judgement::Stranger);
        assert_eq!(source.target(start + ms(299)), Some(new));
        assert_eq!(source.judge(new, start + ms(20)), Judgement::First);
        // Whoever goes on sending from there means it.
        assert_eq!(source.judge(old, start + ms(300)), Judgement::First);
        // Where it is named again it counts at once.
        source.heard(new, Judgement::First, start + ms(20));
        source.retarget(old, Vec::new(), false, start + ms(40));
        assert_eq!(source.judge(old, start + ms(40)), Judgement::First);
        assert_eq!(source.judge(new, start + ms(60)), Judgement::Stranger);
    }

    /// What comes from the old address for longer is heard, until something comes from the one that was named.
    #[test]
    fn the_address_that_was_named_takes_over_from_the_old_one_at_once() {
        let start = Instant::now();
        let (old, new) = (at(SDP), at("203.0.113.7:6000"));
        let mut source = of(&[], false);
        source.heard(old, Judgement::First, start);
        source.retarget(new, Vec::new(), false, start);
        source.heard(old, source.judge(old, start + ms(320)), start + ms(320));
        assert_eq!(source.target(start + ms(320)), Some(old));
        let other = at("203.0.113.7:7000");
        assert_eq!(source.judge(other, start + ms(340)), Judgement::Stranger);
        source.heard(new, source.judge(new, start + ms(340)), start + ms(340));
        assert_eq!(source.target(start + ms(340)), Some(new));
        assert_eq!(source.judge(old, start + ms(360)), Judgement::Stranger);
        assert_eq!(source.judge(new, start + ms(360)), Judgement::Known);
    }

    /// Behind a NAT the first one is the only one.
    #[test]
    fn where_anybody_may_begin_nobody_may_follow() {
        let start = Instant::now();
        let mut source = of(&[], true);
        assert_eq!(source.target(start), None, "there is nowhere to send yet");
        let (first, second) = (at("192.0.2.1:1"), at("192.0.2.2:2"));
        source.heard(first, Judgement::First, start);
        assert_eq!(source.target(start), Some(first));
        assert_eq!(source.judge(second, start + ms(9_000)), Judgement::Stranger);
    }

    #[test]
    fn who_never_answers_gets_no_more() {
        let start = Instant::now();
        let mut source = of(&[], false);
        assert_eq!(source.target(start), Some(at(SDP)));
        assert_eq!(source.target(start + ms(9_999)), Some(at(SDP)));
        assert_eq!(source.target(start + ms(10_000)), None);
        source.expect_again();
        assert_eq!(source.target(start + ms(10_000)), Some(at(SDP)));
        assert_eq!(source.target(start + ms(20_000)), None);
        // Somebody strange does not change that, the right one does.
        source.heard(at("192.0.2.9:9"), Judgement::Stranger, start + ms(21_000));
        assert_eq!(source.target(start + ms(21_000)), None);
        source.heard(at(SDP), Judgement::First, start + ms(22_000));
        assert_eq!(source.target(start + ms(22_000)), Some(at(SDP)));
    }

    #[test]
    fn reports_have_their_own_port() {
        let now = Instant::now();
        let mut source = of(&[], false);
        assert_eq!(source.control_target(true, now), Some(at("203.0.113.7:4000")));
        assert_eq!(source.control_target(false, now), Some(at("203.0.113.7:4001")));
        assert!(source.is_control(at("203.0.113.7:9")) && !source.is_control(at("203.0.113.8:9")));
        for nowhere in ["0.0.0.0:4000", "203.0.113.7:0"] {
            assert_eq!(Source::new(at(nowhere), Vec::new(), false).target(now), None);
        }
        assert_eq!(
            Source::new(at("203.0.113.7:65535"), Vec::new(), false).control_target(false, now),
            None
        );
    }
}
