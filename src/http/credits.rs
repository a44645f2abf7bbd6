//! A workspace's prepaid credits: what it has, and every movement. Each env has its own.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{Json, Params},
    views::List,
};
use crate::state::State;
use actix_web::web::{self, Data};
use entities::{
    ids::LedgerEntryId,
    ledger::{self, Filter, Kind, Movement, account},
    values::{Cents, Env, Moment},
};
use rules::commit::Commit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Serialize, JsonSchema)]
pub struct CreditsView {
    pub env: Env,
    /// `available_cents` and `held_cents`.
    pub balance_cents: Cents,
    /// Set aside for calls and messages in progress.
    pub held_cents: Cents,
    /// What new calls and messages may use.
    pub available_cents: Cents,
    /// ISO 4217.
    pub currency: String,
    /// `credits.low_balance` is sent when the balance falls below it; null: never.
    pub warning_threshold_cents: Option<Cents>,
    /// Since when nothing more can be paid for, so that nothing is dispatched; null while credits last.
    pub depleted_at: Option<Moment>,
}

/// One line of the ledger.
#[derive(Serialize, JsonSchema)]
pub struct LedgerEntryView {
    pub id: LedgerEntryId,
    /// 1, 2, 3, …: its place in the ledger.
    pub n: i64,
    pub kind: Kind,
    /// What it adds to the balance; 0 for a hold and its release, which only set aside.
    pub amount_cents: Cents,
    /// What was moved, more than zero.
    pub moved_cents: Cents,
    pub balance_after_cents: Cents,
    pub held_after_cents: Cents,
    /// The session, message or top-up it belongs to.
    pub subject_id: Option<Uuid>,
    /// The processor's payment, or the operator's note.
    pub note: Option<String>,
    /// SHA-256, in hex, over the entry before and this one.
    pub hash: String,
    pub created_at: Moment,
}

impl From<ledger::Model> for LedgerEntryView {
    fn from(entry: ledger::Model) -> Self {
        LedgerEntryView {
            id: entry.id,
            n: entry.n,
            kind: entry.kind,
            amount_cents: entry.amount(),
            moved_cents: entry.cents,
            balance_after_cents: entry.balance_after_cents,
            held_after_cents: entry.held_after_cents,
            subject_id: entry.subject_id,
            note: entry.note,
            hash: entry.hash,
            created_at: entry.created_at,
        }
    }
}

/// GET /v1/credits
pub async fn get(state: Data<State>, caller: Caller) -> ApiResult<web::Json<CreditsView>> {
    view(&state, &caller).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["warning_threshold_cents"]))]
pub struct Change {
    /// 1 to 10,000,000,000; null: no warning.
    #[serde(deserialize_with = "Option::deserialize")]
    pub warning_threshold_cents: Option<i64>,
}

/// The most of a threshold.
const MAX_THRESHOLD_CENTS: i64 = 10_000_000_000;

/// PATCH /v1/credits
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Json(asked): Json<Change>,
) -> ApiResult<web::Json<CreditsView>> {
    let below = asked.warning_threshold_cents;
    if below.is_some_and(|cents| !(1..=MAX_THRESHOLD_CENTS).contains(&cents)) {
        return Err(ApiError::validation(
            "warning_threshold_cents",
            format!("must be from 1 to {MAX_THRESHOLD_CENTS}, or null"),
        ));
    }
    let mut commit = Commit::default();
    let owner = (caller.tenant_id(), caller.env());
    commit.changes.movements.push(Movement::warn(owner, below.map(Cents)));
    state.deps.writer.commit(caller.tenant_id().into(), commit).await?;
    view(&state, &caller).await
}

/// GET /v1/credits/ledger
pub async fn entries(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<LedgerEntryView>>> {
    let page = params.page()?;
    let filter = Filter {
        kind: params.text("kind")?,
        subject_id: params.text("subject_id")?,
    };
    params.finish()?;
    let owner = (caller.tenant_id(), caller.env());
    let listed = ledger::list(&state.deps.db.read, owner, filter, page).await?;
    Ok(web::Json(List::of(listed, |entry| entry.id.0, LedgerEntryView::from)))
}

async fn view(state: &State, caller: &Caller) -> ApiResult<web::Json<CreditsView>> {
    let terms = &state.deps.limits.credits;
    let owner = (caller.tenant_id(), caller.env());
    let opening = |tenant, env| terms.opening(tenant, env);
    let account: account::Model = ledger::load(&state.deps.db.read, owner, opening).await?;
    Ok(web::Json(CreditsView {
        env: account.env,
        balance_cents: account.balance_cents,
        held_cents: account.held_cents,
        available_cents: account.available(),
        currency: terms.currency.clone(),
        warning_threshold_cents: account.warning_threshold_cents,
        depleted_at: account.depleted_at,
    }))
}
