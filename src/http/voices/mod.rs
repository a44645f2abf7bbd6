//! Voices: those that are simply there, and clones of a workspace's own. Shared by its two envs.
mod clones;
mod consent;
mod form;
mod given;
mod listing;
mod preview;
mod upload;

pub use clones::{CloneForm, SamplesForm, add_samples, create, train};
pub use consent::{ConsentForm, evidence, prove};
pub use form::{Fingerprint, Form};
pub use listing::list;
pub use preview::{Preview, preview};

use super::{
    error::ApiResult,
    extract::{self, Id, Json},
    language::check_language,
};
use crate::{http::caller::Caller, state::State};
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::call::voice::builtin_of;
use adapters::{speech::Provider, voice_clone::builtin::Builtin};
use entities::{
    Error, agent, campaign,
    ids::VoiceId,
    values::{Moment, Text},
    voice::{self as store, Consent, Maker, Model, Status, sample},
};
use rules::voice_clone::machine::Command;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Where a voice comes from.")]
pub enum VoiceType {
    /// The service speaks with it, without a provider.
    Builtin,
    /// The speech provider's; or the realtime provider's, in calls of agents with `brain.mode: realtime`.
    Provider,
    /// Made from the workspace's own samples.
    Cloned,
}

#[derive(Serialize, JsonSchema)]
pub struct VoiceView {
    /// A UUID for a clone, else a fixed name: what agents and campaigns take as `voice_id`.
    pub id: String,
    pub name: String,
    pub r#type: VoiceType,
    /// Who speaks: `sandbox`, `realtime`, `openai`, `elevenlabs`, `cartesia`, `piper`, or a program of this machine.
    pub provider: String,
    /// BCP 47; null: any.
    pub language: Option<String>,
    pub status: Status,
    /// The number of a clone's samples.
    pub samples: i32,
    /// Each of a clone's samples. Only in the answer to GET /v1/voices/{id}.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_details: Option<Vec<SampleView>>,
    /// What shows that the speaker of a clone has agreed. Null for other voices, and for clones of which only a tick says so: these
    /// speak in previews only.
    pub consent: Option<Consent>,
    /// The operator says that the provider puts a watermark into its sound.
    pub watermark: bool,
    /// Why the last training failed; see docs/voices.md.
    pub error_code: Option<String>,
    /// The same in words, with what to do.
    pub error_message: Option<String>,
    pub ready_at: Option<Moment>,
    /// Null for built-in voices.
    pub created_at: Option<Moment>,
    pub updated_at: Option<Moment>,
}

#[derive(Serialize, JsonSchema)]
pub struct SampleView {
    pub file_name: String,
    pub bytes: i64,
    /// Of the file, hex.
    pub sha256: String,
    /// `wav`, `mp3`, `flac` or `ogg`. Null, like the following fields, until it has been examined.
    pub format: Option<String>,
    pub duration_seconds: Option<f64>,
    /// Integrated loudness by EBU R 128.
    pub loudness_lufs: Option<f64>,
    /// Why it is not used: an `error_code`.
    pub fault: Option<String>,
}

impl From<sample::Model> for SampleView {
    fn from(row: sample::Model) -> Self {
        SampleView {
            file_name: row.file_name,
            bytes: row.bytes,
            sha256: row.sha256,
            format: row.format,
            duration_seconds: row.duration_ms.map(|ms| ms as f64 / 1000.0),
            loudness_lufs: row.loudness_lufs,
            fault: row.fault,
        }
    }
}

impl From<Model> for VoiceView {
    fn from(row: Model) -> Self {
        let provider = match row.provider {
            Maker::Sandbox => "sandbox",
            Maker::Elevenlabs => "elevenlabs",
        };
        VoiceView {
            id: row.id.to_string(),
            name: row.name,
            r#type: VoiceType::Cloned,
            provider: provider.into(),
            language: row.language,
            status: row.status,
            samples: row.samples,
            sample_details: None,
            consent: row.consent,
            watermark: false,
            error_code: row.error_code,
            error_message: row.error_message,
            ready_at: row.ready_at,
            created_at: Some(row.created_at),
            updated_at: Some(row.updated_at),
        }
    }
}

impl From<Builtin> for VoiceView {
    fn from(voice: Builtin) -> Self {
        VoiceView {
            r#type: builtin_type(&voice),
            id: voice.id.into(),
            name: voice.name.into(),
            provider: voice.provider.into(),
            language: voice.language.map(str::to_owned),
            status: Status::Ready,
            samples: 0,
            sample_details: None,
            consent: None,
            watermark: voice.watermark,
            error_code: None,
            error_message: None,
            ready_at: None,
            created_at: None,
            updated_at: None,
        }
    }
}

impl VoiceView {
    /// Of a clone.
    fn of(state: &State, row: Model) -> Self {
        let speaker = state.deps.providers.speech.clones.as_ref();
        VoiceView {
            watermark: row.provider == Maker::Elevenlabs && speaker.is_some_and(Provider::says_it_marks),
            ..row.into()
        }
    }
}

fn builtin_type(voice: &Builtin) -> VoiceType {
    if voice.is_provided() {
        VoiceType::Provider
    } else {
        VoiceType::Builtin
    }
}

/// What an id means.
enum Found {
    Builtin(Builtin),
    Clone(Box<Model>),
}

async fn find(state: &State, caller: &Caller, id: &str) -> ApiResult<Found> {
    if let Ok(id) = id.parse::<VoiceId>() {
        let row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
        return Ok(Found::Clone(Box::new(row)));
    }
    let found = builtin_of(&state.deps, id).map(Found::Builtin);
    found.ok_or_else(|| Error::NotFound("voice").into())
}

/// A clone of the workspace's; of others nothing can be changed.
async fn find_clone(state: &State, caller: &Caller, id: &str) -> ApiResult<Model> {
    match find(state, caller, id).await? {
        Found::Clone(row) => Ok(*row),
        Found::Builtin(_) => Err(Error::InvalidState {
            kind: "voice",
            state: "built-in",
            command: "be changed",
            hint: "only clones can",
        }
        .into()),
    }
}

/// GET /v1/voices/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<String>) -> ApiResult<web::Json<VoiceView>> {
    let row = match find(&state, &caller, &id).await? {
        Found::Builtin(voice) => return Ok(web::Json(voice.into())),
        Found::Clone(row) => row,
    };
    let samples = sample::of_voice(&state.deps.db.read, row.tenant_id, row.id).await?;
    let details = samples.into_iter().map(SampleView::from).collect();
    Ok(web::Json(VoiceView {
        sample_details: Some(details),
        ..VoiceView::of(&state, *row)
    }))
}

/// What can be changed about a clone.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoiceSettings {
    pub name: Text<1, 100>,
    /// BCP 47, such as en-US.
    #[serde(default)]
    pub language: Option<Text<2, 35>>,
}

/// PATCH /v1/voices/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<String>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<VoiceView>> {
    let before = find_clone(&state, &caller, &id).await?;
    let settings = serde_json::json!({ "name": before.name, "language": before.language });
    let VoiceSettings { name, language } = extract::merged(settings, patch)?;
    language.as_deref().map_or(Ok(()), check_language)?;
    let command = Command::Rename {
        name: name.into_string(),
        language: language.map(Text::into_string),
    };
    let row = tell(&state, &before, command).await?;
    Ok(web::Json(VoiceView::of(&state, row)))
}

/// Sends a command to a voice's actor.
async fn tell(state: &State, voice: &Model, command: Command) -> ApiResult<Model> {
    let told = state.deps.router.voices().request(voice.key(), command).await?;
    Ok(told.row)
}

/// DELETE /v1/voices/{id}: the provider's copy and the samples go after it.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<String>) -> ApiResult<HttpResponse> {
    let voice = find_clone(&state, &caller, &id).await?;
    let (db, id) = (&state.deps.db.read, voice.id.to_string());
    let mut users = Vec::new();
    let agents = agent::that_speak_with(db, caller.tenant_id(), &id).await?;
    users.extend(agents.iter().map(|name| format!("agent `{name}`")));
    let campaigns = campaign::that_speak_with(db, caller.tenant_id(), &id).await?;
    users.extend(campaigns.iter().map(|name| format!("campaign `{name}`")));
    if !users.is_empty() {
        let (count, users) = (users.len(), users[..users.len().min(10)].join(", "));
        let why = format!("{count} use it: {users}; give them another `voice_id` first");
        return Err(Error::InUse(why).into());
    }
    tell(&state, &voice, Command::Delete).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn not_configured() -> Error {
    Error::NotConfigured("no voice provider is configured; use a test key for sandbox clones".into())
}
