//! The codecs of phones, and their numbers and names in RTP (RFC 3551, RFC 7587).

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    Pcmu,
    Pcma,
    G722,
    Opus,
}

impl Codec {
    pub const ALL: [Self; 4] = [Self::Pcmu, Self::Pcma, Self::G722, Self::Opus];

    /// As `a=rtpmap` writes it.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Pcmu => "PCMU/8000",
            Self::Pcma => "PCMA/8000",
            // Its sound has 16 kHz; its clock has 8 kHz by an old mistake that stays (RFC 3551 §4.5.2).
            Self::G722 => "G722/8000",
            Self::Opus => "opus/48000/2",
        }
    }

    /// Of RTP timestamps, in Hz.
    pub fn clock(self) -> u32 {
        match self {
            Self::Pcmu | Self::Pcma | Self::G722 => 8000,
            Self::Opus => 48_000,
        }
    }

    /// The number in our offers.
    pub fn payload_type(self) -> u8 {
        match self {
            Self::Pcmu => 0,
            Self::Pcma => 8,
            Self::G722 => 9,
            Self::Opus => 111,
        }
    }

    /// The number in our offers of the events beside this codec.
    pub fn event_payload_type(self) -> u8 {
        match self {
            Self::Pcmu | Self::Pcma | Self::G722 => 101,
            Self::Opus => 102,
        }
    }

    /// Of `PCMU/8000`, in any case, with or without the number of channels.
    pub(super) fn of_encoding(encoding: &str) -> Option<Self> {
        let mut parts = encoding.split('/');
        let (name, clock, channels) = (parts.next()?, parts.next()?, parts.next().unwrap_or("1"));
        let found = Self::ALL.into_iter().find(|codec| {
            let known = codec.encoding().split('/').next();
            known.is_some_and(|known| known.eq_ignore_ascii_case(name))
        })?;
        let expected = if found == Self::Opus { "2" } else { "1" };
        (clock == found.clock().to_string() && channels == expected).then_some(found)
    }

    /// Of a number that needs no `a=rtpmap`.
    pub(super) fn of_static(payload_type: u8) -> Option<Self> {
        match payload_type {
            0 => Some(Self::Pcmu),
            8 => Some(Self::Pcma),
            9 => Some(Self::G722),
            _ => None,
        }
    }
}
