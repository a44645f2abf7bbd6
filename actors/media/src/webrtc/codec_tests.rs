//! What an encoder does that stumbles.
use super::*;
use audio_codec::CodecError;

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
        48_000
    }
    fn channels(&self) -> u16 {
        1
    }
}

#[test]
fn an_encoder_that_stumbles_costs_a_frame_and_no_more() {
    let frame = [0x80; FRAME];
    let mut encoder = PayloadEncoder(Speaks::Opus {
        wide: BoxedResampler::new(8_000, 48_000).unwrap(),
        encoder: Box::new(Stumbles),
    });
    assert_eq!(encoder.say(&frame), None);
    assert!(encoder.say(&frame).is_some(), "another one goes on");
}
