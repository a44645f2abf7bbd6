//! How long a workspace keeps what it has done.
use super::{
    caller::Member,
    error::ApiResult,
    extract::{self, Json},
};
use crate::{
    access::{Author, workspace},
    state::State,
};
use actix_web::web::{self, Data};
use entities::{
    retention::{self, Retention},
    values::Role,
};
use rules::commit::Commit;

/// GET /v1/_internal/t/{slug}/retention
pub async fn get(state: Data<State>, member: Member) -> ApiResult<web::Json<Retention>> {
    let now = state.deps.clock.now();
    let row = retention::of(&state.deps.db.read, member.tenant()?.id, now).await?;
    Ok(web::Json(row.settings()))
}

/// PATCH /v1/_internal/t/{slug}/retention: a JSON merge patch. What is too old then goes within the hour, and does not come back.
pub async fn change(
    state: Data<State>,
    member: Member,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<Retention>> {
    let (tenant, now) = (member.tenant()?.clone(), state.deps.clock.now());
    let known = retention::of(&state.deps.db.read, tenant.id, now).await?;
    let kept = serde_json::json!(known.settings());
    let mut asked = kept.clone();
    rules::shape::merge(&mut asked, patch);
    let asked: Retention = extract::parse_value(asked, &kept)?;
    workspace::check_retention(&known.settings(), &asked, state.deps.limits.retention.events)?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let changed = state.deps.writer.run(tenant.id, move |db| {
        let (by, known, tenant) = (by.clone(), known.clone(), tenant.clone());
        Box::pin(async move {
            by.still(db, tenant.id, Role::Owner).await?;
            let kept = workspace::change_retention(db, &by, &tenant, &known, &asked).await?;
            Ok((kept, Commit::default()))
        })
    });
    Ok(web::Json(changed.await?))
}
