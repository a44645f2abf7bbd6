//! Samples of every kind that we take, and of every fault; then garbage.
use super::*;
use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;

const MP3: &[u8] = include_bytes!("fixtures/tone.mp3");
const OGG: &[u8] = include_bytes!("fixtures/tone.ogg");
const FLAC: &[u8] = include_bytes!("fixtures/tone.flac");
/// Half an hour in 5 kB.
const SILENCE: &[u8] = include_bytes!("fixtures/silence.flac");

const RATE: u32 = 8_000;

/// A WAV file of 16 bits; each frame from its number.
fn wav(seconds: u32, channels: u16, frame: impl Fn(u32, u16) -> f32) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let spec = WavSpec {
        channels,
        sample_rate: RATE,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut writer = WavWriter::new(&mut file, spec).unwrap();
    for n in 0..seconds * RATE {
        for channel in 0..channels {
            let level = (frame(n, channel) * 32_768.0).clamp(-32_768.0, 32_767.0);
            writer.write_sample(level as i16).unwrap();
        }
    }
    writer.finalize().unwrap();
    file.into_inner()
}

/// 440 Hz of that amplitude.
fn sine(amplitude: f32) -> impl Fn(u32, u16) -> f32 {
    move |n, _| amplitude * (n as f32 * 440.0 * std::f32::consts::TAU / RATE as f32).sin()
}

fn examined(file: &[u8]) -> Result<Report, Fault> {
    examine(Bytes::copy_from_slice(file))
}

/// What is wrong with a file; none: nothing.
fn fault(file: &[u8]) -> Option<Code> {
    match examined(file) {
        Ok(report) => report.fault().map(|fault| fault.code),
        Err(fault) => Some(fault.code),
    }
}

#[test]
fn every_format_is_read_and_measured() {
    for (file, format) in [
        (MP3, "mp3"),
        (OGG, "ogg"),
        (FLAC, "flac"),
        (&wav(31, 1, sine(0.1)), "wav"),
    ] {
        let report = examined(file).unwrap();
        assert_eq!((report.format, report.fault()), (format, None));
        assert!(
            (30_900..31_300).contains(&report.duration_ms),
            "{format}: {}",
            report.duration_ms
        );
        assert!(report.clipped < 0.001, "{format}");
    }
}

#[test]
fn loudness_is_that_of_the_standard() {
    // A sine of 1 kHz at -20 dBFS in both channels has -20 LUFS. Source: EBU Tech 3341.
    let tone = |n: u32, _: u16| 0.1 * (n as f32 * 1000.0 * std::f32::consts::TAU / RATE as f32).sin();
    let both = examined(&wav(31, 2, tone)).unwrap().loudness_lufs.unwrap();
    assert!((-20.3..-19.7).contains(&both), "{both}");
    let mono = examined(&wav(31, 1, tone)).unwrap().loudness_lufs.unwrap();
    assert!((mono - both).abs() < 0.11, "the same sound from one channel: {mono}");
    let one_sided = |n, channel| if channel == 0 { tone(n, 0) } else { 0.0 };
    let left = examined(&wav(31, 2, one_sided)).unwrap().loudness_lufs.unwrap();
    assert!(
        (left - both).abs() < 0.11,
        "a silent channel counts for nothing: {left}"
    );
}

#[test]
fn every_fault_is_found() {
    let loud = |n, channel| (sine(3.0)(n, channel)).clamp(-1.0, 1.0);
    for (what, file, expected) in [
        ("just long enough", wav(30, 1, sine(0.1)), None),
        ("a second short", wav(29, 1, sine(0.1)), Some(Code::SampleTooShort)),
        ("short and silent", wav(2, 1, |_, _| 0.0), Some(Code::SampleTooShort)),
        ("silent", wav(31, 1, |_, _| 0.0), Some(Code::SampleTooQuiet)),
        ("whispered", wav(31, 1, sine(0.005)), Some(Code::SampleTooQuiet)),
        ("quiet", wav(31, 1, sine(0.02)), None),
        ("full scale and no more", wav(31, 1, sine(1.0)), None),
        ("cut off", wav(31, 1, loud), Some(Code::SampleClipped)),
        (
            "cut off on one side",
            wav(
                31,
                2,
                |n, channel| if channel == 0 { loud(n, 0) } else { sine(0.1)(n, 1) },
            ),
            Some(Code::SampleClipped),
        ),
        ("three channels", wav(31, 3, sine(0.1)), Some(Code::SampleUnreadable)),
        ("no samples", wav(0, 1, sine(0.1)), Some(Code::SampleUnreadable)),
        ("nothing", Vec::new(), Some(Code::SampleUnreadable)),
        (
            "text",
            b"Once upon a time there was a voice. ".repeat(1000),
            Some(Code::SampleUnreadable),
        ),
        ("half of it", MP3[..MP3.len() / 2].to_vec(), Some(Code::SampleTooShort)),
        (
            "half of it",
            FLAC[..FLAC.len() / 2].to_vec(),
            Some(Code::SampleTooShort),
        ),
        ("half of it", OGG[..OGG.len() / 2].to_vec(), Some(Code::SampleTooShort)),
    ] {
        assert_eq!(fault(&file), expected, "{what}");
    }
}

#[test]
fn what_unpacks_into_hours_is_looked_at_for_a_quarter_of_one() {
    let report = examined(SILENCE).unwrap();
    assert_eq!((report.duration_ms, report.loudness_lufs), (LONGEST_MS, None));
    assert_eq!(report.fault().unwrap().code, Code::SampleTooQuiet);
}

#[test]
fn a_length_in_the_head_is_not_believed() {
    let mut file = wav(2, 1, sine(0.1));
    // As a program writes it that does not know the end yet.
    for at in [4, 40] {
        file[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    }
    assert_eq!(fault(&file), Some(Code::SampleTooShort));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever is damaged in a file: a verdict, in bounded time, and no panic that gets out.
    #[test]
    fn damage_is_a_verdict(which in 0..4_usize, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let head = wav(1, 2, sine(0.1));
        let mut file = [&MP3[..8_000], &OGG[..8_000], &FLAC[..8_000], &head[..8_000]][which].to_vec();
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(report) = examined(&file) {
            prop_assert!(report.duration_ms <= LONGEST_MS && (0.0..=1.0).contains(&report.clipped));
        }
    }
}
