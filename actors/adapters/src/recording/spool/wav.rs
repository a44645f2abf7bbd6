//! A spool as a WAV file of 16 bits and 16 kHz, read as it is needed: hours of sound are never in memory.
use super::{
    file::{Reader, Result},
    piece::{Piece, Record, Side},
};
use crate::{
    recording::{
        header::{HEADER, header},
        mix::Channels,
        vault::{Plain, seal::Keys},
    },
    sound::{HEARING, ms_of},
};
use std::{
    collections::VecDeque,
    io::{self, Read},
    path::Path,
};

/// A recording that is to be stored.
pub struct Made {
    pub duration_ms: u64,
    pub wav: Plain,
}

/// Frames among which pieces are put in their places, 4 s. They come as they were heard: the two sides are never so far apart.
const WINDOW: usize = 4 * HEARING as usize;
/// Frames that are handed out at once.
const SLICE: usize = HEARING as usize / 4;
/// So many more samples a recording does not have: 2 h 5 min, a little more than the longest call.
const LONGEST: u64 = 125 * 60 * HEARING as u64;

/// `None`: there is nothing in it.
pub fn open(path: &Path, keys: &Keys, name: &str, channels: Channels) -> Result<Option<Made>> {
    let Some(frames) = length(path, keys, name)? else {
        return Ok(None);
    };
    let Some(reader) = Reader::open(path, keys, name)? else {
        return Ok(None);
    };
    let width: u16 = match channels {
        Channels::Dual => 2,
        Channels::Mono => 1,
    };
    let sound = frames * u64::from(width) * 2;
    // At most 480 MB.
    let head = header(u32::try_from(sound).unwrap_or(u32::MAX), width, HEARING);
    let wav = Wav {
        reader,
        coming: VecDeque::new(),
        window: VecDeque::from(vec![[0; 2]; WINDOW]),
        base: 0,
        left: frames,
        channels,
        ready: head.to_vec().into(),
    };
    Ok(Some(Made {
        duration_ms: ms_of(frames, HEARING),
        wav: Plain::new(HEADER as u64 + sound, wav),
    }))
}

/// In samples; `None`: nothing of it is whole.
fn length(path: &Path, keys: &Keys, name: &str) -> Result<Option<u64>> {
    let Some(mut reader) = Reader::open(path, keys, name)? else {
        return Ok(None);
    };
    let mut end: Option<u64> = None;
    while let Some(records) = reader.chunk()? {
        let ends = records.into_iter().map(|record| match record {
            Record::Sound(piece) => piece.end(),
            Record::End(at) => at,
        });
        end = end.max(ends.max());
    }
    Ok(end.map(|end| end.min(LONGEST)))
}

struct Wav {
    reader: Reader,
    /// Read and not yet put in their places.
    coming: VecDeque<Piece>,
    /// The agent's and the other side's samples, from `base` on.
    window: VecDeque<[i16; 2]>,
    base: u64,
    /// Frames that are still to be handed out.
    left: u64,
    channels: Channels,
    ready: VecDeque<u8>,
}

impl Wav {
    /// Puts as much in its place as is near enough, and hands out what nothing more can come to.
    fn advance(&mut self) -> Result<()> {
        while self.next_is_near()? {
            if let Some(piece) = self.coming.pop_front() {
                self.put(&piece);
            }
        }
        let frames = self.left.min(SLICE as u64) as usize;
        for frame in self.window.drain(..frames) {
            let [agent, user] = frame;
            match self.channels {
                Channels::Dual => self.ready.extend([agent, user].into_iter().flat_map(i16::to_le_bytes)),
                Channels::Mono => self.ready.extend(agent.saturating_add(user).to_le_bytes()),
            }
        }
        self.window.resize(WINDOW, [0; 2]);
        self.base += frames as u64;
        self.left -= frames as u64;
        Ok(())
    }

    fn next_is_near(&mut self) -> Result<bool> {
        while self.coming.is_empty() {
            let Some(records) = self.reader.chunk()? else {
                return Ok(false);
            };
            let pieces = records.into_iter().filter_map(|record| match record {
                Record::Sound(piece) => Some(piece),
                Record::End(_) => None,
            });
            self.coming.extend(pieces);
        }
        let end = self.base + WINDOW as u64;
        Ok(self.coming.front().is_some_and(|piece| piece.end() <= end))
    }

    fn put(&mut self, piece: &Piece) {
        let side = match piece.side {
            Side::Agent => 0,
            Side::User => 1,
        };
        for (place, sample) in (piece.at..).zip(&piece.samples) {
            // What was handed out already is gone.
            let Some(place) = place.checked_sub(self.base) else {
                continue;
            };
            if let Some(frame) = self.window.get_mut(place as usize) {
                frame[side] = *sample;
            }
        }
    }
}

impl Read for Wav {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && self.left > 0 {
            self.advance().map_err(io::Error::other)?;
        }
        self.ready.read(bytes)
    }
}
