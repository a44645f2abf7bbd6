//! Exports of the record: files, and a manifest that is signed.
use crate::{
    http::{
        caller::Caller,
        dnc,
        error::{ApiError, ApiResult},
        extract::{Id, Json, Params},
        views::List,
    },
    state::State,
};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{self, Data},
};
use actors::attempts::exports;
use adapters::recording::vault;
use entities::{
    Error, Result, campaign,
    compliance_export::{self as store, ExportFile, ExportFormat, ExportStatus, Model},
    ids::{CampaignId, ComplianceExportId},
    values::{Moment, Text},
};
use futures_util::{StreamExt, stream};
use rules::{
    barred::{self, Whom},
    law::record::line::Signed,
};
use runtime::signing::ALGORITHM;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// What is to be exported; nothing: all that is on record.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    #[serde(default)]
    pub format: ExportFormat,
    /// Only what is about this number, however it is typed. This or `email`.
    #[serde(default)]
    pub phone_number: Option<Text<1, 40>>,
    #[serde(default)]
    pub email: Option<Text<3, 254>>,
    #[serde(default)]
    pub campaign_id: Option<CampaignId>,
    /// Written down then or later.
    #[serde(default)]
    pub since: Option<Moment>,
    /// Written down before then.
    #[serde(default)]
    pub until: Option<Moment>,
}

/// A file of an export.
#[derive(Serialize, JsonSchema)]
pub struct ExportFileView {
    pub part: i32,
    /// Where to fetch it, with a key.
    pub url: String,
    pub bytes: i64,
    /// Hex.
    pub sha256: String,
    pub rows: i64,
    /// Places in the record.
    pub first_n: i64,
    pub last_n: i64,
}

/// An export of the record.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceExportView {
    pub id: ComplianceExportId,
    pub status: ExportStatus,
    pub format: ExportFormat,
    /// Only what is about one person.
    pub of_person: bool,
    pub campaign_id: Option<CampaignId>,
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    /// How much of the record was looked through, 0 to 1.
    pub progress: f64,
    pub rows: i64,
    pub files: Vec<ExportFileView>,
    /// Where the signed manifest is, once the export is complete.
    pub manifest_url: Option<String>,
    pub error: Option<String>,
    pub created_by: Option<String>,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
    /// It is kept until then.
    pub expires_at: Option<Moment>,
}

impl ComplianceExportView {
    fn of(job: Model, base_url: &str) -> Self {
        let at = format!("{base_url}/v1/compliance/exports/{}", job.id);
        let file = |file: ExportFile| ExportFileView {
            url: format!("{at}/files/{}", file.part),
            part: file.part,
            bytes: file.bytes,
            sha256: file.sha256,
            rows: file.rows,
            first_n: file.first_n,
            last_n: file.last_n,
        };
        let (all, done) = (job.last_n - job.first_n + 1, job.next_n - job.first_n);
        ComplianceExportView {
            id: job.id,
            status: job.status,
            format: job.format,
            of_person: job.number_hash.is_some(),
            campaign_id: job.campaign_id,
            since: job.since,
            until: job.until,
            progress: match job.status {
                ExportStatus::Completed => 1.0,
                ExportStatus::Running | ExportStatus::Failed | ExportStatus::Expired => {
                    (done as f64 / all.max(1) as f64).clamp(0.0, 1.0)
                }
            },
            rows: job.row_count,
            files: job.files.0.into_iter().map(file).collect(),
            manifest_url: job.manifest.is_some().then(|| format!("{at}/manifest")),
            error: job.error,
            created_by: job.created_by,
            created_at: job.created_at,
            ended_at: job.ended_at,
            expires_at: job
                .ended_at
                .map(|at| at.plus(actors::attempts::retention::KEEP_EXPORTS)),
        }
    }
}

/// POST /v1/compliance/exports
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<ExportCreate>) -> ApiResult<HttpResponse> {
    let person = match (&asked.phone_number, &asked.email) {
        (Some(number), None) => match dnc::number_of(&state, &caller, number).await? {
            Whom::Number(number) => Some(number.to_string()),
            Whom::Email(email) => Some(email),
        },
        (None, Some(email)) => Some(barred::email(email)?),
        (Some(_), Some(_)) => return Err(ApiError::validation("email", "give a number or an address, not both")),
        (None, None) => None,
    };
    if let (Some(since), Some(until)) = (asked.since, asked.until)
        && until <= since
    {
        return Err(ApiError::validation("until", "must be later than `since`"));
    }
    if let Some(id) = asked.campaign_id {
        campaign::load_even_deleted(&state.deps.db.read, caller.own(id)).await?;
    }
    let new = exports::New {
        id: caller.new_id(&state.deps.ids),
        format: asked.format,
        person,
        campaign_id: asked.campaign_id,
        since: asked.since,
        until: asked.until,
        created_by: caller.name(),
    };
    let job = exports::start(&state.deps, caller.owner(), new).await?;
    Ok(HttpResponse::Accepted().json(ComplianceExportView::of(job, &state.deps.base_url)))
}

/// GET /v1/compliance/exports
pub async fn list(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<ComplianceExportView>>> {
    let page = params.page()?;
    params.finish()?;
    let jobs = store::list(&state.deps.db.read, caller.owner(), page).await?;
    Ok(web::Json(List::of(
        jobs,
        |job| job.id.0,
        |job| ComplianceExportView::of(job, &state.deps.base_url),
    )))
}

async fn load(state: &State, caller: &Caller, id: ComplianceExportId) -> Result<Model> {
    match store::load(&state.deps.db.read, caller.own(id)).await? {
        job if job.status == ExportStatus::Expired => Err(Error::NotFound("export")),
        job => Ok(job),
    }
}

/// DELETE /v1/compliance/exports/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<ComplianceExportId>) -> ApiResult<HttpResponse> {
    load(&state, &caller, id).await?;
    exports::delete(&state.deps, caller.own(id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// GET /v1/compliance/exports/{id}
pub async fn get(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<ComplianceExportId>,
) -> ApiResult<web::Json<ComplianceExportView>> {
    let job = load(&state, &caller, id).await?;
    Ok(web::Json(ComplianceExportView::of(job, &state.deps.base_url)))
}

/// What an export holds, signed.
#[derive(Serialize, JsonSchema)]
pub struct SignedManifestView {
    /// The signature is over its bytes as they stand here.
    pub manifest: Value,
    /// `ed25519`
    pub algorithm: String,
    /// Base64.
    pub public_key: String,
    /// Base64.
    pub signature: String,
}

/// GET /v1/compliance/exports/{id}/manifest
pub async fn manifest(state: Data<State>, caller: Caller, Id(id): Id<ComplianceExportId>) -> ApiResult<HttpResponse> {
    let job = load(&state, &caller, id).await?;
    let (Some(manifest), Some(public_key), Some(signature)) = (job.manifest, job.public_key, job.signature) else {
        return Err(ApiError::not_found(
            "the export is not complete, so it has no manifest yet",
        ));
    };
    // To the byte as it was signed.
    let manifest = RawValue::from_string(manifest).map_err(|_| Error::Corrupt {
        table: "compliance_exports",
        column: "manifest",
        id: id.to_string(),
    })?;
    Ok(HttpResponse::Ok().json(Signed {
        manifest,
        algorithm: ALGORITHM.to_owned(),
        public_key,
        signature,
    }))
}

/// GET /v1/compliance/exports/{id}/files/{part}: read from the vault while it is sent.
pub async fn file(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Id(id): Id<ComplianceExportId>,
) -> ApiResult<HttpResponse> {
    let job = load(&state, &caller, id).await?;
    let asked: Option<usize> = request.match_info().get("part").and_then(|part| part.parse().ok());
    let found = asked.and_then(|part| Some((part, job.files.0.get(part.checked_sub(1)?)?)));
    let Some((part, file)) = found else {
        return Err(ApiError::not_found("the export has no such file"));
    };
    let size = u64::try_from(file.bytes).unwrap_or(0);
    let mut response = HttpResponse::Ok();
    response
        .content_type(match job.format {
            ExportFormat::Jsonl => "application/x-ndjson",
            ExportFormat::Csv => "text/csv; charset=utf-8",
        })
        .insert_header((
            header::CONTENT_DISPOSITION,
            format!(
                "attachment; filename=\"attempts-{id}-{part}.{}\"",
                job.format.extension()
            ),
        ));
    if *request.method() == Method::HEAD {
        let nothing = stream::empty::<std::io::Result<bytes::Bytes>>();
        return Ok(response.body(actix_web::body::SizedStream::new(size, nothing)));
    }
    let permit = state.bulkheads.download(job.tenant_id)?;
    let name = exports::file_name(job.key(), part);
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
