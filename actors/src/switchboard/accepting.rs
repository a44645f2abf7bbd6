//! A call that has come in is picked up: it gets ports, an answer to its offer (or an offer of ours, if it brought none), and
//! 200. Whoever brings no offer and wants reliable provisional answers gets ours in the first of those.
//!
//! Who takes it, an agent or a message, is decided before. Where nothing can be agreed on it is refused instead.
use super::{phones::Switchboard, signalling::Signalling, sound::Sound};
use crate::deps::Deps;
use bytes::Bytes;
use entities::boxed;
use media::bridge::MediaBridge;
use sip::{call::Command, sdp::Mismatch};
use std::sync::Arc;

/// 200, with sound. Errors: the answer that takes its place.
#[boxed]
pub async fn accept(
    deps: &Deps,
    switchboard: &Switchboard,
    signalling: &mut Signalling,
    offer: Option<Bytes>,
    bridge: Arc<MediaBridge>,
) -> Result<Sound, (u16, &'static str)> {
    let account = signalling.account().clone();
    let toward = signalling.target().address.ip();
    let mut sound = Sound::open(switchboard, &account, bridge, toward).map_err(|why| {
        tracing::warn!(why, "a call that came in has no room");
        (503, "Service Unavailable")
    })?;
    let sdp = match offer {
        Some(offer) => sound.answer(deps, &offer).await.map_err(|why| match why {
            Mismatch::Unreadable(_) => (400, "Bad Session Description"),
            Mismatch::NoAudio | Mismatch::NoCommonCodec | Mismatch::Encryption => (488, "Not Acceptable Here"),
        })?,
        None => sound.offer(),
    };
    signalling.command(Command::Accept { sdp });
    signalling.confirm().await;
    Ok(sound)
}

/// 183 with our offer, to whoever has made none and wants it there. `None`: nobody does; or there are no ports, and its 200 fails.
pub fn offer_early(switchboard: &Switchboard, signalling: &mut Signalling, bridge: &Arc<MediaBridge>) -> Option<Sound> {
    if !signalling.wants_early_offer() {
        return None;
    }
    let account = signalling.account().clone();
    let toward = signalling.target().address.ip();
    let sound = Sound::open(switchboard, &account, bridge.clone(), toward).ok()?;
    signalling.command(Command::EarlyMedia { sdp: sound.offer() });
    Some(sound)
}

/// 200, after that. The offer is made in it again if no PRACK has answered it.
#[boxed]
pub async fn accept_offered(signalling: &mut Signalling, sound: Sound) -> Sound {
    signalling.command(Command::Accept { sdp: sound.offer() });
    signalling.confirm().await;
    sound
}
