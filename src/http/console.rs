//! The API for the console: `/v1/_internal/t/{slug}/{env}/…` is `/v1/…`, asked by a member who is signed in.
//!
//! Routes and handlers are the same. The path is cut before it is routed, and the gate asks for the sign-in in place of a key:
//! viewers may read, admins and owners may do all. Whatever may change something is noted in the audit log before it is done.
use super::{
    caller::{Caller, Member},
    error::{ApiError, ApiResult, REQUEST_ID},
    extract,
    idempotency::{self, LARGEST},
    rate_limits::Left,
    register_files,
    signed_in::{self, Asks, Bodies},
    voices::Form,
};
use crate::{access::Author, state::State};
use actix_web::{
    HttpMessage, HttpRequest,
    dev::{Payload, ServiceRequest},
    http::{
        StatusCode, Uri,
        uri::{Parts, PathAndQuery},
    },
};
use entities::{
    audit_log::{self, Action, Details},
    ids::{AuditLogId, TenantId},
    values::{Env, Role},
};
use rules::commit::Commit;
use serde_json::json;

const PREFIX: &str = "/v1/_internal/t/";
/// What is noted of a path.
const LONGEST: usize = 200;

/// Where a page of the console asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    slug: String,
    env: Env,
}

impl Place {
    pub fn slug(&self) -> &str {
        &self.slug
    }
}

/// Cuts the path of a request from the console; the gate finds the rest of it again.
pub fn enter(request: &mut ServiceRequest) {
    let Some((place, uri)) = cut(request.uri()) else {
        return;
    };
    request.match_info_mut().get_mut().update(&uri);
    request.head_mut().uri = uri;
    request.extensions_mut().insert(place);
}

fn cut(uri: &Uri) -> Option<(Place, Uri)> {
    let (slug, rest) = uri.path().strip_prefix(PREFIX)?.split_once('/')?;
    let (env, rest) = rest.split_once('/')?;
    let env: Env = env.parse().ok()?;
    // The dashboard's own routes are in no environment.
    if rest.starts_with("_internal/") {
        return None;
    }
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts: Parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("/v1/{rest}{query}")).ok()?);
    let slug = slug.to_owned();
    Some((Place { slug, env }, Uri::from_parts(parts).ok()?))
}

pub fn place_of(request: &HttpRequest) -> Option<Place> {
    request.extensions().get::<Place>().cloned()
}

/// A request that is noted, and will be with its answer.
pub struct Noted {
    id: AuditLogId,
    tenant: TenantId,
    details: Details,
}

/// Lets a member in as the [`Caller`] of the place; `fresh`: who has given the password a moment ago. Answers what was noted of a request that may change something.
pub async fn admit(
    state: &State,
    request: &mut ServiceRequest,
    (place, fresh): (&Place, bool),
    left: &mut Option<Left>,
) -> ApiResult<Option<Noted>> {
    let only_reads = request.method().is_safe();
    let role = if only_reads { Role::Viewer } else { Role::Admin };
    let asks = Asks {
        workspace: Some((&place.slug, role)),
        fresh,
        bodies: Bodies::Any,
    };
    let member = signed_in::admit(state, request.request(), asks, left).await?;
    let tenant = member.tenant()?.id;
    state.limits.member(tenant, member.user_id(), left)?;
    let noted = match only_reads {
        true => None,
        false => {
            // What is refused for that was not asked for.
            idempotency::key_of(request.request())?;
            // By the time that all of it is here somebody may have been let go. A form and a register are read by their handlers, bit by bit.
            if !Form::is_one(request.request()) && !register_files::is_one(request.request()) {
                let mut payload = request.take_payload();
                let body = extract::read(request.request(), &mut payload, LARGEST).await?;
                request.set_payload(Payload::from(body.freeze()));
            }
            Some(note(state, request.request(), (place, role), &member, None).await?)
        }
    };
    let caller = Caller::signed_in(tenant, place.env, &member);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(member);
    Ok(noted)
}

/// Notes that a member hears what somebody has said on the telephone. Nothing, for a key and for a link.
pub async fn hears(state: &State, request: &HttpRequest) -> ApiResult<()> {
    let (place, member) = (place_of(request), request.extensions().get::<Member>().cloned());
    if let (Some(place), Some(member)) = (place, member) {
        note(state, request, (&place, Role::Viewer), &member, Some(StatusCode::OK)).await?;
    }
    Ok(())
}

/// Committed before it is done: whatever becomes of it, it is known who wanted it.
async fn note(
    state: &State,
    request: &HttpRequest,
    (place, role): (&Place, Role),
    member: &Member,
    status: Option<StatusCode>,
) -> ApiResult<Noted> {
    let by = Author::user(&state.deps, &member.user, &member.login_hash);
    let id = by.ids().next();
    let path: String = request.path().chars().take(LONGEST).collect();
    let subject = format!("{} {path}", request.method());
    let request_id = REQUEST_ID.try_with(Clone::clone).unwrap_or_default();
    let details = [
        ("env", json!(place.env)),
        ("request_id", json!(request_id)),
        ("status", json!(status.map(|status| status.as_u16()))),
    ];
    let (tenant, noted) = (member.tenant()?.id, details.clone());
    let done = state.deps.writer.run(tenant, move |db| {
        let (by, subject, details) = (by.clone(), subject.clone(), details.clone());
        Box::pin(async move {
            by.still(db, tenant, role).await?;
            by.note_as(db, id, tenant, Action::Requested, &subject, &details)
                .await?;
            Ok(((), Commit::default()))
        })
    });
    done.await?;
    let details = noted.map(|(name, value)| (name.to_owned(), value));
    Ok(Noted {
        id,
        tenant,
        details: Details(details.into()),
    })
}

/// Notes what a request was answered; nobody waits for it. If that fails it stands without: that it was wanted is what counts.
pub fn answered(state: &State, noted: Noted, status: StatusCode) {
    let Noted {
        id,
        tenant,
        mut details,
    } = noted;
    details.0.insert("status".into(), json!(status.as_u16()));
    let (writer, busy) = (state.deps.writer.clone(), state.deps.clock.busy());
    state.deps.runtime.spawn(async move {
        let done = writer.run(tenant, move |db| {
            let details = details.clone();
            Box::pin(async move {
                audit_log::answered(db, id, details).await?;
                Ok(((), Commit::default()))
            })
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "the audit log lacks the answer to a request from the console");
        }
        drop(busy);
    });
}

/// What the console cannot ask for: what is there for keys, for strangers, or for the dashboard itself.
pub fn no_such_route(path: &str) -> ApiError {
    ApiError::not_found(format!("there is nothing at {path} for the console; see /docs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_cut() {
        let cut = |path: &str| cut(&path.parse().unwrap()).map(|(place, uri)| (place.slug, place.env, uri.to_string()));
        let found = |env, rest: &str| Some(("acme".to_owned(), env, rest.to_owned()));
        for (path, expected) in [
            ("/v1/_internal/t/acme/test/agents", found(Env::Test, "/v1/agents")),
            (
                "/v1/_internal/t/acme/live/dnc/check?phone_number=%2B15002345600",
                found(Env::Live, "/v1/dnc/check?phone_number=%2B15002345600"),
            ),
            (
                "/v1/_internal/t/acme/test/_sandbox/inbound_calls",
                found(Env::Test, "/v1/_sandbox/inbound_calls"),
            ),
            ("/v1/_internal/t/acme/test/a%2Fb", found(Env::Test, "/v1/a%2Fb")),
            ("/v1/_internal/t/acme/test/", found(Env::Test, "/v1/")),
            ("/v1/_internal/t/acme/members", None),
            ("/v1/_internal/t/acme/members/test/x", None),
            ("/v1/_internal/t/acme/test", None),
            ("/v1/_internal/t/acme/test/_internal/t/other/test/agents", None),
            ("/v1/agents", None),
        ] {
            assert_eq!(cut(path), expected, "{path}");
        }
    }
}
