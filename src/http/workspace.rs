//! A workspace's own settings, and the countries that it can be in.
use super::{
    caller::Member,
    error::{ApiError, ApiResult},
    extract::{self, Json},
    views::{List, WorkspaceView},
};
use crate::{
    access::{self, Author, workspace},
    state::State,
};
use actix_web::web::{self, Data};
use entities::{
    Error,
    values::{Country, Role, Text, Zone},
};
use rules::{commit::Commit, effect::Hint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A country, and the time zone of most of its people.
#[derive(Clone, Serialize, JsonSchema)]
pub struct CountryView {
    /// ISO 3166-1 alpha-2.
    pub country: String,
    pub timezone: Zone,
}

/// GET /v1/_internal/countries
pub async fn countries() -> web::Json<List<CountryView>> {
    static ALL: LazyLock<Vec<CountryView>> = LazyLock::new(|| {
        let view = |country: Country| CountryView {
            country: country.to_string(),
            timezone: access::zone_of(country),
        };
        Country::all().into_iter().map(view).collect()
    });
    web::Json(List::whole(ALL.clone()))
}

/// GET /v1/_internal/t/{slug}
pub async fn get(state: Data<State>, member: Member) -> ApiResult<web::Json<KeptView>> {
    let limits = &state.deps.limits;
    // It is answered by the node that has the workspace.
    let node = state.settings.node().ok().flatten().map(|node| node.name);
    Ok(web::Json(KeptView {
        workspace: member.tenant()?.into(),
        node,
        keeps_events_seconds: limits.retention.events.as_secs(),
        keeps_recordings_after_opt_out_seconds: limits.opt_out_purge_grace.as_secs(),
    }))
}

/// A workspace, and how long the server keeps things.
#[derive(Serialize, JsonSchema)]
pub struct KeptView {
    #[serde(flatten)]
    pub workspace: WorkspaceView,
    /// The node that serves it; null where one process serves them all.
    pub node: Option<String>,
    /// Events with their deliveries, and SMS and e-mails that have ended.
    pub keeps_events_seconds: u64,
    /// The recording of somebody who wants no more calls.
    pub keeps_recordings_after_opt_out_seconds: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSettings {
    pub name: Text<1, 100>,
    /// ISO 3166-1 alpha-2: how numbers without `+` are read.
    pub country: String,
    /// The time zone for calls whose own is unknown. Stays as it is when only the country is changed.
    pub timezone: Zone,
}

/// PATCH /v1/_internal/t/{slug}: a JSON merge patch. Holds from the next dial on, and for numbers that are read from then on.
pub async fn change(
    state: Data<State>,
    member: Member,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<WorkspaceView>> {
    let before = member.tenant()?;
    let settings = serde_json::json!({ "name": before.name, "country": before.country, "timezone": before.timezone });
    let asked: WorkspaceSettings = extract::merged(settings, patch)?;
    let country: Country = asked
        .country
        .parse()
        .map_err(|why: String| ApiError::validation("country", why))?;
    let change = workspace::Change {
        name: Some(asked.name.into_string()),
        country: Some(country),
        timezone: Some(asked.timezone),
        ..workspace::Change::default()
    };
    let (id, known) = (before.id, before.version);
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let changed = state.deps.writer.run(id, move |db| {
        let (by, change) = (by.clone(), change.clone());
        Box::pin(async move {
            by.still(db, id, Role::Owner).await?;
            let tenant = workspace::change(db, &by, id, &change).await?;
            // What was patched is what was read: a change that came between is not undone.
            if tenant.version > known + 1 {
                return Err(Error::Stale);
            }
            Ok((tenant, Commit::default()))
        })
    });
    let tenant = changed.await?;
    state
        .deps
        .router
        .perform(vec![Hint::CampaignsChanged(tenant.id).into()]);
    Ok(web::Json((&tenant).into()))
}
