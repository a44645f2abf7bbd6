//! The text of an SMS, as it leaves.
use super::segments;
use entities::sms_message::Encoding;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmsText {
    pub body: String,
    pub encoding: Encoding,
    pub segments: i32,
    /// Characters of it that the service has added.
    pub added: usize,
}

impl SmsText {
    /// As somebody has written it.
    pub fn of(body: String) -> Self {
        let (encoding, segments) = segments::of(&body);
        SmsText {
            body,
            encoding,
            segments,
            added: 0,
        }
    }
}
