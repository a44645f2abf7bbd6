//! `callboard workspace claim-number` and `release-number`: whose a number is for live use, by the operator's word. Beside a
//! running `serve`, which asks for the claim at each use.
use crate::{error::CannotStart, settings::Settings};
use actors::verify::claim::{self, Claimed};
use entities::{
    Error,
    db::Db,
    mail,
    number_claim::{self, Source},
    tenant,
    values::{Country, E164, Moment},
};
use runtime::ids::Ids;
use serde::Serialize;

/// A number as the operator types it; without `+` it is read in the workspace's country.
pub fn parse(tenant: &tenant::Model, number: &str) -> Result<E164, CannotStart> {
    let country: Result<Country, String> = tenant.country.parse();
    let country = country.map_err(|why| Error::invalid("country", why))?;
    let number = E164::parse(number, country).map_err(|why| Error::invalid("number", why))?;
    Ok(number)
}

/// What all workspaces share is nobody's.
pub fn check_claimable(settings: &Settings, number: &E164) -> Result<(), CannotStart> {
    if number.is_sandbox() {
        return Err(Error::invalid("number", "is a sandbox number, which cannot be used live").into());
    }
    if settings.sms_from.trim() == number.as_str() {
        let why = "is `sms_from`, the number that sends for all workspaces without one";
        return Err(Error::invalid("number", why).into());
    }
    Ok(())
}

/// What became of a claim.
#[derive(Serialize)]
pub struct ClaimView {
    phone_number: E164,
    workspace: String,
    /// The workspace that had it, if another did.
    taken_from: Option<String>,
}

impl ClaimView {
    pub fn sentence(&self) -> String {
        let ClaimView {
            phone_number,
            workspace,
            taken_from,
        } = self;
        match taken_from {
            Some(loser) => {
                format!("{phone_number} now belongs to {workspace} for live use; {loser} had it and is told by e-mail")
            }
            None => format!("{phone_number} belongs to {workspace} for live use"),
        }
    }
}

pub async fn claim(
    db: &Db,
    ids: &Ids,
    tenant: &tenant::Model,
    number: E164,
    now: Moment,
) -> Result<ClaimView, CannotStart> {
    let asked = number_claim::Model {
        phone_number: number.clone(),
        tenant_id: tenant.id,
        source: Source::Operator,
        claimed_at: now,
    };
    let transaction = db.begin().await.map_err(Error::from)?;
    let (claimed, mails) = claim::claim(&transaction, ids, asked).await?;
    mail::save(&transaction, &mails).await?;
    let taken_from = match claimed {
        Claimed::Taken { from: Some(loser) } => Some(tenant::load(&transaction, loser).await?),
        Claimed::Taken { from: None } | Claimed::Unchanged => None,
    };
    transaction.commit().await.map_err(Error::from)?;
    Ok(ClaimView {
        phone_number: number,
        workspace: tenant.slug.clone(),
        taken_from: taken_from.map(|loser| loser.slug),
    })
}

/// Answers whether the workspace had it.
pub async fn release(db: &Db, tenant: &tenant::Model, number: &E164) -> Result<bool, CannotStart> {
    let transaction = db.begin().await.map_err(Error::from)?;
    let released = number_claim::release(&transaction, tenant.id, number).await?;
    transaction.commit().await.map_err(Error::from)?;
    Ok(released)
}
