//! The ports of legs: pairs of UDP sockets, RTP on the even port and RTCP on the odd one above it (RFC 3550, section 11).
use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A pair that was given back rests: packets of its old call must not reach a new one.
const RESTS: Duration = Duration::from_secs(5);

/// All ports of the process.
#[derive(Debug)]
pub struct Ports {
    ip: IpAddr,
    /// The even ports.
    first: u16,
    count: u16,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The pair that is tried next.
    next: u16,
    /// Given back, the oldest first.
    resting: VecDeque<(u16, Instant)>,
    taken: usize,
}

/// Two sockets that do not block. Dropping it gives the ports back.
#[derive(Debug)]
pub struct PortPair {
    pub rtp: UdpSocket,
    pub rtcp: UdpSocket,
    port: u16,
    ports: Arc<Ports>,
}

/// Every pair is taken, rests, or is another program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPort;

impl std::fmt::Display for NoPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no RTP port is free; widen the range of rtp_ports, or allow fewer calls at once")
    }
}

impl std::error::Error for NoPort {}

impl Ports {
    /// `start`: chance, for the pair that is tried first; an attacker who knows one port need not know the next call's at once.
    /// Fails with what to do about it.
    pub fn new(ip: IpAddr, range: RangeInclusive<u16>, start: u16) -> Result<Arc<Self>, String> {
        let first = range
            .start()
            .checked_next_multiple_of(2)
            .filter(|first| *first >= 1_024);
        let more = first.and_then(|first| range.end().checked_sub(first));
        let (first, count) = (first.unwrap_or(0), more.unwrap_or(0).div_ceil(2));
        if count == 0 {
            let (from, to) = range.into_inner();
            return Err(format!(
                "{from}-{to} has no pair of ports: an even one from 1024 on and the odd one above it; write 20000-23999"
            ));
        }
        let state = State {
            next: start % count,
            resting: VecDeque::new(),
            taken: 0,
        };
        Ok(Arc::new(Ports {
            ip,
            first,
            count,
            state: Mutex::new(state),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next pair that is free. Each is tried once at most.
    pub fn take(self: &Arc<Self>, now: Instant) -> Result<PortPair, NoPort> {
        let mut state = self.state();
        while let Some((_, since)) = state.resting.front()
            && now.saturating_duration_since(*since) >= RESTS
        {
            state.resting.pop_front();
        }
        for _ in 0..self.count {
            let port = self.first + 2 * state.next;
            state.next = (state.next + 1) % self.count;
            if state.resting.iter().any(|(resting, _)| *resting == port) {
                continue;
            }
            // Whoever has it, one of ours or another program, the next one is tried.
            if let Ok((rtp, rtcp)) = self.bind(port) {
                state.taken += 1;
                let ports = self.clone();
                return Ok(PortPair { rtp, rtcp, port, ports });
            }
        }
        Err(NoPort)
    }

    fn bind(&self, port: u16) -> io::Result<(UdpSocket, UdpSocket)> {
        let bind = |port: u16| {
            let socket = UdpSocket::bind(SocketAddr::new(self.ip, port))?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        Ok((bind(port)?, bind(port + 1)?))
    }

    /// Pairs that are in use.
    pub fn taken(&self) -> usize {
        self.state().taken
    }
}

impl PortPair {
    /// Of RTP.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PortPair {
    fn drop(&mut self) {
        let mut state = self.ports.state();
        state.taken = state.taken.saturating_sub(1);
        state.resting.push_back((self.port, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn error(range: RangeInclusive<u16>) -> String {
        Ports::new(LOCAL, range, 0).unwrap_err()
    }

    #[test]
    fn a_range_without_a_pair_is_refused() {
        for range in [
            21_000..=21_000,
            21_001..=21_002,
            1_000..=1_010,
            65_535..=65_535,
            RangeInclusive::new(9_000, 8_000),
        ] {
            assert!(error(range).contains("20000-23999"));
        }
        let ports = Ports::new(LOCAL, 21_001..=21_006, 0).unwrap();
        assert_eq!((ports.first, ports.count), (21_002, 2));
        let last = Ports::new(LOCAL, 65_534..=65_535, 7).unwrap();
        assert_eq!((last.first, last.count), (65_534, 1));
    }

    /// Real sockets: pairs of ports that are our own, then none, then a rest.
    #[test]
    fn pairs_are_given_out_and_rest_when_they_come_back() {
        let ports = Ports::new(LOCAL, 21_730..=21_735, 1).unwrap();
        let now = Instant::now();
        let mut pairs: Vec<PortPair> = (0..3).map(|_| ports.take(now).unwrap()).collect();
        let numbers: Vec<u16> = pairs.iter().map(PortPair::port).collect();
        assert_eq!(numbers, [21_732, 21_734, 21_730]);
        for pair in &pairs {
            assert_eq!(pair.rtp.local_addr().unwrap().port(), pair.port());
            assert_eq!(pair.rtcp.local_addr().unwrap().port(), pair.port() + 1);
        }
        assert_eq!((ports.take(now).unwrap_err(), ports.taken()), (NoPort, 3));
        pairs.remove(1);
        assert_eq!(ports.taken(), 2);
        assert!(ports.take(Instant::now()).is_err(), "it rests");
        assert_eq!(ports.take(Instant::now() + RESTS).unwrap().port(), 21_734);
    }

    #[test]
    fn a_port_of_another_program_is_passed_over() {
        let ports = Ports::new(LOCAL, 21_740..=21_743, 0).unwrap();
        let _other = UdpSocket::bind((LOCAL, 21_741)).unwrap();
        let pair = ports.take(Instant::now()).unwrap();
        assert_eq!(pair.port(), 21_742);
        assert!(ports.take(Instant::now()).is_err());
    }
}
