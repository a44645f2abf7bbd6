//! What is left of a model's text for the voice: its words, without what only a reader sees.
//!
//! Models write markdown, emoji and addresses whatever the prompt says, and a voice reads each star aloud. What stands between
//! code fences stays: it may be the whole answer.

/// Without markdown, emoji, tags and URLs, on one line. Links and pictures keep their label, tables their cells. Nothing if
/// there is no letter and no digit.
pub fn spoken(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    // The line before was a heading, a bullet or a row, or an empty one: what follows is no continuation of it.
    let mut was_block = false;
    for line in text.lines() {
        let (line, is_block) = block(line);
        let line = tidy(&inline(&line, NESTED));
        if !line.chars().any(char::is_alphanumeric) {
            was_block = true;
            continue;
        }
        let ends_open = said.ends_with(|last: char| last.is_alphanumeric() || matches!(last, ')' | '"' | '”' | '’'));
        if (was_block || is_block) && ends_open {
            said.push('.');
        }
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(&line);
        was_block = is_block;
    }
    said
}

/// A line without the marks at its start, and whether it is a block of its own.
fn block(line: &str) -> (String, bool) {
    let mut rest = line.trim();
    while let Some(quoted) = rest.strip_prefix('>') {
        rest = quoted.trim_start();
    }
    if rest.starts_with("```") || rest.starts_with("~~~") {
        // One line may be a whole fence; else what follows the marks is the name of a language.
        let inner = rest.trim_start_matches(['`', '~']);
        let is_whole = inner.ends_with("```") || inner.ends_with("~~~");
        return (if is_whole { inner.to_owned() } else { String::new() }, true);
    }
    let marks = rest.len() - rest.trim_start_matches('#').len();
    if (1..=6).contains(&marks) && rest[marks..].starts_with(char::is_whitespace) {
        return (rest[marks..].trim_end_matches('#').to_owned(), true);
    }
    if is_definition(rest) {
        return (String::new(), true);
    }
    if rest.starts_with('|') {
        return (row(rest), true);
    }
    match bullet(rest) {
        Some(item) => (item.to_owned(), true),
        None => (rest.to_owned(), is_numbered(rest)),
    }
}

/// `[name]: https://host`, which a reader does not see either.
fn is_definition(line: &str) -> bool {
    line.starts_with('[')
        && line
            .split_once("]:")
            .is_some_and(|(name, target)| !name.contains(']') && is_url(target.trim()))
}

/// The cells of a table's row; of the line below its head nothing is left.
fn row(line: &str) -> String {
    let cells = line.split('|').map(str::trim);
    let is_cell = |cell: &&str| cell.chars().any(|letter| !matches!(letter, '-' | ':' | ' '));
    cells.filter(is_cell).collect::<Vec<_>>().join(", ")
}

/// What follows a bullet and its box.
fn bullet(line: &str) -> Option<&str> {
    let item = line.strip_prefix(['-', '*', '+', '•', '‣', '–', '—'])?;
    if !item.starts_with(char::is_whitespace) {
        return None;
    }
    let item = item.trim_start();
    let is_box = |mark: &&str| item.starts_with(*mark);
    let boxed = ["[ ]", "[x]", "[X]"].into_iter().find(is_box);
    Some(boxed.map_or(item, |mark| &item[mark.len()..]))
}

fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// Links in the label of a link that are looked at: a picture is one.
const NESTED: u8 = 3;

/// What is left of a line's text, with spaces where something was taken out.
fn inline(line: &str, nested: u8) -> String {
    let mut said = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let before = said.chars().next_back();
        let after = &rest[letter.len_utf8()..];
        let starts_word = !before.is_some_and(char::is_alphanumeric);
        if is_url(rest) || starts_word && is_address(rest) {
            rest = &rest[url_length(rest)..];
            said.push(' ');
            continue;
        }
        rest = match letter {
            '!' if after.starts_with('[') && link(after).is_some() => after,
            '[' => match link(rest) {
                Some((label, behind)) => {
                    match nested.checked_sub(1) {
                        Some(nested) => said.push_str(&inline(label, nested)),
                        None => said.push(' '),
                    }
                    behind
                }
                None => after,
            },
            '<' => match tag(rest) {
                Some(behind) => {
                    said.push(' ');
                    behind
                }
                None => {
                    said.push(letter);
                    after
                }
            },
            '&' => match entity(rest) {
                Some((meant, behind)) => {
                    said.push(meant);
                    behind
                }
                None => {
                    said.push(letter);
                    after
                }
            },
            // An escape: what follows is meant as it is, but a star is not spoken either.
            '\\' if after.starts_with(|next: char| next.is_ascii_punctuation()) => after,
            _ => {
                said.extend(kept(letter, before, after));
                after
            }
        };
    }
    said
}

/// What becomes of one letter.
fn kept(letter: char, before: Option<char>, after: &str) -> Option<char> {
    let next = after.chars().next();
    let between = |is: fn(char) -> bool| before.is_some_and(is) && next.is_some_and(is);
    match letter {
        // A product is spoken: `3 * 4`.
        '*' => (between(|side| side.is_ascii_digit()) || between(|side| side == ' ')).then_some('*'),
        '`' | ']' => None,
        // `~5` is about five; else something is crossed out.
        '~' => next.is_some_and(|next| next.is_ascii_digit()).then_some('~'),
        '•' | '‣' => Some(','),
        // Letters need it in some scripts; of joined pictures nothing is left.
        '\u{200d}' => before.is_some_and(|before| before != ' ').then_some(letter),
        // Part of a name: `snake_case`. Else emphasis.
        '_' => between(char::is_alphanumeric).then_some(' '),
        _ if is_joiner(letter) => None,
        _ if is_picture(letter) || letter.is_control() => Some(' '),
        _ => Some(letter),
    }
}

/// `[label](target)` or `[label][name]`: the label, and what follows.
fn link(text: &str) -> Option<(&str, &str)> {
    let end = closing(text, '[', ']')?;
    let (label, after) = (&text[1..end], &text[end + 1..]);
    let target = match after.chars().next()? {
        '(' => closing(after, '(', ')')?,
        '[' => closing(after, '[', ']')?,
        _ => return None,
    };
    Some((label, &after[target + 1..]))
}

/// Where the bracket ends that the text begins with.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, letter)| {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
        }
        (depth == 0).then_some(at)
    })
}

/// `<b>`, `</b>`, `<break time="1s"/>`, `<https://host>`: what follows it. A voice must not be given orders either.
fn tag(text: &str) -> Option<&str> {
    let inner = &text[1..];
    if !inner.starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')) {
        return None;
    }
    inner.find('>').map(|end| &inner[end + 1..])
}

fn entity(text: &str) -> Option<(char, &str)> {
    [
        ("&amp;", '&'),
        ("&nbsp;", ' '),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&#39;", '\''),
    ]
    .into_iter()
    .find_map(|(name, meant)| Some((meant, text.strip_prefix(name)?)))
}

fn is_url(text: &str) -> bool {
    begins(text, &["http://", "https://", "ftp://"])
}

/// One without the scheme that URLs have; only at the start of a word.
fn is_address(text: &str) -> bool {
    begins(text, &["www.", "mailto:"])
}

fn begins(text: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| {
        let begun = text
            .get(..start.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(start));
        begun && text[start.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '[')
    })
}

/// To its end, but for the punctuation of the sentence around it.
fn url_length(text: &str) -> usize {
    let is_end =
        |letter: char| letter.is_whitespace() || matches!(letter, '<' | '>' | '"' | '|' | '`' | '，' | '。' | '）');
    let url = &text[..text.find(is_end).unwrap_or(text.len())];
    let closes = |letter: char| {
        matches!(
            letter,
            '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '*' | '_' | '\'' | '’' | '”'
        )
    };
    url.trim_end_matches(closes).len()
}

/// Seen as a picture, or as nothing.
fn is_picture(letter: char) -> bool {
    matches!(u32::from(letter),
        0x2190..=0x21FF // arrows
        | 0x2300..=0x23FF // watches and keys
        | 0x2460..=0x24FF // letters in circles
        | 0x2500..=0x27BF // frames, shapes, symbols, dingbats
        | 0x2900..=0x297F | 0x2B00..=0x2BFF // arrows, stars
        | 0x3030 | 0x303D | 0x3297 | 0x3299
        | 0xE000..=0xF8FF // nobody knows what
        | 0x1F000..=0x1FAFF // emoji and flags
        | 0xFFFD)
}

/// Joins or turns pictures; of no width, and meant for no ear.
fn is_joiner(letter: char) -> bool {
    matches!(u32::from(letter),
        0x00AD | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E | 0x2060..=0x2069 | 0x20E3 | 0xFE00..=0xFE0F | 0xFEFF
        | 0xE0000..=0xE01EF)
}

/// One space at a time, and none before what ends a sentence; no brackets with nothing in them.
fn tidy(line: &str) -> String {
    let mut said = String::with_capacity(line.len());
    for word in line.replace("( )", " ").replace("()", " ").split_whitespace() {
        let is_mark = word
            .chars()
            .all(|letter| matches!(letter, '.' | ',' | ';' | '!' | '?' | '…'));
        // What a mark belonged to may be gone.
        if is_mark && (said.is_empty() || said.ends_with(['.', ',', ';', ':', '!', '?', '…'])) {
            continue;
        }
        if !said.is_empty() && !is_mark {
            said.push(' ');
        }
        said.push_str(word);
    }
    said
}

#[cfg(test)]
#[path = "spoken_tests.rs"]
mod tests;
