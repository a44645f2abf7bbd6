//! Where the record stood on each day, signed: whoever keeps a copy can show later that nothing before it was changed.
use crate::{
    http::{
        caller::Caller,
        error::{ApiError, ApiResult},
        extract::Params,
    },
    state::State,
};
use actix_web::web::{self, Data};
use entities::{
    attempt::{
        anchor, chain,
        head::{self, Model},
    },
    values::Moment,
};
use runtime::signing::{ALGORITHM, SigningKey};
use schemars::JsonSchema;
use serde::Serialize;

/// Days of one answer.
const DAYS: u64 = 100;

/// The record's last row at one moment of a day.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceHeadView {
    /// UTC, as `2026-11-30`.
    pub day: String,
    /// The row's place.
    pub n: i64,
    /// The row's hash.
    pub row_hash: String,
    pub head_signed_at: Moment,
    /// Base64.
    pub public_key: String,
    /// Base64, of the lines `callboard.attempt-head.1`, workspace, environment, day, n and hash, with line breaks between them.
    pub signature: String,
}
impl From<Model> for ComplianceHeadView {
    fn from(row: Model) -> Self {
        ComplianceHeadView {
            day: row.day,
            n: row.n,
            row_hash: row.hash,
            head_signed_at: row.signed_at,
            public_key: row.public_key,
            signature: row.signature,
        }
    }
}

/// The record's heads.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceHeadsView {
    /// `ed25519`
    pub algorithm: String,
    /// Base64: what is signed now is signed with its other half.
    pub public_key: String,
    /// The place of the last row that is kept no more; 0: the record is there from its first row on.
    pub anchor_n: i64,
    /// The place of the last row.
    pub last_n: i64,
    /// The newest first.
    pub heads: Vec<ComplianceHeadView>,
}

/// GET /v1/compliance/heads
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<ComplianceHeadsView>> {
    let before = params.take("before");
    params.finish()?;
    let is_day = |day: &String| day.len() == 10 && Moment::parse(&format!("{day}T00:00:00Z")).is_ok();
    if let Some(day) = before.as_ref().filter(|day| !is_day(day)) {
        let message = format!("must be a day such as 2026-11-30, not `{day}`");
        return Err(ApiError::validation("before", message));
    }
    let (db, owner) = (&state.deps.db.read, caller.owner());
    let heads = head::list(db, owner, before, DAYS).await?;
    Ok(web::Json(ComplianceHeadsView {
        algorithm: ALGORITHM.to_owned(),
        public_key: SigningKey::of(&state.deps.links)?.public_key(),
        anchor_n: anchor::load(db, owner).await?.map_or(0, |anchor| anchor.n),
        last_n: chain::load(db, owner).await?.map_or(0, |end| end.n),
        heads: heads.into_iter().map(ComplianceHeadView::from).collect(),
    }))
}
