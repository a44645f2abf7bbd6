//! Imports: how far a list is read in, and which of its rows were refused.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Params},
    views::List,
};
use crate::state::State;
use actix_web::web::{self, Data};
use entities::{
    ids::{CampaignId, ImportId},
    import::{self as store, Delimiter, ImportStatus, Kind, Model, Rejection, Rejections},
    values::Moment,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A list that is being imported.
#[derive(Serialize, JsonSchema)]
pub struct ImportView {
    pub id: ImportId,
    pub kind: Kind,
    /// The delimiter that was detected.
    pub delimiter: Delimiter,
    pub campaign_id: Option<CampaignId>,
    pub status: ImportStatus,
    /// How much of the file has been processed, 0 to 1.
    pub progress: f64,
    pub rows: i64,
    pub accepted: i64,
    /// Known already, or given twice.
    pub duplicates: i64,
    pub rejected: i64,
    /// The first 1,000 refused rows; a list of imports leaves them out.
    pub rejections: Vec<Rejection>,
    /// There are more refused rows than are listed.
    pub rejections_truncated: bool,
    /// Why it could not go on.
    pub error: Option<String>,
    /// A member's address, or an API key's name and how it begins; null: long ago.
    pub created_by: Option<String>,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}
impl From<Model> for ImportView {
    fn from(job: Model) -> Self {
        let listed = job.rejections.0.len();
        ImportView {
            id: job.id,
            kind: job.kind,
            delimiter: job.delimiter,
            campaign_id: job.campaign_id,
            progress: match job.status {
                ImportStatus::Completed => 1.0,
                ImportStatus::Running | ImportStatus::Failed => job.bytes_done as f64 / job.bytes.max(1) as f64,
            },
            status: job.status,
            rows: job.rows_done,
            accepted: job.accepted,
            duplicates: job.duplicates,
            rejected: job.rejected,
            rejections_truncated: listed >= Rejections::MAX && job.rejected > listed as i64,
            rejections: job.rejections.0,
            error: job.error,
            created_by: job.created_by,
            created_at: job.created_at,
            ended_at: job.ended_at,
        }
    }
}

/// GET /v1/imports
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<ImportView>>> {
    let page = params.page()?;
    let filter = store::Filter {
        kind: params.text("kind")?,
        status: params.text("status")?,
        campaign_id: params.text("campaign_id")?,
    };
    params.finish()?;
    let _permit = (filter.kind.is_some() || filter.status.is_some() || filter.campaign_id.is_some())
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let jobs = store::list(&state.deps.db, caller.tenant_id(), caller.env(), filter, page).await?;
    Ok(web::Json(List::of(
        jobs,
        |job| job.id.0,
        |job| ImportView {
            rejections_truncated: job.rejected > 0,
            ..job.into()
        },
    )))
}

/// GET /v1/imports/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<ImportId>) -> ApiResult<web::Json<ImportView>> {
    Ok(web::Json(
        store::load(&state.deps.db.read, caller.own(id)).await?.into(),
    ))
}
