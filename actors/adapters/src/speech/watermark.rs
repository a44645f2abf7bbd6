//! Where a watermark would be put into what is spoken: a mark in the sound itself, which lasts when the file that says so is gone.
//! Source: Regulation (EU) 2024/1689, art. 50(2), and its code of practice: signed metadata and a watermark.
//!
//! There is none here: none that is free to use outlives the 8 kHz and the G.711 of a phone call, as far as we know, and one that does
//! not is worse than none. A provider may put its own into what it sends; the operator says so (`speech_watermark`), for nobody can
//! hear it. Whoever has a filter returns it from [`filter`]: all speech of all voices passes it, before it is resampled for its line.
use super::SpeechStream;

/// Changes sound so that a program can tell later that a machine has made it. One is made for each piece of text.
pub trait Watermark: Send {
    /// The next samples, in place: 16 bits, mono.
    fn mark(&mut self, samples: &mut [i16]);
}

/// For speech of so many samples a second. None: it is passed on as it is.
fn filter(_rate: u32) -> Option<Box<dyn Watermark>> {
    None
}

/// Sound on its way, with the mark in it.
pub(super) fn put_into(speech: SpeechStream) -> SpeechStream {
    match filter(speech.rate) {
        Some(watermark) => speech.marked(watermark),
        None => speech,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    /// Adds one to each sample, and tells by that how many it has seen.
    struct Counting(i16);
    impl Watermark for Counting {
        fn mark(&mut self, samples: &mut [i16]) {
            for sample in samples {
                self.0 += 1;
                *sample += self.0;
            }
        }
    }

    async fn all(mut speech: SpeechStream) -> Vec<i16> {
        let mut samples = Vec::new();
        while let Some(piece) = speech.next().await {
            samples.extend(piece.unwrap());
        }
        samples
    }

    #[tokio::test]
    async fn every_sample_passes_the_filter_once_and_in_order() {
        let speech = || SpeechStream::new(8_000, stream::iter([Ok(vec![10, 20]), Ok(vec![30])]));
        assert_eq!(all(put_into(speech())).await, [10, 20, 30], "there is none");
        assert_eq!(all(speech().marked(Box::new(Counting(0)))).await, [11, 22, 33]);
    }
}
