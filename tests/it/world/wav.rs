//! The sound in a WAV file of ours: behind it stands what the file says of itself.

/// The samples' bytes.
pub fn sound(wav: &[u8]) -> &[u8] {
    assert_eq!(&wav[36..40], b"data");
    let length = u32::from_le_bytes(wav[40..44].try_into().unwrap()) as usize;
    &wav[44..44 + length]
}
