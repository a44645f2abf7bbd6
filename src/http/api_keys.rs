//! API keys, managed by signed-in members. Source: specification, "Key management".
use super::{
    caller::Member,
    error::{ApiError, ApiResult},
    extract::{Id, Json, Params, SMALL},
    views::{ApiKeyView, List},
};
use crate::{
    access::{self, Author, CallLimits, NewKey},
    state::State,
};
use actix_web::{HttpResponse, web};
use entities::{
    api_key,
    audit_log::Action,
    ids::ApiKeyId,
    values::{Bounded, Env, Moment, Role, Scopes, Text},
};
use rules::commit::Commit;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    pub name: Text<1, 100>,
    #[serde(default = "live")]
    pub env: Env,
    /// Default: all.
    #[serde(default = "Scopes::all")]
    pub scopes: Scopes,
    /// What calls that it asks for may cost in a day (UTC); a call that is not over counts with the most that it can cost. Null: no limit.
    #[serde(default)]
    pub max_spend_cents_per_day: Option<Bounded<0, 2_000_000_000>>,
    /// How many calls that it asks for may be dialled in any 60 seconds. Null: no limit.
    #[serde(default)]
    pub max_calls_per_minute: Option<Bounded<1, 60_000>>,
    /// Null: it does not expire.
    #[serde(default)]
    pub expires_at: Option<Moment>,
}
fn live() -> Env {
    Env::Live
}

/// POST /v1/_internal/t/{slug}/api-keys
pub async fn create(
    state: web::Data<State>,
    member: Member,
    Json(asked): Json<Create, SMALL>,
) -> ApiResult<HttpResponse> {
    let (tenant, now) = (member.tenant()?.id, state.deps.clock.now());
    state.limits.key_made(tenant)?;
    if asked.expires_at.is_some_and(|at| at <= now) {
        return Err(ApiError::validation("expires_at", "is in the past"));
    }
    let Create {
        name,
        env,
        scopes,
        max_spend_cents_per_day,
        max_calls_per_minute,
        expires_at,
    } = asked;
    let limits = CallLimits {
        max_spend_cents_per_day,
        max_calls_per_minute,
    };
    let (key, plaintext) = access::new_key(
        state.deps.ids.next(),
        tenant,
        NewKey {
            name,
            env,
            scopes,
            limits,
            expires_at,
        },
        now,
    );
    let (by, made) = (Author::user(&state.deps, &member.user, &member.login_hash), key.clone());
    let stored = state.deps.writer.run(tenant, move |db| {
        let (by, made) = (by.clone(), made.clone());
        Box::pin(async move {
            access::check_room_for_key(db, tenant, now).await?;
            by.still(db, tenant, Role::Admin).await?;
            access::note_key(db, &by, Action::KeyCreated, &made).await?;
            let mut commit = Commit::default();
            commit.changes.api_keys.push(made);
            Ok(((), commit))
        })
    });
    stored.await?;
    let mut view = ApiKeyView::from(key);
    view.plaintext = Some(plaintext.to_string());
    Ok(HttpResponse::Created().json(view))
}

/// GET /v1/_internal/t/{slug}/api-keys
pub async fn list(
    state: web::Data<State>,
    member: Member,
    mut params: Params,
) -> ApiResult<web::Json<List<ApiKeyView>>> {
    let page = params.page()?;
    params.finish()?;
    let keys = api_key::list(&state.deps.db.read, member.tenant()?.id, page).await?;
    Ok(web::Json(List::of(keys, |key| key.id.0, ApiKeyView::from)))
}

/// GET /v1/_internal/t/{slug}/api-keys/{id}
pub async fn get(state: web::Data<State>, member: Member, Id(id): Id<ApiKeyId>) -> ApiResult<web::Json<ApiKeyView>> {
    Ok(web::Json(
        api_key::load(&state.deps.db.read, member.tenant()?.id, id)
            .await?
            .into(),
    ))
}

/// DELETE /v1/_internal/t/{slug}/api-keys/{id}: the next request with the key is refused.
pub async fn revoke(state: web::Data<State>, member: Member, Id(id): Id<ApiKeyId>) -> ApiResult<HttpResponse> {
    let tenant = member.tenant()?.id;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let revoked = state.deps.writer.run(tenant, move |db| {
        let by = by.clone();
        Box::pin(async move {
            access::revoke_key(db, &by, tenant, id).await?;
            Ok(((), Commit::default()))
        })
    });
    revoked.await?;
    Ok(HttpResponse::NoContent().finish())
}
