//! Pieces of sound to one recording: who spoke when, as a WAV file.
use super::{
    header::{HEADER, header},
    voice::{RATE, Speaker},
};

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub speaker: Speaker,
    /// From the recording's start.
    pub start_ms: u64,
    /// At 8 kHz.
    pub sound: Vec<i16>,
    /// Interrupted after so much of it.
    pub cut_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// The agent left, the other party right.
    Dual,
    Mono,
}

/// Between one who has finished and the next who begins.
pub const BREATH_MS: u64 = 200;

/// What follows is cut: 2 h 5 min, a little more than the longest call.
pub const LONGEST_MS: u64 = 125 * 60 * 1_000;

const SAMPLES_PER_MS: u64 = RATE as u64 / 1_000;
/// An interrupted voice fades out over this many samples, 5 ms: without it there is a click.
const FADE: usize = 40;

impl Piece {
    /// The sound as far as it is heard.
    fn heard(&self) -> &[i16] {
        let samples = self.cut_ms.map_or(u64::MAX, |cut| cut.saturating_mul(SAMPLES_PER_MS));
        &self.sound[..self.sound.len().min(usize::try_from(samples).unwrap_or(usize::MAX))]
    }

    /// Whether the cut came before its end.
    fn is_cut(&self) -> bool {
        self.heard().len() < self.sound.len()
    }

    fn end_ms(&self) -> u64 {
        self.start_ms
            .saturating_add((self.heard().len() as u64).div_ceil(SAMPLES_PER_MS))
    }
}

/// Moves pieces, given in the order in which they were said, so that nobody talks over another: a piece starts at its own
/// start, or 200 ms after the piece before it has ended, whichever is later. The one who interrupts waits for the cut only.
pub fn lay_out(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let (mut earliest, mut breath) = (0, 0);
    for piece in &mut pieces {
        // A voice may take longer than it was thought to: then the next waits for it, and takes a breath.
        if piece.start_ms < earliest {
            piece.start_ms = earliest.saturating_add(breath);
        }
        breath = if piece.is_cut() { 0 } else { BREATH_MS };
        earliest = piece.end_ms();
    }
    pieces
}

/// Of the recording that these pieces make: to the end of the last sound.
pub fn duration_ms(pieces: &[Piece]) -> u64 {
    pieces.iter().map(Piece::end_ms).max().unwrap_or(0).min(LONGEST_MS)
}

/// A WAV file: PCM of 16 bits at 8 kHz. Two voices at once are added; what is too loud is held at the limit.
pub fn wav(pieces: &[Piece], channels: Channels) -> Vec<u8> {
    let width: usize = match channels {
        Channels::Dual => 2,
        Channels::Mono => 1,
    };
    // At most 240 MB, so it fits in the header's 32 bits.
    let sound = (duration_ms(pieces) * SAMPLES_PER_MS) as usize * width * 2;
    let mut file = vec![0; HEADER + sound];
    file[..HEADER].copy_from_slice(&header(sound as u32, width as u16, RATE));
    for piece in pieces {
        let channel = match (channels, piece.speaker) {
            (Channels::Mono, _) | (Channels::Dual, Speaker::Agent) => 0,
            (Channels::Dual, Speaker::User) => 1,
        };
        add(&mut file[HEADER..], piece, width, channel);
    }
    file
}

/// Adds a piece to the frames of `width` samples.
fn add(frames: &mut [u8], piece: &Piece, width: usize, channel: usize) {
    let start = usize::try_from(piece.start_ms.min(LONGEST_MS) * SAMPLES_PER_MS).unwrap_or(usize::MAX);
    let heard = piece.heard();
    let places = frames.chunks_exact_mut(width * 2).skip(start);
    for (at, (frame, &sample)) in places.zip(heard).enumerate() {
        let left = heard.len() - at;
        let sample = if piece.is_cut() && left < FADE {
            (i32::from(sample) * left as i32 / FADE as i32) as i16
        } else {
            sample
        };
        let place = &mut frame[channel * 2..channel * 2 + 2];
        let sum = i16::from_le_bytes([place[0], place[1]]).saturating_add(sample);
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

#[cfg(test)]
#[path = "mix_tests.rs"]
mod tests;
