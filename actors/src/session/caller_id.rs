//! Who calls: the number that the other side sees.
use entities::{
    Error, Result, boxed,
    connection::Connection,
    ids::{TenantId, TrunkId},
    number::{self, Usability},
    values::{E164, Env},
};

/// The caller id of a call: as it was asked for, else the workspace's default.
///
/// A live call shows a number that the workspace has claimed and that has a trunk: the network lets nobody show another's.
/// The sandbox shows whatever is asked for. Errors: `from_number`, where there is none. Source: CONTRACT §10.
#[boxed]
pub async fn of_call(db: &Connection, owner: (TenantId, Env), asked: Option<E164>) -> Result<E164> {
    match asked {
        Some(number) => check(db, owner, &number).await.map(|()| number),
        None => default_of(db, owner).await?.ok_or_else(|| {
            let why = "is needed: the workspace has no verified number with a trunk; add one with POST /v1/numbers";
            Error::invalid("from_number", why)
        }),
    }
}

/// Who calls where nobody says otherwise. `None`: nobody can call live.
#[boxed]
pub async fn default_of(db: &Connection, (tenant, env): (TenantId, Env)) -> Result<Option<E164>> {
    match env {
        Env::Live => number::default_on_trunk(db, tenant).await,
        Env::Test => {
            let own = number::default_of(db, tenant, env).await?;
            Ok(Some(own.unwrap_or_else(E164::sandbox_caller)))
        }
    }
}

/// What a live call goes over that shows this number. `None`: the number has no trunk any more; a call of the sandbox has none.
#[boxed]
pub async fn trunk_of(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<Option<TrunkId>> {
    if env == Env::Test {
        return Ok(None);
    }
    let found = number::trunks_of(db, tenant, std::slice::from_ref(number)).await?;
    Ok(found.into_iter().map(|(_, trunk)| trunk).next())
}

/// May the workspace's calls show it? Else why not, as an error of `from_number`.
#[boxed]
pub async fn check(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<()> {
    if env == Env::Test {
        return Ok(());
    }
    let usability = number::usability(db, (tenant, env), number).await?;
    if usability != Usability::Usable {
        return Err(Error::invalid("from_number", crate::sms::why_not(usability)));
    }
    let own = number::of_number(db, tenant, number).await?;
    if own.is_some_and(|own| own.trunk_id.is_some()) {
        Ok(())
    } else {
        let why = "has no trunk: give it one with PATCH /v1/numbers/{id}";
        Err(Error::invalid("from_number", why))
    }
}
