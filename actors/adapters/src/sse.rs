//! The event stream that answers come in. Source: WHATWG HTML, "Server-sent events".
//!
//! Fed with whatever pieces the network gives: a piece may end within a line, a CRLF or a letter.
use std::collections::VecDeque;

/// Bytes of one line, where nothing else is said; what a model's provider sends in one is a few words.
const MAX_LINE: usize = 256 * 1024;
const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Empty: an ordinary message.
    pub name: String,
    pub data: String,
}

#[derive(Debug)]
pub struct Parser {
    longest: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
    event: Event,
    has_data: bool,
    whole: VecDeque<Event>,
}

impl Default for Parser {
    fn default() -> Self {
        Parser::with_longest(MAX_LINE)
    }
}

impl Parser {
    /// `longest`: bytes of a line.
    pub fn with_longest(longest: usize) -> Self {
        Parser {
            longest,
            line: Vec::new(),
            after_cr: false,
            begun: false,
            event: Event::default(),
            has_data: false,
            whole: VecDeque::new(),
        }
    }

    /// Takes the next bytes. Fails on a line that is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() == self.longest => return Err("a line of its event stream is too long"),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// Events that are complete, oldest first.
    pub fn next(&mut self) -> Option<Event> {
        self.whole.pop_front()
    }

    /// The body has ended: what a sloppy server left open counts.
    pub fn finish(&mut self) {
        self.end_line();
        self.dispatch();
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            // Comments have no name; `id` and `retry` are for those who reconnect.
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            self.whole.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut at every place.
    #[test]
    fn pieces_may_end_anywhere() {
        let stream = "\u{feff}: hi\rdata: ü\r\ndata:2\n\nevent: ping\ndata\n\n\r\nevent: lost\n\nid: 1\ndata:  three: 3\r\r\ndata: open";
        let event = |name: &str, data: &str| Event {
            name: name.into(),
            data: data.into(),
        };
        let expected = [
            event("", "ü\n2"),
            event("ping", ""),
            event("", " three: 3"),
            event("", "open"),
        ];
        for at in 0..stream.len() {
            let mut parser = Parser::default();
            for piece in [&stream.as_bytes()[..at], &stream.as_bytes()[at..]] {
                parser.push(piece).unwrap();
            }
            parser.finish();
            assert_eq!(
                std::iter::from_fn(|| parser.next()).collect::<Vec<_>>(),
                expected,
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_line_has_a_limit() {
        let mut parser = Parser::default();
        parser.push(&vec![b'x'; MAX_LINE]).unwrap();
        parser.push(b"\nnext").unwrap();
        assert!(parser.push(&vec![b'x'; MAX_LINE - 3]).is_err());
    }
}
