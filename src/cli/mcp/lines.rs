//! Lines of standard input, none longer than can be kept.
use std::io::{self, BufRead};

/// Bytes of a line.
pub const MAX_LINE: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// It was read to its end, and not kept.
    TooLong,
}

/// The next line without its end; `None` after the last one.
pub fn next(input: &mut impl BufRead, most: usize) -> io::Result<Option<Line>> {
    let (mut line, mut is_too_long, mut is_begun) = (Vec::new(), false, false);
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() && !is_begun {
            return Ok(None);
        }
        is_begun = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        is_too_long |= line.len() + piece.len() > most;
        match is_too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(piece),
        }
        let (used, is_last) = (end.map_or(bytes.len(), |end| end + 1), bytes.is_empty());
        input.consume(used);
        if end.is_some() || is_last {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Text(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(text: &str, most: usize, buffer: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(buffer, text.as_bytes());
        std::iter::from_fn(|| next(&mut input, most).unwrap()).collect()
    }

    #[test]
    fn each_line_is_read_once_however_it_comes() {
        let text = |words: &str| Line::Text(words.into());
        for buffer in [1, 2, 3, 7, 1000] {
            let read = |text: &str| lines(text, 5, buffer);
            assert_eq!(read("a\nbc\n"), [text("a"), text("bc")]);
            assert_eq!(read("a\n\nbc"), [text("a"), text(""), text("bc")]);
            assert_eq!(read("12345\n123456\n12\n"), [text("12345"), Line::TooLong, text("12")]);
            assert_eq!(read("1234567890123"), [Line::TooLong]);
            assert_eq!(read(""), []);
        }
    }
}
