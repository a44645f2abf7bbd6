//! Where a watermark would be put into what is spoken: a mark in the sound itself, which lasts when the file that says so is gone.
//! Source: Regulation (EU) 2024/1689, art. 50(2), and its code of practice: signed metadata and a watermark.
//!
//! There is none here: none that is free to use outlives the 8 kHz and the G.711 of a phone call, as far as we know, and one that does
//! not is worse than none. A provider may put its own into what it sends; the operator says so (`speech_watermark`), for nobody can
//! hear it. Whoever has a filter returns it from [`filter`]: all that is said in talks passes it, by voices and by brains that speak by
//! themselves, before it is resampled for its line. It is heard as it comes, so the filter waits for no more than it is given.
use super::SpeechStream;
use futures_util::{StreamExt, stream::BoxStream};

/// Changes sound so that a program can tell later that a machine has made it. One is made for each piece of text, and for each item of a
/// brain that speaks by itself.
pub trait Watermark: Send {
    /// The next samples, in place: 16 bits, mono.
    fn mark(&mut self, samples: &mut [i16]);
}

/// For speech of so many samples a second. None: it is passed on as it is.
#[cfg(not(test))]
fn filter(_rate: u32) -> Option<Box<dyn Watermark>> {
    None
}
#[cfg(test)]
use for_tests::filter;

/// Sound on its way, with the mark in it.
pub(super) fn put_into(speech: SpeechStream) -> SpeechStream {
    match filter(speech.rate) {
        Some(watermark) => speech.marked(watermark),
        None => speech,
    }
}

/// The same of a brain that speaks by itself. `rate`: samples per second.
pub(crate) fn put_into_sound(rate: u32, sound: BoxStream<'static, Vec<i16>>) -> BoxStream<'static, Vec<i16>> {
    let Some(mut watermark) = filter(rate) else {
        return sound;
    };
    let marked = sound.map(move |mut samples| {
        watermark.mark(&mut samples);
        samples
    });
    marked.boxed()
}

/// A filter that can be heard, for a test's own thread.
#[cfg(test)]
pub(crate) mod for_tests {
    use super::Watermark;
    use std::cell::Cell;

    thread_local! {
        static IS_THERE: Cell<bool> = const { Cell::new(false) };
    }

    /// Adds one to the first sample, two to the second, and tells by that how many it has seen.
    struct Counting(i16);
    impl Watermark for Counting {
        fn mark(&mut self, samples: &mut [i16]) {
            for sample in samples {
                self.0 = self.0.wrapping_add(1);
                *sample = sample.wrapping_add(self.0);
            }
        }
    }

    pub(super) fn filter(_rate: u32) -> Option<Box<dyn Watermark>> {
        IS_THERE.get().then(|| Box::new(Counting(0)) as Box<dyn Watermark>)
    }

    /// The filter is there as long as this lives.
    pub(crate) struct Filtered(());
    pub(crate) fn put_in() -> Filtered {
        IS_THERE.set(true);
        Filtered(())
    }
    impl Drop for Filtered {
        fn drop(&mut self) {
            IS_THERE.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

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
        let _filter = for_tests::put_in();
        assert_eq!(all(put_into(speech())).await, [11, 22, 33]);
    }
}
