//! Legs over real UDP: two of ours that talk to each other, and a peer made of bytes who may be anybody.
use super::{
    packet::{self, Header},
    ports::{PortPair, Ports},
    session::{Direction, Params, RtpEvent, RtpSession},
    srtp::{Keys, Protection, Suite},
    *,
};
use crate::{
    answering::Verdict, bridge::MediaBridge, goertzel::purity_of, mic::MicEvent, playout::Played,
    threads::MediaThreads, tones::Tone,
};
use adapters::sound::mu_law;
use std::{
    f64::consts::TAU,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use zeroize::Zeroizing;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn ports() -> PortPair {
    static PORTS: OnceLock<Arc<Ports>> = OnceLock::new();
    let ports = PORTS.get_or_init(|| Ports::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 22_100..=22_999, 0).unwrap());
    ports.take(Instant::now()).unwrap()
}

fn params(port: u16) -> Params {
    Params {
        remote: (Ipv4Addr::LOCALHOST, port).into(),
        codec: Codec::Pcmu,
        payload_type: 0,
        telephone_event: Some(101),
        ptime_ms: 20,
        direction: Direction::Both,
        crypto: None,
        rtcp_mux: false,
        allowed: Vec::new(),
        any_source: false,
    }
}

fn keys(ours: u8, theirs: u8) -> Keys {
    let suite = Suite::Aes128Tag80;
    let key = |byte: u8| Zeroizing::new(vec![byte; suite.key_length()]);
    let (ours, theirs) = (key(ours), key(theirs));
    Keys { suite, ours, theirs }
}

/// A leg and its bridge.
struct End {
    session: RtpSession,
    events: mpsc::Receiver<RtpEvent>,
    bridge: Arc<MediaBridge>,
    heard: mpsc::Receiver<MicEvent>,
}

impl End {
    fn start(threads: &MediaThreads, ports: PortPair, params: Params, chance: u8) -> Self {
        let (bridge, heard) = MediaBridge::new();
        let (session, events) = RtpSession::start(threads, ports, params, bridge.clone(), [chance; 24]).unwrap();
        End {
            session,
            events,
            bridge,
            heard,
        }
    }

    /// Says a second and a half of it.
    fn say(&self, hertz: f64) -> oneshot::Receiver<Played> {
        let wave = |at: usize| (8_000.0 * (TAU * hertz * at as f64 / 16_000.0).sin()) as i16;
        let samples: Vec<i16> = (0..24_000).map(wave).collect();
        self.bridge.play_whole(16_000, samples)
    }

    async fn event(&mut self) -> RtpEvent {
        timeout(PATIENCE, self.events.recv()).await.unwrap().unwrap()
    }

    async fn mic(&mut self) -> MicEvent {
        timeout(PATIENCE, self.heard.recv()).await.unwrap().unwrap()
    }

    /// The next utterance, from its beginning to its end.
    async fn utterance(&mut self) -> Vec<i16> {
        let mut sound = Vec::new();
        loop {
            match self.mic().await {
                MicEvent::Sound(piece) => sound.extend_from_slice(&piece.sound.samples),
                MicEvent::SpeechEnded(_) => return sound,
                MicEvent::SpeechStarted { .. } | MicEvent::Dtmf(_) => {}
            }
        }
    }

    async fn keys(&mut self, count: usize) -> String {
        let mut keys = String::new();
        while keys.len() < count {
            if let MicEvent::Dtmf(key) = self.mic().await {
                keys.push_str(&key);
            }
        }
        keys
    }
}

/// Two that send to each other.
fn pair(threads: &MediaThreads, change: impl Fn(&mut Params, bool)) -> (End, End) {
    let (here, there) = (ports(), ports());
    let (mut at_here, mut at_there) = (params(there.port()), params(here.port()));
    change(&mut at_here, true);
    change(&mut at_there, false);
    let ends = (
        End::start(threads, here, at_here, 1),
        End::start(threads, there, at_there, 2),
    );
    assert!(ends.0.session.picked_up(false) && ends.1.session.picked_up(false));
    ends
}

/// Somewhere in what was heard there are 200 ms of that tone, as loud as it was, and nowhere of the other one: a machine that is
/// late leaves gaps.
fn assert_tone(sound: &[i16], hertz: f64, what: &str) {
    let pieces = || sound.windows(3_200).step_by(800);
    let purest = |hertz: f64| {
        let purities = pieces().map(|piece| (purity_of(piece, hertz, 16_000.0), piece));
        purities.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap()
    };
    let (purity, piece) = purest(hertz);
    let loudest = piece.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
    assert!(purity > 0.9, "{what}: {purity}");
    assert!((5_000..11_000).contains(&loudest), "{what}: {loudest}");
    let other = if hertz > 443.0 { 440.0 } else { 446.0 };
    assert!(purest(other).0 < 0.5, "{what}");
}

#[tokio::test]
async fn two_legs_hear_each_other() {
    let threads = MediaThreads::start().unwrap();
    for codec in Codec::ALL {
        for encrypted in [false, true] {
            let what = format!("{codec:?}, encrypted: {encrypted}");
            let (mut here, mut there) = pair(&threads, |params, is_first| {
                params.codec = codec;
                params.payload_type = 96;
                params.rtcp_mux = encrypted;
                let (ours, theirs) = if is_first { (1, 2) } else { (2, 1) };
                params.crypto = encrypted.then(|| keys(ours, theirs));
            });
            assert_eq!(
                (here.event().await, there.event().await),
                (RtpEvent::FirstPacket, RtpEvent::FirstPacket)
            );
            drop(here.say(440.0));
            drop(there.say(446.0));
            assert_tone(&there.utterance().await, 440.0, &what);
            assert_tone(&here.utterance().await, 446.0, &what);
            assert!(here.session.last_heard().is_some());
            assert!(
                here.session.moments().first_sound_at >= here.session.moments().picked_up_at,
                "{what}"
            );
            assert!(here.session.press("5512*#") && !here.session.press("5A") && !here.session.press(&"1".repeat(65)));
            assert_eq!(there.keys(6).await, "5512*#", "{what}");
            assert_eq!(here.event().await, RtpEvent::FirstSound, "{what}");
            // Dropping one ends its events and its beat.
            drop(here.session);
            assert_eq!(timeout(PATIENCE, here.events.recv()).await, Ok(None), "{what}");
        }
    }
}

/// A peer made of bytes: its packets are its own.
struct Peer {
    socket: UdpSocket,
    to: SocketAddr,
    protection: Option<Protection>,
    sequence: u16,
}

impl Peer {
    fn new(ip: Ipv4Addr, port: u16) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer {
            socket,
            to: (Ipv4Addr::LOCALHOST, port).into(),
            protection: None,
            sequence: 0,
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// So many packets of a tone, all at once.
    fn send(&mut self, hertz: f64, packets: usize) {
        for nth in 0..packets {
            let wave = |at: usize| (8_000.0 * (TAU * hertz * at as f64 / 8_000.0).sin()) as i16;
            let payload: Vec<u8> = (nth * 160..(nth + 1) * 160)
                .map(|at| mu_law::encode(wave(at)))
                .collect();
            self.sequence += 1;
            let header = Header {
                marker: false,
                payload_type: 0,
                sequence: self.sequence,
                timestamp: u32::from(self.sequence) * 160,
                ssrc: 77,
            };
            let mut bytes = Vec::new();
            packet::write(&header, &payload, &mut bytes);
            if let Some(protection) = &mut self.protection {
                assert!(protection.protect(&mut bytes));
            }
            self.socket.send_to(&bytes, self.to).unwrap();
        }
    }
}

#[tokio::test]
async fn strangers_are_not_heard_and_move_nothing() {
    let threads = MediaThreads::start().unwrap();
    let ports = ports();
    let mut friend = Peer::new(Ipv4Addr::LOCALHOST, ports.port());
    let mut stranger = Peer::new(Ipv4Addr::new(127, 0, 0, 2), ports.port());
    let mut end = End::start(&threads, ports, params(friend.port()), 1);
    assert!(end.session.picked_up(false));
    stranger.send(446.0, 20);
    friend.send(440.0, 50);
    stranger.send(446.0, 20);
    assert_eq!(end.event().await, RtpEvent::FirstPacket);
    assert_tone(&end.utterance().await, 440.0, "the friend's");
    assert_eq!(end.session.strangers(), 40);
    assert!(end.events.try_recv().is_err(), "nobody has moved");
}

#[tokio::test]
async fn a_wrong_key_is_silence() {
    let threads = MediaThreads::start().unwrap();
    let ports = ports();
    let mut peer = Peer::new(Ipv4Addr::LOCALHOST, ports.port());
    let mut params = params(peer.port());
    params.crypto = Some(keys(1, 2));
    let mut end = End::start(&threads, ports, params, 1);
    assert!(end.session.picked_up(false));
    peer.protection = Some(Protection::new(keys(3, 1)).unwrap());
    peer.send(446.0, 50);
    peer.protection = None;
    peer.send(446.0, 20);
    peer.protection = Some(Protection::new(keys(2, 1)).unwrap());
    peer.send(440.0, 50);
    assert_tone(&end.utterance().await, 440.0, "the right key");
    // What we send opens with our key only.
    let mut bytes = vec![0; 2_000];
    let size = peer.socket.recv(&mut bytes).unwrap();
    bytes.truncate(size);
    assert!(!Protection::new(keys(1, 3)).unwrap().open(&mut bytes.clone()));
    assert!(Protection::new(keys(2, 1)).unwrap().open(&mut bytes));
}

/// Three legs: a caller's and one that it is connected to, and whoever was there before hears nothing of it.
#[tokio::test]
async fn connected_legs_carry_voices_and_keys_whatever_they_speak() {
    let threads = MediaThreads::start().unwrap();
    let legs = [
        (Codec::Pcmu, false),
        (Codec::Pcmu, true),
        (Codec::Pcma, false),
        (Codec::Opus, false),
    ];
    for (second, is_recorded) in legs {
        let what = format!("{second:?}, recorded: {is_recorded}");
        let (mut caller, mut inner) = pair(&threads, |_, _| {});
        let (mut callee, other) = pair(&threads, |params, _| params.codec = second);
        assert!(inner.session.relay(&other.session, is_recorded));
        drop(caller.say(440.0));
        assert_tone(&callee.utterance().await, 440.0, &what);
        drop(callee.say(446.0));
        assert_tone(&caller.utterance().await, 446.0, &what);
        assert!(caller.session.press("7"));
        assert_eq!(callee.keys(1).await, "7", "{what}");
        while inner.event().await != RtpEvent::Relayed('7') {}
        // Back to the agent.
        assert!(inner.session.end_relay() && other.session.end_relay());
        drop(inner.say(440.0));
        assert_tone(&caller.utterance().await, 440.0, &what);
    }
}

/// Half a second of it would be heard first, and all that is said later would stay so late.
#[tokio::test]
async fn what_was_said_to_a_leg_on_hold_is_not_heard_afterwards() {
    let threads = MediaThreads::start().unwrap();
    let (caller, inner) = pair(&threads, |_, _| {});
    let (mut callee, other) = pair(&threads, |params, _| params.codec = Codec::Pcma);
    assert!(inner.session.relay(&other.session, false) && other.session.hold(true));
    caller.say(440.0).await.unwrap();
    // A key goes the same way, behind the words.
    assert!(caller.session.press("7"));
    assert_eq!(callee.keys(1).await, "7");
    assert!(other.session.hold(false));
    drop(caller.say(446.0));
    assert_tone(&callee.utterance().await, 446.0, "after the hold");
}

/// Nothing but a pre-rendered message and a greeting: no brain, no provider.
#[tokio::test]
async fn who_picked_up_is_told_and_when_we_answered() {
    let threads = MediaThreads::start().unwrap();
    let (here, there) = (ports(), ports());
    let (at_here, at_there) = (params(there.port()), params(here.port()));
    let mut us = End::start(&threads, here, at_here, 1);
    let mut them = End::start(&threads, there, at_there, 2);
    assert!(them.session.picked_up(false));
    assert_eq!(
        (us.event().await, them.event().await),
        (RtpEvent::FirstPacket, RtpEvent::FirstPacket)
    );
    assert!(us.session.picked_up(true));
    let greeting = adapters::sound::Pcm::of_mu_law(include_bytes!("../speech/answering/person-7.ulaw"));
    drop(them.bridge.play_whole(8_000, greeting.samples));
    assert_eq!(us.event().await, RtpEvent::Answering(Verdict::Human));
    drop(us.say(440.0));
    assert_tone(&them.utterance().await, 440.0, "our answer");
    let moments = us.session.moments();
    let (began, ended) = (moments.greeting_began_at.unwrap(), moments.greeting_ended_at.unwrap());
    assert!(moments.picked_up_at.unwrap() <= began && began < ended && ended < moments.first_sound_at.unwrap());
}

/// By music of somebody who holds the call at once, nobody can be told; a call must not wait for it.
#[tokio::test]
async fn who_picks_up_and_sends_nothing_is_unknown() {
    let threads = MediaThreads::start().unwrap();
    let ports = ports();
    let peer = Peer::new(Ipv4Addr::LOCALHOST, ports.port());
    let mut params = params(peer.port());
    params.direction = Direction::SendOnly;
    let mut end = End::start(&threads, ports, params, 1);
    assert!(end.session.picked_up(true));
    assert_eq!(end.event().await, RtpEvent::Answering(Verdict::Unknown));
}

#[tokio::test]
async fn before_the_pick_up_tones_are_told_and_nothing_else_is_heard() {
    let threads = MediaThreads::start().unwrap();
    let ports = ports();
    let mut peer = Peer::new(Ipv4Addr::LOCALHOST, ports.port());
    let mut end = End::start(&threads, ports, params(peer.port()), 1);
    for _ in 0..4 {
        peer.send(425.0, 24);
        peer.send(0.0, 24);
    }
    assert_eq!(end.event().await, RtpEvent::FirstPacket);
    assert_eq!(end.event().await, RtpEvent::Tone(Tone::Busy));
    assert!(end.heard.try_recv().is_err());
    assert_eq!(end.session.moments(), session::Moments::default());
}

/// What is held is neither heard nor said; and words that come afterwards are.
#[tokio::test]
async fn a_held_leg_is_silent_both_ways() {
    let threads = MediaThreads::start().unwrap();
    let (mut here, mut there) = pair(&threads, |_, _| {});
    assert_eq!(
        (here.event().await, there.event().await),
        (RtpEvent::FirstPacket, RtpEvent::FirstPacket)
    );
    assert!(here.session.hold(true));
    let said = there.say(446.0);
    assert_eq!(timeout(PATIENCE, said).await.unwrap(), Ok(Played::Whole));
    assert!(here.heard.try_recv().is_err());
    drop(here.say(440.0));
    assert!(here.bridge.is_playing());
    assert!(here.session.hold(false));
    assert_tone(&there.utterance().await, 440.0, "after the hold");
}
