//! A leg at work: what it does every 10 ms, on one of media's threads: orders, packets, silence, words, reports. Nothing here waits.
use super::{
    hearing::{Expected, Hearing},
    outlet::Outlet,
    packet,
    ports::PortPair,
    relay::{AUDIBLE, Inlet, Relayed},
    rtcp::Control,
    shared::{Order, Params, RtpEvent, Shared},
    source::{Judgement, Source},
    speaking::{Origin, Speaking},
    srtp::Protection,
};
use crate::{bridge::MediaBridge, playout::SoundFrame, threads::Ticked};
use std::{
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Datagrams that are taken at one beat: a flood must not hold up the other legs. The socket's own queue holds or drops the rest.
const BURST: usize = 32;
const CONTROL_BURST: usize = 4;
/// After the pick-up something must come within that time,
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// and then never be away for so long.
const NEXT_WITHIN: Duration = Duration::from_secs(30);
/// Another leg's packets come so often; without one for so long silence is sent in their place.
const PASSES_WITHIN: Duration = Duration::from_millis(100);
/// How often it is looked at how well the other side is heard.
const MEASURES: Duration = Duration::from_secs(1);

/// Who a leg is to the other side.
pub struct Identity {
    pub origin: Origin,
    /// The CNAME of its reports.
    pub name: String,
    /// For the moments of its reports.
    pub chance: u32,
}

pub struct Leg {
    ports: PortPair,
    params: Params,
    bridge: Arc<MediaBridge>,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    source: Source,
    hearing: Hearing,
    outlet: Outlet,
    speaking: Speaking,
    control: Control,
    protection: Option<Protection>,
    /// A packet that is being read or written.
    packet: Vec<u8>,
    is_held: bool,
    /// What other legs send to this one.
    inlet: Arc<Inlet>,
    passed_at: Option<Instant>,
    /// Silence is counted from then on; `None` while it is not.
    silent_since: Option<Instant>,
    is_silence_told: bool,
    has_heard: bool,
    measured_at: Option<Instant>,
}

/// A datagram that nobody hears, or a packet that was not sent, is counted.
fn dropped(reason: &'static str) {
    metrics::counter!("callboard_media_dropped_packets_total", "reason" => reason).increment(1);
}

impl Leg {
    #[expect(clippy::too_many_arguments, reason = "each is a part that its session has made")]
    pub fn new(
        ports: PortPair,
        params: Params,
        bridge: Arc<MediaBridge>,
        identity: Identity,
        shared: Arc<Shared>,
        inlet: Arc<Inlet>,
        orders: Receiver<Order>,
        events: mpsc::Sender<RtpEvent>,
        now: Instant,
    ) -> Result<Self, String> {
        let ssrc = identity.origin.ssrc;
        Ok(Leg {
            source: Source::new(params.remote, params.allowed.clone(), params.any_source),
            hearing: Hearing::new(expected(&params), now)?,
            outlet: Outlet::new(bridge.clone(), shared.clone(), events),
            speaking: Speaking::new(params.format(), identity.origin)?,
            control: Control::new(ssrc, identity.name, identity.chance, now),
            protection: params.crypto.clone().map(Protection::new).transpose()?,
            packet: Vec::with_capacity(512),
            is_held: false,
            passed_at: None,
            silent_since: None,
            is_silence_told: false,
            has_heard: false,
            measured_at: None,
            ports,
            params,
            bridge,
            shared,
            orders,
            inlet,
        })
    }

    /// `false`: its owner is gone.
    fn obey(&mut self, now: Instant) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(Order::PickedUp { detect }) => self.pick_up(detect, now),
                Ok(Order::Press(keys)) => {
                    self.speaking.press(&keys);
                }
                Ok(Order::Hold(is_held)) => {
                    // What another leg said meanwhile would be late, and so would all that follows it.
                    if self.is_held && !is_held {
                        self.inlet.clear();
                    }
                    self.is_held = is_held;
                    self.fall_silent();
                }
                Ok(Order::Retarget(params)) => self.retarget(*params, now),
                Ok(Order::Relay(to)) => {
                    self.inlet.clear();
                    self.passed_at = None;
                    self.fall_silent();
                    self.outlet.connect(to);
                }
                Ok(Order::Fail) => panic!("a fault on purpose"),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn pick_up(&mut self, detect: bool, now: Instant) {
        if self.outlet.pick_up(detect, now) {
            self.hearing.begin(now);
            self.source.expect_again();
            self.silent_since = Some(now);
        }
    }

    /// What was being said to the bridge ends here.
    fn fall_silent(&self) {
        self.bridge.hear_no_more();
    }

    fn retarget(&mut self, params: Params, now: Instant) {
        if let Err(error) = self.adopt(params, now) {
            tracing::warn!(%error, "a phone's new media cannot be set up; the call goes on with what it had");
        }
    }

    fn adopt(&mut self, params: Params, now: Instant) -> Result<(), String> {
        match (&mut self.protection, &params.crypto) {
            (Some(protection), Some(keys)) => protection.change(keys.clone())?,
            (None, Some(keys)) => self.protection = Some(Protection::new(keys.clone())?),
            (_, None) => self.protection = None,
        }
        self.hearing.expect(expected(&params))?;
        self.speaking.change(params.format())?;
        self.source
            .retarget(params.remote, params.allowed.clone(), params.any_source, now);
        self.inlet.set_codec(params.codec);
        if !params.direction.receives() {
            self.fall_silent();
        }
        // Whoever is asked for sound again has time to begin.
        self.silent_since = self.silent_since.map(|_| now);
        self.params = params;
        Ok(())
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) {
        for _ in 0..BURST {
            match read(&self.ports.rtp, buffer) {
                Some((bytes, from)) if packet::is_rtcp(bytes) => self.control(bytes, from, now),
                Some((bytes, from)) => {
                    if let Some(reason) = self.datagram(bytes, from, now) {
                        dropped(reason);
                    }
                }
                None => break,
            }
        }
        for _ in 0..CONTROL_BURST {
            let Some((bytes, from)) = read(&self.ports.rtcp, buffer) else {
                break;
            };
            self.control(bytes, from, now);
        }
    }

    /// Why it is not heard.
    fn datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) -> Option<&'static str> {
        let judgement = self.source.judge(from, now);
        if judgement == Judgement::Stranger {
            self.shared.change(|view| view.strangers += 1);
            return Some("stranger");
        }
        let mut opened = std::mem::take(&mut self.packet);
        let reason = match self.open(bytes, &mut opened) {
            true => match packet::read(&opened) {
                Some(packet) => self.hear(packet, from, judgement, now),
                None => Some("malformed"),
            },
            false => Some("forged"),
        };
        self.packet = opened;
        reason
    }

    /// Into `opened`; `false`: it is not the other side's.
    fn open(&mut self, bytes: &[u8], opened: &mut Vec<u8>) -> bool {
        opened.clear();
        opened.extend_from_slice(bytes);
        self.protection
            .as_mut()
            .is_none_or(|protection| protection.open(opened))
    }

    fn hear(
        &mut self,
        packet: packet::Packet<'_>,
        from: SocketAddr,
        judgement: Judgement,
        now: Instant,
    ) -> Option<&'static str> {
        self.source.heard(from, judgement, now);
        match judgement {
            Judgement::First if !self.has_heard => self.outlet.tell(RtpEvent::FirstPacket),
            Judgement::Moved => self.outlet.tell(RtpEvent::Moved),
            Judgement::First | Judgement::Known | Judgement::Stranger => {}
        }
        self.has_heard = true;
        self.is_silence_told = false;
        self.silent_since = self.silent_since.map(|_| now);
        self.shared.change(|view| view.last_heard = Some(now));
        // Music of somebody who holds the call is not heard.
        if self.is_held || !self.params.direction.receives() {
            return None;
        }
        let Leg { hearing, outlet, .. } = self;
        hearing.packet(packet, now, &mut |heard| outlet.take(heard, now))
    }

    fn control(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) {
        if !self.source.is_control(from) {
            return dropped("stranger");
        }
        let mut opened = std::mem::take(&mut self.packet);
        if !self.open(bytes, &mut opened) {
            dropped("forged");
        } else if !self.control.read(&opened, now) {
            dropped("malformed");
        }
        self.packet = opened;
    }

    fn listen(&mut self, now: Instant) {
        let is_raw = self.outlet.takes(self.speaking.codec());
        self.hearing.relay(self.outlet.is_connected(), is_raw);
        if self.is_held {
            return self.hearing.rest(now);
        }
        // Whoever picks up and sends nothing is silent: who it is must be known all the same.
        if !self.params.direction.receives() {
            self.hearing.pass_over();
        }
        let Leg { hearing, outlet, .. } = self;
        hearing.tick(now, &mut |heard| outlet.take(heard, now));
    }

    fn target(&mut self, now: Instant) -> Option<SocketAddr> {
        self.source.target(now).filter(|_| self.params.direction.sends())
    }

    fn send(&mut self, now: Instant) {
        let target = self.target(now);
        self.speaking.send(target.is_some(), now);
        self.pass(target, now);
        let passes = self
            .passed_at
            .is_some_and(|at| now.saturating_duration_since(at) < PASSES_WITHIN);
        if passes && !self.speaking.is_pressing() {
            self.speaking.pause(now);
        }
        let is_live = self.outlet.is_live() && !self.is_held;
        loop {
            let mut is_audible = false;
            let mut words = |due| {
                let frame = match (is_live, self.outlet.is_connected()) {
                    (false, _) => None,
                    (true, true) => relayed(&self.inlet, &self.bridge, due),
                    (true, false) => self.bridge.next_frame_at(due),
                };
                is_audible |= !self.outlet.has_spoken()
                    && frame
                        .as_ref()
                        .is_some_and(|frame| frame.samples.iter().any(|sample| sample.unsigned_abs() > AUDIBLE));
                frame
            };
            let Some(header) = self.speaking.next(now, &mut words) else {
                break;
            };
            if is_audible {
                self.outlet.spoke(now);
            }
            self.dispatch(header, target);
        }
    }

    /// What another leg sends through this one.
    fn pass(&mut self, target: Option<SocketAddr>, now: Instant) {
        while let Some(relayed) = self.inlet.next_packet() {
            match relayed {
                Relayed::Key(key) => {
                    self.speaking.press(key.encode_utf8(&mut [0; 4]));
                }
                Relayed::Payload { .. } if self.is_held || self.speaking.is_pressing() => {}
                Relayed::Payload { timestamp, payload } => {
                    self.passed_at = Some(now);
                    if let Some(header) = self.speaking.pass(timestamp, &payload) {
                        self.dispatch(header, target);
                    }
                }
            }
        }
    }

    fn dispatch(&mut self, header: packet::Header, target: Option<SocketAddr>) {
        packet::write(&header, self.speaking.payload(), &mut self.packet);
        self.transmit(target, false);
    }

    /// Now or not at all: sound that waits is worth nothing.
    fn transmit(&mut self, target: Option<SocketAddr>, is_control: bool) {
        let Some(target) = target else { return };
        if let Some(protection) = &mut self.protection
            && !protection.protect(&mut self.packet)
        {
            return dropped("protect");
        }
        let socket = match is_control && !self.params.rtcp_mux {
            true => &self.ports.rtcp,
            false => &self.ports.rtp,
        };
        if socket.send_to(&self.packet, target).is_err() {
            dropped("send");
        }
    }

    fn report(&mut self, now: Instant, is_last: bool) {
        if !is_last && !self.control.is_due(now) {
            return;
        }
        let target = self.source.control_target(self.params.rtcp_mux, now);
        self.packet = self
            .control
            .report(self.speaking.sent(), self.hearing.reception(), now, is_last);
        self.transmit(target, true);
        self.measured_at = None;
    }

    /// Whoever asks how well the other side is heard sees this.
    fn measure(&mut self, now: Instant) {
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < MEASURES;
        if self.measured_at.is_some_and(is_fresh) {
            return;
        }
        self.measured_at = Some(now);
        let quality = self
            .control
            .quality(self.hearing.reception(), self.params.codec.clock());
        self.shared.change(|view| view.quality = quality);
    }

    /// Has nothing come for too long?
    fn watch(&mut self, now: Instant) {
        if self.is_held || !self.params.direction.receives() {
            self.silent_since = self.silent_since.map(|_| now);
        }
        let within = if self.has_heard { NEXT_WITHIN } else { FIRST_WITHIN };
        let is_silent = self
            .silent_since
            .is_some_and(|since| now.saturating_duration_since(since) >= within);
        if is_silent && !self.is_silence_told {
            self.is_silence_told = true;
            self.outlet.tell(match self.has_heard {
                true => RtpEvent::HeardNoMore,
                false => RtpEvent::NeverHeard,
            });
        }
    }
}

impl Ticked for Leg {
    fn speak(&mut self, now: Instant) -> bool {
        if !self.obey(now) {
            self.fall_silent();
            self.report(now, true);
            self.measure(now);
            return false;
        }
        self.send(now);
        true
    }

    fn take_in(&mut self, now: Instant, buffer: &mut [u8]) {
        self.receive(now, buffer);
        self.listen(now);
        // What the other leg of a bridge has heard just now waits for no further beat.
        let target = self.target(now);
        self.pass(target, now);
        self.report(now, false);
        self.measure(now);
        self.watch(now);
    }
}

fn expected(params: &Params) -> Expected {
    Expected {
        codec: params.codec,
        payload_type: params.payload_type,
        telephone_event: params.telephone_event,
    }
}

/// What another leg says next, to the other side of this one.
fn relayed(inlet: &Inlet, bridge: &MediaBridge, due: Instant) -> Option<SoundFrame> {
    let frame = inlet.next_frame()?;
    if inlet.is_recorded() {
        bridge.record_said(&frame, due);
    }
    Some(frame)
}

/// One datagram, if one is there.
fn read<'a>(socket: &UdpSocket, buffer: &'a mut [u8]) -> Option<(&'a [u8], SocketAddr)> {
    match socket.recv_from(buffer) {
        Ok((size, from)) => Some((&buffer[..size], from)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(_) => {
            dropped("socket");
            None
        }
    }
}
