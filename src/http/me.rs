//! `GET /v1/me`: who a key is.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    views::MeView,
};
use crate::state::State;
use actix_web::web::{Data, Json};

pub async fn get(state: Data<State>, caller: Caller) -> ApiResult<Json<MeView>> {
    let tenant = entities::tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    let Some(key) = caller.key().cloned() else {
        return Err(ApiError::not_found("there is no key: a member is signed in"));
    };
    let (env, scopes, expires_at, last_used_at) = (key.env, key.scopes.clone(), key.expires_at, key.last_used_at);
    Ok(Json(MeView {
        tenant: (&tenant).into(),
        key: key.into(),
        env,
        scopes,
        expires_at,
        last_used_at,
    }))
}
