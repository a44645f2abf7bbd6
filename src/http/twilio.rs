//! What the SMS provider tells us: reports of messages, and messages that come in. Each call is signed; one that is not changes
//! nothing.
use super::{
    error::{ApiError, ApiResult},
    extract::{Form, header_text},
    nodes::{self, Place},
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    body::to_bytes,
    web::{Bytes, Data, Path},
};
use actors::sms::inbound::{self, Arriving};
use adapters::sms::twilio;
use entities::{Error, ids::SmsId, sms_message, values::Env};
use rules::sms::machine::Command;

/// POST /v1/_internal/twilio/status/{message_id}
pub async fn status(
    state: Data<State>,
    request: HttpRequest,
    id: Path<String>,
    Form(fields): Form,
) -> ApiResult<HttpResponse> {
    let no_such = || ApiError::from(Error::NotFound("message"));
    // The address that was given away, byte by byte: another spelling of the id is another address.
    let url = format!("{}/v1/_internal/twilio/status/{id}", state.deps.base_url);
    authenticate(&state, &request, &url, &fields)?;
    let id: SmsId = id.parse().map_err(|_| no_such())?;
    let owner = sms_message::owner_of(&state.deps.db.read, id).await?;
    let key = owner.filter(|key| key.env == Env::Live).ok_or_else(no_such)?;
    if let Some(report) = twilio::report(&fields) {
        state.deps.router.sms().request(key, Command::Own(report)).await?;
    }
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/_internal/twilio/inbound: answered with TwiML.
pub async fn inbound(state: Data<State>, request: HttpRequest, Form(fields): Form) -> ApiResult<HttpResponse> {
    authenticate(&state, &request, &twilio::inbound_url(&state.deps.base_url), &fields)?;
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let missing = |name: &str| ApiError::validation(name, "is missing");
    let id = field("MessageSid").or_else(|| field("SmsSid"));
    let id = id.filter(|id| id.len() <= 64).ok_or_else(|| missing("MessageSid"))?;
    let to = field("To").and_then(|to| to.parse().ok());
    let arriving = Arriving {
        provider_message_id: id.to_owned(),
        to_number: to.ok_or_else(|| missing("To"))?,
        // A short code, or none: nobody that could be written to.
        from_number: field("From").and_then(|from| from.parse().ok()),
        body: field("Body").unwrap_or_default().to_owned(),
    };
    let (mut reply, mut reply_elsewhere, mut failed) = (None, None, None);
    let addressees = match nodes::named(&request) {
        Some(tenant) => vec![tenant],
        None => inbound::addressees(&state.deps, &arriving).await?,
    };
    let is_alone = addressees.len() == 1;
    for tenant in addressees {
        // Each of several workspaces may be another node's, which is told the same and answers for itself.
        let _stay = match nodes::settle_read(&state, &request, tenant, encoded(&fields)).await? {
            Place::Here(stay) => stay,
            Place::There(answer) if is_alone => return Ok(answer),
            // The others are told all the same; a failure is answered at the end, so that it is asked again.
            Place::There(answer) if !answer.status().is_success() => {
                failed = failed.or(Some(answer));
                continue;
            }
            Place::There(answer) => {
                let said = to_bytes(answer.into_body()).await.unwrap_or_default();
                let said = String::from_utf8_lossy(&said).into_owned();
                reply_elsewhere = reply_elsewhere.or(Some(said).filter(|said| said.contains("<Message>")));
                continue;
            }
        };
        let received = inbound::receive(
            &state.deps,
            (tenant, Env::Live),
            state.deps.ids.next(),
            arriving.clone(),
        )
        .await?;
        // One answer, however many were told.
        reply = reply.or(received.reply);
    }
    if let Some(answer) = failed {
        return Ok(answer);
    }
    if let (None, Some(twiml)) = (&reply, reply_elsewhere) {
        return Ok(HttpResponse::Ok().content_type("text/xml; charset=utf-8").body(twiml));
    }
    let message = reply.map(|text| format!("<Message>{}</Message>", escaped(&text)));
    let twiml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response>{}</Response>",
        message.unwrap_or_default()
    );
    Ok(HttpResponse::Ok().content_type("text/xml; charset=utf-8").body(twiml))
}

fn encoded(fields: &[(String, String)]) -> Bytes {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish().into()
}

fn authenticate(state: &State, request: &HttpRequest, url: &str, fields: &[(String, String)]) -> ApiResult<()> {
    let Some(twilio) = &state.deps.sms.twilio else {
        return Err(Error::NotConfigured("no SMS provider is configured".into()).into());
    };
    let signature = header_text(request, "x-twilio-signature").unwrap_or_default();
    if twilio.is_authentic(url, fields, &signature) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "the signature is not the provider's: check sms_auth_token, and that base_url is the address it calls",
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
