//! SMS, written one by one; and what came in.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    extract::{Id, Json, Nothing, Params},
    traced::Traced,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::sms::{
    self, FURTHEST_SECONDS, MAX_OPEN,
    inbound::{self, Arriving},
};
use entities::{
    Error,
    ids::{CampaignId, ConsentId, ContactId, SmsId},
    law::{Audience, Legal, LegalPerson, MessageLegal, Purpose, SandboxLaw, Vertical},
    number,
    sms_message::{self as store, Direction, Encoding, Filter, Model, Status},
    values::{Cents, E164, Env, Metadata, Moment, Place, Text},
};
use rules::{law::places, sms::machine::Command};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SmsCreate")]
pub struct Create {
    pub to_number: E164,
    /// The text. Each segment is charged. Where the law wants to read in it who writes, that is added as a last line.
    pub body: Text<1, 1_600>,
    /// One of the workspace's numbers. Default: the oldest of them, else the provider's own.
    #[serde(default)]
    pub from_number: Option<E164>,
    /// What it is for. Left out: `marketing`, which has the strictest rules.
    #[serde(default)]
    pub purpose: Purpose,
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

#[derive(Serialize, JsonSchema)]
pub struct SmsView {
    pub id: SmsId,
    pub direction: Direction,
    pub status: Status,
    pub to_number: E164,
    /// Null: the provider chooses, or the sender's number was withheld.
    pub from_number: Option<E164>,
    pub body: String,
    pub encoding: Encoding,
    pub segments: i32,
    /// What it costs once the provider has taken it.
    pub price_cents: Cents,
    /// What it has cost.
    pub actual_cost_cents: Cents,
    /// How often it was handed to the provider.
    pub attempts: i32,
    /// Why it was not sent or did not arrive; while it is `queued`, why it was not sent yet.
    pub error: Option<MessageErrorView>,
    pub provider_message_id: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub scheduled_at: Option<Moment>,
    pub created_at: Moment,
    /// When the provider took it.
    pub sent_at: Option<Moment>,
    pub delivered_at: Option<Moment>,
    /// When the message reached its final status.
    pub ended_at: Option<Moment>,
}

/// What went wrong with a message.
#[derive(Serialize, JsonSchema)]
pub struct MessageErrorView {
    pub code: String,
    pub message: String,
}

impl MessageErrorView {
    pub fn of(code: Option<String>, message: Option<String>) -> Option<Self> {
        let message = message.unwrap_or_default();
        code.map(|code| MessageErrorView { code, message })
    }
}

impl From<Model> for SmsView {
    fn from(row: Model) -> Self {
        SmsView {
            id: row.id,
            direction: row.direction,
            status: row.phase.status(),
            to_number: row.to_number,
            from_number: row.from_number,
            body: row.body,
            encoding: row.encoding,
            segments: row.segments,
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
            delivered_at: row.delivered_at,
            ended_at: row.ended_at,
        }
    }
}

/// POST /v1/sms_messages
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
        return Ok(HttpResponse::Accepted().json(SmsView::from(row)));
    }
    let now = deps.clock.now();
    check_schedule(asked.scheduled_at, now)?;
    check_region(asked.region.as_ref())?;
    let from_number = sms::from_number(deps, owner, asked.from_number).await?;
    let new = sms::New {
        id: caller.new_id(&state.deps.ids),
        to_number: asked.to_number,
        from_number,
        body: asked.body.into_string(),
        legal: Some(MessageLegal {
            legal: Legal {
                purpose: asked.purpose,
                audience: asked.audience,
                vertical: asked.vertical,
                seller: asked.seller,
                // Nothing but what it says itself.
                subject: None,
                contract_ref: asked.contract_ref,
            },
            person: LegalPerson {
                region: asked.region,
                consent_id: asked.consent_id,
            },
            sandbox_law: asked.sandbox_law,
        }),
        scheduled_at: asked.scheduled_at,
        client_reference_id: asked.client_reference_id.map(Text::into_string),
        metadata: asked.metadata,
        campaign: None,
    };
    let row = sms::signed(deps, sms::row(deps, owner, new, now)).await?;
    sms::check(deps, &row).await?;
    if store::count_open(&deps.db.read, owner).await? >= MAX_OPEN {
        return Err(too_many(MAX_OPEN));
    }
    traced.makes(deps, row.id);
    let row = sms::create(deps, row).await?;
    Ok(HttpResponse::Accepted().json(SmsView::from(row)))
}

/// Errors: nobody can be there.
pub fn check_region(region: Option<&Place>) -> ApiResult<()> {
    places::check(region).map_err(|why| ApiError::validation("region", why))
}

pub fn check_schedule(scheduled_at: Option<Moment>, now: Moment) -> ApiResult<()> {
    match scheduled_at {
        Some(at) if at > now.plus_seconds(FURTHEST_SECONDS) => {
            Err(ApiError::validation("scheduled_at", "is more than 35 days ahead"))
        }
        Some(_) | None => Ok(()),
    }
}

pub fn too_many(most: u64) -> ApiError {
    let why = format!("{most} messages are already waiting to be sent: wait until some have been sent");
    ApiError::TooMany(Code::RateLimited, why, 10)
}

/// GET /v1/sms_messages
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<SmsView>>> {
    let page = params.page()?;
    let filter = Filter {
        status: params.text("status")?,
        direction: params.text("direction")?,
        to_number: number_of(&mut params, "to_number")?,
        from_number: number_of(&mut params, "from_number")?,
    };
    params.finish()?;
    let listed = store::list(&state.deps.db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, SmsView::from)))
}

fn number_of(params: &mut Params, param: &'static str) -> ApiResult<Option<E164>> {
    let Some(text) = params.take(param) else {
        return Ok(None);
    };
    // A `+` that was not escaped arrives as a blank.
    let text = text.trim().trim_start_matches('+');
    let number = format!("+{text}").parse();
    number.map(Some).map_err(|_| {
        ApiError::validation(
            param,
            "must be in the form +<digits> (E.164); in a URL write %2B15002340000",
        )
    })
}

/// GET /v1/sms_messages/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<SmsId>) -> ApiResult<web::Json<SmsView>> {
    let row = store::shown(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(SmsView::from(row)))
}

/// POST /v1/sms_messages/{id}/cancel
pub async fn cancel(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SmsId>,
    _: Nothing,
) -> ApiResult<web::Json<SmsView>> {
    let key = caller.own(id);
    store::shown(&state.deps.db.read, key).await?;
    let row = state.deps.router.sms().request(key, Command::Cancel).await?;
    Ok(web::Json(SmsView::from(row)))
}

/// DELETE /v1/sms_messages/{id}: what it said is removed; to whom and when, and what it cost, stays.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<SmsId>) -> ApiResult<HttpResponse> {
    let key = caller.own(id);
    store::shown(&state.deps.db.read, key).await?;
    state.deps.router.sms().request(key, Command::Delete).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// An incoming text, played by the sandbox.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundSms {
    /// One of the workspace's numbers, or the sandbox's own.
    pub to_number: E164,
    pub from_number: E164,
    pub body: Text<0, 1_600>,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub struct InboundSmsView {
    pub message: SmsView,
    /// The reply that the sender gets; null: none.
    pub reply: Option<String>,
}

/// POST /v1/_sandbox/inbound_sms
pub async fn arrive(state: Data<State>, caller: Caller, Json(asked): Json<InboundSms>) -> ApiResult<HttpResponse> {
    if caller.env() != Env::Test {
        return Err(ApiError::forbidden("the sandbox is for test keys"));
    }
    let deps = &state.deps;
    let own = number::of_number(&deps.db.read, caller.tenant_id(), &asked.to_number).await?;
    if own.is_none() && !asked.to_number.is_sandbox() {
        return Err(ApiError::validation(
            "to_number",
            "is not one of the workspace's numbers",
        ));
    }
    let id: SmsId = caller.new_id(&state.deps.ids);
    let arriving = Arriving {
        provider_message_id: format!("SB{}", id.0.simple()),
        to_number: asked.to_number,
        from_number: Some(asked.from_number),
        body: asked.body.into_string(),
    };
    let received = inbound::receive(deps, (caller.tenant_id(), caller.env()), id, arriving).await;
    let received = received.map_err(|error| match error {
        Error::AlreadyExists { .. } => Error::Unavailable("it arrived twice at this moment".into()),
        error => error,
    })?;
    Ok(HttpResponse::Created().json(InboundSmsView {
        message: received.message.into(),
        reply: received.reply,
    }))
}
