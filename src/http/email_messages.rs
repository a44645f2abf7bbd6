//! E-mails, written one by one.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    extract::{Id, Json, Nothing, Params},
    sms_messages::{MessageErrorView, check_region, check_schedule, too_many},
    traced::Traced,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::email::{self, MAX_OPEN};
use adapters::email::message::{is_content_type, is_mailbox};
use base64::{Engine, engine::general_purpose::STANDARD};
use entities::{
    Error,
    email_message::{
        self as store, Filter, Kind, Model, Status,
        content::{Attachment, Attachments},
    },
    ids::{CampaignId, ConsentId, ContactId, EmailId},
    law::{Audience, Legal, LegalPerson, MessageLegal, Purpose, SandboxLaw, Vertical},
    values::{Cents, Metadata, Moment, Place, Text},
};
use rules::{barred, email::machine::Command};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EmailCreate")]
pub struct Create {
    /// One address. It is compared and used in lower case.
    pub to: Text<3, 254>,
    /// The name beside the service's address.
    #[serde(default)]
    pub from_name: Option<Text<1, 100>>,
    /// Where answers go.
    #[serde(default)]
    pub reply_to: Option<Text<3, 254>>,
    pub subject: Text<1, 500>,
    /// The plain text; this, `html`, or both. In a marketing mail `{{unsubscribe_url}}` becomes the reader's link.
    #[serde(default)]
    pub text: Option<Text<1, 200_000>>,
    #[serde(default)]
    pub html: Option<Text<1, 500_000>>,
    /// At most 10, of 700 KB (716,800 bytes) together.
    #[serde(default)]
    pub attachments: Vec<Attached>,
    #[serde(default)]
    pub kind: Kind,
    /// What it is for. Left out: `marketing` for that `kind`, `service` for `transactional`.
    #[serde(default)]
    pub purpose: Option<Purpose>,
    /// Left out: `consumer`.
    #[serde(default)]
    pub audience: Audience,
    /// A trade that has rules of its own.
    #[serde(default)]
    pub vertical: Option<Vertical>,
    /// For whom it is written; null: the workspace's registered name.
    #[serde(default)]
    pub seller: Option<Text<1, 200>>,
    /// The contract that is being fulfilled, where that is why.
    #[serde(default)]
    pub contract_ref: Option<Text<1, 200>>,
    /// In which country, or part of one, the person is, such as `US-FL`: its laws hold beside those of the number's place.
    #[serde(default)]
    pub region: Option<Place>,
    /// The consent that it rests on; null: the strongest that covers it.
    #[serde(default)]
    pub consent_id: Option<ConsentId>,
    /// With a test key: `enforce` refuses what the law would refuse; `observe` only keeps what it would say.
    #[serde(default)]
    pub sandbox_law: SandboxLaw,
    /// Not sent before this; at most 35 days ahead. It is sent within half a minute after it.
    #[serde(default)]
    pub scheduled_at: Option<Moment>,
    #[serde(default)]
    pub client_reference_id: Option<Text<1, 200>>,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
}

/// An attached file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    pub filename: Text<1, 200>,
    /// Such as `application/pdf`.
    pub content_type: Text<3, 100>,
    /// Base64.
    pub content: String,
}

const MAX_ATTACHMENTS: usize = 10;
const MAX_ATTACHED_BYTES: usize = 700 * 1024;

#[derive(Serialize, JsonSchema)]
pub struct EmailView {
    pub id: EmailId,
    pub status: Status,
    pub to: String,
    pub from_name: Option<String>,
    pub reply_to: Option<String>,
    pub subject: String,
    pub kind: Kind,
    /// What it costs once the mail server has taken it.
    pub price_cents: Cents,
    /// What it has cost.
    pub actual_cost_cents: Cents,
    /// How often it was handed to the mail server.
    pub attempts: i32,
    /// Why it was not sent; while it is `deferred`, why it was not sent yet.
    pub error: Option<MessageErrorView>,
    /// What the mail server said when it took it.
    pub provider_message_id: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub scheduled_at: Option<Moment>,
    pub created_at: Moment,
    /// When the mail server took it.
    pub sent_at: Option<Moment>,
    /// When the message reached its final status.
    pub ended_at: Option<Moment>,
}

impl From<Model> for EmailView {
    fn from(row: Model) -> Self {
        EmailView {
            id: row.id,
            status: row.phase.status(),
            to: row.to_address,
            from_name: row.from_name,
            reply_to: row.reply_to,
            subject: row.subject,
            kind: row.kind,
            price_cents: row.price_cents,
            actual_cost_cents: row.cost_cents,
            attempts: row.attempts,
            error: MessageErrorView::of(row.error_code, row.error_message),
            provider_message_id: row.provider_message_id,
            campaign_id: row.campaign_id,
            contact_id: row.contact_id,
            client_reference_id: row.client_reference_id,
            metadata: row.metadata,
            scheduled_at: row.scheduled_at,
            created_at: row.created_at,
            sent_at: row.sent_at,
            ended_at: row.ended_at,
        }
    }
}

/// POST /v1/email_messages
pub async fn create(
    state: Data<State>,
    caller: Caller,
    traced: Traced,
    Json(asked): Json<Create>,
) -> ApiResult<HttpResponse> {
    let (deps, owner) = (&state.deps, (caller.tenant_id(), caller.env()));
    // A repeat of a request whose answer was lost.
    if let Some(id) = caller.object_id
        && let Ok(row) = store::load(&deps.db.read, caller.own(id.into())).await
    {
        if row.deleted_at.is_some() {
            return Err(Error::NotFound("message").into());
        }
        return Ok(HttpResponse::Accepted().json(EmailView::from(row)));
    }
    let now = deps.clock.now();
    check_schedule(asked.scheduled_at, now)?;
    let new = check(&asked, caller.new_id(&state.deps.ids))?;
    let rows = email::rows(deps, owner, new, now);
    email::check(deps, &rows.0).await.map_err(on_dnc)?;
    if store::count_open(&deps.db.read, owner).await? >= MAX_OPEN {
        return Err(too_many(MAX_OPEN));
    }
    traced.makes(deps, rows.0.id);
    let row = email::create(deps, rows).await?;
    Ok(HttpResponse::Accepted().json(EmailView::from(row)))
}

/// The same answer as for numbers, with this request's field.
fn on_dnc(error: Error) -> ApiError {
    match error {
        Error::RecipientOnDnc => ApiError::Frame(
            Code::RecipientOnDnc,
            "the address is on the do-not-call list".into(),
            Some("to".into()),
        ),
        error => error.into(),
    }
}

fn check(asked: &Create, id: EmailId) -> ApiResult<email::New> {
    let to = barred::email(&asked.to).map_err(|_| ApiError::validation("to", "is not an e-mail address"))?;
    one_line("to", &to)?;
    if !is_mailbox(&to) {
        return Err(ApiError::validation("to", "is not an e-mail address"));
    }
    for (param, text) in [
        ("from_name", asked.from_name.as_deref()),
        ("subject", Some(&*asked.subject)),
    ] {
        one_line(param, text.unwrap_or_default())?;
    }
    if let Some(reply_to) = &asked.reply_to {
        one_line("reply_to", reply_to)?;
        if !is_mailbox(reply_to) {
            return Err(ApiError::validation("reply_to", "is not an e-mail address"));
        }
    }
    if asked.text.is_none() && asked.html.is_none() {
        return Err(ApiError::validation("text", "give `text`, `html`, or both"));
    }
    Ok(email::New {
        id,
        to,
        from_name: asked.from_name.clone().map(Text::into_string),
        reply_to: asked.reply_to.clone().map(Text::into_string),
        subject: asked.subject.to_string(),
        text: asked.text.clone().map(Text::into_string),
        html: asked.html.clone().map(Text::into_string),
        attachments: attachments(&asked.attachments)?,
        kind: asked.kind,
        legal: Some(legal_of(asked)?),
        scheduled_at: asked.scheduled_at,
        client_reference_id: asked.client_reference_id.clone().map(Text::into_string),
        metadata: asked.metadata.clone(),
        campaign: None,
    })
}

/// What it is in the words of the law. What sells is marketing, however it is sent.
fn legal_of(asked: &Create) -> ApiResult<MessageLegal> {
    check_region(asked.region.as_ref())?;
    let purpose = match (asked.purpose, asked.kind) {
        (Some(Purpose::Marketing), Kind::Transactional) => {
            return Err(ApiError::validation(
                "purpose",
                "is `marketing`: send it with the `kind` `marketing`, which carries the link to unsubscribe",
            ));
        }
        (Some(purpose), _) => purpose,
        (None, Kind::Marketing) => Purpose::Marketing,
        (None, Kind::Transactional) => Purpose::Service,
    };
    Ok(MessageLegal {
        legal: Legal {
            purpose,
            audience: asked.audience,
            vertical: asked.vertical,
            seller: asked.seller.clone(),
            // Its own subject says what it is about.
            subject: None,
            contract_ref: asked.contract_ref.clone(),
        },
        person: LegalPerson {
            region: asked.region.clone(),
            consent_id: asked.consent_id,
        },
        sandbox_law: asked.sandbox_law,
    })
}

/// What goes into a header must not begin another.
fn one_line(param: &str, text: &str) -> ApiResult<()> {
    if text.chars().any(char::is_control) {
        return Err(ApiError::validation(
            param,
            "must be one line, without control characters",
        ));
    }
    Ok(())
}

fn attachments(asked: &[Attached]) -> ApiResult<Attachments> {
    if asked.len() > MAX_ATTACHMENTS {
        let why = format!("has {} entries, at most {MAX_ATTACHMENTS} are allowed", asked.len());
        return Err(ApiError::validation("attachments", why));
    }
    let (mut all, mut bytes) = (Vec::with_capacity(asked.len()), 0);
    for (at, one) in asked.iter().enumerate() {
        let wrong = |field: &str, why: &str| ApiError::validation(format!("attachments[{at}].{field}"), why);
        one_line(&format!("attachments[{at}].filename"), &one.filename)?;
        if one.filename.contains(['/', '\\', '"']) {
            return Err(wrong("filename", "must be a name, without a folder or quotes"));
        }
        one_line(&format!("attachments[{at}].content_type"), &one.content_type)?;
        if !is_content_type(&one.content_type) {
            return Err(wrong(
                "content_type",
                "is not a content type; write it as application/pdf",
            ));
        }
        let content = STANDARD
            .decode(&one.content)
            .map_err(|_| wrong("content", "is not in base64"))?;
        bytes += content.len();
        if bytes > MAX_ATTACHED_BYTES {
            let why = format!("have more than {MAX_ATTACHED_BYTES} bytes together");
            return Err(ApiError::validation("attachments", why));
        }
        all.push(Attachment {
            filename: one.filename.to_string(),
            content_type: one.content_type.to_string(),
            content: one.content.clone(),
        });
    }
    Ok(Attachments(all))
}

/// GET /v1/email_messages
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<EmailView>>> {
    let page = params.page()?;
    let filter = Filter {
        status: params.text("status")?,
        kind: params.text("kind")?,
        // As it is stored: in one spelling.
        to: params
            .take("to")
            .map(|to| barred::email(&to).unwrap_or_else(|_| to.trim().to_lowercase())),
    };
    params.finish()?;
    let listed = store::list(&state.deps.db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, EmailView::from)))
}

/// GET /v1/email_messages/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<EmailId>) -> ApiResult<web::Json<EmailView>> {
    let row = store::shown(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(EmailView::from(row)))
}

/// POST /v1/email_messages/{id}/cancel
pub async fn cancel(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EmailId>,
    _: Nothing,
) -> ApiResult<web::Json<EmailView>> {
    let key = caller.own(id);
    store::shown(&state.deps.db.read, key).await?;
    let row = state.deps.router.emails().request(key, Command::Cancel).await?;
    Ok(web::Json(EmailView::from(row)))
}

/// DELETE /v1/email_messages/{id}: what it said is removed; to whom and when, and what it cost, stays.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<EmailId>) -> ApiResult<HttpResponse> {
    let key = caller.own(id);
    store::shown(&state.deps.db.read, key).await?;
    state.deps.router.emails().request(key, Command::Delete).await?;
    Ok(HttpResponse::NoContent().finish())
}
