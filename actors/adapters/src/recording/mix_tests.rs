//! When pieces sound, and what the file of them looks like to other programs.
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
