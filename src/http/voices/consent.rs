//! What shows that somebody may be cloned: who has agreed, when, to which words, and a file that proves it.
use super::{
    super::{
        error::{ApiError, ApiResult},
        extract::{self, Id},
    },
    VoiceView,
    clones::file,
    find_clone,
    form::Form,
    tell,
    upload::Upload,
};
use crate::{http::caller::Caller, state::State};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{self, Data},
};
use actors::voice_clone::samples;
use adapters::recording::vault;
use entities::{
    Error,
    ids::VoiceSampleId,
    values::{Moment, Text},
    voice::{
        Consent, ConsentEvidence,
        sample::{self, Model as Sample},
    },
};
use futures_util::{StreamExt, stream};
use rules::voice_clone::machine::Command;
use schemars::JsonSchema;
use serde::Deserialize;

/// As it is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VoiceConsentCreate")]
pub struct ConsentGiven {
    /// The person whose voice it is.
    speaker_name: Text<1, 200>,
    /// When that person has agreed.
    given_at: Moment,
    /// The words that were agreed to, such as what was read aloud.
    statement: Text<1, 1000>,
    /// Where the original lies, such as a contract's number.
    #[serde(default)]
    reference: Option<Text<1, 200>>,
}

/// The fields of a form, as `multipart/form-data`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a form, which is read part by part")]
pub struct ConsentForm {
    /// That the person who speaks has agreed to be cloned, as JSON.
    consent: ConsentGiven,
    /// The file that shows it: a recording of the statement, or a signed document; at most 25 MiB.
    #[schemars(schema_with = "file")]
    consent_evidence: Vec<u8>,
}

impl ConsentGiven {
    /// From the text of the field `consent`.
    pub(super) fn read(text: &str) -> ApiResult<Self> {
        extract::parse(text.as_bytes(), &|| None).map_err(inside)
    }

    pub(super) fn with(self, file: &Sample, now: Moment) -> ApiResult<Consent> {
        if self.given_at > now {
            return Err(ApiError::validation("consent.given_at", "lies in the future"));
        }
        Ok(Consent {
            speaker_name: self.speaker_name,
            given_at: self.given_at,
            statement: self.statement,
            reference: self.reference,
            evidence: ConsentEvidence {
                file_name: file.file_name.clone(),
                bytes: file.bytes,
                sha256: file.sha256.clone(),
            },
            recorded_at: now,
        })
    }
}

/// What is wrong with the field's JSON is told with the field's name.
fn inside(error: ApiError) -> ApiError {
    let named = |field: &str| match field {
        "" => "consent".to_owned(),
        field => format!("consent.{field}"),
    };
    match error {
        ApiError::Service(Error::Faults(mut faults)) => {
            for fault in &mut faults {
                fault.field = named(&fault.field);
            }
            Error::Faults(faults).into()
        }
        ApiError::Service(Error::Invalid { field, reason }) => ApiError::validation(named(&field), reason),
        ApiError::Frame(_, message, _) => ApiError::validation("consent", message),
        other => other,
    }
}

/// POST /v1/voices/{id}/consent
pub async fn prove(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<String>,
    payload: web::Payload,
) -> ApiResult<web::Json<VoiceView>> {
    let voice = find_clone(&state, &caller, &id).await?;
    let form = Form::new(&request, payload)?;
    let first = caller.object_id.map(VoiceSampleId::from);
    let known = sample::evidence(&state.deps.db.read, voice.tenant_id, voice.id).await?;
    // A repeat of a request whose answer was lost.
    if known.is_some_and(|known| Some(known.id) == first) {
        form.skip().await?;
        return Ok(web::Json(VoiceView::of(&state, voice)));
    }
    let upload = Upload::new(&state, &caller, voice.id, &[]);
    let (upload, asked) = upload.receive(form, &["consent"], &["consent_evidence"], first).await?;
    let proved = match asked.proof(upload.evidence(), state.deps.clock.now()) {
        Ok(Some(consent)) => {
            let file = samples::whole(&upload.samples).into_iter().next();
            let file = file.ok_or_else(|| ApiError::validation("consent_evidence", "is required"))?;
            tell(&state, &voice, Command::Prove { consent, file }).await
        }
        Ok(None) => Err(ApiError::validation("consent", "is required")),
        Err(error) => Err(error),
    };
    match proved {
        Ok(row) => Ok(web::Json(VoiceView::of(&state, row))),
        // It stands, perhaps.
        Err(error @ ApiError::Service(Error::Unavailable(_))) => Err(error),
        Err(error) => {
            samples::drop_all(&state.deps, &upload.samples).await?;
            Err(error)
        }
    }
}

/// GET /v1/voices/{id}/consent_evidence: the file, read from the vault while it is sent. A browser shows none of it.
pub async fn evidence(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<String>,
) -> ApiResult<HttpResponse> {
    let voice = find_clone(&state, &caller, &id).await?;
    let found = sample::evidence(&state.deps.db.read, voice.tenant_id, voice.id).await?;
    let file = found.ok_or(Error::NotFound("evidence of the speaker's consent"))?;
    let size = u64::try_from(file.bytes).unwrap_or(0);
    let mut response = HttpResponse::Ok();
    response
        .content_type("application/octet-stream")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_DISPOSITION, "attachment; filename=\"consent-evidence\""));
    if request.method() == Method::HEAD {
        let nothing = stream::empty::<std::io::Result<bytes::Bytes>>();
        return Ok(response.body(actix_web::body::SizedStream::new(size, nothing)));
    }
    let permit = state.bulkheads.download(voice.tenant_id)?;
    let name = samples::name(&file);
    let pieces: Vec<_> = vault::pieces(0..size).collect();
    let body = stream::iter(pieces).then(move |piece| {
        // Held until the last piece is read, or nobody wants it any more.
        let _held = &permit;
        let (state, name) = (state.clone(), name.clone());
        async move {
            let read = state.deps.studio.vault.read(&name, piece).await;
            read.map_err(std::io::Error::other)
        }
    });
    Ok(response.body(actix_web::body::SizedStream::new(size, Box::pin(body))))
}
