//! G.711 mu-law, as on the telephone.

/// One byte of mu-law that is silence.
pub const SILENCE: u8 = 0xff;

/// Source: ITU-T G.711, table 2.
const BIAS: i32 = 0x84;
const CLIP: i32 = 32_635;

/// One sample as mu-law.
pub fn encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = i32::from(sample).abs().min(CLIP) + BIAS;
    // The bias makes bit 7 the lowest that can be the highest one set.
    let exponent = 24 - magnitude.leading_zeros();
    let mantissa = (magnitude >> (exponent + 3)) & 0x0f;
    !(sign | (exponent << 4) as u8 | mantissa as u8)
}

/// One byte of mu-law as a sample.
pub fn decode(byte: u8) -> i16 {
    let byte = !byte;
    let exponent = (byte >> 4) & 7;
    let magnitude = (((i32::from(byte & 0x0f)) << 3) + BIAS) << exponent;
    let magnitude = (magnitude - BIAS) as i16;
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f32::consts::PI;

    fn tone(hertz: f32, rate: f32, seconds: f32, loudness: f32) -> Vec<i16> {
        (0..(rate * seconds) as usize)
            .map(|n| (loudness * (2.0 * PI * hertz * n as f32 / rate).sin()).round() as i16)
            .collect()
    }

    /// Signal over what was added to it, in dB.
    fn snr(wanted: &[i16], got: &[i16]) -> f32 {
        assert_eq!(wanted.len(), got.len());
        let pairs = || wanted.iter().zip(got);
        let signal: f32 = pairs().map(|(wanted, _)| f32::from(*wanted).powi(2)).sum();
        let noise: f32 = pairs()
            .map(|(wanted, got)| (f32::from(*wanted) - f32::from(*got)).powi(2))
            .sum();
        10.0 * (signal / noise).log10()
    }

    #[test]
    fn mu_law_is_that_of_the_standard() {
        // Source: ITU-T G.711, table 2a and 2b: the decision values' ends, by code word.
        for (byte, sample) in [
            (0x80, 32_124),
            (0x00, -32_124),
            (0xff, 0),
            (0x7f, 0),
            (0xfe, 8),
            (0x7e, -8),
            (0x8f, 16_764),
        ] {
            assert_eq!(decode(byte), sample, "{byte:#x}");
        }
        for byte in 0..=255 {
            // There are two zeros; the negative one is never written.
            let expected = if byte == 0x7f { 0xff } else { byte };
            assert_eq!(encode(decode(byte)), expected, "{byte:#x}");
        }
        assert_eq!([encode(i16::MAX), encode(i16::MIN), encode(0)], [0x80, 0x00, SILENCE]);
    }

    #[test]
    fn mu_law_keeps_loud_and_soft_tones() {
        for loudness in [300.0, 3_000.0, 30_000.0] {
            let wanted = tone(440.0, 8_000.0, 1.0, loudness);
            let got: Vec<i16> = wanted.iter().map(|sample| decode(encode(*sample))).collect();
            assert!(snr(&wanted, &got) > 30.0, "{loudness}: {} dB", snr(&wanted, &got));
        }
    }
}
