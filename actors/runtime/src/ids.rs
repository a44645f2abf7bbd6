//! Ids: UUIDv7, strictly growing in one process even when the clock steps back.
use crate::clock::Clock;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

pub struct Ids {
    clock: Clock,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    millis: u64,
    /// The 74 bits behind the time.
    tail: u128,
}

const TAIL_BITS: u32 = 74;

impl Ids {
    pub fn new(clock: Clock) -> Self {
        Ids {
            clock,
            last: Mutex::default(),
        }
    }

    /// From here on ids are larger than this one, whatever the clock says: it may have been set back since.
    pub fn start_after(&self, id: Uuid) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(id.as_u128() >> 80).unwrap_or(0);
        let tail = if millis == last.millis { last.tail } else { 0 };
        if millis >= last.millis {
            last.millis = millis;
            last.tail = tail.max(1 << (TAIL_BITS - 1));
        }
    }

    pub fn next<I: From<Uuid>>(&self) -> I {
        let now = u64::try_from(self.clock.now().millis()).unwrap_or(0);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now > last.millis {
            last.millis = now;
            // The top bit stays free, so that there is room to count within the millisecond.
            last.tail = rand::random::<u128>() >> (128 - TAIL_BITS + 1);
        } else {
            last.tail += 1 + u128::from(rand::random::<u32>());
            if last.tail >> TAIL_BITS != 0 {
                last.millis += 1;
                last.tail = rand::random::<u128>() >> (128 - TAIL_BITS + 1);
            }
        }
        let (high, low) = (last.tail >> 62, last.tail & ((1 << 62) - 1));
        let bits = u128::from(last.millis) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low;
        Uuid::from_u128(bits).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Moment;

    #[test]
    fn ids_grow_although_the_clock_steps_back() {
        let clock = Clock::manual(Moment::from_millis(1_700_000_000_000));
        let ids = Ids::new(clock.clone());
        let mut previous: Uuid = ids.next();
        for step in 0..100_000 {
            if step == 50_000 {
                clock.set(Moment::from_millis(1_600_000_000_000));
            }
            let next: Uuid = ids.next();
            assert!(next > previous);
            assert_eq!(next.get_version_num(), 7);
            assert_eq!(next.get_variant(), uuid::Variant::RFC4122);
            previous = next;
        }
    }
}
