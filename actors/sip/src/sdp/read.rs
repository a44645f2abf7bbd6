//! A session description as it came: what we understand of it. Everything else is skipped, not refused.
use std::net::IpAddr;

use super::{Codec, Crypto, Direction, Mismatch};

/// Bytes; a phone's description has some hundred.
const MOST_BYTES: usize = 16 * 1024;
const MOST_STREAMS: usize = 16;
const MOST_FORMATS: usize = 32;
const MOST_CRYPTO: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Description {
    pub address: Option<IpAddr>,
    pub direction: Option<Direction>,
    pub streams: Vec<Stream>,
}

/// One `m=` section.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// `audio`, `video`, `image` …, as a refusal repeats it.
    pub kind: String,
    pub protocol: String,
    pub words: Vec<String>,
    pub is_audio: bool,
    pub is_secure: bool,
    pub port: u16,
    pub address: Option<IpAddr>,
    pub direction: Option<Direction>,
    pub ptime_ms: Option<u32>,
    pub rtcp_mux: bool,
    pub crypto: Vec<Crypto>,
    /// Number, and what `a=rtpmap` says of it.
    encodings: Vec<(u8, String)>,
}

/// What a number stands for.
pub(super) struct Format<'a> {
    payload_type: u8,
    encoding: Option<&'a str>,
}

impl Format<'_> {
    pub fn codec(&self) -> Option<Codec> {
        match self.encoding {
            Some(encoding) => Codec::of_encoding(encoding),
            None => Codec::of_static(self.payload_type),
        }
    }
}

impl Description {
    pub fn read(bytes: &[u8]) -> Result<Self, Mismatch> {
        if bytes.len() > MOST_BYTES {
            return Err(Mismatch::Unreadable("longer than 16 KiB"));
        }
        let text = String::from_utf8_lossy(bytes);
        let mut lines = lines(&text);
        if lines.next() != Some(("v", "0")) {
            return Err(Mismatch::Unreadable("it does not begin with v=0"));
        }
        let mut found = Self::default();
        for (kind, value) in lines {
            match kind {
                "m" if found.streams.len() == MOST_STREAMS => {
                    return Err(Mismatch::Unreadable("more than 16 streams"));
                }
                "m" => found.streams.push(Stream::begin(value)?),
                "c" => *found.place() = Some(address(value)?),
                "a" => found.attribute(value),
                _ => {}
            }
        }
        Ok(found)
    }

    fn place(&mut self) -> &mut Option<IpAddr> {
        match self.streams.last_mut() {
            Some(stream) => &mut stream.address,
            None => &mut self.address,
        }
    }

    fn attribute(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        if let Some(direction) = direction(name) {
            match self.streams.last_mut() {
                Some(stream) => stream.direction = Some(direction),
                None => self.direction = Some(direction),
            }
            return;
        }
        let Some(stream) = self.streams.last_mut() else { return };
        match name {
            "rtpmap" => stream.map(value),
            "ptime" => stream.ptime_ms = value.parse().ok().filter(|ptime| *ptime > 0),
            "rtcp-mux" => stream.rtcp_mux = true,
            "crypto" if stream.crypto.len() < MOST_CRYPTO => stream.crypto.extend(Crypto::read(value)),
            _ => {}
        }
    }
}

impl Stream {
    /// `audio 5004 RTP/AVP 0 8 101`
    fn begin(value: &str) -> Result<Self, Mismatch> {
        let mut words = value.split_ascii_whitespace();
        let (Some(kind), Some(port), Some(protocol)) = (words.next(), words.next(), words.next()) else {
            return Err(Mismatch::Unreadable("an m= line is cut off"));
        };
        // `5004/2` are several ports, of which the first counts for us.
        let port = port.split('/').next().and_then(|port| port.parse().ok());
        let is_plain = matches!(protocol, "RTP/AVP" | "RTP/AVPF");
        let is_secure = matches!(protocol, "RTP/SAVP" | "RTP/SAVPF");
        Ok(Self {
            is_audio: kind == "audio" && (is_plain || is_secure),
            is_secure,
            kind: kind.to_owned(),
            protocol: protocol.to_owned(),
            port: port.ok_or(Mismatch::Unreadable("an m= line has no port"))?,
            words: words.take(MOST_FORMATS).map(str::to_owned).collect(),
            ..Self::default()
        })
    }

    /// `101 telephone-event/8000`
    fn map(&mut self, value: &str) {
        let Some((number, encoding)) = value.split_once(' ') else {
            return;
        };
        if let Ok(number) = number.parse()
            && self.encodings.len() < MOST_FORMATS
        {
            self.encodings.push((number, encoding.trim().to_owned()));
        }
    }

    /// In the order of the `m=` line.
    pub fn formats(&self) -> impl Iterator<Item = (u8, Format<'_>)> {
        let numbers = self.words.iter().filter_map(|word| word.parse::<u8>().ok());
        numbers.filter(|number| *number < 128).map(move |payload_type| {
            let encoding = self.encodings.iter().find(|(number, _)| *number == payload_type);
            let encoding = encoding.map(|(_, encoding)| encoding.as_str());
            (payload_type, Format { payload_type, encoding })
        })
    }

    /// The number of RFC 4733 events on the clock of the codec; if there are none, of those on 8000 Hz.
    pub fn telephone_event(&self, codec: Codec) -> Option<u8> {
        let on = |clock: u32| {
            let wanted = format!("telephone-event/{clock}");
            let mut formats = self.formats();
            formats.find_map(|(number, format)| {
                let encoding = format.encoding?;
                let encoding = encoding.strip_suffix("/1").unwrap_or(encoding);
                encoding.eq_ignore_ascii_case(&wanted).then_some(number)
            })
        };
        on(codec.clock()).or_else(|| on(8000))
    }

    /// In Hz, of the events with this number.
    pub fn event_clock(&self, number: u8) -> u32 {
        let found = self.encodings.iter().find(|(of, _)| *of == number);
        let clock = found
            .and_then(|(_, encoding)| encoding.split('/').nth(1))
            .and_then(|clock| clock.parse().ok());
        clock.unwrap_or(8000)
    }
}

/// Is there an `o=` line?
pub(super) fn has_origin(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes.get(..MOST_BYTES).unwrap_or(bytes));
    lines(&text).any(|(kind, _)| kind == "o")
}

/// Kind and value of each; lines of any other form are left out.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(['\r', '\n'])
        .filter_map(|line| line.split_once('='))
        .map(|(kind, value)| (kind.trim(), value.trim()))
}

/// `IN IP4 192.0.2.1/127`. A name is not looked up: whoever sends one chooses whom we ask.
fn address(value: &str) -> Result<IpAddr, Mismatch> {
    let word = value
        .split_ascii_whitespace()
        .nth(2)
        .and_then(|word| word.split('/').next());
    let found = word.and_then(|word| word.parse().ok());
    found.ok_or(Mismatch::Unreadable("a c= line without an IP address"))
}

fn direction(name: &str) -> Option<Direction> {
    let all = [
        Direction::SendRecv,
        Direction::SendOnly,
        Direction::RecvOnly,
        Direction::Inactive,
    ];
    all.into_iter().find(|direction| direction.as_str() == name)
}
