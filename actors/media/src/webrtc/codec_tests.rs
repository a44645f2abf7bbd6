//! How wide a voice is sent, what is put in for what was lost, and what an encoder does that stumbles.
use super::{super::peer::purity, *};
use audio_codec::CodecError;
use std::f64::consts::TAU;

/// A second of it, in frames.
fn tone(hertz: f64, rate: u32) -> Vec<SoundFrame> {
    let angle = |n: u32| TAU * hertz * f64::from(n) / f64::from(rate);
    let samples: Vec<i16> = (0..rate).map(|n| (8_000.0 * angle(n).sin()) as i16).collect();
    let frames = samples.chunks((rate / 50) as usize);
    frames
        .map(|samples| SoundFrame {
            rate,
            samples: samples.to_vec(),
        })
        .collect()
}

fn sent(codec: Codec, frames: &[SoundFrame]) -> Vec<Vec<u8>> {
    let mut encoder = PayloadEncoder::new(codec).unwrap();
    frames.iter().map(|frame| encoder.say(frame).unwrap()).collect()
}

/// Each at its time; what is not there was lost.
fn heard(codec: Codec, payloads: &[Option<Vec<u8>>]) -> Vec<i16> {
    let mut decoder = PayloadDecoder::new(codec).unwrap();
    let numbered = (0..).zip(payloads);
    let came = numbered.filter_map(|(number, payload)| Some((number, payload.as_ref()?)));
    came.flat_map(|(number, payload)| decoder.hear(payload, codec.time(number)))
        .collect()
}

/// The samples without the first and the last tenth of a second.
fn middle(samples: &[i16]) -> &[i16] {
    &samples[1_600..samples.len() - 1_600]
}

fn rms(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (sum / samples.len() as f64).sqrt()
}

/// Nothing of a wide voice ends at 4 kHz, whatever its rate; a telephone's codec carries a telephone's sound.
#[test]
fn a_voice_is_sent_as_wide_as_it_is() {
    for rate in [16_000, 22_050, 24_000] {
        for hertz in [500.0, 3_000.0, 6_000.0] {
            let payloads: Vec<_> = sent(Codec::Opus, &tone(hertz, rate)).into_iter().map(Some).collect();
            let samples = heard(Codec::Opus, &payloads);
            assert_eq!(samples.len(), 16_000, "{rate}");
            // The modes for narrow speech have lower numbers (RFC 6716, section 3.1).
            assert!(payloads.iter().flatten().all(|payload| payload[0] >> 3 >= 16), "{rate}");
            let (purity, level) = (purity(middle(&samples), hertz), rms(middle(&samples)));
            assert!(
                purity > 0.9 && level > 2_800.0,
                "{hertz} Hz of {rate}: {purity}, {level}"
            );
        }
        for codec in [Codec::Pcmu, Codec::Pcma] {
            let payloads: Vec<_> = sent(codec, &tone(500.0, rate)).into_iter().map(Some).collect();
            assert!(
                payloads.iter().flatten().all(|payload| payload.len() == 160),
                "{codec:?} {rate}"
            );
            let samples = heard(codec, &payloads);
            assert_eq!(samples.len(), 16_000);
            assert!(purity(middle(&samples), 500.0) > 0.9, "{codec:?} {rate}");
            // It would come back as 2 kHz.
            let payloads: Vec<_> = sent(codec, &tone(6_000.0, rate)).into_iter().map(Some).collect();
            let level = rms(middle(&heard(codec, &payloads)));
            assert!(level < 60.0, "{codec:?} {rate}: {level}");
        }
    }
}

#[test]
fn voices_of_different_rates_follow_each_other() {
    let mut encoder = PayloadEncoder::new(Codec::Opus).unwrap();
    for rate in [8_000, 22_050, 16_000, 24_000, 22_050] {
        assert!(
            tone(400.0, rate).iter().all(|frame| encoder.say(frame).is_some()),
            "{rate}"
        );
    }
    let nothing = SoundFrame {
        rate: 0,
        samples: vec![],
    };
    assert_eq!(encoder.say(&nothing), None);
    assert!(encoder.say(&SoundFrame::silence(22_050)).is_some(), "it goes on");
}

/// A packet that is missing is no hole in the voice; many that are missing are silence, and time is kept.
#[test]
fn what_is_lost_is_guessed_for_a_moment() {
    for codec in Codec::ALL {
        let mut payloads: Vec<_> = sent(codec, &tone(400.0, 16_000)).into_iter().map(Some).collect();
        let intact = heard(codec, &payloads);
        payloads[20] = None;
        payloads[30..40].fill(None);
        let samples = heard(codec, &payloads);
        assert_eq!(samples.len(), intact.len(), "{codec:?}");
        let at = |frame: usize| frame * 320;
        let one = rms(&samples[at(20)..at(21)]);
        assert!(one > rms(&intact) / 3.0, "{codec:?}: a hole of 20 ms, {one}");
        let many = rms(&samples[at(34)..at(40)]);
        assert!(many < 1.0, "{codec:?}: it hums on, {many}");
        let after = rms(&samples[at(42)..at(48)]);
        assert!(after > rms(&intact) / 2.0, "{codec:?}: {after}");
    }
}

#[test]
fn a_gap_is_bounded_and_what_is_broken_is_nothing() {
    for codec in Codec::ALL {
        let payloads = sent(codec, &tone(400.0, 16_000));
        let mut decoder = PayloadDecoder::new(codec).unwrap();
        assert_eq!(decoder.hear(&payloads[0], codec.time(0)).len(), 320);
        assert!(decoder.hear(&[], codec.time(5)).is_empty(), "{codec:?}");
        assert_eq!(
            decoder.hear(&payloads[1], codec.time(1_000)).len(),
            16_000 + 320,
            "{codec:?}"
        );
        // Backwards, as of a packet that was on another way.
        assert_eq!(decoder.hear(&payloads[2], codec.time(3)).len(), 320, "{codec:?}");
    }
}

/// Its decoder is no longer asked, and nothing of that is heard: not in the silence, not in the voice that goes on.
#[test]
fn a_muted_microphone_sounds_as_if_each_packet_were_decoded() {
    let second = |hertz| tone(hertz, 24_000);
    let muted: Vec<_> = (0..100)
        .map(|_| SoundFrame {
            rate: 24_000,
            samples: vec![0; 480],
        })
        .collect();
    let payloads = sent(Codec::Opus, &[second(500.0), muted, second(700.0)].concat());
    let mut asked = create_opus_decoder(HEARING, 1);
    let decoded: Vec<i16> = payloads.iter().flat_map(|payload| asked.decode(payload)).collect();
    let payloads: Vec<_> = payloads.into_iter().map(Some).collect();
    assert!(payloads[90] == payloads[91], "the encoder has settled");
    assert_eq!(heard(Codec::Opus, &payloads), decoded);
}

/// It has never worked.
struct Stumbles;

impl Encoder for Stumbles {
    fn encode_into(&mut self, _: &[i16], _: &mut [u8]) -> Result<usize, CodecError> {
        panic!("it stumbles")
    }
    fn max_encode_bytes(&self, _: usize) -> usize {
        1_275
    }
    fn sample_rate(&self) -> u32 {
        24_000
    }
    fn channels(&self) -> u16 {
        1
    }
}

#[test]
fn an_encoder_that_stumbles_costs_a_frame_and_no_more() {
    let frame = SoundFrame {
        rate: 8_000,
        samples: vec![1_000; 160],
    };
    let mut encoder = PayloadEncoder::of(Speaks::Opus(Box::new(Stumbles))).unwrap();
    assert_eq!(encoder.say(&frame), None);
    assert!(encoder.say(&frame).is_some(), "another one goes on");
}
