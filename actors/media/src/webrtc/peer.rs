//! A browser of ours: a WebRTC client over real UDP, for tests and load.
//!
//! It runs on a thread of its own, speaks one codec, sends a microphone every 20 ms and keeps what it hears. What its owner
//! waits for is watched, never polled, and what does not come in time fails the test with what there was instead.
use super::{Codec, codec::PayloadDecoder, data, speech::Speech};
use crate::{bridge::MediaBridge, playout::SoundFrame};
use adapters::sound::Pcm;
use serde_json::Value;
use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};
use str0m::{
    Candidate, Event, IceConnectionState, Input, Output, Rtc,
    change::{SdpAnswer, SdpPendingOffer},
    channel::ChannelId,
    crypto,
    media::{Direction, MediaKind, Mid},
    net::{Protocol, Receive},
};
use tokio::sync::watch;

/// How long its owner waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Samples of 16 kHz that it keeps of what it hears: a minute. What comes later is counted only.
const KEPT: usize = 16_000 * 60;
/// What counts as sound: the root of the mean square of its samples, of 10 ms; 40 dB below full scale.
const LOUD: f64 = 328.0;
/// How often it looks up.
const BLINK: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    New,
    Connected,
    /// Its checks are not answered any more.
    Disconnected,
    Closed,
}

/// What it has seen so far.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub state: State,
    /// The data channel is open.
    pub open: bool,
    /// What the channel said.
    pub notes: Vec<Value>,
    /// Packets of sound.
    pub packets: u64,
    /// Packets of its own microphone, silence too.
    pub sent: u64,
    /// When each of them sounds, in ms of RTP's time, and when it came; the last thousand.
    pub times: Vec<(u64, Instant)>,
    /// The sum of squares of all it heard, full scale being 1: what `totalAudioEnergy` is made of.
    pub energy: f64,
    /// When its own last loud 10 ms ended, as a microphone has it that sends every 20 ms.
    pub spoke_at: Option<Instant>,
    /// When the first packet with sound came after that.
    pub answered_at: Option<Instant>,
    /// When the last packet with sound came.
    pub heard_at: Option<Instant>,
}

enum Order {
    Connect(String),
    Say(Pcm),
    Send(Vec<u8>),
    /// To wherever it sends its packets.
    Raw(Vec<u8>),
    Vanish(bool),
    Move,
    Close,
}

/// Dropping it vanishes without a word.
pub struct Peer {
    orders: mpsc::Sender<Order>,
    view: watch::Receiver<View>,
    heard: Arc<Mutex<Vec<i16>>>,
}

impl Peer {
    /// A peer that speaks this codec only, and its offer. Panics if this machine has no loopback.
    pub fn offer(codec: Codec) -> (Peer, String) {
        let (orders, told) = mpsc::channel();
        let (shown, view) = watch::channel(View::default());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut client = match Client::new(codec, shown, heard.clone()) {
            Ok(client) => client,
            Err(error) => panic!("a peer cannot be made: {error}"),
        };
        let sdp = client.offer();
        let thread = thread::Builder::new()
            .name("peer".into())
            .spawn(move || client.run(&told));
        assert!(thread.is_ok(), "a peer has no thread: {thread:?}");
        (Peer { orders, view, heard }, sdp)
    }

    fn order(&self, order: Order) {
        // One that is closed does nothing any more.
        let _ = self.orders.send(order);
    }

    /// With the answer's SDP.
    pub fn connect(&self, answer: &str) {
        self.order(Order::Connect(answer.into()));
    }

    /// Says this next, mu-law at 8 kHz, instead of what it was saying; then silence again.
    pub fn say(&self, mu_law: impl AsRef<[u8]>) {
        self.speak(Pcm::of_mu_law(mu_law.as_ref()));
    }

    /// The same at any rate.
    pub fn speak(&self, sound: Pcm) {
        self.order(Order::Say(sound));
    }

    pub fn press(&self, digits: &str) {
        self.send(serde_json::json!({ "type": "keys", "digits": digits }).to_string());
    }

    /// Any text into the data channel.
    pub fn send(&self, text: impl Into<Vec<u8>>) {
        self.order(Order::Send(text.into()));
    }

    /// A datagram as it is, from its own address.
    pub fn raw(&self, bytes: Vec<u8>) {
        self.order(Order::Raw(bytes));
    }

    /// Sends and hears nothing until `come_back`, as without a network.
    pub fn vanish(&self) {
        self.order(Order::Vanish(true));
    }

    pub fn come_back(&self) {
        self.order(Order::Vanish(false));
    }

    /// Goes on from another port, as after a change of the network.
    pub fn move_on(&self) {
        self.order(Order::Move);
    }

    /// As a page that calls `close()`.
    pub fn close(&self) {
        self.order(Order::Close);
    }

    pub fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// Samples of 16 kHz, the first minute of them.
    pub fn heard(&self) -> Vec<i16> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for it; panics with what is wanted and what there is if it does not come within `PATIENCE`.
    pub async fn until(&self, what: &str, is: impl Fn(&View) -> bool) -> View {
        let mut view = self.view.clone();
        let met = tokio::time::timeout(PATIENCE, view.wait_for(|view| is(view))).await;
        match met {
            Ok(Ok(view)) => view.clone(),
            Ok(Err(_)) | Err(_) => {
                let view = self.view();
                let (state, open, notes, packets) = (view.state, view.open, &view.notes, view.packets);
                panic!(
                    "a peer waited in vain until {what}: {state:?}, channel open {open}, {packets} packets, {notes:?}"
                )
            }
        }
    }

    pub async fn connected(&self) {
        self.until("it is connected", |view| view.state == State::Connected && view.open)
            .await;
    }

    pub async fn closed(&self) {
        self.until("the connection is closed", |view| view.state == State::Closed)
            .await;
    }
}

/// What runs on the thread.
struct Client {
    rtc: Rtc,
    pending: Option<SdpPendingOffer>,
    socket: UdpSocket,
    address: SocketAddr,
    /// Where its packets went last.
    server: Option<SocketAddr>,
    mid: Option<Mid>,
    channel: Option<ChannelId>,
    decoder: PayloadDecoder,
    speech: Speech,
    /// What it is saying, on a bridge of its own.
    microphone: Arc<MediaBridge>,
    vanished: bool,
    shown: watch::Sender<View>,
    heard: Arc<Mutex<Vec<i16>>>,
}

impl Client {
    fn new(codec: Codec, shown: watch::Sender<View>, heard: Arc<Mutex<Vec<i16>>>) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let (socket, address) = bind().map_err(text)?;
        let config = Rtc::builder().set_crypto_provider(Arc::new(crypto::from_feature_flags()));
        let mut rtc = codec.only(config).build(Instant::now());
        let candidate = Candidate::host(address, "udp").map_err(|error| error.to_string())?;
        rtc.add_local_candidate(candidate);
        Ok(Client {
            rtc,
            pending: None,
            socket,
            address,
            server: None,
            mid: None,
            channel: None,
            decoder: PayloadDecoder::new(codec)?,
            speech: Speech::steady(codec)?,
            microphone: MediaBridge::new().0,
            vanished: false,
            shown,
            heard,
        })
    }

    fn offer(&mut self) -> String {
        let mut changes = self.rtc.sdp_api();
        self.mid = Some(changes.add_media(MediaKind::Audio, Direction::SendRecv, None, None, None));
        changes.add_channel(data::LABEL.into());
        match changes.apply() {
            Some((offer, pending)) => {
                self.pending = Some(pending);
                offer.to_sdp_string()
            }
            None => String::new(),
        }
    }

    /// Until it is closed or its owner is gone.
    fn run(mut self, orders: &mpsc::Receiver<Order>) {
        let mut buffer = [0; 2_000];
        while self.rtc.is_alive() {
            loop {
                match orders.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return,
                }
            }
            self.drain();
            self.receive(&mut buffer);
            let now = Instant::now();
            // What it cannot use it passes over.
            let _ = self.rtc.handle_input(Input::Timeout(now));
            self.drain();
            while let Some(frame) = self.speech.next(&self.microphone, now) {
                if let Some(mid) = self.mid {
                    let loud = last_loud(frame.sound());
                    self.speech.write(&mut self.rtc, mid, frame);
                    let sent_at = Instant::now();
                    self.shown.send_modify(|view| {
                        view.sent += 1;
                        if let Some(before) = loud {
                            view.spoke_at = sent_at.checked_sub(before);
                            view.answered_at = None;
                        }
                    });
                }
                self.drain();
            }
        }
        self.shown.send_modify(|view| view.state = State::Closed);
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Connect(answer) => {
                let answer = SdpAnswer::from_sdp_string(&answer).map_err(|error| error.to_string());
                let accepted = answer.and_then(|answer| {
                    let pending = self.pending.take().ok_or("it is connected already")?;
                    let accepted = self.rtc.sdp_api().accept_answer(pending, answer);
                    accepted.map_err(|error| error.to_string())
                });
                if let Err(error) = accepted {
                    tracing::error!(%error, "a peer cannot use an answer");
                    self.rtc.disconnect();
                }
            }
            Order::Say(sound) => drop(self.microphone.play_whole(sound.rate, sound.samples)),
            Order::Send(text) => {
                if let Some(mut channel) = self.channel.and_then(|id| self.rtc.channel(id)) {
                    let sent = channel.write(false, &text);
                    if !matches!(sent, Ok(true)) {
                        tracing::error!(?sent, "a peer could not send");
                    }
                }
                self.drain();
            }
            Order::Raw(bytes) => {
                if let Some(server) = self.server {
                    let _ = self.socket.send_to(&bytes, server);
                }
            }
            Order::Vanish(vanished) => self.vanished = vanished,
            Order::Move => self.move_on(),
            Order::Close => {
                if self.rtc.close().is_ok() {
                    self.drain();
                }
            }
        }
    }

    /// Packets go out from another port; to itself it seems to be where it was.
    fn move_on(&mut self) {
        match bind() {
            Ok((socket, _)) => self.socket = socket,
            Err(error) => tracing::error!(%error, "a peer could not move"),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        let wait = self.socket.set_read_timeout(Some(BLINK));
        let came = wait.and_then(|()| self.socket.recv_from(buffer));
        let (size, source) = match came {
            Ok(came) => came,
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
                    thread::sleep(BLINK);
                }
                return;
            }
        };
        let Ok(contents) = buffer[..size].try_into() else {
            return;
        };
        if self.vanished {
            return;
        }
        let destination = self.address;
        let received = Receive {
            proto: Protocol::Udp,
            source,
            destination,
            contents,
        };
        let _ = self.rtc.handle_input(Input::Receive(Instant::now(), received));
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Transmit(packet)) => {
                    self.server = Some(packet.destination);
                    if !self.vanished {
                        let _ = self.socket.send_to(&packet.contents, packet.destination);
                    }
                }
                Ok(Output::Event(event)) => self.handle(event),
                Ok(Output::Timeout(_)) | Err(_) => return,
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.speech.begin(Instant::now());
                self.shown.send_modify(|view| view.state = State::Connected);
            }
            Event::IceConnectionStateChange(state) => self.shown.send_modify(|view| {
                view.state = match (view.state, state) {
                    (State::Connected, IceConnectionState::Disconnected) => State::Disconnected,
                    (State::Disconnected, IceConnectionState::Connected | IceConnectionState::Completed) => {
                        State::Connected
                    }
                    (before, _) => before,
                }
            }),
            Event::Closed => self.shown.send_modify(|view| view.state = State::Closed),
            Event::ChannelOpen(id, _) => {
                self.channel = Some(id);
                self.shown.send_modify(|view| view.open = true);
            }
            Event::ChannelData(message) => {
                let note = serde_json::from_slice(&message.data).unwrap_or(Value::Null);
                self.shown.send_modify(|view| view.notes.push(note));
            }
            Event::MediaData(sound) => {
                let samples = self.decoder.hear(&sound.data, sound.time);
                let energy: f64 = samples
                    .iter()
                    .map(|sample| (f64::from(*sample) / 32_768.0).powi(2))
                    .sum();
                let (came_at, is_loud) = (Instant::now(), samples.chunks(160).any(is_loud));
                let ms = sound.time.numer() * 1_000 / u64::from(sound.time.denom()).max(1);
                let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT.saturating_sub(heard.len()).min(samples.len());
                heard.extend_from_slice(&samples[..room]);
                drop(heard);
                self.shown.send_modify(|view| {
                    view.packets += 1;
                    view.energy += energy;
                    if view.times.len() == 1_000 {
                        view.times.remove(0);
                    }
                    view.times.push((ms, came_at));
                    if is_loud {
                        view.heard_at = Some(came_at);
                        view.answered_at.get_or_insert(came_at);
                    }
                });
            }
            _ => {}
        }
    }
}

fn is_loud(samples: &[i16]) -> bool {
    let power: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    power >= LOUD * LOUD * samples.len() as f64 && !samples.is_empty()
}

/// How long before the end of these 20 ms the last loud half of them ended.
fn last_loud(frame: &SoundFrame) -> Option<Duration> {
    let (first, second) = frame.samples.split_at(frame.samples.len() / 2);
    match (is_loud(first), is_loud(second)) {
        (_, true) => Some(Duration::ZERO),
        (true, false) => Some(Duration::from_millis(10)),
        (false, false) => None,
    }
}

fn bind() -> std::io::Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

/// A tone of 8 kHz in mu-law, for microphones and agents; about a quarter of full scale.
pub fn tone(hertz: f64, ms: usize) -> Vec<u8> {
    use audio_codec::{Encoder, pcmu::PcmuEncoder};
    let samples: Vec<i16> = (0..ms * 8)
        .map(|at| ((at as f64 / 8_000.0 * hertz * std::f64::consts::TAU).sin() * 8_000.0) as i16)
        .collect();
    PcmuEncoder::new().encode(&samples)
}

/// How much of the sound's power is at that pitch, 0 to 1 (Goertzel); 0 for silence. Samples of 16 kHz.
pub fn purity(samples: &[i16], hertz: f64) -> f64 {
    let turn = 2.0 * (std::f64::consts::TAU * hertz / 16_000.0).cos();
    let (mut last, mut before, mut power) = (0.0, 0.0, 0.0);
    for sample in samples.iter().map(|sample| f64::from(*sample)) {
        let next = sample + turn * last - before;
        before = last;
        last = next;
        power += sample * sample;
    }
    let count = samples.len() as f64;
    let there = last * last + before * before - turn * last * before;
    if power < count {
        0.0
    } else {
        there / (count * power / 2.0)
    }
}
