//! POST /v1/voices/{id}/preview: how a voice sounds.
use super::super::{
    error::ApiResult,
    extract::{Id, Json},
};
use super::{Found, find, not_configured};
use crate::{http::caller::Caller, state::State};
use actix_web::{HttpResponse, web::Data};
use adapters::voice_clone::builtin::Builtin;
use entities::{
    Error,
    values::Text,
    voice::{Model, Status},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    pub text: Text<1, 500>,
}

/// POST /v1/voices/{id}/preview
pub async fn preview(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<String>,
    Json(asked): Json<Preview>,
) -> ApiResult<HttpResponse> {
    let found = find(&state, &caller, &id).await?;
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    state.limits.preview(caller.tenant_id(), asked.text.chars().count())?;
    let sound = match found {
        Found::Builtin(voice) => say_simply(&state, &voice, &asked.text).await?,
        Found::Clone(row) => say(&state, &row, asked.text.into_string()).await?,
    };
    Ok(HttpResponse::Ok().content_type("audio/wav").body(sound))
}

/// With one that is simply there: the speech provider's, or this machine's.
async fn say_simply(state: &State, voice: &Builtin, text: &str) -> ApiResult<Vec<u8>> {
    if let Some(tongue) = state.deps.providers.speech.hosted(&voice.id, "") {
        let spoken = tongue.speak(text).wav().await;
        return Ok(spoken.map_err(|error| Error::Unavailable(format!("the speech provider {error}")))?);
    }
    let said = voice.say(&state.deps.studio.voice, text).await;
    Ok(said.ok_or_else(|| {
        Error::NotConfigured("the realtime provider's voices speak in calls only; there is no preview".into())
    })?)
}

async fn say(state: &State, row: &Model, text: String) -> ApiResult<Vec<u8>> {
    let (Status::Ready, Some(id)) = (row.status, row.provider_voice_id.clone()) else {
        return Err(not_ready(row.status).into());
    };
    let cloner = state.deps.cloning.of(row.provider).ok_or_else(not_configured)?;
    let language = row.language.clone().unwrap_or_else(|| "en-US".into());
    state.deps.pass(row.tenant_id).await?;
    let spoken = cloner.speak(id, text, language).await;
    Ok(spoken.map_err(|refused| Error::Unavailable(format!("the voice provider {}", refused.why)))?)
}

fn not_ready(status: Status) -> Error {
    let (state, hint) = match status {
        Status::Pending => ("pending", "wait for `voice_clone.training_succeeded`"),
        Status::Training => ("training", "wait for `voice_clone.training_succeeded`"),
        Status::Failed => ("failed", "see its `error_message`"),
        Status::Ready => ("ready", "train it again"),
    };
    Error::InvalidState {
        kind: "voice",
        state,
        command: "speak",
        hint,
    }
}
