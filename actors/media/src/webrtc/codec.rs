//! Between the bridge's mu-law and what goes over the network.
//!
//! Opus is encoded at 48 kHz mono, where this encoder is at its cheapest, from the 8 kHz of the bridge, and decoded straight
//! to the detector's 16 kHz. The RTP clock of Opus counts 48 kHz whatever was encoded (RFC 7587, section 4.1).
use crate::bridge::FRAME;
use audio_codec::{
    BoxedResampler, Decoder, Encoder, create_opus_decoder, create_opus_encoder,
    opus::OpusApplication,
    pcma::{PcmaDecoder, PcmaEncoder},
    pcmu::PcmuDecoder,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use str0m::{
    RtcConfig, format,
    media::{Frequency, MediaTime},
};

/// Samples per second of what a detector hears.
const WIDE: usize = 16_000;
/// Silence that is put in for sound that is missing, at most: 1 s.
const LONGEST_GAP: u64 = WIDE as u64;

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
pub struct PayloadEncoder(Speaks);

enum Speaks {
    Opus {
        wide: BoxedResampler,
        encoder: Box<dyn Encoder>,
    },
    Pcmu,
    Pcma,
}

impl PayloadEncoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        Ok(PayloadEncoder(match codec {
            Codec::Opus => Speaks::Opus {
                wide: BoxedResampler::new(8_000, 48_000).map_err(|error| format!("{error:?}"))?,
                encoder: opus(),
            },
            Codec::Pcmu => Speaks::Pcmu,
            Codec::Pcma => Speaks::Pcma,
        }))
    }

    /// 20 ms of mu-law as a payload; `None`: this frame cannot be said.
    pub fn say(&mut self, frame: &[u8; FRAME]) -> Option<Vec<u8>> {
        let payload = match &mut self.0 {
            Speaks::Pcmu => frame.to_vec(),
            Speaks::Pcma => PcmaEncoder::new().encode(&PcmuDecoder::new().decode(frame)),
            // Exactly 960 samples, mono: of anything else this encoder makes nothing. One that stumbles costs its frame, not the
            // connection.
            Speaks::Opus { wide, encoder } => {
                let samples = wide.resample(&PcmuDecoder::new().decode(frame));
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

fn opus() -> Box<dyn Encoder> {
    create_opus_encoder(48_000, 1, OpusApplication::Voip)
}

/// Decodes what is heard.
pub struct PayloadDecoder {
    codec: Codec,
    decoder: Box<dyn Decoder>,
    /// From the 8 kHz of G.711.
    wide: Option<BoxedResampler>,
    /// Where the next payload begins if none is lost, in samples of the detector.
    next: Option<u64>,
}

impl PayloadDecoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        let wide = match codec {
            Codec::Opus => None,
            Codec::Pcmu | Codec::Pcma => Some(BoxedResampler::new(8_000, WIDE).map_err(|error| format!("{error:?}"))?),
        };
        Ok(PayloadDecoder {
            codec,
            decoder: decoder(codec),
            wide,
            next: None,
        })
    }

    /// Samples of 16 bits, 16 kHz, mono; silence where something was lost before it. Nothing for a payload that is broken.
    pub fn hear(&mut self, payload: &[u8], time: MediaTime) -> Vec<i16> {
        // Whoever is connected may send any payload: a decoder that stumbles over one must not take the connection along.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decoder.decode(payload)));
        let Ok(samples) = decoded else {
            self.decoder = decoder(self.codec);
            return Vec::new();
        };
        if samples.is_empty() {
            return samples;
        }
        let samples = match &mut self.wide {
            Some(wide) => wide.resample(&samples),
            None => samples,
        };
        let at = time.numer().saturating_mul(WIDE as u64) / u64::from(time.denom()).max(1);
        let lost = self.next.map_or(0, |next| at.saturating_sub(next)).min(LONGEST_GAP);
        self.next = Some(at.saturating_add(samples.len() as u64));
        if lost == 0 {
            return samples;
        }
        let mut whole = vec![0; lost as usize];
        whole.extend(samples);
        whole
    }
}

fn decoder(codec: Codec) -> Box<dyn Decoder> {
    match codec {
        Codec::Opus => create_opus_decoder(WIDE as u32, 1),
        Codec::Pcmu => Box::new(PcmuDecoder::new()),
        Codec::Pcma => Box::new(PcmaDecoder::new()),
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
