//! Sound as a file.
use hound::{Error, SampleFormat, WavSpec, WavWriter};
use std::io::Cursor;

/// A WAV of 16 bits, mono, at that rate.
pub fn wav(samples: &[i16], rate: u32) -> Result<Vec<u8>, Error> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut file = Cursor::new(Vec::with_capacity(samples.len() * 2 + 44));
    let mut writer = WavWriter::new(&mut file, spec)?;
    for sample in samples {
        writer.write_sample(*sample)?;
    }
    writer.finalize()?;
    Ok(file.into_inner())
}
