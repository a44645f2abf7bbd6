//! What a leg and its owner share: what was agreed on, what is ordered and what is told.
use super::{codec::Codec, relay::Inlet, rtcp::Quality, speaking::Format, srtp::Keys};
use crate::{
    answering::{Signal, Verdict},
    tones::Tone,
};
use ipnet::IpNet;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Which way sound goes, as this side sees it. Source: RFC 8866, section 6.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Both,
    SendOnly,
    ReceiveOnly,
    Inactive,
}

impl Direction {
    pub fn sends(self) -> bool {
        matches!(self, Direction::Both | Direction::SendOnly)
    }

    pub fn receives(self) -> bool {
        matches!(self, Direction::Both | Direction::ReceiveOnly)
    }
}

/// What both sides agreed on in their SDP.
#[derive(Clone, Debug)]
pub struct Params {
    /// The other side's address of RTP. The caller has looked whether it may be sent to.
    pub remote: SocketAddr,
    pub codec: Codec,
    pub payload_type: u8,
    /// `None`: keys are pressed and heard in the voice.
    pub telephone_event: Option<u8>,
    /// How long each packet of ours is, 10 to 60 in tens; Opus always has 20.
    pub ptime_ms: u32,
    pub direction: Direction,
    /// `None`: RTP as it is.
    pub crypto: Option<Keys>,
    /// RTCP comes and goes by the port of RTP.
    pub rtcp_mux: bool,
    /// Where sound may come from beside `remote`.
    pub allowed: Vec<IpNet>,
    /// `remote` cannot be reached, such as a private address of a trunk in the internet: whoever sends first is the other side.
    pub any_source: bool,
}

impl Params {
    pub fn format(&self) -> Format {
        Format {
            codec: self.codec,
            payload_type: self.payload_type,
            telephone_event: self.telephone_event,
            ptime_ms: self.ptime_ms,
        }
    }
}

/// What a leg tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtpEvent {
    /// Of the other side.
    FirstPacket,
    /// It sends from another address now; once.
    Moved,
    /// Nothing came within 10 s of the pick-up.
    NeverHeard,
    /// Nothing came for 30 s. Told again if something comes and that happens again.
    HeardNoMore,
    /// Who picked up; once, if it was asked for.
    Answering(Verdict),
    Beep,
    /// To a machine: the message begins now.
    Speak,
    /// The machine talks on: the message begins anew with the next `Speak`.
    Wait,
    /// The first sound of ours after the pick-up went out; once.
    FirstSound,
    /// Before somebody picks up.
    Tone(Tone),
    /// A key that went on to another leg: the bridge is not told of it.
    Relayed(char),
    /// Of a leg that has failed. It cannot tell that itself: its owner knows it by the end of the events.
    Gone,
}

impl From<Signal> for RtpEvent {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Verdict(verdict) => RtpEvent::Answering(verdict),
            Signal::Beep => RtpEvent::Beep,
            Signal::Speak => RtpEvent::Speak,
            Signal::Wait => RtpEvent::Wait,
        }
    }
}

/// When what happened, for who measures how soon a greeting is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    pub picked_up_at: Option<Instant>,
    /// Of the other side's first words.
    pub greeting_began_at: Option<Instant>,
    /// Of the last one until ours began, or until it was known who picked up.
    pub greeting_ended_at: Option<Instant>,
    /// The first packet with a sound of ours after the pick-up.
    pub first_sound_at: Option<Instant>,
}

#[derive(Debug)]
pub enum Order {
    PickedUp {
        detect: bool,
    },
    Press(String),
    Hold(bool),
    Retarget(Box<Params>),
    /// To that leg's inlet; `None`: back to the bridge.
    Relay(Option<Arc<Inlet>>),
    /// Test switch: it panics.
    Fail,
}

/// What a leg shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub quality: Quality,
    pub last_heard: Option<Instant>,
    pub strangers: u64,
    pub moments: Moments,
}

#[derive(Debug, Default)]
pub struct Shared(Mutex<View>);

impl Shared {
    pub fn view(&self) -> View {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
