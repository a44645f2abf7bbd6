//! What was said, as plain words: lower case, without accents, apostrophes and punctuation.

/// Words of one turn that are looked at; nobody says more in one breath.
const MAX_WORDS: usize = 600;
/// What an apostrophe joins, as in "don't"; before anything else it parts, as in "m'appelez".
const JOINED: [&str; 7] = ["t", "s", "re", "ve", "ll", "d", "m"];

/// One turn's words, and where its sentences and clauses end.
pub struct Speech {
    words: Vec<Word>,
}

pub struct Word {
    pub text: String,
    /// The sentence that it stands in.
    sentence: usize,
    /// A comma, or more, follows.
    pub is_last_of_clause: bool,
    /// Its sentence ends with a question mark.
    is_asked: bool,
    /// It stands between quotation marks, and other words do not: somebody else's.
    is_quoted: bool,
}

/// Between quotation marks, or not.
#[derive(Default)]
struct Quote {
    is_open: bool,
}

impl Quote {
    /// Whether the mark opens or closes a quotation.
    fn turns(&mut self, mark: char) -> bool {
        let is_mark = matches!(mark, '"' | '“' | '”' | '„' | '«' | '»');
        self.is_open ^= is_mark;
        is_mark
    }
}

impl Speech {
    pub fn of(text: &str) -> Self {
        let mut speech = Speech { words: Vec::new() };
        let mut sentence = 0;
        let mut word = String::new();
        let mut quote = Quote::default();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            if speech.words.len() >= MAX_WORDS {
                break;
            }
            match char {
                '\'' | '’' | 'ʼ' | '‘' | '`' | '´' => {
                    let ahead: String = chars
                        .clone()
                        .take_while(|next| next.is_alphanumeric())
                        .take(3)
                        .collect();
                    if !JOINED.contains(&ahead.to_lowercase().as_str()) {
                        speech.push(&mut word, sentence, &quote);
                    }
                }
                char if char.is_alphanumeric() || is_mark(char) => fold_into(char, &mut word),
                // A point in a number or an abbreviation ends nothing.
                '.' | ':' | ',' if !word.is_empty() && chars.peek().is_some_and(|next| next.is_alphanumeric()) => {
                    speech.push(&mut word, sentence, &quote);
                }
                _ => {
                    speech.push(&mut word, sentence, &quote);
                    if quote.turns(char) {
                        speech.part();
                    }
                    sentence += speech.close(char, sentence);
                }
            }
        }
        speech.push(&mut word, sentence, &quote);
        if quote.is_open || speech.words.iter().all(|word| word.is_quoted) {
            // A mark without its other half, or a whole text in marks, is the speaker's own.
            speech.words.iter_mut().for_each(|word| word.is_quoted = false);
        }
        if let Some(last) = speech.words.last_mut() {
            last.is_last_of_clause = true;
        }
        speech
    }

    fn push(&mut self, word: &mut String, sentence: usize, quote: &Quote) {
        if !word.is_empty() {
            self.words.push(Word {
                text: std::mem::take(word),
                sentence,
                is_last_of_clause: false,
                is_asked: false,
                is_quoted: quote.is_open,
            });
        }
    }

    /// A clause ends here.
    fn part(&mut self) {
        if let Some(last) = self.words.last_mut() {
            last.is_last_of_clause = true;
        }
    }

    /// What a mark ends: a clause, or a whole sentence (1).
    fn close(&mut self, mark: char, sentence: usize) -> usize {
        let ends = matches!(mark, '.' | '!' | '?' | ';' | '…' | '。' | '？');
        if (ends || matches!(mark, ',' | ':' | '—' | '–'))
            && let Some(last) = self.words.last_mut()
        {
            last.is_last_of_clause = true;
        }
        if matches!(mark, '?' | '？') {
            let asked = self.words.iter_mut().rev();
            asked
                .take_while(|word| word.sentence == sentence)
                .for_each(|word| word.is_asked = true);
        }
        usize::from(ends)
    }

    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at `at`; nothing behind the last.
    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &word.text)
    }

    /// The word at `at`, if it stands in the same sentence as the one at `from`.
    pub fn in_sentence(&self, from: usize, at: usize) -> Option<&Word> {
        let first = self.words.get(from)?;
        self.words.get(at).filter(|word| word.sentence == first.sentence)
    }

    /// Whether a sentence begins at `at`, or a clause.
    pub fn begins(&self, at: usize) -> bool {
        match at.checked_sub(1).and_then(|before| self.words.get(before)) {
            None => true,
            Some(before) => {
                before.is_last_of_clause || self.words.get(at).is_some_and(|word| word.sentence != before.sentence)
            }
        }
    }

    /// Whether the word before `end` ends a clause or everything.
    pub fn ends(&self, end: usize) -> bool {
        match end.checked_sub(1).and_then(|last| self.words.get(last)) {
            None => true,
            Some(last) => last.is_last_of_clause,
        }
    }

    /// Whether the word before `end` stands in a question.
    pub fn asks(&self, end: usize) -> bool {
        end.checked_sub(1)
            .and_then(|last| self.words.get(last))
            .is_some_and(|word| word.is_asked)
    }

    /// Whether any of the words `start..end` is somebody else's.
    pub fn quotes(&self, start: usize, end: usize) -> bool {
        self.words.iter().take(end).skip(start).any(|word| word.is_quoted)
    }

    /// The sentences, as their words' places.
    pub fn sentences(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut from = 0;
        self.words
            .chunk_by(|one, next| one.sentence == next.sentence)
            .map(move |words| {
                let start = from;
                from += words.len();
                start..from
            })
    }

    /// Whether these words stand in it, in a row.
    pub fn contains(&self, words: &[String]) -> bool {
        !words.is_empty()
            && self
                .words
                .windows(words.len())
                .any(|window| window.iter().zip(words).all(|(said, word)| said.text == *word))
    }
}

/// The plain words of a text.
pub fn words(text: &str) -> Vec<String> {
    Speech::of(text).words.into_iter().map(|word| word.text).collect()
}

/// One word, lower case and without accents.
pub fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    word.chars().for_each(|char| fold_into(char, &mut folded));
    folded
}

fn is_mark(char: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&char)
}

/// Covers the letters of the languages that have lists, and their neighbours'.
fn fold_into(char: char, word: &mut String) {
    for char in char.to_lowercase() {
        let plain = match char {
            char if is_mark(char) => continue,
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' | 'ă' | 'ā' => 'a',
            'ç' | 'ć' | 'č' => 'c',
            'ď' | 'đ' => 'd',
            'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' | 'ē' => 'e',
            'ğ' => 'g',
            'ì' | 'í' | 'î' | 'ï' | 'ı' | 'ī' => 'i',
            'ł' => 'l',
            'ñ' | 'ń' | 'ň' => 'n',
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ő' | 'ø' => 'o',
            'ř' => 'r',
            'ś' | 'š' | 'ş' | 'ș' => 's',
            'ť' | 'ţ' | 'ț' => 't',
            'ù' | 'ú' | 'û' | 'ü' | 'ű' | 'ů' => 'u',
            'ý' | 'ÿ' => 'y',
            'ź' | 'ż' | 'ž' => 'z',
            'ß' => {
                word.push_str("ss");
                continue;
            }
            'œ' => {
                word.push_str("oe");
                continue;
            }
            'æ' => {
                word.push_str("ae");
                continue;
            }
            char => char,
        };
        word.push(plain);
    }
}
