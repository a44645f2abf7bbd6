//! Cuts running text into sentences, so that the first can be spoken while the model still writes the second. Where the voice
//! waits for the first words, the first piece may be a clause already.

/// Characters of one sentence; a longer one is cut at a space.
const MAX_SENTENCE: usize = 400;
/// Characters of the shortest first clause, such as `Certainly,`: it is heard for 0.6 s, in which a model writes the rest of the
/// sentence and a voice begins it. One that is shorter is over before that. A sentence is said whatever its length.
const MIN_CLAUSE: usize = 10;
/// Characters of one answer; the rest is cut off.
const MAX_ANSWER: usize = 8_000;
/// A full stop after one of these ends no sentence. What ends in single letters (`e.g.`, `z.B.`) needs no entry.
const ABBREVIATIONS: [&str; 34] = [
    "approx", "apt", "ave", "bzw", "ca", "co", "dept", "dr", "dra", "ext", "fr", "gen", "hr", "inc", "jr", "ltd",
    "mlle", "mme", "mr", "mrs", "ms", "nr", "prof", "rev", "sr", "sra", "srta", "st", "sta", "str", "tel", "usw",
    "vgl", "vs",
];

/// By default sentences, from the first on.
#[derive(Debug, Default)]
pub struct Pieces {
    rest: String,
    taken: usize,
    /// The next piece may be a clause.
    by_clause: bool,
}

impl Pieces {
    /// Of one turn: the first piece is a clause, if it is long enough to be spoken by itself; sentences follow.
    pub fn clause_first() -> Self {
        Pieces {
            by_clause: true,
            ..Pieces::default()
        }
    }

    /// Takes the next words. `false`: the answer is as long as it may be, and what came beyond is gone.
    pub fn push(&mut self, text: &str) -> bool {
        let mut letters = text.chars();
        for letter in letters.by_ref().take(MAX_ANSWER - self.taken) {
            self.rest.push(letter);
            self.taken += 1;
        }
        letters.next().is_none()
    }

    /// What is left when nothing more comes; call it after `next` has nothing.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.trim().is_empty()).then_some(rest)
    }
}

/// The next whole piece, with the space before it; none until more was pushed.
impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<Self::Item> {
        let limit = self.rest.char_indices().nth(MAX_SENTENCE).map(|(at, _)| at);
        let sentence = boundary(&self.rest);
        let clause = self.by_clause.then(|| clause(&self.rest)).flatten();
        let first = sentence.into_iter().chain(clause).min();
        let end = match (first, limit) {
            (Some(end), Some(limit)) if end > limit => space_before(&self.rest, limit),
            (Some(end), _) => end,
            (None, Some(limit)) => space_before(&self.rest, limit),
            (None, None) => return None,
        };
        let after = self.rest.split_off(end);
        let piece = std::mem::replace(&mut self.rest, after);
        // A blank line is nothing that could be heard.
        self.by_clause &= piece.trim().is_empty();
        Some(piece)
    }
}

/// Where the first sentence ends, if that is certain yet.
fn boundary(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let mut letters = text[start..].char_indices().map(|(at, letter)| (start + at, letter));
    letters.find_map(|(at, letter)| {
        let after = at + letter.len_utf8();
        let tail = text[after..].trim_start_matches(|next| ends(next) || closes(next));
        let end = text.len() - tail.len();
        let spaced = tail.starts_with(char::is_whitespace);
        match letter {
            '\n' => Some(after),
            // No space follows these.
            '。' | '？' | '！' => Some(end),
            '.' => (spaced && (end > after || !is_abbreviation(&text[..at]))).then_some(end),
            '!' | '?' | '…' => spaced.then_some(end),
            _ => None,
        }
    })
}

/// Where the first clause ends that is long enough, if that is certain yet.
fn clause(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let mut letters = text[start..].char_indices().enumerate();
    letters.find_map(|(count, (at, letter))| {
        let end = start + at + letter.len_utf8();
        let is_pause = match letter {
            _ if stands_alone(letter) => true,
            // One within a number or a time has no space behind it.
            _ if pauses(letter) => text[end..].starts_with(char::is_whitespace),
            _ => false,
        };
        (is_pause && count + 1 >= MIN_CLAUSE && !is_open(&text[start..end])).then_some(end)
    })
}

/// Is it a clause, which the next piece of the same turn goes on with?
pub fn is_clause(piece: &str) -> bool {
    piece
        .trim_end()
        .ends_with(|last: char| pauses(last) || stands_alone(last))
}

fn pauses(letter: char) -> bool {
    matches!(letter, ',' | ';' | ':' | '–' | '—' | '،' | '؛')
}

/// No space follows these.
fn stands_alone(letter: char) -> bool {
    matches!(letter, '，' | '；' | '：' | '、')
}

/// Does it end within a bracket, a link, a tag or code? What is spoken of these is known when they are whole.
fn is_open(text: &str) -> bool {
    let count = |wanted: char| text.matches(wanted).count();
    let is_within = |(open, close): (char, char)| count(open) > count(close);
    [('(', ')'), ('[', ']'), ('<', '>')].into_iter().any(is_within) || count('`') % 2 == 1
}

fn ends(letter: char) -> bool {
    matches!(letter, '.' | '!' | '?' | '…' | '。' | '？' | '！')
}

/// A quotation or a bracket ends after the full stop within.
fn closes(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』' | '）')
}

/// Is the full stop after this text part of its last word?
fn is_abbreviation(text: &str) -> bool {
    let word = text
        .rsplit(|letter: char| letter.is_whitespace() || "(\"'“„«".contains(letter))
        .next();
    let word = word.unwrap_or_default();
    let short_number = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let cased = |letter: char| letter.is_lowercase() || letter.is_uppercase();
    let initials = word
        .split('.')
        .all(|part| part.chars().count() == 1 && part.chars().all(cased));
    // "So do I." is one; "on the 3. March", "J. Smith" and "e.g. this" are none.
    (short_number || initials || ABBREVIATIONS.contains(&word.to_lowercase().as_str())) && word != "I"
}

/// The last space before `limit`, or the limit where there is none.
fn space_before(text: &str, limit: usize) -> usize {
    let head = &text[..limit];
    let space = head.rfind(char::is_whitespace);
    space.filter(|at| !head[..*at].trim().is_empty()).unwrap_or(limit)
}

#[cfg(test)]
mod tests;
