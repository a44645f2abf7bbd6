//! Where in a text its voice is: providers tell which letters or words their sound has, and what is meant is the text that the
//! transcript shows.
use crate::sound::{Timings, WordEnd};

/// Letters in which a word that a provider tells is looked for.
const LOOK_AHEAD: usize = 80;

/// Where the words of a text that is spoken stand in the one that is shown, which has markdown, emoji and addresses besides.
#[derive(Clone, Debug)]
pub enum Places {
    /// They are the same, behind so many blanks.
    Same(usize),
    /// Ends of words: so many letters of the one, and so many of the other.
    Words(Vec<(usize, usize)>),
}

impl Default for Places {
    fn default() -> Self {
        Places::Same(0)
    }
}

impl Places {
    pub fn of(shown: &str, spoken: &str) -> Self {
        if shown.trim() == spoken {
            return Places::Same(shown.chars().take_while(|letter| letter.is_whitespace()).count());
        }
        let shown: Vec<char> = shown.chars().collect();
        let (mut spoken_at, mut at, mut ends) = (0, 0, Vec::new());
        for word in spoken.split(char::is_whitespace) {
            spoken_at += word.chars().count();
            if let Some(end) = find(&shown[at..], word) {
                at = end_of_word(&shown, at + end);
            }
            ends.push((spoken_at, at));
            // The blank behind it.
            spoken_at += 1;
        }
        Places::Words(ends)
    }

    /// How many letters are shown of so many that were spoken.
    fn shown(&self, spoken: usize) -> usize {
        match self {
            Places::Same(_) if spoken == 0 => 0,
            Places::Same(before) => before + spoken,
            Places::Words(ends) => {
                let said = ends.partition_point(|(end, _)| *end <= spoken);
                ends[..said].last().map_or(0, |(_, shown)| *shown)
            }
        }
    }
}

/// Follows a voice through its text.
pub struct Reader {
    letters: Vec<char>,
    /// So many of them have been said.
    at: usize,
    /// What is told is not what stands there: until the next blank.
    is_lost: bool,
    /// Some of the word that is being told stands there.
    has_word_begun: bool,
    places: Places,
    timings: Timings,
}

impl Reader {
    pub fn of(text: &str, places: Places, timings: Timings) -> Self {
        Reader {
            letters: text.chars().collect(),
            at: 0,
            is_lost: false,
            has_word_begun: false,
            places,
            timings,
        }
    }

    /// Something of it was said.
    pub fn has_begun(&self) -> bool {
        self.at > 0
    }

    /// No word of it is left.
    pub fn is_done(&self) -> bool {
        !self.letters[self.at..].iter().any(|letter| letter.is_alphanumeric())
    }

    /// These letters come next, and have been said by then.
    pub fn letters(&mut self, said: &str, by_ms: u64) {
        for letter in said.chars() {
            if letter.is_whitespace() {
                self.blank();
            } else if !self.is_lost {
                self.letter(letter);
            }
        }
        if !self.is_lost {
            self.mark(by_ms);
        }
    }

    /// This word comes next, or soon, and has been said by then.
    pub fn word(&mut self, said: &str, by_ms: u64) {
        let ahead = self.letters.len().min(self.at + LOOK_AHEAD);
        if let Some(end) = find(&self.letters[self.at..ahead], said) {
            self.at += end;
            self.mark(by_ms);
        }
    }

    fn blank(&mut self) {
        let has_word_begun = std::mem::take(&mut self.has_word_begun);
        if std::mem::take(&mut self.is_lost) {
            // Of a word of which nothing is what stands there, that one is passed over.
            if !has_word_begun {
                self.pass(char::is_whitespace);
            }
            self.pass(|letter| !letter.is_whitespace());
        }
    }

    fn pass(&mut self, is_passed: impl Fn(char) -> bool) {
        let rest = self.letters[self.at..].iter();
        self.at += rest.take_while(|letter| is_passed(**letter)).count();
    }

    fn letter(&mut self, said: char) {
        for (place, letter) in self.letters.iter().enumerate().skip(self.at) {
            if is_same(*letter, said) {
                self.at = place + 1;
                self.has_word_begun = true;
                return;
            }
            // Punctuation may be left out, or be another one.
            if letter.is_alphanumeric() {
                break;
            }
        }
        self.is_lost = said.is_alphanumeric();
    }

    fn mark(&self, ms: u64) {
        let Some(last) = self.at.checked_sub(1) else { return };
        let end = end_of_word(&self.letters, self.at);
        let is_end = self.letters.get(end).is_none_or(|next| next.is_whitespace());
        if is_end || is_unspaced(self.letters[last]) {
            let letters = self.places.shown(end);
            self.timings.add(WordEnd { letters, ms });
        }
    }
}

/// Where a word ends that stands there by itself; what is around its letters does not count.
fn find(text: &[char], word: &str) -> Option<usize> {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let word: Vec<char> = word.chars().collect();
    if word.is_empty() {
        return None;
    }
    let is_there = |start: usize| {
        let end = start + word.len();
        let mut pairs = text[start..end].iter().zip(&word);
        pairs.all(|(a, b)| is_same(*a, *b)) && is_border(text, start) && is_border(text, end)
    };
    let last = text.len().checked_sub(word.len())?;
    (0..=last)
        .find(|start| is_there(*start))
        .map(|start| start + word.len())
}

/// No word goes on from one side of it to the other.
fn is_border(text: &[char], at: usize) -> bool {
    let (before, after) = (at.checked_sub(1).and_then(|at| text.get(at)), text.get(at));
    let (Some(before), Some(after)) = (before, after) else {
        return true;
    };
    !(before.is_alphanumeric() && after.is_alphanumeric()) || is_unspaced(*before) || is_unspaced(*after)
}

/// Behind the punctuation that belongs to the word before it.
fn end_of_word(text: &[char], from: usize) -> usize {
    let belongs =
        |letter: &&char| !letter.is_alphanumeric() && !letter.is_whitespace() && !"([{<«“‘„".contains(**letter);
    from + text[from..].iter().take_while(belongs).count()
}

fn is_same(a: char, b: char) -> bool {
    a == b || a.to_lowercase().eq(b.to_lowercase())
}

/// Of scripts that write no blank between words: Chinese, Japanese, Thai, Lao, Khmer.
fn is_unspaced(letter: char) -> bool {
    matches!(
        u32::from(letter),
        0x0E00..=0x0EFF | 0x1780..=0x17FF | 0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What has been said of the text at each of these moments.
    fn said(shown: &str, spoken: &str, tell: impl FnOnce(&mut Reader), moments: &[u64]) -> Vec<String> {
        let timings = Timings::default();
        tell(&mut Reader::of(spoken, Places::of(shown, spoken), timings.clone()));
        let heard = moments
            .iter()
            .map(|ms| timings.at(*ms).map_or(0, |said| said.end.letters));
        heard.map(|letters| shown.chars().take(letters).collect()).collect()
    }

    /// Each letter takes 100 ms.
    fn letter_by_letter(reader: &mut Reader, said: &str) {
        for (place, letter) in said.chars().enumerate() {
            reader.letters(&letter.to_string(), 100 * (place as u64 + 1));
        }
    }

    #[test]
    fn letters_become_words_with_their_punctuation() {
        let text = "Well, I don't know.";
        let heard = said(
            text,
            text,
            |reader| letter_by_letter(reader, text),
            &[300, 400, 699, 700, 1_200, 1_300, 1_900],
        );
        assert_eq!(
            heard,
            ["", "Well,", "Well,", "Well, I", "Well, I", "Well, I don't", text]
        );
    }

    #[test]
    fn scripts_without_blanks_are_read_by_the_letter() {
        let text = "你好，世界。";
        let heard = said(
            text,
            text,
            |reader| letter_by_letter(reader, text),
            &[99, 100, 200, 400],
        );
        assert_eq!(heard, ["", "你", "你好，", "你好，世"]);
    }

    #[test]
    fn what_is_told_otherwise_is_found_again_at_the_next_word() {
        let text = "Dr. Who has 3 dogs.";
        let told = "doctor Who has three dogs.";
        let heard = said(
            text,
            text,
            |reader| letter_by_letter(reader, told),
            &[600, 1_000, 1_400, 2_000, 2_600],
        );
        assert_eq!(heard, ["", "Dr. Who", "Dr. Who has", "Dr. Who has", text]);
        let words = |reader: &mut Reader| {
            for (word, ms) in [
                ("doctor", 100),
                ("Who", 200),
                ("has", 300),
                ("three", 400),
                ("dogs.", 500),
            ] {
                reader.word(word, ms);
            }
        };
        assert_eq!(
            said(text, text, words, &[100, 200, 300, 400, 500]),
            ["", "Dr. Who", "Dr. Who has", "Dr. Who has", text]
        );
    }

    #[test]
    fn a_word_that_comes_twice_is_read_once_each_time() {
        let text = "No, no, I said no.";
        let words = |reader: &mut Reader| {
            for (place, word) in ["No", "no", "I", "said", "no"].into_iter().enumerate() {
                reader.word(word, 100 * (place as u64 + 1));
            }
        };
        assert_eq!(
            said(text, text, words, &[100, 200, 400, 500]),
            ["No,", "No, no,", "No, no, I said", text]
        );
    }

    #[test]
    fn what_only_a_reader_sees_stands_where_it_was() {
        let (shown, spoken) = (
            " See **our** [page](https://example.com), please. 🎉",
            "See our page, please.",
        );
        let words = |reader: &mut Reader| {
            for (place, word) in ["See", "our", "page,", "please."].into_iter().enumerate() {
                reader.word(word, 100 * (place as u64 + 1));
            }
        };
        assert_eq!(
            said(shown, spoken, words, &[100, 200, 300, 400]),
            [
                " See",
                " See **our**",
                " See **our** [page]",
                " See **our** [page](https://example.com), please."
            ]
        );
        let plain = |reader: &mut Reader| reader.word("think", 100);
        assert_eq!(said(" I think.", "I think.", plain, &[100]), [" I think."]);
    }

    #[test]
    fn the_end_is_known_whatever_stands_behind_the_last_word() {
        let mut reader = Reader::of("Really?! ", Places::default(), Timings::default());
        assert!(!reader.is_done() && !reader.has_begun());
        letter_by_letter(&mut reader, "Really");
        assert!(reader.is_done() && reader.has_begun());
        assert!(Reader::of("", Places::default(), Timings::default()).is_done());
    }

    proptest! {
        /// Whatever a provider tells, the text is read forward, and nothing beyond it is shown.
        #[test]
        fn whatever_is_told_nothing_breaks(
            shown in "[ a-c.*你]{0,30}",
            spoken in "[ a-c.你]{0,30}",
            told in prop::collection::vec(("[ a-c.你]{0,4}", 0_u64..3_000, any::<bool>()), 0..40),
        ) {
            let timings = Timings::default();
            let mut reader = Reader::of(&spoken, Places::of(&shown, &spoken), timings.clone());
            for (said, ms, as_word) in told {
                if as_word { reader.word(&said, ms) } else { reader.letters(&said, ms) }
            }
            let mut last = 0;
            for ms in 0..3_000 {
                let letters = timings.at(ms).map_or(0, |said| said.end.letters);
                prop_assert!(letters >= last && letters <= shown.chars().count());
                last = letters;
            }
        }
    }
}
