//! Clones: uploading samples, adding some, training again.
use super::{
    super::{
        error::{ApiError, ApiResult},
        extract::{Id, Nothing},
    },
    VoiceView, find_clone,
    form::Form,
    given::ConsentGiven,
    not_configured, tell,
    upload::Upload,
};
use crate::{http::caller::Caller, state::State};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::voice_clone::{self, New, samples};
use entities::{
    Error,
    ids::{VoiceId, VoiceSampleId},
    values::{Env, Text},
    voice::{self as store, Maker, Status, sample},
};
use rules::voice_clone::machine::Command;
use schemars::JsonSchema;

/// The fields of a form, as `multipart/form-data`.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["name", "samples"]))]
#[expect(dead_code, reason = "it describes a form, which is read part by part")]
pub struct CloneForm {
    name: Text<1, 100>,
    /// BCP 47, such as en-US.
    language: Option<Text<2, 35>>,
    /// `true`: the person who speaks agrees to be cloned, and you can show it. Of a test key's clone this is enough.
    consent_attested: bool,
    /// That the person who speaks has agreed to be cloned, as JSON. Required with a live key.
    consent: ConsentGiven,
    /// The file that shows it: a recording of the statement, or a signed document; at most 25 MiB. Required with `consent`.
    #[schemars(schema_with = "file")]
    consent_evidence: Vec<u8>,
    /// At least 3 files of at least 30 seconds each, at most 25 files of 25 MiB, 200 MiB together.
    #[schemars(schema_with = "files")]
    samples: Vec<u8>,
}

/// The fields of a form, as `multipart/form-data`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a form, which is read part by part")]
pub struct SamplesForm {
    /// Files of at least 30 seconds each.
    #[schemars(schema_with = "files")]
    samples: Vec<u8>,
}

pub(super) fn file(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "binary" })
}

fn files(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "string", "format": "binary" } })
}

/// Clones of a workspace.
const MAX_CLONES: u64 = 100;

/// POST /v1/voices/clones
pub async fn create(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    payload: web::Payload,
) -> ApiResult<HttpResponse> {
    let maker = maker(&state, &caller)?;
    let form = Form::new(&request, payload)?;
    let db = &state.deps.db.read;
    let id: VoiceId = caller.new_id(&state.deps.ids);
    // A repeat of a request whose answer was lost.
    if caller.object_id.is_some()
        && let Ok(row) = store::load(db, caller.tenant_id(), id).await
    {
        form.skip().await?;
        return Ok(HttpResponse::Accepted().json(VoiceView::of(&state, row)));
    }
    if store::count(db, caller.tenant_id()).await? >= MAX_CLONES {
        let why = format!("a workspace has at most {MAX_CLONES} clones; delete some");
        form.drain().await;
        return Err(Error::PlanLimit(why).into());
    }
    let upload = Upload::new(&state, &caller, id, &[]);
    let texts = &["name", "language", "consent_attested", "consent"];
    let (upload, asked) = upload
        .receive(form, texts, &["samples", "consent_evidence"], None)
        .await?;
    let row = match asked.settings(caller.env(), upload.evidence(), state.deps.clock.now()) {
        Ok(settings) => {
            let new = New {
                id,
                provider: maker,
                name: settings.name,
                language: settings.language,
                consent: settings.consent,
            };
            let made = voice_clone::create(&state.deps, caller.owner(), new, &upload.samples).await;
            made.map_err(ApiError::from)
        }
        Err(error) => Err(error),
    };
    match row {
        Ok(row) => Ok(HttpResponse::Accepted().json(VoiceView::of(&state, row))),
        Err(error) => {
            samples::drop_all(&state.deps, &upload.samples).await?;
            Err(error)
        }
    }
}

/// Who makes it: the sandbox for test keys.
fn maker(state: &State, caller: &Caller) -> Result<Maker, Error> {
    let maker = match caller.env() {
        Env::Test => Maker::Sandbox,
        Env::Live => Maker::Elevenlabs,
    };
    state.deps.cloning.of(maker).map(|_| maker).ok_or_else(not_configured)
}

/// POST /v1/voices/{id}/samples
pub async fn add_samples(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<String>,
    payload: web::Payload,
) -> ApiResult<web::Json<VoiceView>> {
    let voice = find_clone(&state, &caller, &id).await?;
    let form = Form::new(&request, payload)?;
    let known = sample::of_voice(&state.deps.db.read, voice.tenant_id, voice.id).await?;
    // A repeat of a request whose answer was lost: its first sample is there.
    if let Some(first) = caller.object_id
        && known.iter().any(|sample| sample.id.0 == first)
    {
        form.skip().await?;
        return Ok(web::Json(VoiceView::of(&state, voice)));
    }
    if !matches!(voice.status, Status::Pending | Status::Failed) {
        form.drain().await;
        // The machine has the words for it.
        let row = tell(&state, &voice, Command::AddSamples(Vec::new())).await?;
        return Ok(web::Json(VoiceView::of(&state, row)));
    }
    let upload = Upload::new(&state, &caller, voice.id, &known);
    let first = caller.object_id.map(VoiceSampleId::from);
    let (upload, _) = upload.receive(form, &[], &["samples"], first).await?;
    if upload.samples.is_empty() {
        return Err(ApiError::validation("samples", "needs at least one file"));
    }
    match tell(&state, &voice, Command::AddSamples(samples::whole(&upload.samples))).await {
        Ok(row) => Ok(web::Json(VoiceView::of(&state, row))),
        // It stands, perhaps: the rows say which of them count.
        Err(error @ ApiError::Service(Error::Unavailable(_))) => Err(error),
        Err(error) => {
            samples::drop_all(&state.deps, &upload.samples).await?;
            Err(error)
        }
    }
}

/// POST /v1/voices/{id}/train
pub async fn train(state: Data<State>, caller: Caller, Id(id): Id<String>, _: Nothing) -> ApiResult<HttpResponse> {
    let voice = find_clone(&state, &caller, &id).await?;
    if state.deps.cloning.of(voice.provider).is_none() {
        return Err(not_configured().into());
    }
    let row = tell(&state, &voice, Command::Train).await?;
    Ok(HttpResponse::Accepted().json(VoiceView::of(&state, row)))
}
