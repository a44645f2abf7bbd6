//! Between sound inside, PCM, and the payloads of a phone leg.
//!
//! What is heard becomes 16 kHz for the detector. Where packets were lost there is silence of the same length: a detector, a
//! transcriber and a file gain nothing from a guess. G.722 has an RTP clock of 8 kHz though its sound has 16 (RFC 3551, section
//! 4.5.2).
use crate::{
    playout::SoundFrame,
    webrtc::{self, codec::PayloadEncoder},
};
use adapters::sound::{HEARING, Resampler, TELEPHONE, mu_law};
use audio_codec::{
    Encoder as _, create_opus_decoder,
    g722::{G722Decoder, G722Encoder},
    pcma::PcmaDecoder,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Samples that are put in for what was lost at once, at most: a second.
const LONGEST_GAP: u64 = HEARING as u64;
/// Bytes of G.711 and G.722 in a millisecond.
pub const BYTES_PER_MS: usize = 8;

/// What a leg speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// G.711 mu-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
    G722,
    /// Mono; its clock counts 48 kHz whatever the rate.
    Opus,
}

impl Codec {
    pub const ALL: [Codec; 4] = [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus];

    /// Units of the RTP clock in a second.
    pub fn clock(self) -> u32 {
        match self {
            Codec::Pcmu | Codec::Pcma | Codec::G722 => 8_000,
            Codec::Opus => 48_000,
        }
    }

    /// Units of the RTP clock in a millisecond.
    pub fn per_ms(self) -> u32 {
        self.clock() / 1_000
    }
}

/// What is heard.
pub struct Decoder {
    codec: Codec,
    decodes: Decodes,
    /// From the 8 kHz of G.711.
    wide: Option<Resampler>,
    narrow: Vec<i16>,
    /// The timestamp that follows if nothing is lost.
    next: Option<u32>,
    /// Samples of silence that were put in since the last payload: they are no longer missing.
    filled: u64,
}

enum Decodes {
    Pcmu,
    Pcma(PcmaDecoder),
    G722(Box<G722Decoder>),
    Opus(Box<dyn audio_codec::Decoder>),
}

impl Decodes {
    fn of(codec: Codec) -> Self {
        match codec {
            Codec::Pcmu => Decodes::Pcmu,
            Codec::Pcma => Decodes::Pcma(PcmaDecoder::new()),
            Codec::G722 => Decodes::G722(Box::new(G722Decoder::new())),
            Codec::Opus => Decodes::Opus(create_opus_decoder(HEARING, 1)),
        }
    }

    /// Replaces `out`; nothing for what is broken.
    fn decode(&mut self, payload: &[u8], out: &mut Vec<i16>) {
        out.clear();
        let decoder: &mut dyn audio_codec::Decoder = match self {
            Decodes::Pcmu => {
                out.extend(payload.iter().copied().map(mu_law::decode));
                return;
            }
            Decodes::Pcma(decoder) => decoder,
            Decodes::G722(decoder) => &mut **decoder,
            Decodes::Opus(decoder) => &mut **decoder,
        };
        out.resize(decoder.max_decode_samples(payload.len()), 0);
        let count = decoder.decode_into(payload, out);
        out.truncate(count.unwrap_or(0));
        // Opus may come in stereo whatever was agreed (RFC 7587, section 7): the decoder then gives left and right in turns.
        if decoder.channels() == 2 {
            let count = out.len() / 2;
            for at in 0..count {
                let (left, right) = (i32::from(out[2 * at]), i32::from(out[2 * at + 1]));
                out[at] = ((left + right) / 2) as i16;
            }
            out.truncate(count);
        }
    }
}

impl Decoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        let wide = match codec {
            Codec::Pcmu | Codec::Pcma => Some(Resampler::new(TELEPHONE, HEARING)?),
            Codec::G722 | Codec::Opus => None,
        };
        Ok(Decoder {
            codec,
            decodes: Decodes::of(codec),
            wide,
            narrow: Vec::new(),
            next: None,
            filled: 0,
        })
    }

    /// Another stream begins: nothing between the two is lost.
    pub fn reset(&mut self) {
        self.next = None;
        self.filled = 0;
    }

    /// So much silence was heard in the place of what does not come.
    pub fn fill(&mut self, samples: usize) {
        self.filled += samples as u64;
    }

    /// Adds 16 kHz to `out`: silence for what was lost before it, and the payload's sound, if it can be read.
    pub fn hear(&mut self, payload: &[u8], timestamp: u32, is_lost: bool, out: &mut Vec<i16>) {
        let gap = self.next.map_or(0, |next| timestamp.wrapping_sub(next) as i32);
        if is_lost && gap > 0 {
            let gap = gap as u64 * u64::from(HEARING) / u64::from(self.codec.clock());
            let silence = gap.saturating_sub(self.filled).min(LONGEST_GAP);
            out.resize(out.len() + silence as usize, 0);
        }
        self.filled = 0;
        // Whoever is called may send any payload: a decoder that stumbles over one must not take the call along.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decodes.decode(payload, &mut self.narrow)));
        if decoded.is_err() {
            self.decodes = Decodes::of(self.codec);
            self.narrow.clear();
        }
        let rate = if self.wide.is_some() { TELEPHONE } else { HEARING };
        let units = self.narrow.len() as u64 * u64::from(self.codec.clock()) / u64::from(rate);
        self.next = Some(timestamp.wrapping_add(units as u32));
        match &mut self.wide {
            Some(wide) => out.extend(wide.resample(&self.narrow)),
            None => out.extend_from_slice(&self.narrow),
        }
    }
}

/// What is said.
pub struct Encoder {
    codec: Codec,
    encodes: Encodes,
}

enum Encodes {
    /// As rooms are spoken to.
    Shared(PayloadEncoder),
    G722 {
        encoder: Box<G722Encoder>,
        /// The rate of what was said last.
        rate: u32,
        fitting: Resampler,
    },
}

impl Encoder {
    /// Fails if the codec cannot be set up.
    pub fn new(codec: Codec) -> Result<Self, String> {
        let shared = |codec| PayloadEncoder::new(codec).map(Encodes::Shared);
        let encodes = match codec {
            Codec::Pcmu => shared(webrtc::Codec::Pcmu)?,
            Codec::Pcma => shared(webrtc::Codec::Pcma)?,
            Codec::Opus => shared(webrtc::Codec::Opus)?,
            Codec::G722 => Encodes::G722 {
                encoder: Box::new(G722Encoder::new()),
                rate: TELEPHONE,
                fitting: Resampler::new(TELEPHONE, HEARING)?,
            },
        };
        Ok(Encoder { codec, encodes })
    }

    /// Adds 20 ms of payload to `out`; `false`: this frame cannot be said.
    pub fn say(&mut self, frame: &SoundFrame, out: &mut Vec<u8>) -> bool {
        match &mut self.encodes {
            Encodes::Shared(encoder) => {
                let payload = encoder.say(frame);
                out.extend_from_slice(payload.as_deref().unwrap_or_default());
                payload.is_some()
            }
            Encodes::G722 { encoder, rate, fitting } => {
                if *rate != frame.rate {
                    let Ok(other) = Resampler::new(frame.rate, HEARING) else {
                        return false;
                    };
                    (*fitting, *rate) = (other, frame.rate);
                }
                let payload = encoder.encode(&fitting.resample(&frame.samples));
                out.extend_from_slice(&payload);
                !payload.is_empty()
            }
        }
    }

    /// Adds so much silence, where that is known by heart; `false`: it has to be encoded like words.
    pub fn say_nothing(&self, ms: usize, out: &mut Vec<u8>) -> bool {
        let silence = match self.codec {
            Codec::Pcmu => mu_law::SILENCE,
            // Source: ITU-T G.711, table 1.
            Codec::Pcma => 0xd5,
            Codec::G722 | Codec::Opus => return false,
        };
        out.resize(out.len() + ms * BYTES_PER_MS, silence);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goertzel::purity_of;
    use audio_codec::{create_opus_encoder, opus::OpusApplication};
    use std::f64::consts::TAU;

    /// A second of it, in frames.
    fn tone(hertz: f64, rate: u32) -> Vec<SoundFrame> {
        let angle = |n: u32| TAU * hertz * f64::from(n) / f64::from(rate);
        let samples: Vec<i16> = (0..rate).map(|n| (8_000.0 * angle(n).sin()) as i16).collect();
        let frame = |samples: &[i16]| SoundFrame {
            rate,
            samples: samples.to_vec(),
        };
        samples.chunks((rate / 50) as usize).map(frame).collect()
    }

    fn payloads(codec: Codec, frames: &[SoundFrame]) -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new(codec).unwrap();
        let say = |frame| {
            let mut payload = Vec::new();
            assert!(encoder.say(frame, &mut payload));
            payload
        };
        frames.iter().map(say).collect()
    }

    #[test]
    fn every_codec_carries_a_voice_both_ways() {
        for codec in Codec::ALL {
            for rate in [8_000, 16_000, 22_050, 24_000] {
                let mut decoder = Decoder::new(codec).unwrap();
                let (mut heard, mut timestamp) = (Vec::new(), u32::MAX - 3_000);
                for payload in payloads(codec, &tone(500.0, rate)) {
                    decoder.hear(&payload, timestamp, false, &mut heard);
                    timestamp = timestamp.wrapping_add(20 * codec.per_ms());
                    assert_eq!(decoder.next, Some(timestamp), "{codec:?}");
                    assert!(codec == Codec::Opus || payload.len() == 160, "{codec:?}");
                }
                assert_eq!(heard.len(), 16_000, "{codec:?} {rate}");
                let middle = &heard[3_200..12_800];
                let purity = purity_of(middle, 500.0, 16_000.0);
                let loudest = middle.iter().map(|sample| sample.unsigned_abs()).max();
                assert!(purity > 0.9, "{codec:?} {rate}: {purity}");
                assert!(
                    (4_000..12_000).contains(&loudest.unwrap()),
                    "{codec:?} {rate}: {loudest:?}"
                );
            }
        }
    }

    /// A phone may send both kinds of packets, in any order.
    #[test]
    fn stereo_lasts_no_longer_than_mono() {
        let mut stereo = create_opus_encoder(48_000, 2, OpusApplication::Voip);
        // Its encoder says the same on both sides.
        let frames = tone(500.0, 48_000);
        let packets: Vec<Vec<u8>> = frames.iter().map(|frame| stereo.encode(&frame.samples)).collect();
        assert!(packets.iter().all(|packet| packet[0] & 0x04 != 0), "it is stereo");
        let mut decoder = Decoder::new(Codec::Opus).unwrap();
        let mut heard = Vec::new();
        for (at, packet) in (0_u32..).zip(&packets) {
            decoder.hear(packet, at * 960, false, &mut heard);
        }
        assert_eq!(heard.len(), 16_000);
        let purity = purity_of(&heard[3_200..12_800], 500.0, 16_000.0);
        assert!(purity > 0.9, "{purity}");
        let mono = payloads(Codec::Opus, &tone(500.0, 8_000)).remove(10);
        heard.clear();
        decoder.hear(&mono, 48_000, false, &mut heard);
        assert_eq!(heard.len(), 320);
    }

    /// What is lost is silence as long as it was, whatever the length of packets; and nothing is invented where nothing was lost.
    #[test]
    fn what_is_lost_is_silence_of_its_length() {
        for codec in Codec::ALL {
            let payload = payloads(codec, &tone(500.0, 8_000)).remove(10);
            let per_ms = codec.per_ms();
            for (what, next_ms, is_lost, filled_ms, wanted_ms) in [
                ("nothing", 20, false, 0, 0),
                ("two packets", 60, true, 0, 40),
                ("a pause that the other side made", 500, false, 0, 0),
                ("what was filled meanwhile", 220, true, 150, 50),
                ("more was filled than is lost", 60, true, 150, 0),
                ("more than a second", 5_000, true, 0, 1_000),
                ("a clock that ran backwards", 0, true, 0, 0),
            ] {
                let mut decoder = Decoder::new(codec).unwrap();
                let (mut heard, start) = (Vec::new(), 0xffff_ff00_u32);
                decoder.hear(&payload, start, false, &mut heard);
                let before = heard.len();
                decoder.fill(filled_ms * 16);
                decoder.hear(&payload, start.wrapping_add(next_ms * per_ms), is_lost, &mut heard);
                let silence = heard.len() - before - 320;
                assert_eq!(silence, wanted_ms * 16, "{codec:?}: {what}");
                assert!(heard[before..before + silence].iter().all(|sample| *sample == 0));
            }
            let mut decoder = Decoder::new(codec).unwrap();
            let mut heard = Vec::new();
            decoder.hear(&payload, 0, false, &mut heard);
            decoder.reset();
            decoder.hear(&payload, 5_000, true, &mut heard);
            assert_eq!(heard.len(), 640, "{codec:?}: another stream");
        }
    }

    #[test]
    fn silence_is_silence() {
        for codec in [Codec::Pcmu, Codec::Pcma] {
            let (mut known, mut heard) = (Vec::new(), Vec::new());
            assert!(Encoder::new(codec).unwrap().say_nothing(20, &mut known));
            assert_eq!(known.len(), 160);
            Decoder::new(codec).unwrap().hear(&known, 0, false, &mut heard);
            assert!(heard.iter().all(|sample| sample.unsigned_abs() <= 16), "{codec:?}");
        }
        assert!(!Encoder::new(Codec::Opus).unwrap().say_nothing(20, &mut Vec::new()));
    }

    #[test]
    fn what_is_broken_ends_nothing() {
        for codec in Codec::ALL {
            let good = payloads(codec, &tone(500.0, 8_000)).remove(10);
            let mut decoder = Decoder::new(codec).unwrap();
            let mut seed = 1_u32;
            for length in 0..600 {
                let junk: Vec<u8> = (0..length)
                    .map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (seed >> 24) as u8
                    })
                    .collect();
                decoder.hear(&junk, length, false, &mut Vec::new());
            }
            let mut heard = Vec::new();
            decoder.hear(&good, 0, false, &mut heard);
            assert_eq!(heard.len(), 320, "{codec:?}");
        }
    }
}
