//! Reads messages from datagrams and streams. Everything is limited before it is looked at.
use super::{
    Message,
    head::{CONTENT_LENGTH, Head, MAX_BYTES, MAX_HEADER_BYTES, Unreadable},
};
use bytes::{Buf, Bytes, BytesMut};

/// A message, or one of the signs of life between messages. Source: RFC 5626, section 3.5.1.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time is made, and handed on at once")]
pub enum Frame {
    Message(Message),
    /// CRLF CRLF: the peer wants a `Pong`, which is one CRLF.
    Ping,
    Pong,
}

/// Reads one datagram. Without a Content-Length the body reaches to its end; what stands behind the body is left out.
/// Source: RFC 3261, section 18.3.
pub fn read_datagram(bytes: &[u8]) -> Result<Message, Unreadable> {
    if bytes.len() > MAX_BYTES {
        return Err(Unreadable::TooLong);
    }
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let bytes = &bytes[blank..];
    let Some((head, body_at)) = head_of(bytes) else {
        return Err(if may_be_sip(bytes) {
            Unreadable::CutOff
        } else {
            Unreadable::NotSip
        });
    };
    let head = Head::read(head)?;
    let rest = &bytes[body_at..];
    let body = match head.content_length()? {
        Some(length) => rest.get(..length).ok_or(Unreadable::CutOff)?,
        None => rest,
    };
    head.with_body(Bytes::copy_from_slice(body))
}

/// Cuts a stream of bytes into messages.
#[derive(Default)]
pub struct StreamReader {
    bytes: BytesMut,
    /// Bytes at the front in which no end of a head begins.
    searched: usize,
    /// Bytes of the message at the front, where its head has been read.
    needed: usize,
    /// The last frame was a line end by itself: with one more it is the second half of a ping.
    half_ping: bool,
}

impl StreamReader {
    pub fn new() -> Self {
        StreamReader::default()
    }

    /// Takes what was read of the stream. Call `next` until it answers `None` before the next piece: what is kept is bounded then,
    /// by one message and one piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Something of a message is there whose rest is awaited.
    pub fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The next frame; `None` if more bytes are needed.
    ///
    /// # Errors
    /// For a message that cannot be dealt with, which has been left out then; and, where `Unreadable::ends_stream` says so, for what
    /// is not SIP, is too long, or has no Content-Length, without which nobody knows where the next message begins.
    #[expect(
        clippy::should_implement_trait,
        reason = "it fails, and a stream that waits is not at its end"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, Unreadable> {
        if let Some(frame) = self.sign_of_life() {
            return Ok(Some(frame));
        }
        if self.bytes.len() < self.needed {
            return Ok(None);
        }
        let Some((head, body_at)) = head_after(&self.bytes, self.searched) else {
            if self.bytes.len() > MAX_BYTES {
                return Err(Unreadable::TooLong);
            }
            if !may_be_sip(&self.bytes) {
                return Err(Unreadable::NotSip);
            }
            self.searched = self.bytes.len().saturating_sub(3);
            return Ok(None);
        };
        if body_at > MAX_BYTES {
            return Err(Unreadable::TooLong);
        }
        let head = Head::read(head)?;
        let length = head.content_length()?.ok_or(Unreadable::Missing(CONTENT_LENGTH))?;
        let end = body_at.saturating_add(length);
        if end > MAX_BYTES {
            return Err(Unreadable::TooLong);
        }
        if self.bytes.len() < end {
            self.needed = end;
            return Ok(None);
        }
        let message = head.with_body(Bytes::copy_from_slice(&self.bytes[body_at..end]));
        self.drop_front(end);
        self.half_ping = false;
        message.map(Frame::Message).map(Some)
    }

    /// Line ends between messages: two are a ping, one is a pong. Bare ones mean nothing.
    fn sign_of_life(&mut self) -> Option<Frame> {
        loop {
            if self.bytes.starts_with(b"\r\n\r\n") {
                self.drop_front(4);
                self.half_ping = false;
                return Some(Frame::Ping);
            }
            if self.bytes.starts_with(b"\r\n") {
                self.drop_front(2);
                self.half_ping = !self.half_ping;
                return Some(if self.half_ping { Frame::Pong } else { Frame::Ping });
            }
            let run = |of: u8| self.bytes.iter().take_while(|byte| **byte == of).count();
            let bare = match (run(b'\n'), run(b'\r')) {
                (0, 0) => return None,
                // It may be the first half of a line end.
                (0, 1) if self.bytes.len() == 1 => return None,
                (0, 1) => 1,
                (0, returns) => returns - 1,
                (feeds, _) => feeds,
            };
            self.drop_front(bare);
        }
    }

    fn drop_front(&mut self, length: usize) {
        self.bytes.advance(length);
        self.searched = 0;
        self.needed = 0;
    }
}

/// The head without its empty line, and where the body begins.
fn head_of(bytes: &[u8]) -> Option<(&[u8], usize)> {
    head_after(bytes, 0)
}

/// The same, if no end of a head begins before `from`. Line ends may be bare.
fn head_after(bytes: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        let after = match bytes.get(at + 1..)? {
            [b'\n', ..] => at + 2,
            [b'\r', b'\n', ..] => at + 3,
            _ => {
                at += 1;
                continue;
            }
        };
        return Some((bytes[..at].trim_ascii_end(), after));
    }
}

/// May this become a SIP message? Its first line ends in, or begins with, a version of SIP.
fn may_be_sip(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"SIP/";
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end > MAX_HEADER_BYTES => false,
        Some(end) => {
            let line = bytes[..end].trim_ascii();
            line.starts_with(NAME) || line.windows(NAME.len()).any(|window| window == NAME)
        }
        None if bytes.len() > MAX_HEADER_BYTES => false,
        None => bytes
            .iter()
            .all(|byte| !byte.is_ascii_control() || matches!(byte, b'\r' | b'\t')),
    }
}
