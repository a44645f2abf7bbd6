//! What is sealed as it comes, before anybody knows how much of it there will be.
//!
//! A header as an object's, with the magic `CBSP`; then chunks, each sealed with XChaCha20-Poly1305. A chunk's nonce is the base
//! nonce, its index (32 bits, big endian) and 0; sealed along are the header and the name. So a chunk opens only at its place in
//! the file of its name. That the end is missing cannot be told: a file may be cut off anywhere, and what is before that counts.
use super::{Failure, HEADER, Key, Keys, Result, header};
use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};

const MAGIC: &[u8; 4] = b"CBSP";
const VERSION: u8 = 1;

/// Seals or opens chunks in their order, one after the other.
pub struct Chunks {
    cipher: XChaCha20Poly1305,
    base: [u8; 19],
    aad: Vec<u8>,
    next: u32,
}

impl Chunks {
    /// For a new file, which begins with this header.
    pub fn begin(keys: &Keys, name: &str) -> ([u8; HEADER], Self) {
        let header = header(MAGIC, VERSION, &keys.current);
        (header, Chunks::new(&keys.current, &header, name))
    }

    /// Of a file that begins with that header.
    pub fn of(keys: &Keys, name: &str, header: &[u8; HEADER]) -> Result<Self> {
        let damaged = |why: &str| Failure::Damaged(format!("`{name}` {why}"));
        if &header[..4] != MAGIC || header[4] != VERSION {
            return Err(damaged("is not a sealed spool of a known version"));
        }
        let key = keys.of(header).map_err(|why| damaged(&why))?;
        Ok(Chunks::new(key, header, name))
    }

    fn new(key: &Key, header: &[u8; HEADER], name: &str) -> Self {
        let mut base = [0; 19];
        base.copy_from_slice(&header[9..]);
        Chunks {
            cipher: key.cipher.clone(),
            base,
            aad: [&header[..], name.as_bytes()].concat(),
            next: 0,
        }
    }

    fn nonce(&self) -> XNonce {
        let mut nonce = [0; 24];
        nonce[..19].copy_from_slice(&self.base);
        nonce[19..23].copy_from_slice(&self.next.to_be_bytes());
        XNonce::from(nonce)
    }

    fn payload<'a>(&'a self, msg: &'a [u8]) -> Payload<'a, 'a> {
        Payload { msg, aad: &self.aad }
    }

    /// The next chunk, 16 bytes longer. Fails after 2^32 of them.
    pub fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>> {
        let sealed = self.cipher.encrypt(&self.nonce(), self.payload(plain));
        let sealed = sealed.map_err(|_| Failure::Store("a chunk cannot be sealed".to_owned()))?;
        let next = self.next.checked_add(1);
        self.next = next.ok_or_else(|| Failure::Store("a spool has too many chunks".to_owned()))?;
        Ok(sealed)
    }

    /// What was the next chunk; `None`: it is not whole, or not the next.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let plain = self.cipher.decrypt(&self.nonce(), self.payload(sealed)).ok()?;
        self.next = self.next.checked_add(1)?;
        Some(plain)
    }
}
