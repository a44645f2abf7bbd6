//! Who calls: the number that the other side sees.
use entities::{
    Error, Result,
    ids::TenantId,
    number,
    values::{E164, Env},
};
use sea_orm::ConnectionTrait;

/// The caller id of a call: as it was asked for, else the workspace's default.
///
/// A live call shows a number of the workspace that has a trunk: the network lets nobody show another's. The sandbox shows
/// whatever is asked for. Errors: `from_number`, where there is none. Source: CONTRACT §10.
pub async fn of_call(db: &impl ConnectionTrait, owner: (TenantId, Env), asked: Option<E164>) -> Result<E164> {
    match asked {
        Some(number) if may_show(db, owner, &number).await? => Ok(number),
        Some(_) => Err(Error::invalid(
            "from_number",
            "is not a number of this workspace that has a trunk: see GET /v1/numbers",
        )),
        None => default_of(db, owner).await?.ok_or_else(|| {
            let why = "is needed: the workspace has no number with a trunk; add one with POST /v1/numbers";
            Error::invalid("from_number", why)
        }),
    }
}

/// Who calls where nobody says otherwise. `None`: nobody can call live.
pub async fn default_of(db: &impl ConnectionTrait, (tenant, env): (TenantId, Env)) -> Result<Option<E164>> {
    match env {
        Env::Live => number::default_on_trunk(db, tenant).await,
        Env::Test => {
            let own = number::default_of(db, tenant).await?;
            Ok(Some(own.unwrap_or_else(E164::sandbox_caller)))
        }
    }
}

pub async fn may_show(db: &impl ConnectionTrait, (tenant, env): (TenantId, Env), number: &E164) -> Result<bool> {
    match env {
        Env::Live => {
            let own = number::of_number(db, tenant, number).await?;
            Ok(own.is_some_and(|own| own.trunk_id.is_some()))
        }
        Env::Test => Ok(true),
    }
}
