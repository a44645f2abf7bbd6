//! The page behind a marketing mail's link: one button, no script. Mail programs press it by themselves (RFC 8058).
use super::{
    error::{ApiError, ApiResult},
    extract,
    peer::peer,
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
    web::{Data, Path, Payload},
};
use actors::dnc;
use adapters::email::link;
use entities::{
    dnc::Source,
    email_message::{self, Model},
    tenant,
};
use rules::barred::{Entry, Whom};

const POLICY: &str = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What a mail program may post along.
const MAX_BODY: usize = 16 * 1024;

/// GET /u/{token}
pub async fn page(state: Data<State>, request: HttpRequest, token: Path<String>) -> ApiResult<HttpResponse> {
    let row = message(&state, &request, &token).await?;
    let sender = tenant::load(&state.deps.db.read, row.tenant_id).await?.name;
    let (sender, address) = (escaped(&sender), escaped(&row.to_address));
    Ok(html(&format!(
        "<p>Shall <b>{sender}</b> write no more to {address}?</p>\n\
         <form method=\"post\"><button type=\"submit\">Unsubscribe</button></form>"
    )))
}

/// POST /u/{token}: by the page's button, or by a mail program. A second time changes nothing.
pub async fn press(
    state: Data<State>,
    request: HttpRequest,
    token: Path<String>,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    // Whatever it says: the link is the proof, and the method the wish.
    extract::read(&request, &mut payload.into_inner(), MAX_BODY).await?;
    let row = message(&state, &request, &token).await?;
    state.limits.press(row.id)?;
    let entry = Entry {
        id: state.deps.ids.next(),
        whom: Whom::Email(row.to_address.clone()),
        channels: Vec::new(),
        reason: Some("unsubscribed by a message's link".into()),
        source: Source::Unsubscribe,
        session_id: None,
        requested_at: None,
        created_by: None,
    };
    dnc::add(&state.deps, (row.tenant_id, row.env), entry).await?;
    let address = escaped(&row.to_address);
    Ok(html(&format!(
        "<p>{address} is unsubscribed. You can close this page.</p>"
    )))
}

/// One answer for every token that is not ours, and for messages that are gone.
async fn message(state: &State, request: &HttpRequest, token: &str) -> ApiResult<Model> {
    let found = match link::open(&state.deps.links, token) {
        Some(id) => email_message::behind_link(&state.deps.db.read, id).await?,
        None => None,
    };
    if found.is_none() {
        // Guessing links is guessing keys.
        state.limits.bad_link(peer(state, request))?;
    }
    found.ok_or_else(|| ApiError::not_found("there is no such page"))
}

fn html(content: &str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((CACHE_CONTROL, "no-store"))
        .content_type("text/html; charset=utf-8")
        .body(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"robots\" content=\"noindex\"><title>Unsubscribe</title></head>\n\
             <body>\n<h1>Unsubscribe</h1>\n{content}\n</body>\n</html>\n"
        ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
