//! The pieces of an utterance: what each of them says, and how much of its sound has come. So it is known which words were heard
//! when somebody cuts in, or when the voice breaks off.
use super::transport::spoken_ms;
use adapters::sound::{Pcm, SaidBy, Timings, ms_of};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of one utterance. Cloning is cheap: clones are the same.
#[derive(Clone, Default)]
pub struct Parts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Samples per second of all of them.
    rate: u32,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Part {
    /// With the space around it.
    text: String,
    /// What has come, `lead` included: samples that came before the words.
    samples: u64,
    lead: u64,
    /// None: more may come.
    end: Option<End>,
    /// Of its words, where whoever says them tells that.
    timings: Timings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    BrokeOff,
}

impl Parts {
    pub fn of(text: &str) -> Self {
        let parts = Parts::default();
        parts.add(text);
        parts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, with the space before it.
    pub fn add(&self, text: &str) {
        self.lock().parts.push(Part {
            text: text.to_owned(),
            ..Part::default()
        });
    }

    /// The words of one that is all of it are known better.
    pub fn reword(&self, text: &str) {
        if let [part] = &mut self.lock().parts[..] {
            text.clone_into(&mut part.text);
        }
    }

    /// All sound that comes has that rate.
    pub fn set_rate(&self, rate: u32) {
        self.lock().rate = rate;
    }

    /// When the words of the one at that place are heard.
    pub fn time(&self, place: usize, timings: &Timings) {
        if let Some(part) = self.lock().parts.get_mut(place) {
            part.timings = timings.clone();
        }
    }

    /// The one that there is has this sound.
    pub fn set_sound(&self, sound: &Pcm) {
        self.set_rate(sound.rate);
        self.came(0, sound.samples.len(), 0);
        self.ended(0, false);
    }

    /// So many samples more of the one at that place; so many of all of its samples are none of its words.
    pub fn came(&self, place: usize, samples: usize, lead: u64) {
        if let Some(part) = self.lock().parts.get_mut(place) {
            part.samples += samples as u64;
            part.lead = lead;
        }
    }

    /// Nothing more comes of the one at that place.
    pub fn ended(&self, place: usize, broke_off: bool) {
        if let Some(part) = self.lock().parts.get_mut(place) {
            part.end = Some(if broke_off { End::BrokeOff } else { End::Whole });
        }
    }

    pub fn text(&self) -> String {
        let text: String = self.lock().parts.iter().map(|part| part.text.as_str()).collect();
        text.trim().to_owned()
    }

    /// Not all of what it says was said.
    pub fn broke_off(&self) -> bool {
        self.lock().parts.iter().any(|part| part.end == Some(End::BrokeOff))
    }

    /// Nobody has said anything of it.
    pub fn is_silent(&self) -> bool {
        let is_silent = |part: &Part| part.samples <= part.lead;
        self.broke_off() && self.lock().parts.iter().all(is_silent)
    }

    /// The words that were heard in so many milliseconds: exactly those whose end was heard, where whoever says them tells when that
    /// is. Else their share of the sound; of what is still being made nobody knows how long it will be: as long as such words take,
    /// and no shorter than what has come.
    pub fn heard(&self, played_ms: u64) -> String {
        let state = self.lock();
        let (mut heard, mut begins, mut samples) = (String::new(), 0, 0);
        for part in &state.parts {
            samples += part.samples;
            let came = ms_of(samples, state.rate);
            let words_begin = begins + ms_of(part.lead, state.rate);
            let guess = words_begin + spoken_ms(part.text.trim());
            let (words_end, sound_ends) = match part.end {
                Some(End::Whole) => (came, came),
                Some(End::BrokeOff) => (came.max(guess), came),
                None => (came.max(guess), came.max(guess)),
            };
            let played = played_ms.min(sound_ends);
            let said = part.said(
                played.saturating_sub(words_begin),
                words_end.saturating_sub(words_begin),
            );
            heard.extend(part.text.chars().take(said));
            if played_ms < sound_ends {
                break;
            }
            begins = sound_ends;
        }
        heard.trim_start().to_owned()
    }
}

impl Part {
    /// How many letters of it were heard after so many of its words' milliseconds, which all of them have taken, or will take.
    fn said(&self, played: u64, whole: u64) -> usize {
        let count = self.text.chars().count();
        let broke_off = self.end == Some(End::BrokeOff);
        let letters = match self.timings.at(played) {
            _ if played >= whole && !broke_off => count,
            Some(SaidBy {
                end,
                is_next_known: true,
            }) => end.letters,
            // What follows is told when more of it has come.
            Some(SaidBy { end, .. }) if end.letters < count => {
                let rest = share(
                    count - end.letters,
                    played - end.ms.min(played),
                    whole.saturating_sub(end.ms),
                );
                words_in(&self.text, end.letters, end.letters + rest)
            }
            Some(_) => count,
            None if played >= whole => count,
            None => share(count, played, whole),
        };
        let most = if broke_off { count.saturating_sub(1) } else { count };
        letters.min(most)
    }
}

/// Of so many letters those up to the end of the last word, at least so many.
fn words_in(text: &str, least: usize, letters: usize) -> usize {
    let text: Vec<char> = text.chars().collect();
    let mut end = letters.min(text.len());
    let is_blank = |at: usize| text.get(at).is_none_or(|letter| letter.is_whitespace());
    while end > least && (is_blank(end - 1) || !is_blank(end)) {
        end -= 1;
    }
    end
}

/// Of so many letters those that were heard after `played` of `whole` milliseconds.
fn share(letters: usize, played: u64, whole: u64) -> usize {
    let heard = (letters as u64).saturating_mul(played) / whole.max(1);
    usize::try_from(heard).map_or(letters, |heard| heard.min(letters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters::sound::WordEnd;

    /// 20 letters and 9 with the space, each sound of 1 s at 1 kHz, so that a sample is a millisecond.
    fn two() -> Parts {
        let parts = one();
        parts.add(" I think.");
        parts
    }

    fn one() -> Parts {
        let parts = Parts::of("I can do that today,");
        parts.set_rate(1_000);
        parts
    }

    #[test]
    fn what_was_heard_is_counted_over_all_pieces() {
        let parts = two();
        for place in 0..2 {
            parts.came(place, 1_000, 0);
            parts.ended(place, false);
        }
        assert_eq!(parts.text(), "I can do that today, I think.");
        for (played_ms, heard) in [
            (0, ""),
            (500, "I can do t"),
            (1_000, "I can do that today,"),
            (1_445, "I can do that today, I t"),
            (2_000, "I can do that today, I think."),
            (u64::MAX, "I can do that today, I think."),
        ] {
            assert_eq!(parts.heard(played_ms), heard, "{played_ms}");
        }
        assert!(!parts.broke_off() && !parts.is_silent());
    }

    #[test]
    fn of_what_is_still_being_made_the_length_is_guessed() {
        let parts = two();
        parts.came(0, 300, 0);
        // 55 ms a letter: 1,100 ms in all.
        assert_eq!(parts.heard(275), "I can");
        // More has come than such words take.
        parts.came(0, 1_700, 0);
        assert_eq!(parts.heard(1_000), "I can do t");
        // Words of whose sound nothing is known, as on a line that has none.
        assert_eq!(Parts::of("Good morning!").heard(385), "Good mo");
    }

    fn timed(ends: &[(usize, u64)]) -> Timings {
        let timings = Timings::default();
        for (letters, ms) in ends {
            timings.add(WordEnd {
                letters: *letters,
                ms: *ms,
            });
        }
        timings
    }

    #[test]
    fn words_whose_end_is_known_are_exactly_those_that_were_heard() {
        let parts = two();
        // He is slow at first: by its share of the sound more would have been heard.
        parts.time(0, &timed(&[(1, 300), (5, 500), (8, 600), (13, 700), (20, 900)]));
        parts.time(1, &timed(&[(2, 400), (9, 800)]));
        for place in 0..2 {
            parts.came(place, 1_000, 0);
            parts.ended(place, false);
        }
        for (played_ms, heard) in [
            (299, ""),
            (300, "I"),
            (599, "I can"),
            (600, "I can do"),
            (899, "I can do that"),
            (1_000, "I can do that today,"),
            (1_399, "I can do that today,"),
            (1_400, "I can do that today, I"),
            (1_800, "I can do that today, I think."),
        ] {
            assert_eq!(parts.heard(played_ms), heard, "{played_ms}");
        }
    }

    #[test]
    fn of_words_that_are_not_told_yet_the_share_is_guessed() {
        let parts = one();
        parts.time(0, &timed(&[(1, 100), (5, 300)]));
        parts.came(0, 700, 0);
        assert_eq!((parts.heard(299), parts.heard(300)), ("I".into(), "I can".into()));
        // 15 letters are left for 800 ms: 5 of them are a word and the beginning of another one.
        assert_eq!(parts.heard(600), "I can do");
        parts.ended(0, true);
        assert_eq!(parts.heard(u64::MAX), "I can do");
        // A request for a moment leads, and none of the words is in it.
        let parts = one();
        parts.time(0, &timed(&[(1, 100), (5, 300), (20, 900)]));
        parts.came(0, 3_000, 2_000);
        assert_eq!((parts.heard(2_299), parts.heard(2_300)), ("I".into(), "I can".into()));
    }

    #[test]
    fn of_a_timed_piece_that_broke_off_its_words_were_heard() {
        let parts = one();
        parts.time(0, &timed(&[(1, 100), (5, 300), (8, 500), (13, 700)]));
        parts.came(0, 650, 0);
        parts.ended(0, true);
        assert_eq!(parts.heard(u64::MAX), "I can do");
        // Timings that point beyond the text show nothing that is not there.
        let parts = Parts::of("Yes.");
        parts.set_rate(1_000);
        parts.time(0, &timed(&[(400, 100), (500, 900)]));
        parts.came(0, 500, 0);
        assert_eq!(parts.heard(100), "Yes.");
    }

    #[test]
    fn what_came_before_the_words_is_none_of_them() {
        let parts = two();
        parts.came(0, 3_000, 2_000);
        parts.ended(0, false);
        assert_eq!(
            (parts.heard(1_999), parts.heard(2_500)),
            (String::new(), "I can do t".into())
        );
    }

    #[test]
    fn of_a_piece_that_broke_off_its_beginning_was_heard() {
        let parts = two();
        parts.came(0, 550, 0);
        parts.ended(0, true);
        parts.came(1, 1_000, 0);
        parts.ended(1, false);
        assert_eq!(parts.heard(u64::MAX), "I can do t I think.");
        assert_eq!(parts.heard(550), "I can do t");
        assert!(parts.broke_off() && !parts.is_silent());
        // However slowly it was said, its end was not.
        parts.came(0, 10_000, 0);
        assert_eq!(parts.heard(10_550), "I can do that today");
    }

    #[test]
    fn words_that_nobody_says_are_told_from_those_that_need_no_sound() {
        let parts = two();
        parts.ended(0, false);
        assert!(!parts.is_silent(), "there may be nothing to say in it");
        parts.came(1, 500, 500);
        parts.ended(1, true);
        assert!(parts.is_silent(), "a request for a moment does not count");
        assert_eq!(parts.heard(0), "I can do that today,");
    }
}
