//! Bytes to samples: 16 bits, little endian, mono, whatever the borders of the pieces in which they come.
use super::{LONGEST_SECONDS, SpeechError};

/// Bytes in which the head of a WAV must end.
const LONGEST_HEAD: usize = 4_096;

/// What has come of one utterance.
#[derive(Debug)]
pub struct Pcm {
    rate: u32,
    /// The first bytes, until it is known what they are.
    head: Option<Vec<u8>>,
    /// Half a sample.
    odd: Option<u8>,
    /// Samples that may still come.
    left: usize,
    heard: bool,
}

impl Pcm {
    /// `rate` is what was asked for.
    pub fn at(rate: u32) -> Self {
        Pcm {
            rate,
            head: Some(Vec::new()),
            odd: None,
            left: rate as usize * LONGEST_SECONDS,
            heard: false,
        }
    }

    /// Has there been any sound?
    pub fn has_begun(&self) -> bool {
        self.heard
    }

    /// The samples that are whole by now; none if that is less than one.
    pub fn take(&mut self, piece: &[u8]) -> Result<Vec<i16>, SpeechError> {
        let Some(mut head) = self.head.take() else {
            return self.samples(piece);
        };
        head.extend_from_slice(piece);
        match self.content(&head)? {
            Some(start) => self.samples(&head[start..]),
            None => {
                self.head = Some(head);
                Ok(Vec::new())
            }
        }
    }

    /// There is no more. Nothing at all is no sound.
    pub fn end(&self) -> Result<(), SpeechError> {
        if self.heard { Ok(()) } else { Err(SpeechError::Garbage) }
    }

    /// Where the samples begin, if that is known yet: some servers send a WAV's head before what was to be without.
    fn content(&self, head: &[u8]) -> Result<Option<usize>, SpeechError> {
        const OTHERS: [&[u8]; 3] = [b"ID3", b"OggS", b"fLaC"];
        if OTHERS.iter().any(|other| head.starts_with(other)) {
            return Err(SpeechError::Garbage);
        }
        // Sound that is none of these is not held back.
        if b"RIFF".starts_with(head) || OTHERS.iter().any(|other| other.starts_with(head)) {
            return Ok(None);
        }
        if !head.starts_with(b"RIFF") {
            return Ok(Some(0));
        }
        let mut at = 12;
        while let Some([a, b, c, d, length @ ..]) = head.get(at..at + 8) {
            let start = at + 8;
            match [*a, *b, *c, *d] {
                // The length of what is sent while it is made is not known: nobody looks at it.
                [b'd', b'a', b't', b'a'] => return Ok(Some(start)),
                [b'f', b'm', b't', b' '] => match head.get(start..start + 16) {
                    Some(format) if is_plain(format, self.rate) => {}
                    Some(_) => return Err(SpeechError::Garbage),
                    None => break,
                },
                _ => {}
            }
            let length = length.try_into().map_or(0, u32::from_le_bytes);
            // Parts of odd length are followed by a byte that is none.
            at = start + length as usize + (length as usize & 1);
        }
        if head.len() > LONGEST_HEAD {
            return Err(SpeechError::Garbage);
        }
        Ok(None)
    }

    fn samples(&mut self, bytes: &[u8]) -> Result<Vec<i16>, SpeechError> {
        let mut samples = Vec::with_capacity(bytes.len() / 2 + 1);
        let mut rest = bytes;
        if let (Some(low), [high, others @ ..]) = (self.odd, rest) {
            samples.push(i16::from_le_bytes([low, *high]));
            self.odd = None;
            rest = others;
        }
        let (whole, half) = rest.as_chunks::<2>();
        samples.extend(whole.iter().map(|sample| i16::from_le_bytes(*sample)));
        if let [low] = half {
            self.odd = Some(*low);
        }
        self.left = self.left.checked_sub(samples.len()).ok_or(SpeechError::TooLong)?;
        self.heard |= !samples.is_empty();
        Ok(samples)
    }
}

/// PCM of 16 bits, mono, at that rate.
fn is_plain(format: &[u8], rate: u32) -> bool {
    let [kind @ .., _, _, _, _, _, _, 16, 0] = format else {
        return false;
    };
    // 0xFFFE: what it is follows; with 16 bits and one channel it is this.
    let is_pcm = kind.starts_with(&[1, 0, 1, 0]) || kind.starts_with(&[0xfe, 0xff, 1, 0]);
    is_pcm && kind.get(4..8) == Some(&rate.to_le_bytes()[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pieces, one after the other.
    fn taken(pieces: &[&[u8]]) -> Result<Vec<i16>, SpeechError> {
        let mut pcm = Pcm::at(24_000);
        let mut sound = Vec::new();
        for piece in pieces {
            sound.extend(pcm.take(piece)?);
        }
        pcm.end().map(|()| sound)
    }

    fn head(rate: u32, channels: u16) -> Vec<u8> {
        let mut head = b"RIFF\xff\xff\xff\xffWAVELIST\x02\0\0\0abfmt \x10\0\0\0\x01\0".to_vec();
        head.extend(channels.to_le_bytes());
        head.extend(rate.to_le_bytes());
        head.extend((rate * 2).to_le_bytes());
        head.extend(b"\x02\0\x10\0data\xff\xff\xff\xff");
        head
    }

    #[test]
    fn samples_are_whole_wherever_the_borders_are() {
        let bytes: Vec<u8> = [1_i16, -2, 300, i16::MIN]
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect();
        for size in 1..=bytes.len() {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(taken(&pieces), Ok(vec![1, -2, 300, i16::MIN]), "{size}");
        }
        assert_eq!(
            taken(&[&bytes, &[7]]),
            Ok(vec![1, -2, 300, i16::MIN]),
            "half a sample is none"
        );
        assert_eq!(taken(&[]), Err(SpeechError::Garbage));
    }

    #[test]
    fn a_wavs_head_is_not_played() {
        let mut wav = head(24_000, 1);
        wav.extend([1, 0, 2, 0]);
        for size in [1, 3, 10, 47, 100] {
            let pieces: Vec<&[u8]> = wav.chunks(size).collect();
            assert_eq!(taken(&pieces), Ok(vec![1, 2]), "{size}");
        }
        for wrong in [
            head(22_050, 1),
            head(24_000, 2),
            b"ID3\x04\0\0".to_vec(),
            b"OggS\0".to_vec(),
        ] {
            assert_eq!(taken(&[&wrong, &[0; 8]]), Err(SpeechError::Garbage));
        }
        let endless = [b"RIFF\0\0\0\0WAVELIST\xff\xff\xff\x7f".to_vec(), vec![0; 5_000]].concat();
        assert_eq!(taken(&[&endless]), Err(SpeechError::Garbage));
    }

    #[test]
    fn sound_without_end_is_cut() {
        let mut pcm = Pcm::at(8_000);
        let minute = vec![0; 60 * 16_000];
        for _ in 0..10 {
            assert_eq!(pcm.take(&minute).map(|sound| sound.len()), Ok(480_000));
        }
        assert_eq!(pcm.take(&[0, 0]), Err(SpeechError::TooLong));
    }
}
