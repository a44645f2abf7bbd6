//! Top-ups: paying for credits. What they moved is in the ledger.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    extract::{self, Id, Json, Params, header_text},
    nodes::{self, Place},
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::credits::payments;
use adapters::stripe::notice::Notice;
use entities::{
    Error,
    ids::TopupId,
    topup::{self as store, Model, Processor, Status},
    values::{Cents, Env, Moment},
};
use rules::credits::topup::NewTopup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// What is paid and credited; 100 to 1000000, where the operator sets no other limits.
    pub amount_cents: i64,
    /// Where the payment page leads after the payment; at most 2,000 characters.
    #[serde(default)]
    pub success_url: Option<String>,
    /// Where it leads without a payment.
    #[serde(default)]
    pub cancel_url: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct TopupView {
    pub id: TopupId,
    pub status: Status,
    pub amount_cents: Cents,
    /// ISO 4217, such as USD.
    pub currency: String,
    pub processor: Processor,
    /// Refunded in total.
    pub refunded_cents: Cents,
    /// The payment page, while it is open.
    pub checkout_url: Option<String>,
    /// The payment that settled it.
    pub processor_payment_intent_id: Option<String>,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    /// Why nothing was paid.
    pub error: Option<String>,
    pub created_at: Moment,
    /// When it was paid and credited.
    pub settled_at: Option<Moment>,
    /// When its page closes.
    pub expires_at: Option<Moment>,
}

impl From<Model> for TopupView {
    fn from(row: Model) -> Self {
        TopupView {
            id: row.id,
            status: row.status,
            amount_cents: row.amount_cents,
            currency: row.currency,
            processor: row.processor,
            refunded_cents: row.refunded_cents,
            checkout_url: row.checkout_url.filter(|_| row.status == Status::Pending),
            processor_payment_intent_id: row.processor_payment_intent_id,
            success_url: row.success_url,
            cancel_url: row.cancel_url,
            error: row.error,
            created_at: row.created_at,
            settled_at: row.settled_at,
            expires_at: row.expires_at,
        }
    }
}

/// What Stripe gets back: that its notice arrived.
#[derive(Serialize, JsonSchema)]
pub struct ReceivedView {
    /// Always true.
    pub received: bool,
}

/// POST /v1/credits/topups
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Create>) -> ApiResult<HttpResponse> {
    let payments = &state.deps.payments;
    if !payments.amounts.contains(&asked.amount_cents) {
        let (least, most) = (payments.amounts.start(), payments.amounts.end());
        let why = format!("must be from {least} to {most}, not {}", asked.amount_cents);
        return Err(ApiError::validation("amount_cents", why));
    }
    check_return(&state, "success_url", asked.success_url.as_deref())?;
    check_return(&state, "cancel_url", asked.cancel_url.as_deref())?;
    if caller.env() == Env::Live && payments.stripe.is_none() {
        let why = "no payment processor is configured: the operator sets CALLBOARD_STRIPE_SECRET_KEY; test keys use the sandbox";
        return Err(Error::NotConfigured(why.into()).into());
    }
    let asked = NewTopup {
        id: caller.new_id(&state.deps.ids),
        owner: (caller.tenant_id(), caller.env()),
        amount_cents: Cents(asked.amount_cents),
        currency: state.deps.limits.credits.currency.clone(),
        success_url: asked.success_url,
        cancel_url: asked.cancel_url,
    };
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    let row = payments::begin(&state.deps, asked).await?;
    let row = payments::open_page(&state.deps, row).await?;
    Ok(HttpResponse::Created().json(TopupView::from(row)))
}

/// GET /v1/credits/topups
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<TopupView>>> {
    let page = params.page()?;
    let status = params.text("status")?;
    params.finish()?;
    let listed = store::list(&state.deps.db, caller.owner(), status, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, TopupView::from)))
}

/// GET /v1/credits/topups/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<TopupId>) -> ApiResult<web::Json<TopupView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(row.into()))
}

/// Bytes of a notice. They have a few KiB.
const MAX_NOTICE: usize = MIB / 4;

/// POST /v1/_internal/stripe/webhook. A 2xx says that the notice needs not come again, whatever it was about.
pub async fn webhook(state: Data<State>, request: HttpRequest, payload: web::Payload) -> ApiResult<HttpResponse> {
    let secrets = &state.deps.payments.notice_secrets;
    if secrets.is_empty() {
        let why = "payment notices are not taken: the operator sets CALLBOARD_STRIPE_WEBHOOK_SECRET";
        return Err(Error::NotConfigured(why.into()).into());
    }
    let unproved = |why: &dyn std::fmt::Display| ApiError::Frame(Code::InvalidSignature, why.to_string(), None);
    let header = header_text(&request, "stripe-signature").unwrap_or_default();
    let body = extract::read(&request, &mut payload.into_inner(), MAX_NOTICE).await?;
    if let Err(why) = secrets.verify(&header, &body, state.deps.clock.unix_seconds()) {
        tracing::warn!(%why, "a payment notice was refused");
        return Err(unproved(&why));
    }
    let notice =
        Notice::parse(&body).map_err(|why| ApiError::invalid_json(format!("the body is not an event: {why}")))?;
    let story = notice.story().map_err(|why| {
        tracing::error!(notice = notice.id, kind = notice.kind, %why, "a payment notice cannot be read");
        ApiError::validation(why.0, "is missing or does not have the expected form")
    })?;
    if let Some(story) = story {
        let _stay = match payments::owner_of(&state.deps, &story).await? {
            Some(tenant) => match nodes::settle_read(&state, &request, tenant, body.clone().freeze()).await? {
                Place::Here(stay) => stay,
                Place::There(answer) => return Ok(answer),
            },
            None => None,
        };
        let heard = payments::hear(&state.deps, story).await?;
        tracing::debug!(notice = notice.id, kind = notice.kind, ?heard, "a payment notice");
    }
    Ok(HttpResponse::Ok().json(ReceivedView { received: true }))
}

/// An address for the payer's browser; nothing of ours ever calls it.
fn check_return(state: &State, field: &str, url: Option<&str>) -> ApiResult<()> {
    let Some(text) = url else { return Ok(()) };
    let refused = |why: &str| Err(ApiError::validation(field, why));
    if text.len() > 2000 {
        return refused("is longer than 2000 characters");
    }
    let Ok(url) = url::Url::parse(text) else {
        return refused("is not a URL; write https://host/path");
    };
    let dev_http = state.settings.dev && url.scheme() == "http";
    if url.scheme() != "https" && !dev_http {
        return refused("must be an https address");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("must not carry a user name or password");
    }
    Ok(())
}
