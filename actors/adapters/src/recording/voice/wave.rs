//! From the WAV that a speech program or a speech server makes to one channel of samples, at the rate that is wanted: that of a
//! telephone, or the voice's own.
use hound::{SampleFormat, WavReader, WavSpec};
use std::{
    f64::consts::PI,
    io::{Cursor, Read},
};

/// Rates that speech programs have.
const RATES: std::ops::RangeInclusive<u32> = 4_000..=192_000;

/// Takes PCM of 8 to 32 bits or floats, of any channels. A WAV that was written to a pipe, or sent before its end was known,
/// names no true length: it is read to its end. Fails on what is no such WAV, and on one without sound.
pub fn parse(wav: &[u8], rate: u32) -> Result<Vec<i16>, String> {
    let (head, sound) = truly(wav);
    let reader = WavReader::new(Cursor::new(head).chain(sound));
    let reader = reader.map_err(|error| format!("its output is not WAV: {error}"))?;
    let spec = reader.spec();
    if !RATES.contains(&spec.sample_rate) || spec.channels == 0 {
        return Err(format!(
            "its WAV has {} Hz and {} channels",
            spec.sample_rate, spec.channels
        ));
    }
    let channels = usize::from(spec.channels);
    let samples = samples(reader, spec);
    let mono: Vec<f32> = samples
        .chunks_exact(channels)
        .map(|frame| frame.iter().sum::<f32>() / channels as f32)
        .collect();
    if mono.is_empty() {
        return Err("its WAV is empty".to_owned());
    }
    if spec.sample_rate == rate {
        // `as` holds what is too loud at the limits.
        return Ok(mono.into_iter().map(|sample| sample.round() as i16).collect());
    }
    Ok(resampled(&mono, spec.sample_rate, rate))
}

/// The head with the length of the sound that is there, if it names nothing or more; and what follows it.
fn truly(wav: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut at, mut frame) = (12_usize, 1_usize);
    while let Some([a, b, c, d, length @ ..]) = wav.get(at..at + 8) {
        let length = length.try_into().map_or(0, u32::from_le_bytes) as usize;
        let (content, rest) = wav.split_at(at + 8);
        match [*a, *b, *c, *d] {
            [b'd', b'a', b't', b'a'] if length == 0 || length > rest.len() => {
                let whole = rest.len() - rest.len() % frame;
                let mut head = content.to_vec();
                head.truncate(at + 4);
                head.extend(u32::try_from(whole).unwrap_or(u32::MAX).to_le_bytes());
                return (head, rest);
            }
            [b'd', b'a', b't', b'a'] => break,
            [b'f', b'm', b't', b' '] => {
                let align = rest.get(12..14).and_then(|align| align.try_into().ok());
                frame = align.map_or(1, u16::from_le_bytes).max(1).into();
            }
            _ => {}
        }
        // Parts of odd length are followed by a byte that is none.
        at = (at + 8).saturating_add(length + (length & 1));
    }
    (Vec::new(), wav)
}

/// In the scale of 16 bits.
fn samples(reader: WavReader<impl Read>, spec: WavSpec) -> Vec<f32> {
    match spec.sample_format {
        SampleFormat::Float => {
            let samples = reader.into_samples::<f32>().map_while(Result::ok);
            samples.map(|sample| sample * 32_767.0).collect()
        }
        SampleFormat::Int => {
            let scale = 2_f32.powi(16 - i32::from(spec.bits_per_sample));
            let samples = reader.into_samples::<i32>().map_while(Result::ok);
            samples.map(|sample| sample as f32 * scale).collect()
        }
    }
}

/// Zero crossings of the filter to either side of its middle.
const WIDTH: f64 = 32.0;
/// Points of the filter's table per zero crossing; between them it is a straight line, 90 dB and more below the sound.
const FINE: usize = 512;

/// Low-pass and resampling in one: each new sample is the old ones around it, weighed by a windowed sinc. At 8 kHz flat to about
/// 3.4 kHz, and at least 70 dB down from 4 kHz on, where tones would come back as other tones.
fn resampled(sound: &[f32], rate: u32, wanted: u32) -> Vec<i16> {
    let step = f64::from(rate) / f64::from(wanted);
    // Cut-off in cycles per old sample: a little below half of the lower rate, by half the filter's slope.
    let cutoff = 0.457 * step.recip().min(1.0);
    let table = filter();
    let reach = WIDTH / (2.0 * cutoff);
    let length = (sound.len() as u64 * u64::from(wanted)).div_ceil(u64::from(rate));
    let sample = |index: u64| {
        let middle = index as f64 * step;
        let first = (middle - reach).ceil().max(0.0) as usize;
        let last = ((middle + reach).floor() as usize).min(sound.len() - 1);
        let sum: f64 = (first..=last)
            .map(|at| f64::from(sound[at]) * weight(&table, (at as f64 - middle).abs() * 2.0 * cutoff))
            .sum();
        // `as` holds what is too loud at the limits.
        (2.0 * cutoff * sum).round() as i16
    };
    (0..length).map(sample).collect()
}

/// Half of the filter, from its middle outwards: sinc under a Blackman window.
fn filter() -> Vec<f64> {
    let points = WIDTH as usize * FINE;
    (0..=points + 1)
        .map(|point| {
            let at = point as f64 / FINE as f64;
            let sinc = if point == 0 { 1.0 } else { (PI * at).sin() / (PI * at) };
            let phase = PI * (at / WIDTH).min(1.0);
            sinc * (0.42 + 0.5 * phase.cos() + 0.08 * (2.0 * phase).cos())
        })
        .collect()
}

/// `distance` in zero crossings.
fn weight(table: &[f64], distance: f64) -> f64 {
    let place = distance * FINE as f64;
    let point = place as usize;
    match table.get(point..point + 2) {
        Some(&[before, after]) => before + (after - before) * (place - point as f64),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hound::WavWriter;
    use std::f64::consts::TAU;

    fn sine(hz: f64, rate: u32, seconds: u32) -> Vec<f32> {
        let at = |index: u32| (10_000.0 * (TAU * hz * f64::from(index) / f64::from(rate)).sin()) as f32;
        (0..rate * seconds).map(at).collect()
    }

    /// Of the middle, where the filter has sound on both sides.
    fn rms(sound: &[i16]) -> f64 {
        let middle = &sound[200..sound.len() - 200];
        let sum: f64 = middle.iter().map(|&sample| f64::from(sample).powi(2)).sum();
        (sum / middle.len() as f64).sqrt()
    }

    #[test]
    fn speech_passes_and_what_would_fold_back_does_not() {
        let full = 10_000.0 / 2_f64.sqrt();
        for rate in [8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000] {
            for hz in [200.0, 1_000.0, 3_000.0] {
                let level = rms(&resampled(&sine(hz, rate, 1), rate, 8_000)) / full;
                assert!((0.98..1.02).contains(&level), "{hz} Hz from {rate}: {level}");
            }
            for hz in [4_100.0, 5_000.0, 7_000.0] {
                if hz < f64::from(rate) / 2.0 {
                    let level = rms(&resampled(&sine(hz, rate, 1), rate, 8_000)) / full;
                    assert!(level < 0.001, "{hz} Hz from {rate}: {level}");
                }
            }
        }
    }

    #[test]
    fn every_usual_form_of_wav_is_read() {
        for (bits, format, channels, rate) in [
            (16, SampleFormat::Int, 1, 22_050),
            (16, SampleFormat::Int, 2, 44_100),
            (24, SampleFormat::Int, 1, 48_000),
            (32, SampleFormat::Float, 1, 24_000),
            (16, SampleFormat::Int, 1, 8_000),
        ] {
            let mut wav = Cursor::new(Vec::new());
            let spec = WavSpec {
                channels,
                sample_rate: rate,
                bits_per_sample: bits,
                sample_format: format,
            };
            let mut writer = WavWriter::new(&mut wav, spec).unwrap();
            for sample in sine(440.0, rate, 1) {
                for _ in 0..channels {
                    match format {
                        SampleFormat::Float => writer.write_sample(sample / 32_767.0).unwrap(),
                        SampleFormat::Int => writer.write_sample((sample as i32) << (bits - 16)).unwrap(),
                    }
                }
            }
            writer.finalize().unwrap();
            let sound = parse(wav.get_ref(), 8_000).unwrap();
            assert_eq!(sound.len(), 8_000, "{spec:?}");
            assert!((rms(&sound) - 7_071.0).abs() < 100.0, "{spec:?}: {}", rms(&sound));
        }
    }

    #[test]
    fn a_wav_that_names_a_false_length_is_read_to_its_end() {
        let mut wav =
            b"RIFF\x24\xf0\xff\x7fWAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\0\xf0\xff\x7f"
                .to_vec();
        wav.extend([0, 4].repeat(1_600));
        assert_eq!(parse(&wav, 8_000).unwrap().len(), 800);
        assert!(parse(&wav[..44], 8_000).is_err(), "no sound in it");
        // What servers write that do not know it yet, and one that was cut off within a sample.
        for length in [0, u32::MAX, 0x7fff_ffff, 4_000] {
            wav[40..44].copy_from_slice(&length.to_le_bytes());
            for end in [wav.len(), wav.len() - 1] {
                let sound = parse(&wav[..end], 16_000).unwrap();
                assert_eq!((sound.len(), sound[0]), ((end - 44) / 2, 1_024), "{length}");
            }
        }
        assert!(parse(b"sorry", 8_000).is_err());
        assert!(parse(b"", 8_000).is_err());
        assert!(parse(b"RIFF\0\0\0\0WAVEdata\xff\xff\xff\xff", 8_000).is_err());
    }

    #[test]
    fn sound_at_the_wanted_rate_is_not_touched() {
        let mut wav =
            b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x22\x56\0\0\x44\xac\0\0\x02\0\x10\0data\x06\0\0\0".to_vec();
        wav.extend([1_i16, -2, i16::MIN].iter().flat_map(|sample| sample.to_le_bytes()));
        wav.extend(b"LIST\x02\0\0\0ab");
        assert_eq!(parse(&wav, 22_050).unwrap(), [1, -2, i16::MIN]);
    }
}
