//! The message for a person who has answered and whom no agent takes in time. It is made ahead, in the call's voice, and played from
//! memory: at that moment neither a model nor a provider is asked for anything.
use crate::{
    call::{leg::Leg, voice},
    deps::Deps,
};
use adapters::{
    recording::messages::MessageKey,
    sound::Pcm,
    speech::{Cast, SpeechStream, Tongue},
};
use entities::{Error, boxed, ids::TenantId};
use rules::voice_clone::machine::ALWAYS_THERE;
use std::time::Duration;
use tokio::time::timeout;

/// How long a provider may take for one.
const MADE_WITHIN: Duration = Duration::from_secs(30);
/// How long this machine's voice may, while a phone rings.
const MADE_HERE_WITHIN: Duration = Duration::from_secs(3);
/// What a machine without a speech program has: nobody would understand a word.
const TONES: &str = "tones";

/// One that nobody has needed for so long is removed.
const KEPT_UNREAD: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a call may need that is placed now.
pub fn prepare_for(deps: &Deps, leg: &Leg) {
    let call = &leg.call;
    if let (Some(message), Some(voice)) = (&call.options.safe_harbour, &call.voice_id) {
        let language = leg.agent.definition.language.to_string();
        prepare(deps, call.tenant_id, (voice, &language), &message.text);
    }
}

/// Removes what is needed no longer.
pub async fn sweep(deps: &Deps) {
    if let Err(error) = deps.standbys.messages.sweep(KEPT_UNREAD).await {
        tracing::warn!(%error, "messages that nobody needs any more could not be removed");
    }
}

/// Makes it ready, in the background, unless it is, or so many are being made.
fn prepare(deps: &Deps, tenant: TenantId, (voice_id, language): (&str, &str), text: &str) {
    let key = MessageKey::of(voice_id, language, text);
    let its = deps.clone();
    let (voice_id, language, text) = (voice_id.to_owned(), language.to_owned(), text.to_owned());
    let work = async move {
        if its.standbys.messages.read(key).await.is_some() {
            return Ok(());
        }
        let standbys = &its.standbys;
        let Ok(_place) = standbys.waiting.enter(tenant) else {
            return Ok(());
        };
        let Ok(_turn) = standbys.at_once.acquire().await else {
            return Ok(());
        };
        if !standbys.may_make(tenant, its.clock.now()) {
            metrics::counter!("callboard_standby_messages_failed_total").increment(1);
            tracing::warn!(%tenant, "this workspace has had as many messages made today as it may: this machine's voice says the others");
            return Ok(());
        }
        let cast = voice::cast(&its, tenant, speaker(&voice_id), &language).await?;
        let Some(sound) = by_one_of(&cast, &text).await else {
            metrics::counter!("callboard_standby_messages_failed_total").increment(1);
            tracing::error!("no voice says the message for people whom no agent takes in time");
            return Ok(());
        };
        let written = its.standbys.messages.write(key, &sound).await;
        written.map_err(|error| Error::Internal(format!("a message could not be kept: {error}")))
    };
    deps.jobs
        .run(&deps.standbys.making, key, "message that stands ready", work);
}

/// The sound of it, for a call that may need it in a moment. One that does not stand ready is said by this machine's voice, and made ready
/// for the next call. `None`: not even that one says it.
#[boxed]
pub async fn ready(deps: &Deps, tenant: TenantId, (voice_id, language): (&str, &str), text: &str) -> Option<Pcm> {
    let key = MessageKey::of(voice_id, language, text);
    if let Some(sound) = deps.standbys.messages.read(key).await {
        return Some(sound);
    }
    prepare(deps, tenant, (voice_id, language), text);
    let local = deps.providers.speech.cast(speaker(voice_id), None, language).local;
    match local.name() {
        TONES => None,
        _ => said_by(&local, text, MADE_HERE_WITHIN).await,
    }
}

/// Who says it: a voice that has words.
fn speaker(voice_id: &str) -> &str {
    match voice_id {
        ALWAYS_THERE => "",
        chosen => chosen,
    }
}

/// By the voice that was chosen, else by the one that takes over, else by this machine's, if that has words.
async fn by_one_of(cast: &Cast, text: &str) -> Option<Pcm> {
    for tongue in [Some(&cast.first), cast.second.as_ref(), Some(&cast.local)]
        .into_iter()
        .flatten()
    {
        if tongue.name() == TONES {
            continue;
        }
        if let Some(sound) = said_by(tongue, text, MADE_WITHIN).await {
            return Some(sound);
        }
    }
    None
}

async fn said_by(tongue: &Tongue, text: &str, within: Duration) -> Option<Pcm> {
    timeout(within, gathered(tongue.speak(text))).await.ok().flatten()
}

/// All of it; `None`: it broke off, or nothing was said.
async fn gathered(mut sound: SpeechStream) -> Option<Pcm> {
    let (rate, mut samples) = (sound.rate, Vec::new());
    while let Some(piece) = sound.next().await {
        samples.extend(piece.ok()?);
    }
    (!samples.is_empty()).then(|| Pcm::new(rate, samples))
}
