//! Pieces of sound to one recording: who spoke when, as a WAV file.
use super::voice::{RATE, Speaker};

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
const HEADER: usize = 44;
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
    file[..HEADER].copy_from_slice(&header(sound as u32, width as u16));
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

/// The 44 bytes before `sound` bytes of samples. Source: Microsoft, "Multimedia Programming Interface and Data
/// Specifications 1.0", RIFF WAVE.
fn header(sound: u32, channels: u16) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let frame = channels * 2;
    put(b"RIFF");
    put(&(sound + HEADER as u32 - 8).to_le_bytes());
    put(b"WAVEfmt ");
    put(&16_u32.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&channels.to_le_bytes());
    put(&RATE.to_le_bytes());
    put(&(RATE * u32::from(frame)).to_le_bytes());
    put(&frame.to_le_bytes());
    put(&16_u16.to_le_bytes());
    put(b"data");
    put(&sound.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use Speaker::{Agent, User};

    fn piece(speaker: Speaker, start_ms: u64, length_ms: u64, cut_ms: Option<u64>) -> Piece {
        Piece {
            speaker,
            start_ms,
            sound: vec![1_000; length_ms as usize * 8],
            cut_ms,
        }
    }

    fn starts(pieces: Vec<Piece>) -> Vec<u64> {
        lay_out(pieces).iter().map(|piece| piece.start_ms).collect()
    }

    /// Samples of a channel of a WAV of `width` channels.
    fn channel(wav: &[u8], width: usize, channel: usize) -> Vec<i16> {
        let frames = wav[HEADER..].chunks_exact(width * 2);
        frames
            .map(|frame| i16::from_le_bytes([frame[channel * 2], frame[channel * 2 + 1]]))
            .collect()
    }

    #[test]
    fn pieces_follow_each_other() {
        let cases = [
            // Its own start, when that is later.
            (
                vec![piece(Agent, 100, 500, None), piece(User, 2_000, 500, None)],
                vec![100, 2_000],
            ),
            // Else a breath after the end.
            (
                vec![piece(Agent, 0, 500, None), piece(User, 300, 500, None)],
                vec![0, 700],
            ),
            // Moved pieces push those behind them.
            (
                vec![
                    piece(Agent, 0, 500, None),
                    piece(User, 0, 500, None),
                    piece(Agent, 0, 500, None),
                ],
                vec![0, 700, 1_400],
            ),
            // Who interrupts begins at the cut, but not before speaking.
            (
                vec![piece(Agent, 0, 500, Some(300)), piece(User, 0, 500, None)],
                vec![0, 300],
            ),
            (
                vec![piece(Agent, 0, 500, Some(300)), piece(User, 350, 500, None)],
                vec![0, 350],
            ),
            // It had ended before the cut.
            (
                vec![piece(Agent, 0, 500, Some(500)), piece(User, 0, 500, None)],
                vec![0, 700],
            ),
            (
                vec![piece(Agent, 0, 500, Some(0)), piece(User, 0, 500, None)],
                vec![0, 0],
            ),
            (
                vec![piece(Agent, u64::MAX, 500, None), piece(User, 0, 500, None)],
                vec![u64::MAX, u64::MAX],
            ),
            (vec![], vec![]),
        ];
        for (pieces, expected) in cases {
            let given: Vec<_> = pieces
                .iter()
                .map(|p| (p.start_ms, p.sound.len() / 8, p.cut_ms))
                .collect();
            assert_eq!(starts(pieces), expected, "{given:?}");
        }
    }

    #[test]
    fn each_party_has_a_channel() {
        let pieces = [piece(Agent, 0, 100, None), piece(User, 150, 50, None)];
        let file = wav(&pieces, Channels::Dual);
        assert_eq!(duration_ms(&pieces), 200);
        let (left, right) = (channel(&file, 2, 0), channel(&file, 2, 1));
        assert_eq!((left.len(), right.len()), (1_600, 1_600));
        assert!(left[..800].iter().all(|&s| s == 1_000) && left[800..].iter().all(|&s| s == 0));
        assert!(right[..1_200].iter().all(|&s| s == 0) && right[1_200..].iter().all(|&s| s == 1_000));
    }

    #[test]
    fn mono_adds_and_holds_at_the_limit() {
        let mut pieces = [piece(Agent, 0, 10, None), piece(User, 5, 10, None)];
        let mixed = channel(&wav(&pieces, Channels::Mono), 1, 0);
        assert_eq!(
            (mixed[39], mixed[40], mixed[79], mixed[80]),
            (1_000, 2_000, 2_000, 1_000)
        );
        for (limit, loud) in [(i16::MAX, 30_000), (i16::MIN, -30_000)] {
            for piece in &mut pieces {
                piece.sound.fill(loud);
            }
            let mixed = channel(&wav(&pieces, Channels::Mono), 1, 0);
            assert_eq!((mixed[39], mixed[40], mixed[80]), (loud, limit, loud));
        }
    }

    #[test]
    fn a_cut_piece_fades_and_is_silent_after_the_cut() {
        let pieces = [piece(Agent, 0, 100, Some(20)), piece(User, 0, 40, None)];
        let left = channel(&wav(&pieces, Channels::Dual), 2, 0);
        assert_eq!(left.len(), 320, "nothing of the lost rest lengthens the recording");
        assert_eq!((left[100], left[140], left[159]), (1_000, 500, 25));
        assert!(left[160..].iter().all(|&sample| sample == 0));
    }

    #[test]
    fn the_header_is_exact() {
        let file = wav(&[piece(Agent, 0, 1_000, None)], Channels::Dual);
        assert_eq!(file.len(), 44 + 32_000);
        let field = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        assert_eq!(
            (&file[0..4], &file[8..16], &file[36..40]),
            (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
        );
        assert_eq!(
            (field(4), field(16), field(24), field(28), field(40)),
            (32_036, 16, 8_000, 32_000, 32_000)
        );
        assert_eq!(file[20..24], [1, 0, 2, 0], "PCM, two channels");
        assert_eq!(file[32..36], [4, 0, 16, 0], "four bytes a frame, 16 bits");
        assert_eq!(wav(&[], Channels::Mono).len(), 44);
    }

    #[test]
    fn a_recording_ends_at_the_longest_call() {
        let pieces = [
            piece(Agent, LONGEST_MS - 10, 20, None),
            piece(User, LONGEST_MS + 1, 20, None),
            piece(User, u64::MAX, 1, None),
        ];
        assert_eq!(duration_ms(&pieces), 7_500_000);
        let file = wav(&pieces, Channels::Mono);
        assert_eq!(file.len(), 44 + 7_500 * 16_000);
        assert_eq!(file[file.len() - 162..file.len() - 158], [0, 0, 232, 3]);
        assert_eq!(file[file.len() - 2..], [232, 3]);
    }

    /// Opened by Python's `wave` module or by sox, where one is here.
    #[test]
    fn other_programs_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = [piece(User, 500, 1_500, None)];
        for (channels, count) in [(Channels::Dual, 2), (Channels::Mono, 1)] {
            let path = folder.path().join("call.wav");
            std::fs::write(&path, wav(&pieces, channels)).unwrap();
            if let Some(said) = run("python3", &["-c", PYTHON, path.to_str().unwrap()]) {
                let loud = if count == 2 { "[0, 1000]" } else { "[1000]" };
                assert_eq!(said, format!("{count} 8000 2 16000 {loud} 2000.0"));
            }
            if let Some(said) = run("sox", &["--info", path.to_str().unwrap()]) {
                let lines: Vec<String> = said
                    .lines()
                    .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
                    .collect();
                for line in [
                    &format!("Channels : {count}"),
                    "Sample Rate : 8000",
                    "Precision : 16-bit",
                ] {
                    assert!(lines.iter().any(|said| said == line), "{line}: {said}");
                }
                assert!(said.contains("00:00:02.00 = 16000 samples"), "{said}");
            }
        }
    }

    /// Channels, rate, bytes per sample, frames, the loudest sample of each channel, length in ms.
    const PYTHON: &str = "
import sys, wave, struct
w = wave.open(sys.argv[1])
n, c = w.getnframes(), w.getnchannels()
s = struct.unpack('<%dh' % (n * c), w.readframes(n))
print(c, w.getframerate(), w.getsampwidth(), n, [max(s[i::c]) for i in range(c)], 1000 * n / w.getframerate())
";

    /// What a program says; none when it is not here.
    fn run(program: &str, arguments: &[&str]) -> Option<String> {
        let output = std::process::Command::new(program).args(arguments).output().ok()?;
        assert!(
            output.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}
