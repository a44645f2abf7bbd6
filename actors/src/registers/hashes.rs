//! Numbers as registers keep them, and finding one among millions.
use hmac::{Hmac, KeyInit, Mac};
use runtime::keyring::hex;
use sha2::Sha256;
use std::fmt;

/// Makes hashes of numbers. Cloning is cheap.
#[derive(Clone)]
pub struct Hasher {
    /// With the key in it already: it is mixed in once, and not for each number.
    keyed: Hmac<Sha256>,
    check: String,
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({} ***)", self.check)
    }
}

impl Hasher {
    pub fn new(key: &[u8; 32]) -> Self {
        let keyed =
            Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        let mut hasher = Hasher {
            keyed,
            check: String::new(),
        };
        // Of what is not a number: it tells nothing of any.
        hasher.check = hex(&hasher.hash("which key is it?").to_be_bytes());
        hasher
    }

    /// Of a number in E.164.
    pub fn hash(&self, number: &str) -> u64 {
        let mut mac = self.keyed.clone();
        mac.update(number.as_bytes());
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        let [a, b, c, d, e, f, g, h, ..] = whole;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Tells its key from others.
    pub fn check(&self) -> &str {
        &self.check
    }
}

/// The numbers of one file, in the order of their hashes.
pub struct Listed {
    hashes: Vec<u64>,
    /// Since which day each is listed; empty: the file has no dates.
    days: Vec<u16>,
}

impl Listed {
    /// `None`: they are not in order, or there is not a day for each.
    pub fn of(hashes: Vec<u64>, days: Vec<u16>) -> Option<Self> {
        let in_order = hashes.is_sorted_by(|one, next| one < next);
        (in_order && (days.is_empty() || days.len() == hashes.len())).then_some(Listed { hashes, days })
    }

    /// Since which day it is listed, [`UNKNOWN`](rules::registers::day::UNKNOWN) where nobody says so; `None`: it is not listed.
    pub fn find(&self, hash: u64) -> Option<u16> {
        let place = place_of(&self.hashes, hash)?;
        Some(self.days.get(place).copied().unwrap_or(rules::registers::day::UNKNOWN))
    }

    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// What it takes of memory.
    pub fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>() + self.days.capacity() * size_of::<u16>()
    }
}

/// Where it stands among hashes in order. They lie evenly, so it is looked for near its share of the way: halving the whole of millions
/// misses the processor's cache at each step.
fn place_of(hashes: &[u64], hash: u64) -> Option<usize> {
    let share = (u128::from(hash) * hashes.len() as u128) >> u64::BITS;
    let guess = usize::try_from(share).unwrap_or(usize::MAX);
    let (mut low, mut high, mut step) = (guess, guess, NEAR);
    while low > 0 && hashes[low] > hash {
        low = low.saturating_sub(step);
        step *= 2;
    }
    step = NEAR;
    while high < hashes.len() && hashes[high] < hash {
        high = (high + step).min(hashes.len());
        step *= 2;
    }
    let found = hashes.get(low..hashes.len().min(high + 1))?.binary_search(&hash).ok()?;
    Some(low + found)
}

/// A cache line holds so many.
const NEAR: usize = 8;

/// The bytes of a chunk, as they are stored.
pub fn packed(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect()
}

pub fn packed_days(days: &[u16]) -> Vec<u8> {
    days.iter().flat_map(|day| day.to_be_bytes()).collect()
}

/// Adds what a chunk holds; `false`: it is damaged.
pub fn unpack(bytes: &[u8], to: &mut Vec<u64>) -> bool {
    let (whole, rest) = bytes.as_chunks::<8>();
    to.extend(whole.iter().map(|bytes| u64::from_be_bytes(*bytes)));
    rest.is_empty()
}

pub fn unpack_days(bytes: &[u8], to: &mut Vec<u16>) -> bool {
    let (whole, rest) = bytes.as_chunks::<2>();
    to.extend(whole.iter().map(|bytes| u16::from_be_bytes(*bytes)));
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rules::registers::day;
    use std::collections::BTreeMap;

    #[test]
    fn each_key_has_hashes_of_its_own() {
        let (one, other) = (Hasher::new(&[1; 32]), Hasher::new(&[2; 32]));
        assert_eq!(one.hash("+12025550123"), Hasher::new(&[1; 32]).hash("+12025550123"));
        assert_ne!(one.hash("+12025550123"), one.hash("+12025550124"));
        assert_ne!(one.hash("+12025550123"), other.hash("+12025550123"));
        assert_eq!((one.check().len(), one.check() == other.check()), (16, false));
        assert!(!format!("{one:?}").contains("keyed"));
    }

    #[test]
    fn a_million_numbers_take_eight_megabytes() {
        let hashes: Vec<u64> = (0..1_000_000).collect();
        let listed = Listed::of(hashes, Vec::new()).unwrap();
        assert_eq!((listed.len(), listed.bytes()), (1_000_000, 8_000_000));
    }

    #[test]
    fn what_is_out_of_order_is_not_looked_into() {
        for (hashes, days, good) in [
            (vec![], vec![], true),
            (vec![1, 2], vec![], true),
            (vec![1, 2], vec![3, 3], true),
            (vec![1, 1], vec![], false),
            (vec![2, 1], vec![], false),
            (vec![1, 2], vec![3], false),
        ] {
            assert_eq!(Listed::of(hashes.clone(), days).is_some(), good, "{hashes:?}");
        }
        assert!(!unpack(&[0; 9], &mut Vec::new()));
        assert!(!unpack_days(&[0; 3], &mut Vec::new()));
    }

    proptest! {
        #[test]
        fn it_finds_each_that_is_there_and_no_other(known in prop::collection::btree_set(any::<u64>(), 0..300), other in any::<u64>()) {
            let hashes: Vec<u64> = known.iter().copied().collect();
            for hash in known.iter().copied().chain([0, other, u64::MAX]) {
                for near in [hash, hash.wrapping_sub(1), hash.wrapping_add(1)] {
                    prop_assert_eq!(place_of(&hashes, near), hashes.binary_search(&near).ok());
                }
            }
        }

        #[test]
        fn it_finds_what_a_map_finds(known in prop::collection::btree_map(0_u64..500, any::<u16>(), 0..100), dated in any::<bool>()) {
            let hashes: Vec<u64> = known.keys().copied().collect();
            let days: Vec<u16> = known.values().copied().collect();
            let (mut read, mut read_days) = (Vec::new(), Vec::new());
            prop_assert!(unpack(&packed(&hashes), &mut read));
            if dated {
                prop_assert!(unpack_days(&packed_days(&days), &mut read_days));
            }
            let listed = Listed::of(read, read_days).unwrap();
            let expected: BTreeMap<u64, u16> = known.into_iter().map(|(hash, day)| (hash, if dated { day } else { day::UNKNOWN })).collect();
            for hash in 0..500 {
                prop_assert_eq!(listed.find(hash), expected.get(&hash).copied());
            }
        }
    }
}
