//! The form of a recording at rest.
//!
//! A header of 28 bytes: the magic `CBRV`, the version (1), the key's id (4 bytes), the base nonce (19 random bytes). Then
//! the plain bytes in segments of 64 KiB, the last one shorter, each sealed with XChaCha20-Poly1305 and followed by its
//! tag of 16 bytes; of nothing there is one empty segment. A segment's nonce is the base nonce, its index (32 bits, big
//! endian) and 1 for the last one, else 0. Sealed along is the header, the plain length (64 bits, big endian) and the
//! object's name. So any range can be opened without the rest, and every segment opens only at its place in an
//! object of its length and name. Source: Hoang, Reyhanitabar, Rogaway, Vizár, "Online Authenticated-Encryption and its
//! Nonce-Reuse Misuse-Resistance" (2015), the STREAM construction.
use super::{Failure, Result};
use bytes::{Bytes, BytesMut};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use std::ops::Range;

pub const HEADER: usize = 28;
const MAGIC: &[u8; 4] = b"CBRV";
const VERSION: u8 = 1;
const SEGMENT: u64 = 64 * 1024;
const TAG: u64 = 16;

/// The key that seals, and those that it replaced.
pub struct Keys {
    current: Key,
    previous: Vec<Key>,
}

struct Key {
    id: [u8; 4],
    cipher: XChaCha20Poly1305,
}

impl Keys {
    pub fn new(current: &[u8; 32], previous: &[[u8; 32]]) -> Self {
        Keys {
            current: Key::new(current),
            previous: previous.iter().map(Key::new).collect(),
        }
    }
}

impl Key {
    /// The id is the beginning of the key's SHA-256, as for other secrets at rest.
    fn new(key: &[u8; 32]) -> Self {
        let hash: [u8; 32] = Sha256::digest(key).into();
        Key {
            id: [hash[0], hash[1], hash[2], hash[3]],
            cipher: XChaCha20Poly1305::new(key.into()),
        }
    }
}

/// Plain bytes in an object of that size; none when no object has it.
pub fn plain_size(sealed: u64) -> Option<u64> {
    let body = sealed.checked_sub(HEADER as u64)?;
    let segments = body.div_ceil(SEGMENT + TAG);
    let plain = body.checked_sub(segments * TAG)?;
    (segments > 0 && plain.div_ceil(SEGMENT).max(1) == segments).then_some(plain)
}

/// What all segments of an object have in common.
struct Frame {
    cipher: XChaCha20Poly1305,
    base: [u8; 19],
    aad: Vec<u8>,
    plain: u64,
}

impl Frame {
    fn new(key: &Key, header: &[u8; HEADER], name: &str, plain: u64) -> Self {
        let mut base = [0; 19];
        base.copy_from_slice(&header[9..]);
        Frame {
            cipher: key.cipher.clone(),
            base,
            aad: [&header[..], &plain.to_be_bytes(), name.as_bytes()].concat(),
            plain,
        }
    }

    fn segments(&self) -> u64 {
        self.plain.div_ceil(SEGMENT).max(1)
    }

    /// None beyond 2^32 segments.
    fn nonce(&self, index: u64) -> Option<XNonce> {
        let mut nonce = [0; 24];
        nonce[..19].copy_from_slice(&self.base);
        nonce[19..23].copy_from_slice(&u32::try_from(index).ok()?.to_be_bytes());
        nonce[23] = u8::from(index + 1 == self.segments());
        Some(XNonce::from(nonce))
    }

    fn payload<'a>(&'a self, msg: &'a [u8]) -> Payload<'a, 'a> {
        Payload { msg, aad: &self.aad }
    }
}

/// Seals a recording in parts, so that the whole is never there twice.
pub struct Sealer {
    frame: Frame,
    plain: Bytes,
    next: u64,
    hash: Sha256,
    /// Sealed and not yet handed out.
    ready: Vec<u8>,
}

impl Sealer {
    pub fn new(keys: &Keys, name: &str, plain: Bytes) -> Self {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(MAGIC);
        header[4] = VERSION;
        header[5..9].copy_from_slice(&keys.current.id);
        header[9..].copy_from_slice(&rand::random::<[u8; 19]>());
        Sealer {
            frame: Frame::new(&keys.current, &header, name, plain.len() as u64),
            plain,
            next: 0,
            hash: Sha256::new(),
            ready: header.to_vec(),
        }
    }

    /// The next `size` bytes of the object; fewer are the last, and none follow.
    pub fn part(&mut self, size: usize) -> Result<Vec<u8>> {
        while self.ready.len() < size && self.next < self.frame.segments() {
            let start = self.next * SEGMENT;
            let plain = &self.plain[start as usize..(start + SEGMENT).min(self.frame.plain) as usize];
            self.hash.update(plain);
            let nonce = self.frame.nonce(self.next);
            let nonce = nonce.ok_or_else(|| Failure::Store("a recording is too long to be sealed".to_owned()))?;
            let sealed = self.frame.cipher.encrypt(&nonce, self.frame.payload(plain));
            let sealed = sealed.map_err(|_| Failure::Store("a segment cannot be sealed".to_owned()))?;
            self.ready.extend_from_slice(&sealed);
            self.next += 1;
        }
        let rest = self.ready.split_off(size.min(self.ready.len()));
        Ok(std::mem::replace(&mut self.ready, rest))
    }

    /// SHA-256 of the plain bytes that were handed out so far.
    pub fn sha256(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

/// Opens any part of an object.
pub struct Opener(Frame);

impl Opener {
    /// `plain` is the length that the object's size says.
    pub fn new(keys: &Keys, name: &str, header: &[u8], plain: u64) -> Result<Self> {
        let damaged = |why: &str| Failure::Damaged(format!("`{name}` {why}"));
        let header: &[u8; HEADER] = header.try_into().map_err(|_| damaged("has no whole header"))?;
        if &header[..4] != MAGIC || header[4] != VERSION {
            return Err(damaged("is not a sealed recording of a known version"));
        }
        let key = std::iter::once(&keys.current)
            .chain(&keys.previous)
            .find(|key| key.id == header[5..9]);
        let key = key.ok_or_else(|| {
            let id = super::hex(&header[5..9]);
            damaged(&format!("was sealed with key {id}, which is not configured"))
        })?;
        Ok(Opener(Frame::new(key, header, name, plain)))
    }

    /// Where in the object the segments stand that hold these plain bytes. The range is not empty and within the length.
    pub fn place(&self, range: &Range<u64>) -> Range<u64> {
        let segments = range.start / SEGMENT..range.end.div_ceil(SEGMENT);
        let start = HEADER as u64 + segments.start * (SEGMENT + TAG);
        let end = HEADER as u64 + (segments.end * (SEGMENT + TAG)).min(self.0.plain + self.0.segments() * TAG);
        start..end
    }

    /// The plain bytes of a range, from what stands at its `place`.
    pub fn open(&self, range: &Range<u64>, sealed: &[u8]) -> Result<Bytes> {
        let damaged =
            || Failure::Damaged("a segment is not what was stored: wrong key, changed, cut off or moved".to_owned());
        let place = self.place(range);
        if sealed.len() as u64 != place.end - place.start {
            return Err(damaged());
        }
        let first = range.start / SEGMENT;
        let mut plain = BytesMut::with_capacity(sealed.len());
        for (index, segment) in (first..).zip(sealed.chunks((SEGMENT + TAG) as usize)) {
            let nonce = self.0.nonce(index).ok_or_else(damaged)?;
            let opened = self.0.cipher.decrypt(&nonce, self.0.payload(segment));
            plain.extend_from_slice(&opened.map_err(|_| damaged())?);
        }
        let start = (range.start - first * SEGMENT) as usize;
        let end = start + (range.end - range.start) as usize;
        if end > plain.len() {
            return Err(damaged());
        }
        Ok(plain.freeze().slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAME: &str = "tenant/recording.wav";

    fn seal(keys: &Keys, plain: &[u8], part: usize) -> (Vec<u8>, [u8; 32]) {
        let mut sealer = Sealer::new(keys, NAME, Bytes::copy_from_slice(plain));
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
}
