//! Who the workspace is by law. For programs by a key, for the dashboard by its owners.
use crate::{
    access::{Author, workspace},
    http::{
        caller::{Caller, Member},
        error::ApiResult,
        extract::{self, Json},
        views::IdentityView,
    },
    state::State,
};
use actix_web::web::{self, Data};
use entities::{
    ids::TenantId,
    legal_identity::{self as store, Identity, Model},
    values::Role,
};
use rules::{commit::Commit, effect::Hint};
use serde_json::Value;

/// GET /v1/compliance/identity
pub async fn get(state: Data<State>, caller: Caller) -> ApiResult<web::Json<IdentityView>> {
    Ok(web::Json(known(&state, caller.tenant_id()).await?.into()))
}

/// PATCH /v1/compliance/identity: a JSON merge patch. It holds from the next dial on.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Json(patch): Json<Value>,
) -> ApiResult<web::Json<IdentityView>> {
    let tenant = caller.tenant_id();
    let (known, asked) = asked(&state, tenant, patch).await?;
    let (by, now) = (caller.name(), state.deps.clock.now());
    let changed = state.deps.writer.run(tenant, move |db| {
        let (known, asked, by) = (known.clone(), asked.clone(), by.clone());
        Box::pin(async move {
            let (row, _) = workspace::set_identity(db, &known, &asked, Some(by), now).await?;
            Ok((row, Commit::default()))
        })
    });
    let row = changed.await?;
    state.deps.router.perform(vec![Hint::CampaignsChanged(tenant).into()]);
    Ok(web::Json(row.into()))
}

/// GET /v1/_internal/t/{slug}/identity
pub async fn of_member(state: Data<State>, member: Member) -> ApiResult<web::Json<IdentityView>> {
    Ok(web::Json(known(&state, member.tenant()?.id).await?.into()))
}

/// PATCH /v1/_internal/t/{slug}/identity: a JSON merge patch, noted in the audit log.
pub async fn change_by_member(
    state: Data<State>,
    member: Member,
    Json(patch): Json<Value>,
) -> ApiResult<web::Json<IdentityView>> {
    let tenant = member.tenant()?.clone();
    let id = tenant.id;
    let (known, asked) = asked(&state, id, patch).await?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let changed = state.deps.writer.run(id, move |db| {
        let (by, known, asked, tenant) = (by.clone(), known.clone(), asked.clone(), tenant.clone());
        Box::pin(async move {
            by.still(db, id, Role::Owner).await?;
            let row = workspace::change_identity(db, &by, &tenant, &known, &asked).await?;
            Ok((row, Commit::default()))
        })
    });
    let row = changed.await?;
    state.deps.router.perform(vec![Hint::CampaignsChanged(id).into()]);
    Ok(web::Json(row.into()))
}

async fn known(state: &State, tenant: TenantId) -> ApiResult<Model> {
    let found = store::of(&state.deps.db.read, tenant).await?;
    Ok(found.unwrap_or_else(|| Model::empty(tenant, state.deps.clock.now())))
}

/// As it is, and as it is to be.
async fn asked(state: &State, tenant: TenantId, patch: Value) -> ApiResult<(Model, Identity)> {
    let known = known(state, tenant).await?;
    let asked: Identity = extract::merged(serde_json::json!(known.identity()), patch)?;
    asked.check()?;
    Ok((known, asked))
}
