//! The form of a recording at rest.
//!
//! A header of 28 bytes: the magic `CBRV`, the version (1), the key's id (4 bytes), the base nonce (19 random bytes). Then
//! the plain bytes in segments of 64 KiB, the last one shorter, each sealed with XChaCha20-Poly1305 and followed by its
//! tag of 16 bytes; of nothing there is one empty segment. A segment's nonce is the base nonce, its index (32 bits, big
//! endian) and 1 for the last one, else 0. Sealed along is the header, the plain length (64 bits, big endian) and the
//! object's name. So any range can be opened without the rest, and every segment opens only at its place in an
//! object of its length and name. Source: Hoang, Reyhanitabar, Rogaway, Vizár, "Online Authenticated-Encryption and its
//! Nonce-Reuse Misuse-Resistance" (2015), the STREAM construction.
mod chunks;

pub use chunks::Chunks;

use super::{Failure, Result};
use bytes::{Bytes, BytesMut};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use std::{
    io::{Cursor, Read},
    ops::Range,
};

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

    /// The key that sealed what has this header: its id stands there.
    fn of(&self, header: &[u8; HEADER]) -> Result<&Key, String> {
        let mut all = std::iter::once(&self.current).chain(&self.previous);
        all.find(|key| key.id == header[5..9]).ok_or_else(|| {
            let id = super::hex(&header[5..9]);
            format!("was sealed with key {id}, which is not configured")
        })
    }
}

/// Magic, version, the key's id and a new base nonce.
fn header(magic: &[u8; 4], version: u8, key: &Key) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(magic);
    header[4] = version;
    header[5..9].copy_from_slice(&key.id);
    header[9..].copy_from_slice(&rand::random::<[u8; 19]>());
    header
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

/// What is to be sealed: so many bytes, read as they are needed.
pub struct Plain {
    bytes: u64,
    source: Box<dyn Read + Send>,
}

impl Plain {
    /// A source that has fewer bytes fails when it is sealed; of more the rest is not read.
    pub fn new(bytes: u64, source: impl Read + Send + 'static) -> Self {
        let source = Box::new(source);
        Plain { bytes, source }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes themselves.
    pub fn into_source(self) -> Box<dyn Read + Send> {
        self.source
    }
}

impl From<Bytes> for Plain {
    fn from(bytes: Bytes) -> Self {
        Plain::new(bytes.len() as u64, Cursor::new(bytes))
    }
}

/// Seals a recording in parts, so that the whole is never in memory.
pub struct Sealer {
    frame: Frame,
    source: Box<dyn Read + Send>,
    next: u64,
    hash: Sha256,
    /// Sealed and not yet handed out.
    ready: Vec<u8>,
}

impl Sealer {
    pub fn new(keys: &Keys, name: &str, plain: Plain) -> Self {
        let header = header(MAGIC, VERSION, &keys.current);
        Sealer {
            frame: Frame::new(&keys.current, &header, name, plain.bytes),
            source: plain.source,
            next: 0,
            hash: Sha256::new(),
            ready: header.to_vec(),
        }
    }

    /// The next `size` bytes of the object; fewer are the last, and none follow.
    pub fn part(&mut self, size: usize) -> Result<Vec<u8>> {
        while self.ready.len() < size && self.next < self.frame.segments() {
            let start = self.next * SEGMENT;
            let mut plain = vec![0; SEGMENT.min(self.frame.plain - start) as usize];
            let read = self.source.read_exact(&mut plain);
            read.map_err(|error| Failure::Store(format!("what is to be stored cannot be read: {error}")))?;
            self.hash.update(&plain);
            let nonce = self.frame.nonce(self.next);
            let nonce = nonce.ok_or_else(|| Failure::Store("a recording is too long to be sealed".to_owned()))?;
            let sealed = self.frame.cipher.encrypt(&nonce, self.frame.payload(&plain));
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
        let key = keys.of(header).map_err(|why| damaged(&why))?;
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
#[path = "seal_tests.rs"]
mod tests;
