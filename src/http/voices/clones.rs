//! Clones: uploading samples, adding some, training again.
use super::{
    super::{
        error::{ApiError, ApiResult, Code},
        extract::{Id, Nothing},
        language::check_language,
    },
    VoiceView, find_clone,
    form::{Form, Part},
    not_configured, tell,
};
use crate::{http::caller::Caller, state::State};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::voice_clone::{
    self, New,
    samples::{self, MAX_TOTAL},
};
use entities::{
    Error,
    ids::{VoiceId, VoiceSampleId},
    values::{Env, Text},
    voice::{
        self as store, Maker, Status,
        sample::{self, Model as Sample},
    },
};
use rules::voice_clone::machine::{Command, MAX_SAMPLES};
use schemars::JsonSchema;

/// The fields of a form, as `multipart/form-data`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a form, which is read part by part")]
pub struct CloneForm {
    name: Text<1, 100>,
    /// BCP 47, such as en-US.
    language: Option<Text<2, 35>>,
    /// `true`: the person who speaks agrees to be cloned, and you can show it.
    consent_attested: bool,
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
        return Ok(HttpResponse::Accepted().json(VoiceView::from(row)));
    }
    if store::count(db, caller.tenant_id()).await? >= MAX_CLONES {
        let why = format!("a workspace has at most {MAX_CLONES} clones; delete some");
        form.drain().await;
        return Err(Error::PlanLimit(why).into());
    }
    let upload = Upload::new(&state, &caller, id, &[]);
    let (upload, asked) = upload
        .receive(form, &["name", "language", "consent_attested"], None)
        .await?;
    let row = match asked.settings() {
        Ok((name, language)) => {
            let new = New {
                id,
                provider: maker,
                name,
                language,
            };
            let made = voice_clone::create(&state.deps, caller.owner(), new, &upload.samples).await;
            made.map_err(ApiError::from)
        }
        Err(error) => Err(error),
    };
    match row {
        Ok(row) => Ok(HttpResponse::Accepted().json(VoiceView::from(row))),
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
        return Ok(web::Json(voice.into()));
    }
    if !matches!(voice.status, Status::Pending | Status::Failed) {
        form.drain().await;
        // The machine has the words for it.
        return Ok(web::Json(
            tell(&state, &voice, Command::AddSamples(Vec::new())).await?.into(),
        ));
    }
    let upload = Upload::new(&state, &caller, voice.id, &known);
    let first = caller.object_id.map(VoiceSampleId::from);
    let (upload, _) = upload.receive(form, &[], first).await?;
    if upload.samples.is_empty() {
        return Err(ApiError::validation("samples", "needs at least one file"));
    }
    match tell(&state, &voice, Command::AddSamples(samples::whole(&upload.samples))).await {
        Ok(row) => Ok(web::Json(row.into())),
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
    Ok(HttpResponse::Accepted().json(VoiceView::from(row)))
}

/// The texts of a form.
#[derive(Default)]
struct Asked {
    name: Option<String>,
    language: Option<String>,
    consent_attested: Option<String>,
}

impl Asked {
    fn put(&mut self, name: &str, value: String) -> ApiResult<()> {
        let field = match name {
            "name" => &mut self.name,
            "language" => &mut self.language,
            _ => &mut self.consent_attested,
        };
        if field.replace(value).is_some() {
            return Err(ApiError::validation(name, "is given twice"));
        }
        Ok(())
    }

    /// Name and language.
    fn settings(self) -> ApiResult<(String, Option<String>)> {
        let name = self.name.ok_or_else(|| ApiError::validation("name", "is required"))?;
        let name = Text::<1, 100>::parse(&name).map_err(|why| ApiError::validation("name", why))?;
        let language = self.language.filter(|language| !language.is_empty());
        let language = language.as_deref().map(Text::<2, 35>::parse).transpose();
        let language = language.map_err(|why| ApiError::validation("language", why))?;
        language.as_deref().map_or(Ok(()), check_language)?;
        // Some clients write it as their own language does.
        if !self
            .consent_attested
            .as_ref()
            .is_some_and(|said| said.eq_ignore_ascii_case("true"))
        {
            let why = "must be `true`: you need the consent of the person who speaks";
            return Err(ApiError::validation("consent_attested", why));
        }
        Ok((name.into_string(), language.map(Text::into_string)))
    }
}

/// Samples on their way into the store.
struct Upload<'a> {
    state: &'a State,
    caller: &'a Caller,
    voice: VoiceId,
    /// Samples and bytes that the voice has already.
    known: (usize, u64),
    samples: Vec<Sample>,
}

impl<'a> Upload<'a> {
    fn new(state: &'a State, caller: &'a Caller, voice: VoiceId, known: &[Sample]) -> Self {
        Upload {
            state,
            caller,
            voice,
            known: (known.len(), bytes(known)),
            samples: Vec::new(),
        }
    }

    /// Stores the files and answers the texts. A refused form leaves nothing.
    async fn receive(
        mut self,
        mut form: Form,
        texts: &[&str],
        first: Option<VoiceSampleId>,
    ) -> ApiResult<(Self, Asked)> {
        let Ok(_permit) = self.state.deps.cloning.uploads.enter(self.caller.tenant_id()) else {
            form.drain().await;
            let why = "too many uploads are under way; try again shortly".into();
            return Err(ApiError::TooMany(Code::RateLimited, why, 10));
        };
        let mut asked = Asked::default();
        match self.read(&mut form, texts, first, &mut asked).await {
            Ok(()) => Ok((self, asked)),
            Err(error) => {
                samples::drop_all(&self.state.deps, &self.samples).await?;
                form.drain().await;
                Err(error)
            }
        }
    }

    async fn read(
        &mut self,
        form: &mut Form,
        texts: &[&str],
        first: Option<VoiceSampleId>,
        asked: &mut Asked,
    ) -> ApiResult<()> {
        while let Some(part) = form.next().await? {
            match part {
                Part::File { name, file_name, file } if name == "samples" => {
                    self.take(file_name, file, first).await?;
                }
                Part::Text { name, value } if texts.contains(&name.as_str()) => asked.put(&name, value)?,
                Part::Text { name, .. } | Part::File { name, .. } => {
                    let known = [texts, &["samples"]].concat().join("`, `");
                    return Err(ApiError::validation(
                        name,
                        format!("is not a field of this form; its fields are `{known}`"),
                    ));
                }
            }
        }
        Ok(())
    }

    async fn take(&mut self, file_name: String, file: Vec<u8>, first: Option<VoiceSampleId>) -> ApiResult<()> {
        let place = self.known.0 + self.samples.len();
        let most = usize::try_from(MAX_SAMPLES).unwrap_or(0);
        if place >= most {
            return Err(ApiError::validation(
                "samples",
                format!("a voice has at most {most} samples"),
            ));
        }
        if self.known.1 + bytes(&self.samples) + file.len() as u64 > MAX_TOTAL {
            let message = format!("the samples of a voice have more than {MAX_TOTAL} bytes together");
            return Err(ApiError::Frame(Code::PayloadTooLarge, message, Some("samples".into())));
        }
        let deps = &self.state.deps;
        let id = first
            .filter(|_| self.samples.is_empty())
            .unwrap_or_else(|| deps.ids.next());
        let place = i32::try_from(place).unwrap_or(i32::MAX);
        let owner = (self.caller.tenant_id(), self.voice);
        self.samples
            .push(samples::put(deps, owner, (id, place), file_name, file).await?);
        Ok(())
    }
}

fn bytes(samples: &[Sample]) -> u64 {
    samples
        .iter()
        .map(|sample| u64::try_from(sample.bytes).unwrap_or(0))
        .sum()
}
