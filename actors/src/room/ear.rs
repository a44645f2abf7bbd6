//! Hears when somebody speaks: sound of the microphone comes in, utterances come out.
use super::wire::Heard;

/// The participant's.
#[derive(Default)]
pub struct Ear {}

impl Ear {
    /// Samples of 16 bits, 16 kHz, mono, of any number.
    pub fn hear(&mut self, _samples: &[i16]) -> Vec<Heard> {
        Vec::new()
    }
    /// The microphone is gone: what was being said ends here.
    pub fn end(&mut self) -> Option<Heard> {
        None
    }
}
