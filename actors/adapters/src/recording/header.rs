//! The beginning of a WAV file.

pub const HEADER: usize = 44;

/// The 44 bytes before `sound` bytes of samples of 16 bits. Source: Microsoft, "Multimedia Programming Interface and Data
/// Specifications 1.0", RIFF WAVE.
pub fn header(sound: u32, channels: u16, rate: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let frame = channels * 2;
    put(b"RIFF");
    put(&sound.saturating_add(HEADER as u32 - 8).to_le_bytes());
    put(b"WAVEfmt ");
    put(&16_u32.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&channels.to_le_bytes());
    put(&rate.to_le_bytes());
    put(&(rate * u32::from(frame)).to_le_bytes());
    put(&frame.to_le_bytes());
    put(&16_u16.to_le_bytes());
    put(b"data");
    put(&sound.to_le_bytes());
    header
}
