//! Server-sent events, out of bytes that arrive in any pieces. Source: WHATWG HTML, "Server-sent events".

/// The most that one frame may take: the server's events are far smaller.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// What stood between two blank lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    pub id: Option<String>,
    pub event: Option<String>,
    /// The `data` lines with `\n` between, byte for byte.
    pub data: Vec<u8>,
    has_data: bool,
}

/// The parser of one connection. What a cut left unfinished goes with it: the server sends it again.
#[derive(Default)]
pub struct Frames {
    line: Vec<u8>,
    frame: Frame,
    /// The last byte ended a line as CR, so that an LF now belongs to it.
    after_cr: bool,
    past_first_line: bool,
    overflowed: bool,
}

impl Frames {
    /// The frames that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut complete = Vec::new();
        for &byte in bytes {
            if self.overflowed {
                break;
            }
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    complete.extend(self.end_line());
                }
                _ if self.line.len() + self.frame.size() >= MAX_FRAME_BYTES => self.overflowed = true,
                _ => self.line.push(byte),
            }
        }
        complete
    }

    /// A frame was larger than [`MAX_FRAME_BYTES`]: nothing more is read.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return frame.has_data.then_some(frame);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        self.frame.set(name, value.strip_prefix(b" ").unwrap_or(value));
        None
    }
}

impl Frame {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        let text = || Some(String::from_utf8_lossy(value).into_owned());
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" => self.id = text(),
            b"event" => self.event = text(),
            // A comment has no name; of what is not known nothing depends.
            _ => {}
        }
    }

    fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        length(&self.id) + length(&self.event) + self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: Option<&str>, event: Option<&str>, data: &str) -> Frame {
        Frame {
            id: id.map(str::to_owned),
            event: event.map(str::to_owned),
            data: data.into(),
            has_data: true,
        }
    }

    const STREAM: &str = "\u{feff}: connected\n\nid: 1\nevent: session.ended\ndata: {\"a\":\"ü: b\"}\n\n: heartbeat\r\n\r\n\
        id:2\r\nevent:x\r\ndata:one\r\ndata:  two\r\ndata\r\n\r\nid: 3\rretry: 5\rdata: cr\r\rid: 4\n\ndata: unfinished";

    fn expected() -> Vec<Frame> {
        vec![
            frame(Some("1"), Some("session.ended"), "{\"a\":\"ü: b\"}"),
            frame(Some("2"), Some("x"), "one\n two\n"),
            frame(Some("3"), None, "cr"),
        ]
    }

    #[test]
    fn frames_are_the_same_wherever_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        for at in 0..=bytes.len() {
            let mut frames = Frames::default();
            let mut found = frames.push(&bytes[..at]);
            found.extend(frames.push(&bytes[at..]));
            assert_eq!(found, expected(), "cut at {at}");
        }
        let mut frames = Frames::default();
        let found: Vec<_> = bytes.iter().flat_map(|byte| frames.push(&[*byte])).collect();
        assert_eq!(found, expected(), "byte by byte");
    }

    #[test]
    fn a_frame_is_bounded_and_what_came_before_it_is_not_lost() {
        let mut frames = Frames::default();
        let data = "x".repeat(MAX_FRAME_BYTES - "data: ".len());
        assert_eq!(frames.push(format!("data: {data}\n\n").as_bytes()).len(), 1);
        assert!(!frames.overflowed(), "as large as allowed");
        let found = frames.push(format!("data: small\n\ndata: {data}y\n\ndata: z\n\n").as_bytes());
        assert_eq!(found, [frame(None, None, "small")]);
        assert!(frames.overflowed());
        assert!(frames.push(b"\n\ndata: z\n\n").is_empty());
    }

    #[test]
    fn many_lines_are_bounded_together_and_comments_are_free() {
        let mut frames = Frames::default();
        let line = format!("data: {}\n", "x".repeat(1024 * 1024));
        (0..4).for_each(|_| assert!(frames.push(line.as_bytes()).is_empty()));
        assert!(frames.overflowed());
        let mut frames = Frames::default();
        let comment = format!(": {}\n", "x".repeat(1024 * 1024));
        (0..6).for_each(|_| assert!(frames.push(comment.as_bytes()).is_empty()));
        assert!(!frames.overflowed());
    }
}
