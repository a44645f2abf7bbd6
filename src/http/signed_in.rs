//! Who is signed in to the dashboard, and whether a request comes from its own pages.
use super::{
    caller::Member,
    error::{ApiError, ApiResult},
    extract::header_text,
    rate_limits::Left,
};
use crate::{access, state::State};
use actix_web::{HttpMessage, HttpRequest, http::Method};
use entities::values::Role;

/// What is asked of somebody who is signed in.
pub struct Asks<'a> {
    /// To be a member of this workspace, with at least that role.
    pub workspace: Option<(&'a str, Role)>,
    /// To have given the password a moment ago.
    pub fresh: bool,
    pub bodies: Bodies,
}

/// What a request may bring along.
#[derive(Clone, Copy, PartialEq)]
pub enum Bodies {
    /// Which no page of another site can send without being asked.
    Json,
    /// Also what a form of another site can send: then the browser must say where it comes from.
    Any,
}

/// The member behind a request, who may do what it asks for.
pub async fn admit(state: &State, http: &HttpRequest, asks: Asks<'_>, left: &mut Option<Left>) -> ApiResult<Member> {
    if !http.method().is_safe() {
        from_our_pages(http, asks.bodies)?;
    }
    let signed_out = || ApiError::unauthenticated("you are not signed in");
    let token = http.cookie(state.cookie_name()).ok_or_else(signed_out)?;
    let (user, login) = access::signed_in(state, token.value()).await?.ok_or_else(signed_out)?;
    state.limits.dashboard(&login.token_hash, left)?;
    let mut workspace = None;
    if let Some((slug, role)) = asks.workspace {
        let memberships = entities::membership::of_user(&state.deps.db.read, user.id).await?;
        let found = memberships.into_iter().find(|(tenant, _)| tenant.slug == slug);
        let (tenant, has) = found.ok_or_else(|| ApiError::not_found("no such workspace"))?;
        if has < role {
            return Err(ApiError::forbidden(
                "your role in this workspace does not allow this; ask an owner",
            ));
        }
        workspace = Some((tenant, has));
    }
    // After the role: whoever may not do it at all is not asked for a password.
    if asks.fresh && !access::is_fresh(&login, state.deps.clock.now()) {
        return Err(ApiError::password_wanted());
    }
    Ok(Member {
        user,
        login_hash: login.token_hash,
        workspace,
    })
}

/// Against requests that another site makes in a signed-in browser: JSON only, and from our own pages only.
pub fn same_origin(request: &HttpRequest) -> ApiResult<()> {
    from_our_pages(request, Bodies::Json)
}

fn from_our_pages(request: &HttpRequest, bodies: Bodies) -> ApiResult<()> {
    let has_body = *request.method() != Method::DELETE;
    let is_json = !has_body || request.content_type().eq_ignore_ascii_case("application/json");
    if !is_json && bodies == Bodies::Json {
        return Err(ApiError::unsupported_media_type("application/json"));
    }
    let foreign = || ApiError::forbidden("this request does not come from the dashboard's own pages");
    if let Some(site) = header_text(request, "sec-fetch-site") {
        return if matches!(&*site, "same-origin" | "none") {
            Ok(())
        } else {
            Err(foreign())
        };
    }
    let Some(origin) = header_text(request, "origin") else {
        // Without either header it is no browser: there is no session of somebody else's to ride on. An old one leaves them out
        // of what a form sends.
        return if is_json { Ok(()) } else { Err(foreign()) };
    };
    let host = header_text(request, "host").unwrap_or_default();
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    if same { Ok(()) } else { Err(foreign()) }
}
