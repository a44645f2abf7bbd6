//! What is spooled: pieces of sound with their places, and where all of it ends.
use crate::sound::HEARING;

/// Who is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Agent,
    User,
}

/// Some sound of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub side: Side,
    /// Where it begins, in samples of 16 kHz since the recording's beginning.
    pub at: u64,
    /// 16 bits, 16 kHz, mono.
    pub samples: Vec<i16>,
}

impl Piece {
    /// The place behind it.
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.samples.len() as u64)
    }
}

/// Samples of a piece, at most: a second.
pub const LONGEST: usize = HEARING as usize;

/// A piece, or the place at which all of it ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Sound(Piece),
    End(u64),
}

/// Bytes before a record's samples: its kind, its place (64 bits) and how many they are (32 bits), big endian.
const HEAD: usize = 13;

const AGENT: u8 = 0;
const USER: u8 = 1;
const END: u8 = 2;

/// Adds a piece; its samples are little endian.
pub fn put_sound(buffer: &mut Vec<u8>, side: Side, at: u64, samples: &[i16]) {
    let kind = match side {
        Side::Agent => AGENT,
        Side::User => USER,
    };
    put_head(buffer, kind, at, samples.len());
    buffer.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
}

pub fn put_end(buffer: &mut Vec<u8>, at: u64) {
    put_head(buffer, END, at, 0);
}

fn put_head(buffer: &mut Vec<u8>, kind: u8, at: u64, samples: usize) {
    buffer.push(kind);
    buffer.extend(at.to_be_bytes());
    buffer.extend(u32::try_from(samples).unwrap_or(u32::MAX).to_be_bytes());
}

/// The records of a chunk, in their order; what is none of ours ends them.
pub fn records(mut plain: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    while let Some((record, rest)) = record(plain) {
        found.push(record);
        plain = rest;
    }
    found
}

fn record(plain: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = plain.split_at_checked(HEAD)?;
    let at = u64::from_be_bytes(head[1..9].try_into().ok()?);
    let count = u32::from_be_bytes(head[9..].try_into().ok()?) as usize;
    let (sound, rest) = rest.split_at_checked(count.checked_mul(2)?)?;
    let side = match head[0] {
        AGENT => Side::Agent,
        USER => Side::User,
        END => return Some((Record::End(at), rest)),
        _ => return None,
    };
    let samples = sound.chunks_exact(2);
    let samples = samples
        .map(|sample| i16::from_le_bytes([sample[0], sample[1]]))
        .collect();
    Some((Record::Sound(Piece { side, at, samples }), rest))
}
