//! What a recording says of the machine that speaks in it.
use crate::{call::voice::builtin_of, deps::Deps};
use adapters::speech::Provider;
use entities::{
    Error, Result,
    agent::Channels,
    ids::VoiceId,
    recording::{Sound, Synthetic, SyntheticVoice, VoiceKind},
    session,
    voice::{self, Maker},
};
use std::collections::BTreeMap;

/// Of one that is made now. `spooled`: of what a line has carried; else the service's own voice has spoken both sides.
pub(super) async fn of(deps: &Deps, call: &session::Model, channels: Channels, spooled: bool) -> Result<Synthetic> {
    let other = match spooled {
        true => Sound::Person,
        false => Sound::SimulatedPerson,
    };
    let channels = match channels {
        Channels::Dual => BTreeMap::from([("left".to_owned(), Sound::Agent), ("right".to_owned(), other)]),
        Channels::Mono => BTreeMap::from([("mono".to_owned(), Sound::Everybody)]),
    };
    let id = call.voice_id.clone().unwrap_or_default();
    let voice = match id.parse::<VoiceId>() {
        Ok(clone) => of_clone(deps, call, clone).await?,
        Err(_) => of_name(deps, id),
    };
    Ok(Synthetic {
        synthetic: true,
        channels,
        voice,
    })
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

fn of_name(deps: &Deps, id: String) -> SyntheticVoice {
    let known = builtin_of(deps, &id);
    let speaker = deps.providers.speech.provider.as_ref().filter(|provider| {
        known
            .as_ref()
            .is_some_and(|voice| voice.provider == provider.kind().name())
    });
    let kind = match &known {
        Some(voice) if voice.is_provided() => VoiceKind::Provider,
        Some(_) | None => VoiceKind::Builtin,
    };
    let own = || deps.studio.voice.name().to_owned();
    SyntheticVoice {
        id,
        kind,
        provider: known.map_or_else(own, |voice| voice.provider.to_owned()),
        model: speaker.and_then(Provider::model).map(str::to_owned),
        watermark: speaker.is_some_and(Provider::says_it_marks),
    }
}
