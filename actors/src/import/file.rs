//! A list's file: how its cells are parted, and whether its quotes are whole. Read over once, before anything is stored: a quote that
//! is never closed would take all rows after it for one cell.
use csv::{Reader, ReaderBuilder};
use entities::import::Delimiter;

/// What parts the cells. Of a file in which several could, the first with which the first row names a column that is known.
pub fn delimiter(body: &str, is_known: impl Fn(&str) -> bool) -> Delimiter {
    let names_one = |delimiter: &Delimiter| {
        let mut first = csv::StringRecord::new();
        let read = reader(body.as_bytes(), *delimiter).read_record(&mut first);
        matches!(read, Ok(true)) && first.iter().any(&is_known)
    };
    let all = [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab];
    all.into_iter().find(names_one).unwrap_or(Delimiter::Comma)
}

pub fn reader(bytes: &[u8], delimiter: Delimiter) -> Reader<&[u8]> {
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter.byte())
        .from_reader(bytes)
}

/// Where in a cell.
#[derive(Clone, Copy)]
enum At {
    Begin,
    Bare,
    /// The line on which the quote was opened.
    Quoted(u64),
    /// Behind a quote in a quoted cell: the first of two, or the last.
    Behind(u64),
    /// Behind the last: only blanks come before the next cell.
    Closed(u64),
}

/// Refuses a cell whose quotes do not end where the cell does; says the line.
pub fn check_quotes(body: &str, delimiter: Delimiter) -> Result<(), String> {
    let (mut at, mut line) = (At::Begin, 1);
    // A byte order mark is not part of the first cell.
    for byte in body.trim_start_matches('\u{feff}').bytes() {
        let parts = byte == delimiter.byte() || matches!(byte, b'\r' | b'\n');
        at = match (at, byte) {
            (At::Begin, b'"') => At::Quoted(line),
            (At::Quoted(from), b'"') => At::Behind(from),
            (At::Quoted(from), _) => At::Quoted(from),
            (At::Behind(from), b'"') => At::Quoted(from),
            _ if parts => At::Begin,
            (At::Behind(from) | At::Closed(from), b' ' | b'\t') => At::Closed(from),
            (At::Behind(from) | At::Closed(from), _) => return Err(broken(from, line)),
            (At::Begin | At::Bare, _) => At::Bare,
        };
        line += u64::from(byte == b'\n');
    }
    match at {
        At::Quoted(from) => Err(format!(
            "line {from}: a cell begins with a quote (\") that is never closed, so all rows after it would be one cell; close it, or \
             double a quote that belongs to the text"
        )),
        At::Begin | At::Bare | At::Behind(_) | At::Closed(_) => Ok(()),
    }
}

fn broken(from: u64, line: u64) -> String {
    let begun = if from == line {
        String::new()
    } else {
        format!(", of a cell that begins on line {from}")
    };
    format!("line {line}: there is text after a closing quote (\"){begun}; double a quote that belongs to the text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_whole_or_their_line_is_told() {
        for (body, said) in [
            ("a,b\n1,2\n", None),
            ("\u{feff}\"a\",\"b\"\r\n\"1\",\"2\"", None),
            ("a\n\"two\nlines\"\n\"a \"\"word\"\"\"\n", None),
            ("a,b\n5\" pipe,it's\n", None),
            ("a,b\n\"1\" ,\"2\"\t\n", None),
            ("a,b\n\"\",\n\"\"\"\"\n", None),
            ("a\n1\n\"Ann\n+1\n+2\n", Some("line 3: a cell begins")),
            // The next quote, many rows on, closes it.
            (
                "a\n1\n\"Ann,+1\n+2\n+3\n\"Bob\",+4\n",
                Some("line 6: there is text after a closing quote (\"), of a cell that begins on line 3"),
            ),
            ("a\n\"1\"2\n", Some("line 2: there is text after a closing quote (\");")),
            ("\"a", Some("line 1: a cell begins")),
        ] {
            let found = check_quotes(body, Delimiter::Comma).err();
            match said {
                None => assert_eq!(found, None, "{body:?}"),
                Some(said) => assert!(
                    found.as_ref().is_some_and(|why| why.starts_with(said)),
                    "{body:?}: {found:?}"
                ),
            }
        }
        assert!(check_quotes("a;b\n\"1\";2", Delimiter::Semicolon).is_ok());
        assert!(check_quotes("a\tb\n\"1\"\t2", Delimiter::Tab).is_ok());
        assert!(check_quotes("a;b\n\"1\",2", Delimiter::Semicolon).is_err());
    }

    #[test]
    fn the_delimiter_is_the_one_with_which_a_column_is_known() {
        let found = |body| delimiter(body, |name| name.trim_start_matches('\u{feff}') == "phone_number");
        for (body, expected) in [
            ("phone_number,note\n", Delimiter::Comma),
            ("phone_number;note\n", Delimiter::Semicolon),
            ("\u{feff}note;phone_number\r\n", Delimiter::Semicolon),
            ("phone_number\tnote\n", Delimiter::Tab),
            ("phone_number;first, last\n", Delimiter::Semicolon),
            ("\"a;b\",phone_number\n", Delimiter::Comma),
            ("phone_number\n", Delimiter::Comma),
            ("nothing;known\n", Delimiter::Comma),
            ("", Delimiter::Comma),
        ] {
            assert_eq!(found(body), expected, "{body:?}");
        }
    }
}
