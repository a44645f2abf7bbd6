//! Ports for peers, and for the service under test: below the range that the system gives to others, each block once.
use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::RangeInclusive,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
};

const FIRST: u16 = 10_000;
const BLOCK: u16 = 90;
const BLOCKS: u16 = 100;

/// A block of neighbouring ports that nobody has, the first one even. It is not held: its peers open what they need.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    first: u16,
    taken: u16,
}

impl Ports {
    pub fn new() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Two runs at a time begin at different places.
        let begin = (std::process::id() % u32::from(BLOCKS)) as u16;
        for _ in 0..BLOCKS {
            let block = (begin + NEXT.fetch_add(1, Relaxed)) % BLOCKS;
            let first = FIRST + block * BLOCK;
            if (first..first + BLOCK).all(is_free) {
                return Ports { first, taken: 0 };
            }
        }
        panic!("all blocks of ports are taken");
    }

    /// The next single one. Even and odd ones come in turn.
    pub fn take(&mut self) -> u16 {
        self.range(1).next().unwrap_or_else(|| unreachable!("one port"))
    }

    /// So many neighbours, the first one even if there are two or more.
    pub fn range(&mut self, count: u16) -> RangeInclusive<u16> {
        if count > 1 && !self.taken.is_multiple_of(2) {
            self.taken += 1;
        }
        let first = self.first + self.taken;
        self.taken += count;
        assert!(self.taken <= BLOCK, "a test has {BLOCK} ports");
        first..=first + count - 1
    }
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}
