//! What shows that somebody may be cloned: who has agreed, when, to which words, and a file that proves it.
use super::{
    super::{
        error::{ApiError, ApiResult},
        extract::Id,
    },
    VoiceView,
    clones::file,
    find_clone,
    form::Form,
    given::ConsentGiven,
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
use entities::{Error, ids::VoiceSampleId, voice::sample};
use futures_util::{StreamExt, stream};
use rules::voice_clone::machine::Command;
use schemars::JsonSchema;

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
            tell(
                &state,
                &voice,
                Command::Prove {
                    consent: Box::new(consent),
                    file: Box::new(file),
                },
            )
            .await
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
