//! Who speaks in a call.
use crate::deps::Deps;
use adapters::{
    speech::Cast,
    voice_clone::builtin::{self, Builtin},
};
use entities::{
    Error, Result, boxed,
    ids::{TenantId, VoiceId},
    values::Moment,
    voice::{self, Maker, Status},
};

/// By the first of these that there is, as the operator has set the service up; else the default of the language (BCP 47).
pub fn of_call<'a>(deps: &Deps, chosen: impl IntoIterator<Item = Option<&'a str>>, language: &str) -> String {
    builtin::of_call(deps.studio.voice.name(), &deps.providers, chosen, language)
}

/// One of those that are simply there.
pub fn builtin_of(deps: &Deps, id: &str) -> Option<Builtin> {
    let mut there = builtin::all(deps.studio.voice.name(), &deps.providers).into_iter();
    there.find(|voice| voice.id == id)
}

/// A `voice_id` is one that GET /v1/voices lists, and a clone that can be used. Errors: `field`.
#[boxed]
pub async fn check(deps: &Deps, tenant: TenantId, field: &str, voice_id: Option<&str>) -> Result<()> {
    let Some(text) = voice_id else { return Ok(()) };
    let unknown = || Error::invalid(field, "is not a voice of this workspace: see GET /v1/voices");
    let Ok(id) = text.parse::<VoiceId>() else {
        return builtin_of(deps, text).map(drop).ok_or_else(unknown);
    };
    match voice::load(&deps.db.read, tenant, id).await {
        Ok(row) if row.status == Status::Ready => Ok(()),
        Ok(_) => Err(Error::invalid(field, "is not ready to be used yet")),
        Err(Error::NotFound(_)) => Err(unknown()),
        Err(error) => Err(error),
    }
}

/// Who speaks in a talk with that voice; `language`: BCP 47. A clone that is gone is spoken by the service's own voice.
#[boxed]
pub async fn cast(deps: &Deps, tenant: TenantId, voice_id: &str, language: &str) -> Result<Cast> {
    let clone = match voice_id.parse::<VoiceId>() {
        Ok(id) => at_provider(deps, tenant, id).await?,
        Err(_) => None,
    };
    Ok(deps.providers.speech.cast(voice_id, clone.as_deref(), language))
}

/// What the provider calls a clone that can be spoken with.
async fn at_provider(deps: &Deps, tenant: TenantId, id: VoiceId) -> Result<Option<String>> {
    match voice::load(&deps.db.read, tenant, id).await {
        Ok(row) if can_speak(&row) => Ok(row.provider_voice_id),
        Ok(_) | Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The sandbox's can not: nobody has them; nor can one of which nothing shows that its speaker agrees.
fn can_speak(row: &voice::Model) -> bool {
    match (row.status, row.provider) {
        (Status::Ready, Maker::Elevenlabs) => row.consent.is_some(),
        (Status::Pending | Status::Training | Status::Failed, _) | (Status::Ready, Maker::Sandbox) => false,
    }
}

/// Was a clone spoken with in a call of that moment? It may have been deleted since: it has spoken all the same.
#[boxed]
pub async fn has_spoken(deps: &Deps, tenant: TenantId, id: VoiceId, begun: Moment) -> Result<bool> {
    let row = voice::of_ever(&deps.db.read, tenant, id).await?;
    let was_there = |row: &voice::Model| row.deleted_at.is_none_or(|at| begun < at);
    Ok(row.is_some_and(|row| can_speak(&row) && was_there(&row)))
}
