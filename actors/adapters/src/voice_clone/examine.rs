//! Is a sample fit for a clone? Decodes it once and measures length, loudness and clipping. Pure, over a file's bytes.
//!
//! A file is somebody's upload: nothing it says of itself is believed. Only what was decoded counts; decoding stops after
//! [`LONGEST_MS`] of sound, so that a small file that unpacks into days of silence costs no more than a real one; a decoder
//! that panics has met an unreadable file.
use bytes::Bytes;
use ebur128::{Channel, EbuR128, Mode};
use rules::voice_clone::machine::Code;
use std::{
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
};
use symphonia::core::{
    codecs::audio::{AudioDecoder, AudioDecoderOptions},
    errors::Error,
    formats::{FormatOptions, FormatReader, TrackType, probe::Hint},
    io::MediaSourceStream,
    meta::MetadataOptions,
};

/// Source: specification, "Voice clone events".
pub const SHORTEST_MS: i64 = 30_000;
/// Integrated loudness by EBU R 128. Speech into a near microphone has -30 to -15; whispering from across a room less.
pub const QUIETEST_LUFS: f64 = -40.0;
/// The part of all samples that lies in runs at full scale.
pub const MOST_CLIPPED: f64 = 0.01;
/// Sound that is examined of one file, in milliseconds; what follows is not looked at.
pub const LONGEST_MS: i64 = 15 * 60_000;

/// Full scale, but for the rounding of 16 bits.
const FULL_SCALE: f32 = 0.9999;
/// So many samples at full scale in a row are a cut-off wave; fewer are a loud one.
const RUN: u32 = 4;
/// A channel whose loudest sample is below -80 dB is silent.
const SILENT: f32 = 1e-4;
/// Packets that cannot be decoded, until the file counts as damaged.
const MAX_DAMAGED: u32 = 100;
/// More packets than 15 minutes have in any format.
const MAX_PACKETS: u32 = 2_000_000;

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `wav`, `mp3`, `flac` or `ogg`.
    pub format: &'static str,
    /// Decoded; at most [`LONGEST_MS`].
    pub duration_ms: i64,
    /// None: silence.
    pub loudness_lufs: Option<f64>,
    /// 0 to 1.
    pub clipped: f64,
}

impl Report {
    /// The first reason not to use it.
    pub fn fault(&self) -> Option<Fault> {
        let quiet = self.loudness_lufs.is_none_or(|lufs| lufs < QUIETEST_LUFS);
        if self.duration_ms < SHORTEST_MS {
            Some(Fault::of(
                Code::SampleTooShort,
                format!(
                    "has {:.1} s; at least 30 s are needed",
                    self.duration_ms as f64 / 1000.0
                ),
            ))
        } else if quiet {
            let found = self
                .loudness_lufs
                .map_or("is silent".into(), |lufs| format!("has {lufs:.1} LUFS"));
            Some(Fault::of(
                Code::SampleTooQuiet,
                format!("{found}; at least {QUIETEST_LUFS} LUFS are needed"),
            ))
        } else if self.clipped > MOST_CLIPPED {
            let share = self.clipped * 100.0;
            Some(Fault::of(
                Code::SampleClipped,
                format!("is cut off at full scale for {share:.1} % of its time; record it more quietly"),
            ))
        } else {
            None
        }
    }
}

/// Why a sample is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: Code,
    /// Reads after the file's name.
    pub what: String,
}

impl Fault {
    fn of(code: Code, what: impl Into<String>) -> Self {
        Fault {
            code,
            what: what.into(),
        }
    }
    fn unreadable(what: &str) -> Self {
        Fault::of(Code::SampleUnreadable, what)
    }
}

/// Examines a file. Takes seconds: not for a thread that others wait for.
pub fn examine(file: Bytes) -> Result<Report, Fault> {
    catch_unwind(AssertUnwindSafe(|| read(file))).unwrap_or_else(|_| Err(damaged()))
}

fn damaged() -> Fault {
    Fault::unreadable("is damaged; send WAV, MP3, FLAC or Ogg Vorbis")
}

fn read(file: Bytes) -> Result<Report, Fault> {
    let unknown = |_| Fault::unreadable("is not audio that can be read; send WAV, MP3, FLAC or Ogg Vorbis");
    let source = MediaSourceStream::new(Box::new(Cursor::new(file)), Default::default());
    let (options, about) = (FormatOptions::default(), MetadataOptions::default());
    let mut reader = symphonia::default::get_probe()
        .probe(&Hint::new(), source, options, about)
        .map_err(unknown)?;
    let format = match reader.format_info().short_name {
        "wave" => "wav",
        "mp3" => "mp3",
        "flac" => "flac",
        "ogg" => "ogg",
        _ => {
            return Err(Fault::unreadable(
                "has another format; send WAV, MP3, FLAC or Ogg Vorbis",
            ));
        }
    };
    let track = reader.default_track(TrackType::Audio).ok_or_else(damaged)?;
    let track_id = track.id;
    let codec = track
        .codec_params
        .as_ref()
        .and_then(|codec| codec.audio())
        .ok_or_else(damaged)?;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(codec, &AudioDecoderOptions::default())
        .map_err(|_| Fault::unreadable("has an encoding that cannot be read; send WAV, MP3, FLAC or Ogg Vorbis"))?;
    let mut meter = None;
    listen(reader.as_mut(), track_id, decoder.as_mut(), &mut meter)?;
    let meter: Meter = meter.ok_or_else(|| Fault::unreadable("has no sound in it"))?;
    meter.report(format)
}

/// Decodes up to the end, or as long as it is listened to. A file that is cut off counts as far as it goes.
fn listen(
    reader: &mut dyn FormatReader,
    track_id: u32,
    decoder: &mut dyn AudioDecoder,
    meter: &mut Option<Meter>,
) -> Result<(), Fault> {
    let (mut damaged_packets, mut samples) = (0, Vec::<f32>::new());
    for _ in 0..MAX_PACKETS {
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => return Ok(()),
            // Cut off, or followed by something else.
            Err(_) => return Ok(()),
        };
        if packet.track_id != track_id {
            continue;
        }
        let sound = match decoder.decode(&packet) {
            Ok(sound) => sound,
            Err(Error::DecodeError(_) | Error::IoError(_)) if damaged_packets < MAX_DAMAGED => {
                damaged_packets += 1;
                continue;
            }
            Err(_) => return Err(damaged()),
        };
        let (rate, channels) = (sound.spec().rate(), sound.spec().channels().count());
        if sound.is_empty() {
            continue;
        }
        sound.copy_to_vec_interleaved(&mut samples);
        let meter = match meter {
            Some(meter) => meter,
            None => meter.insert(Meter::new(rate, channels)?),
        };
        if (meter.rate, meter.width) != (rate, channels) {
            return Err(damaged());
        }
        if !meter.add(&samples)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures what is played into it.
struct Meter {
    rate: u32,
    width: usize,
    loudness: EbuR128,
    frames: u64,
    /// Of each channel: the loudest sample, and how many in a row were at full scale.
    peaks: [f32; 2],
    runs: [u32; 2],
    clipped: u64,
}

impl Meter {
    fn new(rate: u32, width: usize) -> Result<Self, Fault> {
        if !(1..=2).contains(&width) {
            return Err(Fault::unreadable("has more than two channels; send mono or stereo"));
        }
        let rates = 4_000..=384_000;
        let loudness = rates
            .contains(&rate)
            .then(|| EbuR128::new(width as u32, rate, Mode::I))
            .and_then(Result::ok);
        let mut loudness = loudness.ok_or_else(|| Fault::unreadable("has a sample rate that nobody uses"))?;
        if width == 1 {
            // As loud as the same sound from two speakers. The channel exists.
            let _ = loudness.set_channel(0, Channel::DualMono);
        }
        Ok(Meter {
            rate,
            width,
            loudness,
            frames: 0,
            peaks: [0.0; 2],
            runs: [0; 2],
            clipped: 0,
        })
    }

    fn duration_ms(&self) -> i64 {
        i64::try_from(self.frames.saturating_mul(1000) / u64::from(self.rate)).unwrap_or(i64::MAX)
    }

    /// Says whether more is wanted.
    fn add(&mut self, samples: &[f32]) -> Result<bool, Fault> {
        if samples.iter().any(|sample| !sample.is_finite()) {
            return Err(damaged());
        }
        self.loudness.add_frames_f32(samples).map_err(|_| damaged())?;
        for frame in samples.chunks_exact(self.width) {
            for (channel, sample) in frame.iter().enumerate() {
                let level = sample.abs();
                self.peaks[channel] = self.peaks[channel].max(level);
                let run = &mut self.runs[channel];
                *run = if level >= FULL_SCALE { *run + 1 } else { 0 };
                // The first of a run count once it is one.
                self.clipped += match *run {
                    0..RUN => 0,
                    RUN => u64::from(RUN),
                    _ => 1,
                };
            }
        }
        self.frames += (samples.len() / self.width) as u64;
        Ok(self.duration_ms() < LONGEST_MS)
    }

    fn report(&self, format: &'static str) -> Result<Report, Fault> {
        let measured = self.loudness.loudness_global().map_err(|_| damaged())?;
        // With one silent channel the other is taken for itself, as loud as from two speakers.
        let one_is_silent = self.width == 2 && self.peaks.iter().filter(|peak| **peak < SILENT).count() == 1;
        let sounding = if self.width == 1 || one_is_silent { 1 } else { 2 };
        let lufs = if one_is_silent {
            measured + 10.0 * 2.0_f64.log10()
        } else {
            measured
        };
        let total = self.frames.saturating_mul(sounding).max(1);
        Ok(Report {
            format,
            duration_ms: self.duration_ms().min(LONGEST_MS),
            loudness_lufs: lufs.is_finite().then(|| (lufs * 10.0).round() / 10.0),
            clipped: self.clipped as f64 / total as f64,
        })
    }
}

#[cfg(test)]
#[path = "examine_tests.rs"]
mod tests;
