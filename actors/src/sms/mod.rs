//! SMS: what goes out, what comes in. One message is a row with a state machine; a provider hands it over.
pub mod inbound;
mod send;

pub use crate::outgoing::{FURTHEST_SECONDS, MAX_OPEN, send_begun};
pub use send::send_now;

use crate::{
    birth::{self, Birth},
    deps::Deps,
    outgoing,
};
use entities::{
    Error, Result, boxed,
    ids::{CampaignId, ContactId, SmsId, TenantId, TenantScoped},
    law::MessageLegal,
    number::{self, Usability},
    sms_message::{Model, Phase},
    values::{E164, Env, Metadata, Moment},
    verified_number,
};
use rules::sms::machine::unsent;

/// A message that is asked for.
#[derive(Clone, Debug)]
pub struct New {
    pub id: SmsId,
    pub to_number: E164,
    /// Else the workspace's oldest number (in live: that it has claimed), else the provider's default.
    pub from_number: Option<E164>,
    /// At most 1,600 characters.
    pub body: String,
    /// None: the service says it by itself.
    pub legal: Option<MessageLegal>,
    pub scheduled_at: Option<Moment>,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub campaign: Option<(CampaignId, ContactId)>,
}

/// Who writes: one of the workspace's numbers, in live one that it has claimed, or the provider's default. `None`: the provider chooses.
#[boxed]
pub async fn from_number(deps: &Deps, (tenant, env): (TenantId, Env), asked: Option<E164>) -> Result<Option<E164>> {
    let db = &deps.db.read;
    let default = deps.sms.provider(env)?.default_from();
    match asked {
        Some(number) if Some(&number) == default => Ok(Some(number)),
        Some(number) => match number::usability(db, (tenant, env), &number).await? {
            Usability::Usable => Ok(Some(number)),
            unusable => Err(Error::invalid("from_number", why_not(unusable))),
        },
        None => Ok(number::default_of(db, tenant, env).await?.or_else(|| default.cloned())),
    }
}

/// Why a number is no sender, for the end of a sentence.
pub fn why_not(usability: Usability) -> &'static str {
    match usability {
        Usability::Foreign => "is not a number of the workspace: see GET /v1/numbers",
        Usability::Unverified => {
            "is not verified for live use: POST it to /v1/verified_numbers with a live key and confirm the code, or ask the operator"
        }
        Usability::Usable => "can be used",
    }
}

/// The row of a new message.
pub fn row(deps: &Deps, (tenant_id, env): (TenantId, Env), new: New, now: Moment) -> Model {
    let scheduled_at = new.scheduled_at.filter(|at| *at > now);
    let (campaign_id, contact_id) = new.campaign.unzip();
    let mut row = unsent(TenantScoped::new(tenant_id, env, new.id), new.to_number, new.body, now);
    row.price_cents = deps.limits.sms_price(row.segments.into());
    if let Some(at) = scheduled_at {
        (row.phase, row.wake_at) = (Phase::Scheduled, Some(at));
    }
    Model {
        from_number: new.from_number,
        campaign_id,
        contact_id,
        legal: new.legal,
        client_reference_id: new.client_reference_id,
        metadata: new.metadata,
        scheduled_at: new.scheduled_at,
        ..row
    }
}

/// The same row; where the law of its place wants to read in a text who writes, that is in it and in its price. Errors: there is no room.
#[boxed]
pub async fn signed(deps: &Deps, row: Model) -> Result<Model> {
    let Some((terms, facts)) = outgoing::facts(deps, &row).await? else {
        return Ok(row);
    };
    let text = terms.text(&facts, row.body.clone());
    let text = text.map_err(|no_room| Error::invalid("body", no_room.to_string()))?;
    Ok(Model {
        price_cents: deps.limits.sms_price(text.segments.into()),
        body: text.body,
        encoding: text.encoding,
        segments: text.segments,
        ..row
    })
}

/// Can messages of that env be sent at all?
pub fn check_configured(deps: &Deps, env: Env) -> Result<()> {
    deps.sms.provider(env).map(drop)
}

/// May it be written, as far as is known now? The list and the blocks are looked at once more when it is sent.
#[boxed]
pub async fn check(deps: &Deps, row: &Model) -> Result<()> {
    let db = &deps.db.read;
    check_configured(deps, row.env)?;
    let number = &row.to_number;
    if let Some(kind) = number.costly_kind().filter(|_| !deps.limits.allow_costly_numbers) {
        let why = format!("is {kind}: the operator does not allow messages to it");
        return Err(Error::invalid("to_number", why));
    }
    match row.env {
        Env::Live if number.is_sandbox() => {
            return Err(Error::invalid("to_number", "is a sandbox number: use a test key"));
        }
        Env::Test if !number.is_sandbox() && !verified_number::contains(db, row.tenant_id, number).await? => {
            return Err(Error::NumberNotVerified);
        }
        Env::Live | Env::Test => {}
    }
    outgoing::check(deps, row, deps.limits.sms_price(1)).await
}

/// Stores a message; its actor sees to the rest.
#[boxed]
pub async fn create(deps: &Deps, row: Model) -> Result<Model> {
    birth::create_or_find(deps, Birth::of(row, Vec::new())).await
}

/// Nothing was handed over, whatever has become of its intent.
pub fn undecided(deps: &Deps, key: TenantScoped<SmsId>) {
    outgoing::undecided::<Model>(deps, key);
}
