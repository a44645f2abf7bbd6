//! How sound travels to a provider and back: G.711 mu-law at 8 kHz as on the phone, or PCM of 16 bits at 24 kHz. Inside it is
//! PCM: it is converted here, and nowhere else.
use crate::sound::{Pcm, TELEPHONE, mu_law};

/// How sound travels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// G.711 mu-law, 8 kHz, as on the phone.
    MuLaw,
    /// 16 bits, little endian, 24 kHz.
    Pcm,
}

/// Of [`Format::Pcm`].
const WIDE: u32 = 24_000;

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::MuLaw => "audio/pcmu",
            Format::Pcm => "audio/pcm",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Format::MuLaw => Format::Pcm,
            Format::Pcm => Format::MuLaw,
        }
    }

    /// Samples per second.
    pub fn rate(self) -> u32 {
        match self {
            Format::MuLaw => TELEPHONE,
            Format::Pcm => WIDE,
        }
    }

    pub fn bytes_per_ms(self) -> usize {
        match self {
            Format::MuLaw => TELEPHONE as usize / 1_000,
            Format::Pcm => 2 * WIDE as usize / 1_000,
        }
    }

    /// One byte of silence.
    pub fn silence(self) -> u8 {
        match self {
            Format::MuLaw => mu_law::SILENCE,
            Format::Pcm => 0,
        }
    }

    pub fn encode(self, sound: &Pcm) -> Vec<u8> {
        self.bytes(&sound.at(self.rate()).samples)
    }

    /// Samples of its own rate.
    pub fn bytes(self, samples: &[i16]) -> Vec<u8> {
        match self {
            Format::MuLaw => samples.iter().copied().map(mu_law::encode).collect(),
            Format::Pcm => samples.iter().flat_map(|sample| sample.to_le_bytes()).collect(),
        }
    }

    /// A sample that was cut in two is left out.
    pub fn decode(self, bytes: &[u8]) -> Pcm {
        match self {
            Format::MuLaw => Pcm::of_mu_law(bytes),
            Format::Pcm => {
                let (pairs, _) = bytes.as_chunks::<2>();
                let samples: Vec<i16> = pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
                Pcm::new(WIDE, samples)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_travels_there_and_back() {
        let narrow = Pcm::of_mu_law(&[0x80, 0x00, 0xff, 0x12]);
        assert_eq!(Format::MuLaw.encode(&narrow), [0x80, 0x00, 0xff, 0x12]);
        assert_eq!(Format::MuLaw.decode(&[0x80, 0x00, 0xff, 0x12]), narrow);
        let wide = Pcm::new(24_000, vec![1, -2, i16::MAX]);
        assert_eq!(Format::Pcm.encode(&wide), [1, 0, 0xfe, 0xff, 0xff, 0x7f]);
        assert_eq!(Format::Pcm.decode(&[1, 0, 0xfe, 0xff, 0xff, 0x7f, 9]), wide);
    }

    #[test]
    fn sounds_of_any_length_are_taken() {
        for length in 0..20 {
            let heard = Pcm::new(16_000, vec![0; length]);
            assert_eq!(Format::Pcm.encode(&heard), vec![0; 2 * (length * 3).div_ceil(2)]);
            assert_eq!(Format::MuLaw.encode(&heard), vec![mu_law::SILENCE; length.div_ceil(2)]);
            assert_eq!(Format::Pcm.decode(&vec![0; length]).samples.len(), length / 2);
        }
    }
}
