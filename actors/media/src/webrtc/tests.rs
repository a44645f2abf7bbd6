//! Over real UDP on loopback, with peers of ours.
use super::{
    peer::{PATIENCE, Peer, State, purity, tone},
    *,
};
use crate::{
    bridge::MediaBridge,
    mic::{Gathered, MicEvent},
    playout::Played,
};
use adapters::sound::Pcm;
use std::net::Ipv4Addr;
use tokio::sync::mpsc;

mod attacks;
mod life;
mod offers;
mod talk;

const SENTENCE: &[u8] = include_bytes!("../speech/sentence.ulaw");

fn media() -> Media {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Media::start(MediaSettings {
        bind,
        addresses: vec![],
    })
    .unwrap()
}

/// What becomes of a connection, for as long as somebody listens.
fn changes() -> (impl Fn(Change) + Send + Sync + 'static, mpsc::UnboundedReceiver<Change>) {
    let (sender, changes) = mpsc::unbounded_channel();
    let tell = move |change| {
        let _ = sender.send(change);
    };
    (tell, changes)
}

/// A page and the talk's side of it.
struct Call {
    peer: Peer,
    /// What the page was answered.
    answer: String,
    connection: Option<Connection>,
    bridge: Arc<MediaBridge>,
    heard: Option<mpsc::Receiver<MicEvent>>,
    changes: mpsc::UnboundedReceiver<Change>,
}

impl Call {
    /// Connected, with a bridge of its own.
    async fn new(media: &Media, codec: Codec) -> Self {
        let (bridge, heard) = MediaBridge::new();
        let mut call = Call::on(media, codec, bridge).await;
        call.heard = Some(heard);
        call
    }

    async fn on(media: &Media, codec: Codec, bridge: Arc<MediaBridge>) -> Self {
        let (peer, sdp) = Peer::offer(codec);
        let offered = media.offer(&sdp).unwrap();
        let answer = offered.answer().to_string();
        let (tell, changes) = changes();
        let connection = Some(offered.connect(bridge.clone(), tell));
        peer.connect(&answer);
        peer.connected().await;
        let mut call = Call {
            peer,
            answer,
            connection,
            bridge,
            heard: None,
            changes,
        };
        assert_eq!(call.change().await, Some(Change::Connected));
        call
    }

    /// The next; `None`: the connection's task has ended.
    async fn change(&mut self) -> Option<Change> {
        tokio::time::timeout(PATIENCE, self.changes.recv())
            .await
            .expect("no change came")
    }

    async fn heard(&mut self) -> MicEvent {
        let heard = self.heard.as_mut().unwrap();
        tokio::time::timeout(PATIENCE, heard.recv())
            .await
            .expect("nothing was heard")
            .unwrap()
    }

    /// The next utterance, as soon as it is over.
    async fn said(&mut self) -> Pcm {
        assert!(matches!(self.heard().await, MicEvent::SpeechStarted { .. }));
        let mut said = Gathered::default();
        loop {
            match self.heard().await {
                MicEvent::Sound(piece) => said.push(&piece.sound, piece.voice_db.is_some()),
                MicEvent::SpeechEnded(_) => return said.sound(),
                other => panic!("not one utterance: {other:?}"),
            }
        }
    }

    /// The next that is no speech.
    async fn pressed(&mut self) -> String {
        loop {
            if let MicEvent::Dtmf(keys) = self.heard().await {
                return keys;
            }
        }
    }

    /// The agent says it: mu-law at 8 kHz.
    fn play(&self, mu_law: &[u8]) -> oneshot::Receiver<Played> {
        let sound = Pcm::of_mu_law(mu_law);
        self.bridge.play_whole(sound.rate, sound.samples)
    }

    /// Plays a tone and waits until the page has heard half of it.
    async fn is_alive(&self, hertz: f64) {
        let before = self.peer.view().packets;
        drop(self.play(&tone(hertz, 1_000)));
        self.peer
            .until("it hears a tone", |view| view.packets >= before + 25)
            .await;
    }
}

/// The rest of the line of an SDP that begins so.
fn value<'a>(sdp: &'a str, name: &str) -> &'a str {
    sdp.lines().find_map(|line| line.strip_prefix(name)).unwrap()
}

/// The purest 100 ms at that pitch.
fn purest(samples: &[i16], hertz: f64) -> f64 {
    samples
        .chunks_exact(1_600)
        .map(|piece| purity(piece, hertz))
        .fold(0.0, f64::max)
}

#[test]
fn browsers_are_told_where_to_send() {
    let bound: SocketAddr = "192.0.2.7:4000".parse().unwrap();
    let any: SocketAddr = "0.0.0.0:4000".parse().unwrap();
    let text = |all: Vec<SocketAddr>| all.iter().map(SocketAddr::to_string).collect::<Vec<_>>();
    assert_eq!(text(announced(&[], bound).unwrap()), ["192.0.2.7:4000"]);
    let public = ["203.0.113.9".parse().unwrap()];
    assert_eq!(text(announced(&public, any).unwrap()), ["203.0.113.9:4000"]);
    let own = text(announced(&[], any).unwrap());
    assert_eq!(own.last().unwrap(), "127.0.0.1:4000");
    for bad in ["0.0.0.0", "224.0.0.1", "169.254.1.1", "2001:db8::1"] {
        assert!(announced(&[bad.parse().unwrap()], any).is_err(), "{bad}");
    }
    let v6: SocketAddr = "[::]:4000".parse().unwrap();
    assert_eq!(
        text(announced(&["2001:db8::1".parse().unwrap()], v6).unwrap()),
        ["[2001:db8::1]:4000"]
    );
}

#[test]
fn a_port_that_is_taken_is_named() {
    let media = media();
    let again = Media::start(MediaSettings {
        bind: media.local_addr(),
        addresses: vec![],
    });
    let reason = again.err().unwrap();
    assert!(reason.contains(&media.local_addr().to_string()), "{reason}");
}

#[tokio::test]
async fn a_socket_of_both_families_serves_ipv4_too() {
    let bind = "[::]:0".parse().unwrap();
    let Ok(media) = Media::start(MediaSettings {
        bind,
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
    }) else {
        // This machine has no IPv6.
        return;
    };
    Call::new(&media, Codec::Pcmu).await.is_alive(440.0).await;
}
