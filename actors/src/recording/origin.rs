//! What a recording says of the machine that speaks in it.
use crate::{call::voice::builtin_of, deps::Deps};
use adapters::{speech::Provider, voice_clone::builtin};
use entities::{
    Error, Result,
    agent::{Brain, Channels, Definition},
    agent_version,
    ids::VoiceId,
    recording::{Sound, Synthetic, SyntheticVoice, VoiceKind},
    session,
    voice::{self, Maker},
};
use std::collections::BTreeMap;

/// Where the sound of a recording is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A line has carried it.
    Line,
    /// It was made of words: by the service's own voice, but for what the agent itself is known to have spoken.
    Words { has_own_sound: bool },
}

/// Of one that is made now.
pub(super) async fn of(deps: &Deps, call: &session::Model, channels: Channels, source: Source) -> Result<Synthetic> {
    let other = match source {
        Source::Line => Sound::Person,
        Source::Words { .. } => Sound::SimulatedPerson,
    };
    let channels = match channels {
        Channels::Dual => BTreeMap::from([("left".to_owned(), Sound::Agent), ("right".to_owned(), other)]),
        Channels::Mono => BTreeMap::from([("mono".to_owned(), Sound::Everybody)]),
    };
    let version = agent_version::load(&deps.db.read, call.tenant_id, call.agent_id, call.agent_version).await;
    let agent = match version {
        Ok(version) => Some(version.definition),
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let id = call.voice_id.clone().unwrap_or_default();
    let own = match source {
        Source::Line | Source::Words { has_own_sound: true } => {
            agent.as_ref().and_then(|agent| of_realtime(deps, agent, &id))
        }
        Source::Words { has_own_sound: false } => None,
    };
    let of_service = match (source, id.parse::<VoiceId>()) {
        (Source::Words { .. }, _) => of_words(deps, agent.as_ref()),
        (Source::Line, Ok(clone)) => of_clone(deps, call, clone).await?,
        (Source::Line, Err(_)) => of_name(deps, id),
    };
    let (voice, service_voice) = match own {
        Some(own) => (own, Some(of_service)),
        None => (of_service, None),
    };
    Ok(Synthetic {
        synthetic: true,
        channels,
        voice,
        service_voice,
    })
}

/// Of an agent that speaks by itself, if somebody is there to do it. `chosen`: the call's `voice_id`, which is told to the provider only if
/// it is one of its own.
fn of_realtime(deps: &Deps, agent: &Definition, chosen: &str) -> Option<SyntheticVoice> {
    let Brain::Realtime { model } = &agent.brain else {
        return None;
    };
    let provider = deps.providers.realtime.as_ref()?;
    let known = provider.voices().iter().find(|voice| *voice == chosen);
    Some(SyntheticVoice {
        id: known.cloned().unwrap_or_default(),
        kind: VoiceKind::Provider,
        provider: "realtime".to_owned(),
        model: Some(model.as_deref().unwrap_or_else(|| provider.model()).to_owned()),
        watermark: false,
    })
}

/// Of what this machine says, whatever the call's `voice_id` is.
fn of_words(deps: &Deps, agent: Option<&Definition>) -> SyntheticVoice {
    let program = deps.studio.voice.name();
    let language = agent.map_or_else(|| "en-US".to_owned(), |agent| agent.language.to_string());
    SyntheticVoice {
        id: builtin::default_of(program, &language).to_owned(),
        kind: VoiceKind::Builtin,
        provider: program.to_owned(),
        model: None,
        watermark: false,
    }
}

/// The clone may be gone by now; it has spoken all the same.
async fn of_clone(deps: &Deps, call: &session::Model, id: VoiceId) -> Result<SyntheticVoice> {
    let maker = match voice::maker(&deps.db.read, call.tenant_id, id).await {
        Ok(maker) => Some(maker),
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let speaker = deps
        .providers
        .speech
        .clones
        .as_ref()
        .filter(|_| maker == Some(Maker::Elevenlabs));
    let own = || deps.studio.voice.name().to_owned();
    Ok(SyntheticVoice {
        id: id.to_string(),
        kind: VoiceKind::Cloned,
        provider: speaker.map_or_else(own, |provider| provider.kind().name().to_owned()),
        model: speaker.and_then(Provider::model).map(str::to_owned),
        watermark: speaker.is_some_and(Provider::says_it_marks),
    })
}

/// As [`Speech::cast`](adapters::speech::Speech::cast) has it: the speech provider's voice of that name or its first one; without a provider,
/// and of those that are built in, this machine's. A realtime provider's own voice is heard from nobody else.
fn of_name(deps: &Deps, id: String) -> SyntheticVoice {
    let provider = deps.providers.speech.provider.as_ref();
    let hosted = provider.filter(|_| !id.starts_with("builtin:")).and_then(|provider| {
        let voice = provider.voice(&id).or_else(|| provider.voices().first())?;
        Some((provider, voice))
    });
    if let Some((provider, voice)) = hosted {
        return SyntheticVoice {
            id: voice.id.clone(),
            kind: VoiceKind::Provider,
            provider: provider.kind().name().to_owned(),
            model: provider.model().map(str::to_owned),
            watermark: provider.says_it_marks(),
        };
    }
    let own = builtin_of(deps, &id).filter(|voice| !voice.is_provided());
    SyntheticVoice {
        id,
        kind: VoiceKind::Builtin,
        provider: own.map_or_else(
            || deps.studio.voice.name().to_owned(),
            |voice| voice.provider.to_owned(),
        ),
        model: None,
        watermark: false,
    }
}
