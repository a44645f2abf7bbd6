//! What a recording says of the machine that speaks in it.
use crate::{
    call::voice::{builtin_of, has_spoken},
    deps::Deps,
};
use adapters::voice_clone::builtin;
use entities::{
    Error, Result,
    agent::{Brain, Channels, Definition},
    agent_version,
    ids::VoiceId,
    recording::{Sound, Synthetic, SyntheticVoice, VoiceKind},
    session,
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
        (Source::Line, Ok(clone)) => match of_clone(deps, call, clone).await? {
            Some(cloned) => cloned,
            None => of_hosted(deps, &id).unwrap_or_else(|| of_words(deps, agent.as_ref())),
        },
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

/// `None`: the clone could not be spoken with, so the service's own voice was heard.
async fn of_clone(deps: &Deps, call: &session::Model, id: VoiceId) -> Result<Option<SyntheticVoice>> {
    let Some(speaker) = &deps.providers.speech.clones else {
        return Ok(None);
    };
    let has_spoken = has_spoken(deps, call.tenant_id, id, call.created_at).await?;
    Ok(has_spoken.then(|| SyntheticVoice {
        id: id.to_string(),
        kind: VoiceKind::Cloned,
        provider: speaker.kind().name().to_owned(),
        model: speaker.model().map(str::to_owned),
        watermark: speaker.says_it_marks(),
    }))
}

/// As [`Speech::cast`](adapters::speech::Speech::cast) has it: the speech provider's voice of that name or its first one; none without a
/// provider, and of those that are built in.
fn of_hosted(deps: &Deps, id: &str) -> Option<SyntheticVoice> {
    let provider = deps.providers.speech.provider.as_ref();
    let provider = provider.filter(|_| !id.starts_with("builtin:"))?;
    let voice = provider.voice(id).or_else(|| provider.voices().first())?;
    Some(SyntheticVoice {
        id: voice.id.clone(),
        kind: VoiceKind::Provider,
        provider: provider.kind().name().to_owned(),
        model: provider.model().map(str::to_owned),
        watermark: provider.says_it_marks(),
    })
}

/// The same, and this machine's where there is none. A realtime provider's own voice is heard from nobody else.
fn of_name(deps: &Deps, id: String) -> SyntheticVoice {
    if let Some(hosted) = of_hosted(deps, &id) {
        return hosted;
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
