//! One browser's connection: a task that takes what comes in, sends what goes out, and ends with its owner or its page.
//!
//! Its three clocks are one: the next frame of sound (every 20 ms while the agent speaks), the next deadline of the
//! protocols, and the moment at which the browser counts as lost. Without any of them it sleeps until a packet comes.
use super::{
    Change, Codec,
    codec::{PayloadDecoder, PayloadEncoder},
    data::{self, Data},
    mux::{Datagram, Seat, dropped},
    speech::Speech,
};
use crate::{bridge::MediaBridge, threads::until};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use str0m::{
    Event, IceConnectionState, Input, Output, Rtc,
    media::{MediaKind, Mid},
    net::{Protocol, Receive},
};
use tokio::sync::{mpsc, oneshot};

/// Without a packet for so long a browser is lost; it checks the connection every 2.5 s even if it has nothing to say.
const LOST_AFTER: Duration = Duration::from_secs(3);
/// Without sound for so long what was being said is over, though the browser is there.
const MUTE_AFTER: Duration = Duration::from_secs(1);
/// Who wakes so much later than it wanted was held up itself, and says nothing of the browser's silence.
const HELD_UP: Duration = Duration::from_millis(500);
/// Datagrams that are taken before it looks at its clocks.
const BURST: usize = 16;
/// How long a connection that failed to go on is left alone.
const STUMBLED: Duration = Duration::from_millis(50);
/// Data channels that a page may open; ours is one, and the others are closed.
const CHANNELS: usize = 8;

/// Tells the owner, each thing once.
pub struct Herald {
    changed: Box<dyn Fn(Change) + Send + Sync>,
    state: Presence,
}

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Coming,
    Here,
    Gone,
    /// Whatever happens now concerns nobody.
    Over,
}

impl Herald {
    pub fn new(changed: Box<dyn Fn(Change) + Send + Sync>) -> Self {
        let state = Presence::Coming;
        Herald { changed, state }
    }

    fn tell(&mut self, change: Change) {
        let (from, to) = match change {
            Change::Connected => (Presence::Coming, Presence::Here),
            Change::Lost => (Presence::Here, Presence::Gone),
            Change::Back => (Presence::Gone, Presence::Here),
        };
        if self.state == from {
            self.state = to;
            (self.changed)(change);
        }
    }
}

impl Drop for Herald {
    /// However the task ended: who believes that the browser is there must hear that it is not.
    fn drop(&mut self) {
        self.tell(Change::Lost);
    }
}

pub struct Link {
    rtc: Rtc,
    seat: Seat,
    bridge: Arc<MediaBridge>,
    herald: Herald,
    /// The first audio of the offer.
    mid: Option<Mid>,
    decoder: PayloadDecoder,
    speech: Speech,
    data: Data,
    channels: usize,
    /// When something came.
    came_at: Instant,
    /// Where sound and data came from last, which is where ours go: an address that has shown that it knows the secret. The
    /// protocols would stay with the first one until it has been silent for 15 s.
    path: Option<SocketAddr>,
    /// When sound came, while it comes.
    heard_at: Option<Instant>,
    /// When the protocols want to be asked again.
    wanted_at: Instant,
}

impl Link {
    pub fn new(
        rtc: Rtc,
        codec: Codec,
        encoder: PayloadEncoder,
        decoder: PayloadDecoder,
        seat: Seat,
        bridge: Arc<MediaBridge>,
        herald: Herald,
    ) -> Self {
        Link {
            rtc,
            seat,
            bridge,
            herald,
            mid: None,
            decoder,
            speech: Speech::new(codec, encoder),
            data: Data::default(),
            channels: 0,
            came_at: Instant::now(),
            path: None,
            heard_at: None,
            wanted_at: Instant::now(),
        }
    }

    /// Until the connection is closed from either side.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Datagram>, mut dropped: oneshot::Receiver<()>) {
        let bridge = self.bridge.clone();
        let mut notes = bridge.notes();
        while self.rtc.is_alive() {
            self.drain();
            let now = Instant::now();
            if self.data.tell(&mut self.rtc, &self.bridge, now) {
                self.hang_up();
                break;
            }
            // Telling may have left packets to send.
            self.drain();
            let due = self.wanted_at.min(self.next(now));
            tokio::select! {
                biased;
                _ = &mut dropped => {
                    self.hang_up();
                    break;
                }
                Some(datagram) = inbox.recv() => {
                    self.take(&datagram);
                    for _ in 1..BURST {
                        let Ok(datagram) = inbox.try_recv() else { break };
                        self.take(&datagram);
                    }
                }
                // What is written next is timed by when they looked last.
                Ok(()) = notes.changed() => self.wanted_at = Instant::now(),
                () = bridge.begun() => {}
                () = until(due) => {}
            }
            let now = Instant::now();
            if now.saturating_duration_since(due) >= HELD_UP {
                self.count_anew(now);
            }
            self.pass(now);
        }
        self.wire_is_deaf();
    }

    /// What came meanwhile may still wait to be looked at: here, or in front of the socket.
    fn count_anew(&mut self, now: Instant) {
        self.came_at = now;
        self.heard_at = self.heard_at.map(|_| now);
    }

    /// The next moment at which something is to do here, whatever the protocols want.
    fn next(&self, now: Instant) -> Instant {
        let far = now + Duration::from_secs(60);
        let (frame, lost, mute) = match self.herald.state {
            Presence::Here => (
                self.speech.due(&self.bridge),
                Some(self.came_at + LOST_AFTER),
                self.heard_at.map(|at| at + MUTE_AFTER),
            ),
            Presence::Coming | Presence::Gone | Presence::Over => (None, None, None),
        };
        [frame, lost, mute, self.data.end_at()]
            .into_iter()
            .flatten()
            .fold(far, Instant::min)
    }

    /// Whatever is due.
    fn pass(&mut self, now: Instant) {
        if now >= self.wanted_at {
            self.forward(Input::Timeout(now));
            self.drain();
        }
        if self.herald.state != Presence::Here {
            return;
        }
        if now >= self.came_at + LOST_AFTER {
            self.lose();
            return;
        }
        if self.heard_at.is_some_and(|at| now >= at + MUTE_AFTER) {
            self.wire_is_deaf();
        }
        while let Some(frame) = self.speech.next(&self.bridge, now) {
            if let Some(mid) = self.mid {
                self.speech.write(&mut self.rtc, mid, frame);
            }
            // It becomes a packet when they look at the time. A second frame before the first went out would be refused.
            self.forward(Input::Timeout(now));
            self.drain();
        }
    }

    fn take(&mut self, datagram: &Datagram) {
        let Some(destination) = self.seat.mux.destination(datagram.source) else {
            return dropped("family");
        };
        let Ok(contents) = (&*datagram.bytes).try_into() else {
            return dropped("malformed");
        };
        let received = Receive {
            proto: Protocol::Udp,
            source: datagram.source,
            destination,
            contents,
        };
        let input = Input::Receive(datagram.at, received);
        // Of an unknown address it says yes only to a request that is signed with this connection's secret.
        if !self.rtc.accepts(&input) {
            return dropped("foreign");
        }
        self.seat.remember(datagram.source);
        self.came_at = self.came_at.max(datagram.at);
        if !is_stun(&datagram.bytes) {
            self.path = Some(datagram.source);
        }
        if !self.forward(input) {
            dropped("malformed");
        }
        self.drain();
        if self.rtc.is_alive() {
            self.herald.tell(Change::Back);
        }
    }

    /// Into the protocols; `false`: they did not like it. A bad packet ends nothing, only they may find the connection dead.
    fn forward(&mut self, input: Input) -> bool {
        let outcome = self.rtc.handle_input(input);
        if let Err(error) = &outcome {
            tracing::debug!(%error, "a room's connection stumbled");
        }
        outcome.is_ok()
    }

    /// Sends and handles all that the protocols have ready.
    fn drain(&mut self) {
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(due)) => {
                    self.wanted_at = due;
                    return;
                }
                Ok(Output::Transmit(packet)) => {
                    let path = self.path.filter(|_| !is_stun(&packet.contents));
                    self.seat.mux.send(&packet.contents, path.unwrap_or(packet.destination));
                }
                Ok(Output::Event(event)) => self.handle(event),
                Err(error) => {
                    tracing::debug!(%error, "a room's connection stumbled");
                    // If it lives on, then not by asking it again at once.
                    self.wanted_at = Instant::now() + STUMBLED;
                    return;
                }
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.speech.begin(Instant::now());
                self.herald.tell(Change::Connected);
            }
            Event::MediaAdded(added) if added.kind == MediaKind::Audio => {
                self.mid.get_or_insert(added.mid);
            }
            Event::MediaData(sound) if Some(sound.mid) == self.mid => {
                self.heard_at = Some(self.came_at);
                let samples = self.decoder.hear(&sound.data, sound.time);
                self.bridge.hear_at(&samples, self.came_at);
            }
            Event::ChannelOpen(id, label) => {
                self.channels += 1;
                if self.channels > CHANNELS {
                    self.rtc.disconnect();
                } else if label == data::LABEL {
                    self.data.open(id, self.came_at);
                } else {
                    self.rtc.direct_api().close_data_channel(id);
                }
            }
            Event::ChannelData(message) if self.data.is(message.id) && !message.binary => {
                self.data.hear(&message.data, &self.bridge, self.came_at);
            }
            Event::ChannelClose(id) if self.data.is(id) => self.data.close(),
            // Closed by the page, or all its addresses have been silent for long: it may still come back in the second case.
            Event::Closed | Event::IceConnectionStateChange(IceConnectionState::Disconnected) => self.lose(),
            _ => {}
        }
    }

    fn lose(&mut self) {
        self.wire_is_deaf();
        self.herald.tell(Change::Lost);
    }

    fn wire_is_deaf(&mut self) {
        if self.heard_at.take().is_some() {
            self.bridge.hear_no_more();
        }
    }

    /// Says goodbye; the owner wants it so.
    fn hang_up(&mut self) {
        self.herald.state = Presence::Over;
        if self.rtc.close().is_ok() {
            self.drain();
        }
    }
}

/// Source: RFC 7983, section 7.
fn is_stun(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first < 4)
}
