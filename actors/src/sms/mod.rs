//! SMS: what goes out, what comes in. One message is a row with a state machine; a provider hands it over.
pub mod actor;
pub mod inbound;
mod send;

use rules::sms::{machine, segments};
pub use send::{send, send_begun, send_now, undecided};

use crate::{credits, deps::Deps};
use entities::{
    Error, Result,
    changes::Reachable,
    dispatch_block::{self, Reason},
    dnc::{self, DncChannel},
    ids::{CampaignId, ContactId, Owned, SmsId, TenantId},
    number::{self, Standing},
    sms_message::{self, Direction, Model, Phase},
    values::{Cents, E164, Env, Metadata, Moment},
    verified_number,
};
use rules::commit::Commit;

/// Messages that are not sent yet, of one tenant in one env.
pub const MAX_OPEN: u64 = 10_000;
/// A message can be scheduled so far ahead.
pub const FURTHEST_SECONDS: i64 = 35 * 24 * 3600;

/// A message that is asked for.
#[derive(Clone, Debug)]
pub struct New {
    pub id: SmsId,
    pub to_number: E164,
    /// Else the workspace's oldest number (in live: that it has claimed), else the provider's default.
    pub from_number: Option<E164>,
    /// At most 1,600 characters.
    pub body: String,
    pub scheduled_at: Option<Moment>,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub campaign: Option<(CampaignId, ContactId)>,
}

/// Who writes: one of the workspace's numbers, in live one that it has claimed, or the provider's default. `None`: the provider chooses.
pub async fn from_number(deps: &Deps, (tenant, env): (TenantId, Env), asked: Option<E164>) -> Result<Option<E164>> {
    let db = &deps.db.read;
    let default = deps.sms.provider(env)?.default_from();
    match asked {
        Some(number) if Some(&number) == default => Ok(Some(number)),
        Some(number) => match number::standing(db, (tenant, env), &number).await? {
            Standing::Usable => Ok(Some(number)),
            unusable => Err(Error::invalid("from_number", why_not(unusable))),
        },
        None => Ok(number::default_of(db, tenant, env).await?.or_else(|| default.cloned())),
    }
}

/// Why a number is no sender, for the end of a sentence.
pub fn why_not(standing: Standing) -> &'static str {
    match standing {
        Standing::Foreign => "is not a number of the workspace: see GET /v1/numbers",
        Standing::Unverified => {
            "is not verified for live use: POST it to /v1/verified_numbers with a live key and confirm the code, or ask the operator"
        }
        Standing::Usable => "can be used",
    }
}

/// The row of a new message.
pub fn row(deps: &Deps, (tenant_id, env): (TenantId, Env), new: New, now: Moment) -> Model {
    let (encoding, segments) = segments::of(&new.body);
    let scheduled_at = new.scheduled_at.filter(|at| *at > now);
    let (campaign_id, contact_id) = new.campaign.unzip();
    Model {
        id: new.id,
        tenant_id,
        env,
        phase: if scheduled_at.is_some() {
            Phase::Scheduled
        } else {
            Phase::Queued
        },
        direction: Direction::Outbound,
        to_number: new.to_number,
        from_number: new.from_number,
        body: new.body,
        encoding,
        segments,
        delivered_at: None,
        campaign_id,
        contact_id,
        client_reference_id: new.client_reference_id,
        metadata: new.metadata,
        scheduled_at: new.scheduled_at,
        send_by: None,
        wake_at: Some(scheduled_at.unwrap_or(now)),
        attempts: 0,
        price_cents: Cents(i64::from(deps.limits.sms_price_cents_per_segment) * i64::from(segments)),
        held_cents: Cents(0),
        cost_cents: Cents(0),
        settled: false,
        error_code: None,
        error_message: None,
        provider_message_id: None,
        version: 1,
        created_at: now,
        sent_at: None,
        ended_at: None,
    }
}

/// Can messages of that env be sent at all?
pub fn check_configured(deps: &Deps, env: Env) -> Result<()> {
    deps.sms.provider(env).map(drop)
}

/// May it be written, as far as is known now? The list and the blocks are looked at once more when it is sent.
pub async fn check(deps: &Deps, row: &Model) -> Result<()> {
    let (db, owner) = (&deps.db.read, (row.tenant_id, row.env));
    deps.sms.provider(row.env)?;
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
    check_blocks(deps, owner).await?;
    let barred = dnc::barred(db, owner, DncChannel::Sms, std::slice::from_ref(number)).await?;
    if !barred.is_empty() {
        return Err(Error::RecipientOnDnc);
    }
    if credits::cover(deps, owner, row.price_cents).await? {
        Ok(())
    } else {
        credits::refuse(deps, owner, Cents(deps.limits.sms_price_cents_per_segment.into())).await
    }
}

/// Does nothing keep the workspace from writing?
pub async fn check_blocks(deps: &Deps, (tenant, env): (TenantId, Env)) -> Result<()> {
    let blocks = dispatch_block::of(&deps.db.read, tenant).await?;
    match blocks.iter().find(|block| block.env == env).map(|block| block.reason) {
        Some(Reason::Credits) => Err(Error::InsufficientCredits),
        Some(Reason::Suspension) => Err(Error::PlanLimit("the workspace is suspended: ask the operator".into())),
        None => Ok(()),
    }
}

/// Stores a message; its actor sees to the rest.
pub async fn create(deps: &Deps, row: Model) -> Result<Model> {
    let key = row.key();
    let mut commit = Commit::default();
    commit.changes.sms_messages.push(row.clone());
    let row = match deps.writer.commit(commit).await {
        Ok(()) => row,
        // A repeat of a request that a crash cut off after its commit.
        Err(Error::Stale) => sms_message::load(&deps.db.read, key).await?,
        Err(error) => return Err(error),
    };
    wake(deps, key);
    Ok(row)
}

/// A message has been committed: its actor looks at it. A hint; the reconcile finds it as well.
pub fn wake(deps: &Deps, key: Owned<SmsId>) {
    tell(deps, key, machine::Command::Tick);
}

pub fn tell(deps: &Deps, key: Owned<SmsId>, command: machine::Command) {
    deps.router.sms().tell(key, command);
}

/// The condition under which something is written to that number.
pub fn reachable((tenant_id, env): (TenantId, Env), number: &E164) -> Reachable {
    Reachable {
        tenant_id,
        env,
        channel: DncChannel::Sms,
        address: number.as_str().to_owned(),
    }
}
