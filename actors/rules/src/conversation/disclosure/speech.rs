//! Sentences that tell something, and how far they came.
use entities::law::DisclosureKind;

/// How far one is heard is an estimate: a sentence counts when so many characters after it were heard, or all.
pub(super) const MARGIN: usize = 8;

/// One sentence, and what it tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    pub kinds: Vec<DisclosureKind>,
    pub text: String,
}

/// What is said at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech {
    pub sentences: Vec<Sentence>,
    /// It is said to its end, whatever is said meanwhile.
    pub is_whole: bool,
}

impl Speech {
    pub fn text(&self) -> String {
        joined(&self.sentences)
    }

    /// Those that were heard to their end, of which so many characters were heard, and the others.
    pub(super) fn split(&self, heard: usize) -> (Vec<Sentence>, Vec<Sentence>) {
        let mut end = 0;
        let whole = self.sentences.iter().take_while(|sentence| {
            end += sentence.text.chars().count() + 1;
            end + MARGIN <= heard
        });
        let count = whole.count();
        let (whole, cut) = self.sentences.split_at(count);
        (whole.to_vec(), cut.to_vec())
    }
}

/// How far something came that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Whole,
    /// The other side has cut in: so many of its characters were heard.
    CutIn(usize),
    /// The voice said no more of it.
    BrokeOff(usize),
}

/// The words of these sentences.
pub fn joined(sentences: &[Sentence]) -> String {
    let texts: Vec<&str> = sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    texts.join(" ")
}

/// All that they tell.
pub fn kinds_of(sentences: &[Sentence]) -> Vec<DisclosureKind> {
    sentences.iter().flat_map(|sentence| sentence.kinds.clone()).collect()
}
