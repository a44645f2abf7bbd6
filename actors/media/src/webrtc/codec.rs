//! Between sound inside, PCM, and what goes over the network.
//!
//! Opus is encoded at 24 kHz mono, the widest that a voice is, and decoded straight to the detector's 16 kHz. The RTP clock of Opus
//! counts 48 kHz whatever was encoded (RFC 7587, section 4.1). Only a peer that speaks G.711 gets 8 kHz.
use crate::playout::SoundFrame;
use adapters::sound::{HEARING, Resampler, TELEPHONE};
use audio_codec::{
    Decoder, Encoder, create_opus_decoder,
    opus::{OpusApplication, OpusEncoder},
    pcma::{PcmaDecoder, PcmaEncoder},
    pcmu::{PcmuDecoder, PcmuEncoder},
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use str0m::{
    RtcConfig, format,
    media::{Frequency, MediaTime},
};

/// Samples of the detector that are put in for sound that is missing, at most: 1 s.
const LONGEST_GAP: u64 = HEARING as u64;
/// Of these so many are guessed from what came before: 60 ms. What follows is silence, for a voice changes faster than that.
const GUESSED: usize = HEARING as usize * 60 / 1_000;
/// Equal payloads of silence after which a decoder gives nothing else for them: 160 ms.
const SETTLED: u32 = 8;
/// Samples that are repeated where the decoder does not guess by itself: 20 ms.
const REPEATED: usize = HEARING as usize / 50;

/// What a connection speaks, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Opus,
    /// G.711 mu-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
}

impl Codec {
    pub const ALL: [Codec; 3] = [Codec::Opus, Codec::Pcmu, Codec::Pcma];

    /// A connection that speaks nothing else.
    pub(super) fn only(self, config: RtcConfig) -> RtcConfig {
        let config = config.clear_codecs();
        match self {
            Codec::Opus => config.enable_opus(true, false),
            Codec::Pcmu => config.enable_pcmu(true, false),
            Codec::Pcma => config.enable_pcma(true, false),
        }
    }

    pub(super) fn is(self, other: format::Codec) -> bool {
        matches!(
            (self, other),
            (Codec::Opus, format::Codec::Opus)
                | (Codec::Pcmu, format::Codec::PCMU)
                | (Codec::Pcma, format::Codec::PCMA)
        )
    }

    /// When a frame sounds: its number times 20 ms, by the codec's RTP clock.
    pub(super) fn time(self, frame: u64) -> MediaTime {
        let clock = match self {
            Codec::Opus => Frequency::FORTY_EIGHT_KHZ,
            Codec::Pcmu | Codec::Pcma => Frequency::EIGHT_KHZ,
        };
        MediaTime::new(frame * u64::from(clock.get()) / 50, clock)
    }
}

/// Encodes what is said.
pub struct PayloadEncoder {
    speaks: Speaks,
    /// The rate of what was said last, and from there to the codec's. It seldom changes: a filter is costly to set up.
    rate: u32,
    fitting: Resampler,
}

enum Speaks {
    Opus(Box<dyn Encoder>),
    Pcmu,
    Pcma,
}

impl Speaks {
    /// Samples per second that it takes.
    fn rate(&self) -> u32 {
        match self {
            Speaks::Opus(_) => OPUS,
            Speaks::Pcmu | Speaks::Pcma => TELEPHONE,
        }
    }
}

/// Samples per second that are encoded as Opus.
const OPUS: u32 = 24_000;
/// Bits per second, for sound up to 12 kHz in one channel; browsers take 32,000 for what a microphone hears up to 20 kHz.
const OPUS_BITRATE: i32 = 48_000;
/// Of 10. What 1 to 5 add takes a third of the encoder's time and more, and makes a voice no better, as far as PESQ and the error tell; 9
/// does, and takes more than twice the time. Measured: docs/PERFORMANCE.md.
const OPUS_COMPLEXITY: i32 = 0;

impl PayloadEncoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        Self::of(match codec {
            Codec::Opus => Speaks::Opus(opus()),
            Codec::Pcmu => Speaks::Pcmu,
            Codec::Pcma => Speaks::Pcma,
        })
    }

    fn of(speaks: Speaks) -> Result<Self, String> {
        Ok(PayloadEncoder {
            rate: TELEPHONE,
            fitting: Resampler::new(TELEPHONE, speaks.rate())?,
            speaks,
        })
    }

    /// 20 ms as a payload; `None`: this frame cannot be said.
    pub fn say(&mut self, frame: &SoundFrame) -> Option<Vec<u8>> {
        if frame.rate != self.rate {
            self.fitting = Resampler::new(frame.rate, self.speaks.rate()).ok()?;
            self.rate = frame.rate;
        }
        let samples = self.fitting.resample(&frame.samples);
        let payload = match &mut self.speaks {
            Speaks::Pcmu => PcmuEncoder::new().encode(&samples),
            Speaks::Pcma => PcmaEncoder::new().encode(&samples),
            // Exactly 480 samples, mono: of anything else this encoder makes nothing. One that stumbles costs its frame, not the
            // connection.
            Speaks::Opus(encoder) => {
                let encoded = catch_unwind(AssertUnwindSafe(|| encoder.encode(&samples)));
                encoded.unwrap_or_else(|_| {
                    *encoder = opus();
                    Vec::new()
                })
            }
        };
        (!payload.is_empty()).then_some(payload)
    }
}

/// Without the mode for narrow speech, which costs several times as much, and without its high-pass filter: a voice that is made has
/// nothing down there.
fn opus() -> Box<dyn Encoder> {
    let mut encoder = OpusEncoder::new_with_application(OPUS, 1, OpusApplication::RestrictedLowDelay);
    encoder.set_bitrate(OPUS_BITRATE);
    encoder.set_complexity(OPUS_COMPLEXITY);
    Box::new(encoder)
}

/// Decodes what is heard.
pub struct PayloadDecoder {
    codec: Codec,
    decoder: Box<dyn Decoder>,
    /// From the 8 kHz of G.711.
    wide: Option<Resampler>,
    /// Where the next payload begins if none is lost, in samples of the detector.
    next: Option<u64>,
    /// What a guess at something lost is made of.
    last: Last,
    hush: Hush,
}

/// A muted microphone sends the same payload again and again: once the decoder has settled, it need not be asked.
#[derive(Default)]
struct Hush {
    payload: Vec<u8>,
    samples: usize,
    /// How often in a row it came and was silence.
    times: u32,
}

impl Hush {
    fn is(&self, payload: &[u8]) -> bool {
        self.times >= SETTLED && self.payload == payload
    }

    /// What the decoder has made of it.
    fn note(&mut self, payload: &[u8], samples: &[i16]) {
        if samples.iter().any(|sample| *sample != 0) {
            self.times = 0;
        } else if self.times > 0 && self.payload == payload {
            self.times = self.times.saturating_add(1);
        } else {
            payload.clone_into(&mut self.payload);
            (self.samples, self.times) = (samples.len(), 1);
        }
    }
}

/// Of the payload before.
enum Last {
    Nothing,
    /// The head of an Opus packet: a packet of nothing else asks the decoder to go on by itself.
    Head(u8),
    /// Its last samples.
    Sound(Vec<i16>),
}

impl PayloadDecoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        let wide = match codec {
            Codec::Opus => None,
            Codec::Pcmu | Codec::Pcma => Some(Resampler::new(TELEPHONE, HEARING)?),
        };
        Ok(PayloadDecoder {
            codec,
            decoder: decoder(codec),
            wide,
            next: None,
            last: Last::Nothing,
            hush: Hush::default(),
        })
    }

    /// Samples of 16 bits, 16 kHz, mono. Where something was lost before it the voice is guessed on for a moment, and silence
    /// follows. Nothing for a payload that is broken.
    pub fn hear(&mut self, payload: &[u8], time: MediaTime) -> Vec<i16> {
        let at = time.numer().saturating_mul(u64::from(HEARING)) / u64::from(time.denom()).max(1);
        let lost = self.next.map_or(0, |next| at.saturating_sub(next)).min(LONGEST_GAP);
        if lost == 0 && self.hush.is(payload) {
            let samples = vec![0; self.hush.samples];
            self.next = Some(at.saturating_add(samples.len() as u64));
            return samples;
        }
        let mut whole = self.guess(lost as usize);
        let samples = self.decode(payload);
        if samples.is_empty() {
            return samples;
        }
        match self.codec {
            // A guess has moved the decoder.
            Codec::Opus if lost > 0 => self.hush.times = 0,
            Codec::Opus => self.hush.note(payload, &samples),
            Codec::Pcmu | Codec::Pcma => {}
        }
        let samples = match &mut self.wide {
            Some(wide) => wide.resample(&samples),
            None => samples,
        };
        self.next = Some(at.saturating_add(samples.len() as u64));
        self.last = match self.codec {
            // One frame of the kind that came, and nothing in it (RFC 6716, section 3.1).
            Codec::Opus => payload.first().map_or(Last::Nothing, |head| Last::Head(head & 0xfc)),
            Codec::Pcmu | Codec::Pcma => Last::Sound(samples[samples.len().saturating_sub(REPEATED)..].to_vec()),
        };
        if whole.is_empty() {
            return samples;
        }
        whole.extend(samples);
        whole
    }

    /// Nothing for what is broken.
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        // Whoever is connected may send any payload: a decoder that stumbles over one must not take the connection along.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decoder.decode(payload)));
        decoded.unwrap_or_else(|_| {
            self.decoder = decoder(self.codec);
            self.last = Last::Nothing;
            self.hush = Hush::default();
            Vec::new()
        })
    }

    /// So many samples in the place of what was lost.
    fn guess(&mut self, lost: usize) -> Vec<i16> {
        let guessed = lost.min(GUESSED);
        let mut sound = Vec::with_capacity(lost);
        while sound.len() < guessed {
            let more = match &self.last {
                Last::Nothing => break,
                Last::Head(head) => {
                    let head = [*head];
                    self.decode(&head)
                }
                Last::Sound(last) => last.clone(),
            };
            if more.is_empty() {
                break;
            }
            sound.extend(more);
        }
        if let Last::Sound(_) = self.last {
            fade(&mut sound);
        }
        sound.resize(lost, 0);
        sound
    }
}

/// What is only repeated becomes a hum if it goes on.
fn fade(sound: &mut [i16]) {
    for (at, sample) in sound.iter_mut().enumerate() {
        let left = GUESSED.saturating_sub(at);
        *sample = (i64::from(*sample) * left as i64 / GUESSED as i64) as i16;
    }
}

fn decoder(codec: Codec) -> Box<dyn Decoder> {
    match codec {
        Codec::Opus => create_opus_decoder(HEARING, 1),
        Codec::Pcmu => Box::new(PcmuDecoder::new()),
        Codec::Pcma => Box::new(PcmaDecoder::new()),
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
