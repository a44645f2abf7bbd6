//! Callers whom no agent takes, and what they meet instead: busy, a refusal, or a message that is spoken to them.
use super::{accepting::accept, moments::until, phones::Switchboard, signalling::Signalling};
use crate::{call::voice, deps::Deps, inbound::Message, voice::voices::Voices};
use adapters::sound::{Pcm, Sound};
use bytes::Bytes;
use entities::{boxed, ids::TenantId, inbound_call::InboundOutcome, number::Otherwise};
use futures_util::StreamExt;
use media::bridge::MediaBridge;
use sip::call::{Command, Happening};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// Whoever calls hears ringing meanwhile, or nothing.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// The longest message.
const LONGEST: Duration = Duration::from_secs(90);
/// Samples of it.
const MOST_SECONDS: usize = 80;
/// Seconds after which whoever was turned away for lack of anything may try again.
const RETRY_AFTER: u64 = 30;

/// How it went, what is to become of the caller instead, and what is to be said to him.
pub type Not = (InboundOutcome, Otherwise, Option<Message>);

#[boxed]
pub async fn refuse(mut signalling: Signalling, (code, reason): (u16, &'static str), retry_after: Option<u64>) {
    signalling.command(Command::Refuse {
        code,
        reason: reason.to_owned(),
        retry_after: retry_after.map(Duration::from_secs),
    });
    signalling.leave();
}

pub async fn meet(deps: &Deps, switchboard: &Switchboard, signalling: Signalling, offer: Option<Bytes>, not: Not) {
    match not {
        (InboundOutcome::Blocked, ..) => {
            refuse(signalling, (503, "Service Unavailable"), Some(RETRY_AFTER)).await;
        }
        (_, Otherwise::PlayMessage, Some(message)) => play(deps, switchboard, signalling, offer, &message).await,
        (_, Otherwise::Reject, _) => refuse(signalling, (603, "Decline"), None).await,
        (_, Otherwise::Busy | Otherwise::PlayMessage, _) => refuse(signalling, (486, "Busy Here"), None).await,
    }
}

async fn play(
    deps: &Deps,
    switchboard: &Switchboard,
    mut signalling: Signalling,
    offer: Option<Bytes>,
    message: &Message,
) {
    let tenant = signalling.account().row.tenant_id;
    let Some(_one) = switchboard.messages.begin(tenant) else {
        return refuse(signalling, (486, "Busy Here"), None).await;
    };
    let making = timeout(MADE_WITHIN, spoken(deps, tenant, message));
    let (words, has_gone) = signalling.serve_while(making).await;
    if has_gone {
        return signalling.leave();
    }
    let Some(words) = words.ok().flatten() else {
        return refuse(signalling, (480, "Temporarily Unavailable"), None).await;
    };
    let (bridge, _) = MediaBridge::new();
    let mut sound = match accept(deps, switchboard, &mut signalling, offer, bridge.clone()).await {
        Ok(sound) => sound,
        Err(answer) => return refuse(signalling, answer, None).await,
    };
    sound.picked_up(false);
    let mut played = bridge.play_whole(words.rate, words.samples);
    let limit = Some(Instant::now() + LONGEST);
    loop {
        tokio::select! {
            _ = &mut played => break,
            happening = signalling.next() => match happening {
                Happening::OfferAnswered { sdp } => {
                    // Without a sound that both know the caller hears nothing, for as long as it takes.
                    let _ = sound.agree(deps, &sdp).await;
                }
                Happening::RemoteHungUp { .. } | Happening::NeverAcked | Happening::Gone => break,
                _ => {}
            },
            _ = sound.event() => {}
            () = until(limit) => break,
        }
    }
    drop(sound);
    signalling.command(Command::HangUp { q850: 16 });
    signalling.leave();
}

/// `None`: nobody here can say it.
async fn spoken(deps: &Deps, tenant: TenantId, message: &Message) -> Option<Pcm> {
    let cast = voice::cast(deps, tenant, &message.voice_id, &message.language).await;
    let cast = cast
        .map_err(|error| tracing::warn!(%error, "a message has no voice"))
        .ok()?;
    let voices = Voices::new(cast, &message.language, Arc::new(|_| {}));
    match voices.sound_of(&message.text, true, None).await {
        Sound::Whole(sound) => Some(sound).filter(|sound| !sound.is_empty()),
        Sound::Stream(mut stream) => {
            let (most, mut samples) = (MOST_SECONDS * stream.rate as usize, Vec::new());
            while samples.len() < most
                && let Some(piece) = stream.chunks.next().await
            {
                samples.extend(piece);
            }
            (!samples.is_empty()).then(|| Pcm::new(stream.rate, samples))
        }
    }
}
