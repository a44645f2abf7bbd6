//! What was sealed comes back, whole or in part, and nothing else does.
use super::*;
use proptest::prelude::*;

const NAME: &str = "tenant/recording.wav";

fn seal(keys: &Keys, plain: &[u8], part: usize) -> (Vec<u8>, [u8; 32]) {
    let mut sealer = Sealer::new(keys, NAME, Bytes::copy_from_slice(plain).into());
    let mut sealed = Vec::new();
    loop {
        let piece = sealer.part(part).unwrap();
        let last = piece.len() < part;
        sealed.extend(piece);
        if last {
            assert!(sealer.part(part).unwrap().is_empty());
            return (sealed, sealer.sha256());
        }
    }
}

fn opener(keys: &Keys, name: &str, sealed: &[u8]) -> Result<Opener> {
    let plain = plain_size(sealed.len() as u64).ok_or_else(|| Failure::Damaged("size".to_owned()))?;
    Opener::new(keys, name, &sealed[..HEADER], plain)
}

fn open(keys: &Keys, name: &str, sealed: &[u8], range: Range<u64>) -> Result<Bytes> {
    let opener = opener(keys, name, sealed)?;
    let place = opener.place(&range);
    opener.open(&range, &sealed[place.start as usize..place.end as usize])
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

#[test]
fn every_size_has_its_object_and_comes_back() {
    let keys = Keys::new(&[7; 32], &[]);
    let segment = SEGMENT as usize;
    for length in [
        0,
        1,
        15,
        16,
        17,
        segment - 1,
        segment,
        segment + 1,
        2 * segment,
        2 * segment + 16,
        3 * segment - 1,
    ] {
        let plain = bytes(length);
        for part in [1 << 20, 65_536, 1_000] {
            let (sealed, hash) = seal(&keys, &plain, part);
            assert_eq!(plain_size(sealed.len() as u64), Some(length as u64), "{length}");
            assert_eq!(hash, <[u8; 32]>::from(Sha256::digest(&plain)));
            if length > 0 {
                assert_eq!(
                    open(&keys, NAME, &sealed, 0..length as u64).unwrap(),
                    plain,
                    "{length} by {part}"
                );
            }
        }
    }
    // No object of a size between: a tag without a byte before it, or less than a tag.
    for impossible in [0, 27, 28, 43, 28 + 65_552 + 1, 28 + 65_552 + 16] {
        assert_eq!(plain_size(impossible), None, "{impossible}");
    }
}

#[test]
fn every_range_about_the_borders() {
    let keys = Keys::new(&[7; 32], &[]);
    let plain = bytes(3 * SEGMENT as usize + 100);
    let (sealed, _) = seal(&keys, &plain, 1 << 20);
    let borders = (0..=3).flat_map(|border: u64| [-2_i64, -1, 0, 1, 2].map(|by| (border * SEGMENT) as i64 + by));
    let points: Vec<u64> = borders
        .chain([plain.len() as i64 - 1, plain.len() as i64])
        .filter_map(|at| u64::try_from(at).ok())
        .collect();
    for &start in &points {
        for &end in points.iter().filter(|&&end| end > start) {
            let opened = open(&keys, NAME, &sealed, start..end).unwrap();
            assert_eq!(opened, plain[start as usize..end as usize], "{start}..{end}");
        }
    }
}

#[test]
fn a_source_with_less_than_it_promised_is_not_sealed() {
    let short = Plain::new(100, std::io::Cursor::new(vec![1; 99]));
    let mut sealer = Sealer::new(&Keys::new(&[7; 32], &[]), NAME, short);
    assert!(matches!(sealer.part(1 << 20), Err(Failure::Store(why)) if why.contains("cannot be read")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_range_of_any_length(length in 1..250_000_usize, from in 0.0..1.0_f64, to in 0.0..1.0_f64) {
        let keys = Keys::new(&[7; 32], &[]);
        let plain = bytes(length);
        let (sealed, _) = seal(&keys, &plain, 100_000);
        let start = (length as f64 * from) as u64;
        let end = start + 1 + ((length as u64 - start - 1) as f64 * to) as u64;
        prop_assert_eq!(open(&keys, NAME, &sealed, start..end).unwrap(), &plain[start as usize..end as usize]);
    }

    #[test]
    fn no_bit_can_be_changed(length in 1..140_000_usize, at in 0.0..1.0_f64, bit in 0..8_u8) {
        let keys = Keys::new(&[7; 32], &[]);
        let (mut sealed, _) = seal(&keys, &bytes(length), 100_000);
        let at = (sealed.len() as f64 * at) as usize;
        sealed[at] ^= 1 << bit;
        let opened = open(&keys, NAME, &sealed, 0..length as u64);
        prop_assert!(matches!(opened, Err(Failure::Damaged(_))));
    }

    #[test]
    fn nothing_can_be_cut_off(length in 1..200_000_usize, cut in 1..200_000_usize) {
        let keys = Keys::new(&[7; 32], &[]);
        let (sealed, _) = seal(&keys, &bytes(length), 100_000);
        let rest = &sealed[..sealed.len() - cut.min(sealed.len() - HEADER)];
        // Even the first byte, far from the cut, does not open.
        match opener(&keys, NAME, rest) {
            Ok(opener) if opener.0.plain > 0 => {
                let place = opener.place(&(0..1));
                let opened = opener.open(&(0..1), &rest[place.start as usize..place.end as usize]);
                prop_assert!(matches!(opened, Err(Failure::Damaged(_))));
            }
            Ok(opener) => prop_assert!(opener.open(&(0..0), &rest[HEADER..]).is_err() || rest.len() == HEADER + 16),
            Err(failure) => prop_assert!(matches!(failure, Failure::Damaged(_))),
        }
    }
}

#[test]
fn segments_stay_in_their_order_and_object() {
    let keys = Keys::new(&[7; 32], &[]);
    let plain = bytes(3 * SEGMENT as usize);
    let ((sealed, _), (other, _)) = (seal(&keys, &plain, 1 << 20), seal(&keys, &plain, 1 << 20));
    assert_ne!(sealed, other, "the same twice is not the same sealed");
    let whole = (SEGMENT + TAG) as usize;
    let at = |index: usize| HEADER + index * whole..HEADER + (index + 1) * whole;
    let damaged = |sealed: &[u8], range| matches!(open(&keys, NAME, sealed, range), Err(Failure::Damaged(_)));

    let mut swapped = sealed.clone();
    swapped[at(0)].copy_from_slice(&sealed[at(1)]);
    swapped[at(1)].copy_from_slice(&sealed[at(0)]);
    assert!(damaged(&swapped, 0..1) && damaged(&swapped, SEGMENT..SEGMENT + 1));
    assert!(
        !damaged(&swapped, 2 * SEGMENT..2 * SEGMENT + 1),
        "a segment that was let alone opens"
    );

    let mut grafted = sealed.clone();
    grafted[at(1)].copy_from_slice(&other[at(1)]);
    assert!(damaged(&grafted, SEGMENT..SEGMENT + 1));

    let shorter = &sealed[..HEADER + 2 * whole];
    assert_eq!(
        plain_size(shorter.len() as u64),
        Some(2 * SEGMENT),
        "a whole segment is missing"
    );
    assert!(damaged(shorter, 0..1) && damaged(shorter, SEGMENT..2 * SEGMENT));
    assert!(matches!(
        open(&keys, "tenant/other.wav", &sealed, 0..1),
        Err(Failure::Damaged(_))
    ));
}

#[test]
fn only_our_keys_open() {
    let (old, new) = (Keys::new(&[1; 32], &[]), Keys::new(&[2; 32], &[[9; 32], [1; 32]]));
    let (sealed, _) = seal(&old, b"hello", 100_000);
    assert_eq!(open(&new, NAME, &sealed, 0..5).unwrap(), "hello");
    let (sealed, _) = seal(&new, b"hello", 100_000);
    let Err(Failure::Damaged(reason)) = open(&old, NAME, &sealed, 0..5) else {
        panic!("an unknown key opened it")
    };
    assert!(reason.contains("which is not configured"), "{reason}");
    // A forged key id does not help.
    let mut forged = sealed;
    forged[5..9].copy_from_slice(&old.current.id);
    assert!(matches!(open(&old, NAME, &forged, 0..5), Err(Failure::Damaged(_))));
}
