//! A leg's sound: its ports, what was offered and agreed on, and the RTP session that carries it.
//!
//! The ports are taken before anything is offered. The session begins with the first agreement, and follows each later one.
use super::{account::Account, phones::Switchboard};
use crate::deps::Deps;
use adapters::outbound::Outbound;
use bytes::Bytes;
use entities::{
    boxed,
    session::Quality,
    sip_trunk::{self, Dtmf, Srtp},
};
use media::{
    bridge::MediaBridge,
    rtp::{
        self, Keys,
        ports::PortPair,
        session::{Direction, Moments, Params, RtpEvent, RtpSession},
    },
};
use sip::{
    message::Transport,
    sdp::{self, Capabilities, Codec, Crypto, Key, Media, Mismatch, Suite},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

/// What we send if the peer asks for nothing else.
const PTIME_MS: u32 = 20;

pub struct Sound {
    switchboard: Switchboard,
    account: Arc<Account>,
    bridge: Arc<MediaBridge>,
    ours: Capabilities,
    /// Until somebody answers.
    ports: Option<PortPair>,
    rtp: Option<RtpSession>,
    events: Option<mpsc::Receiver<RtpEvent>>,
    agreed: Option<Media>,
    /// Somebody is there; whether it is listened to who.
    is_picked_up: Option<bool>,
}

impl Sound {
    /// `toward`: the peer. Errors: why there is none, in words for users.
    pub fn open(
        switchboard: &Switchboard,
        account: &Arc<Account>,
        bridge: Arc<MediaBridge>,
        toward: IpAddr,
    ) -> Result<Self, String> {
        let ports = switchboard
            .ports
            .take(Instant::now())
            .map_err(|error| error.to_string())?;
        let address = SocketAddr::new(switchboard.sockets.media_ip(toward), ports.port());
        let ours = capabilities(account, address);
        Ok(Sound {
            switchboard: switchboard.clone(),
            account: account.clone(),
            bridge,
            ours,
            ports: Some(ports),
            rtp: None,
            events: None,
            agreed: None,
            is_picked_up: None,
        })
    }

    pub fn offer(&self) -> Bytes {
        sdp::offer(&self.ours)
    }

    /// The answer to our offer. What is unchanged changes nothing.
    pub async fn agree(&mut self, deps: &Deps, answer: &[u8]) -> Result<(), String> {
        self.agree_by(&deps.outbound, answer).await
    }

    /// The same, for whoever has no `Deps`.
    #[boxed]
    pub async fn agree_by(&mut self, outbound: &Outbound, answer: &[u8]) -> Result<(), String> {
        let media = sdp::negotiate(&self.ours, answer).map_err(|mismatch| mismatch.to_string())?;
        self.adopt(outbound, media).await
    }

    /// Answers an offer of the peer's.
    #[boxed]
    pub async fn answer(&mut self, deps: &Deps, offer: &[u8]) -> Result<Bytes, Mismatch> {
        let before = self.ours.version;
        self.ours.version += 1;
        let (answer, media) = match sdp::answer(offer, &self.ours) {
            Ok(answered) => answered,
            Err(mismatch) => {
                self.ours.version = before;
                return Err(mismatch);
            }
        };
        match self.adopt(&deps.outbound, media).await {
            Ok(()) => Ok(answer),
            Err(why) => {
                tracing::warn!(why, "a phone's sound cannot be set up");
                Err(Mismatch::NoCommonCodec)
            }
        }
    }

    /// Our full offer, inside the talk.
    pub fn offer_again(&mut self) -> Bytes {
        self.ours.version += 1;
        sdp::offer(&self.ours)
    }

    async fn adopt(&mut self, outbound: &Outbound, media: Media) -> Result<(), String> {
        if self.agreed.as_ref() == Some(&media) {
            return Ok(());
        }
        let params = self.params(outbound, &media).await;
        match (&self.rtp, self.ports.take()) {
            (Some(rtp), _) => {
                rtp.hold(media.is_held());
                rtp.retarget(params);
            }
            (None, Some(ports)) => {
                let chance = rand::random::<[u8; 24]>();
                let threads = &self.switchboard.threads;
                let (rtp, events) = RtpSession::start(threads, ports, params, self.bridge.clone(), chance)?;
                if let Some(detect) = self.is_picked_up {
                    rtp.picked_up(detect);
                }
                (self.rtp, self.events) = (Some(rtp), Some(events));
            }
            (None, None) => return Err("its ports are gone".into()),
        }
        self.agreed = Some(media);
        Ok(())
    }

    async fn params(&self, outbound: &Outbound, media: &Media) -> Params {
        let definition = &self.account.row.definition;
        // Sound goes to no address to which nothing else of ours may go: from there, it has to come first.
        let (ip, port) = (media.address.ip(), media.address.port());
        let is_open = outbound.addresses(&ip.to_string(), port).await.is_ok();
        let is_the_trunks = definition.media_addresses.iter().any(|network| network.contains(ip));
        let in_band = definition.dtmf == Dtmf::Inband;
        Params {
            remote: media.address,
            codec: codec(media.codec),
            payload_type: media.payload_type,
            telephone_event: media.telephone_event.filter(|_| !in_band),
            ptime_ms: media.ptime_ms,
            direction: direction(media.direction),
            crypto: media.crypto.as_ref().map(keys),
            rtcp_mux: media.rtcp_mux,
            allowed: definition.media_addresses.iter().map(|network| network.net()).collect(),
            any_source: !is_open && !is_the_trunks,
        }
    }

    /// Nobody can be heard at the moment, since the peer has put us on hold.
    pub fn is_held(&self) -> bool {
        self.agreed.as_ref().is_some_and(Media::is_held)
    }

    /// Somebody is there. `detect`: who it is, is told.
    pub fn picked_up(&mut self, detect: bool) -> bool {
        self.is_picked_up = Some(detect);
        self.rtp.as_ref().is_some_and(|rtp| rtp.picked_up(detect))
    }

    pub fn press(&self, keys: &str) -> bool {
        self.rtp.as_ref().is_some_and(|rtp| rtp.press(keys))
    }

    pub fn bridge(&self) -> &Arc<MediaBridge> {
        &self.bridge
    }

    /// Connects both legs. `is_recorded`: also what passes between them, if this one's line is.
    pub fn relay(&self, other: &Sound, is_recorded: bool) -> bool {
        match (&self.rtp, &other.rtp) {
            (Some(rtp), Some(other)) => rtp.relay(other, is_recorded),
            _ => false,
        }
    }

    /// Back from another leg to the bridge.
    pub fn end_relay(&self) {
        if let Some(rtp) = &self.rtp {
            rtp.end_relay();
        }
    }

    /// Its leg has failed: nothing is said or heard any more.
    pub fn is_gone(&self) -> bool {
        self.rtp.is_some() && self.events.is_none()
    }

    /// Test switch.
    pub fn fail(&self) {
        if let Some(rtp) = &self.rtp {
            rtp.fail();
        }
    }

    /// Never resolves where no sound is, or was told to be gone. May be dropped.
    pub async fn event(&mut self) -> RtpEvent {
        let Some(events) = &mut self.events else {
            return std::future::pending().await;
        };
        match events.recv().await {
            Some(event) => event,
            None => {
                self.events = None;
                RtpEvent::Gone
            }
        }
    }

    pub fn moments(&self) -> Moments {
        self.rtp.as_ref().map(RtpSession::moments).unwrap_or_default()
    }

    /// `None`: nothing was heard.
    pub fn quality(&self) -> Option<Quality> {
        let quality = self.rtp.as_ref()?.quality();
        let expected = quality.received + quality.lost;
        let whole = |ms: f32| ms.max(0.0).round() as u32;
        (expected > 0).then(|| {
            Quality::of(
                (quality.lost, expected),
                whole(quality.jitter_ms),
                quality.round_trip_ms.map(whole),
            )
        })
    }
}

fn capabilities(account: &Account, address: SocketAddr) -> Capabilities {
    let definition = &account.row.definition;
    let is_required = definition.srtp == Srtp::Required;
    let has_keys = is_required || account.transport() == Transport::Tls;
    Capabilities {
        address,
        codecs: definition.codecs.iter().map(|codec| offered(*codec)).collect(),
        telephone_event: definition.dtmf != Dtmf::Inband,
        ptime_ms: PTIME_MS,
        direction: sdp::Direction::SendRecv,
        rtcp_mux: false,
        crypto: if has_keys { new_keys() } else { Vec::new() },
        crypto_required: is_required,
        session_id: u64::from(rand::random::<u32>()),
        version: 1,
    }
}

/// One for each suite.
fn new_keys() -> Vec<Crypto> {
    let suites = Suite::ALL.into_iter().zip(1..);
    let keys = suites.filter_map(|(suite, tag)| {
        let (key, salt) = suite.lengths();
        let bytes = rand::random::<[u8; 64]>();
        let key = Key::new(suite, bytes[..key + salt].to_vec())?;
        Some(Crypto { tag, suite, key })
    });
    keys.collect()
}

fn offered(codec: sip_trunk::Codec) -> Codec {
    match codec {
        sip_trunk::Codec::Pcmu => Codec::Pcmu,
        sip_trunk::Codec::Pcma => Codec::Pcma,
        sip_trunk::Codec::G722 => Codec::G722,
        sip_trunk::Codec::Opus => Codec::Opus,
    }
}

fn codec(codec: Codec) -> rtp::Codec {
    match codec {
        Codec::Pcmu => rtp::Codec::Pcmu,
        Codec::Pcma => rtp::Codec::Pcma,
        Codec::G722 => rtp::Codec::G722,
        Codec::Opus => rtp::Codec::Opus,
    }
}

fn direction(direction: sdp::Direction) -> Direction {
    match direction {
        sdp::Direction::SendRecv => Direction::Both,
        sdp::Direction::SendOnly => Direction::SendOnly,
        sdp::Direction::RecvOnly => Direction::ReceiveOnly,
        sdp::Direction::Inactive => Direction::Inactive,
    }
}

fn keys(keys: &sdp::SrtpKeys) -> Keys {
    Keys {
        suite: match keys.suite {
            Suite::AesCm128Sha1Tag80 => rtp::Suite::Aes128Tag80,
            Suite::AesCm128Sha1Tag32 => rtp::Suite::Aes128Tag32,
            Suite::AesCm256Sha1Tag80 => rtp::Suite::Aes256Tag80,
        },
        ours: Zeroizing::new(keys.send.as_bytes().to_vec()),
        theirs: Zeroizing::new(keys.receive.as_bytes().to_vec()),
    }
}
