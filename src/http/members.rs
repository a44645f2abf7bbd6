//! The members of a workspace, and the log of who changed whose access.
use super::{
    caller::Member,
    error::{ApiError, ApiResult, Code},
    extract::{Id, Json, Params, SMALL},
    views::List,
};
use crate::{
    access::{self, Author, members},
    state::State,
};
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use entities::{
    Error,
    audit_log::{self, Action, Actor, Details},
    ids::{AuditLogId, UserId},
    membership, user,
    values::{Moment, Role, Text},
};
use rules::commit::Commit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, JsonSchema)]
pub struct MemberView {
    /// The user's.
    pub id: UserId,
    pub email: String,
    pub role: Role,
}

fn view(user: user::Model, role: Role) -> MemberView {
    MemberView {
        id: user.id,
        email: user.email,
        role,
    }
}

/// GET /v1/_internal/t/{slug}/members
pub async fn list(state: Data<State>, member: Member, mut params: Params) -> ApiResult<web::Json<List<MemberView>>> {
    let page = params.page()?;
    params.finish()?;
    let members = membership::list(&state.deps.db.read, member.tenant()?.id, page).await?;
    Ok(web::Json(List::of(
        members,
        |(user, _)| user.id.0,
        |(user, role)| view(user, role),
    )))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemberAdd")]
pub struct Add {
    /// The address of a user who has an account on this server.
    pub email: String,
    pub role: Role,
}

/// POST /v1/_internal/t/{slug}/members
pub async fn add(state: Data<State>, member: Member, Json(asked): Json<Add, SMALL>) -> ApiResult<HttpResponse> {
    let tenant = member.tenant()?.clone();
    state.limits.member_change(tenant.id)?;
    let email = access::parse_email(&asked.email)?;
    // No account is made here: whoever made it would know its password, and wait for others to let it in.
    let nobody = || {
        let why = "there is no account with this address on this server; the operator can create one with `callboard workspace add-member`";
        ApiError::validation("email", why)
    };
    let user = user::by_email(&state.deps.db.read, &email).await?.ok_or_else(nobody)?;
    let (by, role, added) = (
        Author::user(&state.deps, &member.user, &member.login_hash),
        asked.role,
        user.clone(),
    );
    let done = state.deps.writer.run(tenant.id, move |db| {
        let (by, tenant, user) = (by.clone(), tenant.clone(), added.clone());
        Box::pin(async move {
            members::add(db, &by, &tenant, &user, role).await?;
            Ok(((), Commit::default()))
        })
    });
    done.await.map_err(|error| match error {
        Error::AlreadyExists { .. } => ApiError::Frame(
            Code::AlreadyExists,
            "is already a member; change the role with PATCH".into(),
            Some("email".into()),
        ),
        other => other.into(),
    })?;
    Ok(HttpResponse::Created().json(view(user, role)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemberChange")]
pub struct Change {
    pub role: Role,
}

/// PATCH /v1/_internal/t/{slug}/members/{id}: the member's dashboard sessions end.
pub async fn change(
    state: Data<State>,
    member: Member,
    Id(id): Id<UserId>,
    Json(asked): Json<Change, SMALL>,
) -> ApiResult<web::Json<MemberView>> {
    let tenant = member.tenant()?.clone();
    state.limits.member_change(tenant.id)?;
    state.limits.member_sessions(tenant.id, id)?;
    let (by, role) = (Author::user(&state.deps, &member.user, &member.login_hash), asked.role);
    let changed = state.deps.writer.run(tenant.id, move |db| {
        let (by, tenant) = (by.clone(), tenant.clone());
        Box::pin(async move {
            let user = members::set_role(db, &by, &tenant, id, role).await?;
            Ok((user, Commit::default()))
        })
    });
    Ok(web::Json(view(changed.await?, role)))
}

/// DELETE /v1/_internal/t/{slug}/members/{id}: the member's dashboard sessions end.
pub async fn remove(state: Data<State>, member: Member, Id(id): Id<UserId>) -> ApiResult<HttpResponse> {
    let tenant = member.tenant()?.clone();
    state.limits.member_change(tenant.id)?;
    state.limits.member_sessions(tenant.id, id)?;
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let removed = state.deps.writer.run(tenant.id, move |db| {
        let (by, tenant) = (by.clone(), tenant.clone());
        Box::pin(async move {
            members::remove(db, &by, &tenant, id).await?;
            Ok(((), Commit::default()))
        })
    });
    removed.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// One act.
#[derive(Serialize, JsonSchema)]
pub struct AuditView {
    pub id: AuditLogId,
    pub at: Moment,
    pub actor: Actor,
    /// The user who did it; null for the operator.
    pub user_id: Option<UserId>,
    pub user_email: Option<String>,
    pub action: Action,
    /// Who or what it was done to: an e-mail address, an API key's id, the workspace's slug.
    pub subject: String,
    pub details: Details,
}

impl From<audit_log::Model> for AuditView {
    fn from(row: audit_log::Model) -> Self {
        AuditView {
            id: row.id,
            at: row.at,
            actor: row.actor,
            user_id: row.user_id,
            user_email: row.user_email,
            action: row.action,
            subject: row.subject,
            details: row.details,
        }
    }
}

/// GET /v1/_internal/t/{slug}/audit-log
pub async fn log(state: Data<State>, member: Member, mut params: Params) -> ApiResult<web::Json<List<AuditView>>> {
    let page = params.page()?;
    let filter = audit_log::Filter {
        user_email: params
            .text::<Text<1, 254>>("user_email")?
            .map(|email| email.to_lowercase()),
        action: params.text("action")?,
    };
    params.finish()?;
    let tenant = member.tenant()?.id;
    let _permit = (filter.user_email.is_some() || filter.action.is_some())
        .then(|| state.bulkheads.search(tenant))
        .transpose()?;
    let rows = audit_log::list(&state.deps.db, tenant, filter, page).await?;
    Ok(web::Json(List::of(rows, |row| row.id.0, AuditView::from)))
}
