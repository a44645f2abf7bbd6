//! Which words of a text have been said by when, where whoever makes the sound tells it.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No sound of one text is longer: ten minutes.
const LONGEST_MS: u64 = 600_000;

/// Of one text and its sound. Cloning is cheap: clones are the same. Providers are not believed: letters and times only go
/// forward, and what points elsewhere is passed over.
#[derive(Clone, Debug, Default)]
pub struct Timings(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// In their order; at most one for each letter.
    ends: Vec<WordEnd>,
    /// Whose timings these are instead, as many as there are voices; the sound of each begins after so many milliseconds of this one,
    /// where that of the one before it ends.
    followed: Vec<(Timings, u64)>,
}

/// The first so many letters of the text have been said when so many milliseconds of its sound have been heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordEnd {
    pub letters: usize,
    pub ms: u64,
}

/// What has been said by a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidBy {
    /// Of the last word that was said to its end; zero if none was.
    pub end: WordEnd,
    /// When the next word ends is known too.
    pub is_next_known: bool,
}

impl Timings {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more word has ended.
    pub fn add(&self, end: WordEnd) {
        let mut state = self.lock();
        let last = state.ends.last().copied().unwrap_or_default();
        if end.letters > last.letters && (last.ms..=LONGEST_MS).contains(&end.ms) {
            state.ends.push(end);
        }
    }

    /// From now on these are the timings of another sound, which begins after so many milliseconds of this one.
    pub fn follow(&self, other: &Timings, from_ms: u64) {
        self.lock().followed.push((other.clone(), from_ms));
    }

    /// `None`: nothing is known of any word. Words that one voice has said and the next one says again have been heard.
    pub fn at(&self, ms: u64) -> Option<SaidBy> {
        let state = self.lock();
        let Some(((last, from_ms), before)) = state.followed.split_last() else {
            return state.own(ms);
        };
        let mut said = last.at(ms.saturating_sub(*from_ms))?;
        said.end.ms += from_ms;
        let ends = before.iter().map(|(_, from_ms)| *from_ms).skip(1).chain([*from_ms]);
        for ((voice, begins_ms), ends_ms) in before.iter().zip(ends) {
            let heard_ms = ms.min(ends_ms).saturating_sub(*begins_ms);
            if let Some(earlier) = voice
                .at(heard_ms)
                .filter(|earlier| earlier.end.letters > said.end.letters)
            {
                said.end = WordEnd {
                    ms: earlier.end.ms + begins_ms,
                    ..earlier.end
                };
            }
        }
        Some(said)
    }
}

impl State {
    fn own(&self, ms: u64) -> Option<SaidBy> {
        let said = self.ends.partition_point(|end| end.ms <= ms);
        (!self.ends.is_empty()).then(|| SaidBy {
            end: self.ends[..said].last().copied().unwrap_or_default(),
            is_next_known: said < self.ends.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(letters: usize, ms: u64) -> WordEnd {
        WordEnd { letters, ms }
    }

    #[test]
    fn words_are_known_by_the_moment_at_which_they_end() {
        let timings = Timings::default();
        assert_eq!(timings.at(1_000), None);
        timings.add(end(5, 400));
        timings.add(end(11, 900));
        for (ms, expected, is_next_known) in [
            (0, end(0, 0), true),
            (399, end(0, 0), true),
            (400, end(5, 400), true),
            (899, end(5, 400), true),
            (900, end(11, 900), false),
            (u64::MAX, end(11, 900), false),
        ] {
            let expected = SaidBy {
                end: expected,
                is_next_known,
            };
            assert_eq!(timings.at(ms), Some(expected), "{ms}");
        }
    }

    #[test]
    fn what_goes_backwards_or_points_outside_is_passed_over() {
        let timings = Timings::default();
        timings.add(end(5, 400));
        // Earlier letters, the same ones, an earlier moment, and one that no sound reaches.
        for wrong in [end(3, 500), end(5, 600), end(9, 399), end(9, LONGEST_MS + 1), end(0, 0)] {
            timings.add(wrong);
        }
        timings.add(end(11, 900));
        assert_eq!(timings.at(899).unwrap().end, end(5, 400));
        assert_eq!(timings.at(900).unwrap().end, end(11, 900));
    }

    #[test]
    fn another_voice_says_it_once_more() {
        let (words, first, second) = (Timings::default(), Timings::default(), Timings::default());
        first.add(end(5, 400));
        first.add(end(11, 900));
        words.follow(&first, 0);
        assert_eq!(words.at(400).unwrap().end, end(5, 400));
        words.follow(&second, 500);
        assert_eq!(words.at(2_000), None, "of the second nothing is known yet");
        second.add(end(2, 100));
        second.add(end(11, 700));
        // What the first has said was heard, and no more of it than was played.
        for (ms, heard) in [
            (399, end(0, 0)),
            (400, end(5, 400)),
            (600, end(5, 400)),
            (1_199, end(5, 400)),
            (1_200, end(11, 1_200)),
        ] {
            assert_eq!(words.at(ms).unwrap().end.letters, heard.letters, "{ms}");
        }
        assert_eq!(words.at(1_200).unwrap().end, end(11, 1_200));
    }
}
