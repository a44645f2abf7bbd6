//! Whether a workspace may call a number live: asked when a call is made, when it is dialled, before it is handed over, and when a
//! trunk is tried.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    connection::Connection,
    dispatch_block::{self, Reason},
    dispatch_pause,
    dnc::{self, DncChannel},
    ids::TenantId,
    number,
    sip_trunk::Model as Trunk,
    tenant,
    values::{E164, Env},
};
use rules::{limits::Limits, reach::Reach};

#[boxed]
pub async fn of(deps: &Deps, tenant: TenantId) -> Result<Reach> {
    Reach::of(&tenant::load(&deps.db.read, tenant).await?, &deps.limits)
}

/// May a second leg be placed to that number? For a live call that is to be handed over, with what may have changed since it was
/// made: a suspension, the countries, the operator's rule. Errors: why not.
#[boxed]
pub async fn is_callable(deps: &Deps, tenant: TenantId, number: &E164) -> Result<()> {
    check(&deps.db.read, &deps.limits, tenant, ("to_number", number)).await
}

async fn check(
    db: &Connection,
    limits: &Limits,
    tenant: TenantId,
    (field, number): (&'static str, &E164),
) -> Result<()> {
    if let Some(kind) = number.costly_kind().filter(|_| !limits.allow_costly_numbers) {
        return Err(Error::invalid(
            field,
            format!("is {kind}: the operator does not allow calls to it"),
        ));
    }
    let reach = Reach::of(&tenant::load(db, tenant).await?, limits)?;
    reach.check(number).map_err(|beyond| beyond.of_field(field))?;
    let blocks = dispatch_block::of(db, tenant).await?;
    let suspended = |block: &dispatch_block::Model| block.env == Env::Live && block.reason == Reason::Suspension;
    if blocks.iter().any(suspended) {
        return Err(Error::PlanLimit("the workspace is suspended: ask the operator".into()));
    }
    Ok(())
}

/// May one call be placed over that trunk to try it, which no session is for? Answers the number that it shows: `from`, or the first
/// of the trunk's. Hours and caps are not asked: whoever tries a trunk calls a phone of his own. Errors name the options of
/// `callboard sip check`.
#[boxed]
pub async fn check_trial(
    db: &Connection,
    limits: &Limits,
    trunk: &Trunk,
    from: Option<E164>,
    to: &E164,
) -> Result<E164> {
    let tenant = trunk.tenant_id;
    if trunk.definition.paused {
        return Err(Error::invalid("--trunk", "is paused: set `paused` to false first"));
    }
    if dispatch_pause::lasts(db).await? {
        return Err(Error::Held(
            "dispatch is paused, so nothing is dialled: `callboard dispatch resume` ends that",
        ));
    }
    if to.is_sandbox() {
        return Err(Error::invalid(
            "--call",
            "is a sandbox number, where no phone rings: name a phone of yours",
        ));
    }
    check(db, limits, tenant, ("--call", to)).await?;
    let entry = dnc::of_number(db, (tenant, Env::Live), to).await?;
    if entry.is_some_and(|entry| entry.channels.contain(DncChannel::Phone)) {
        return Err(Error::RecipientOnDnc);
    }
    let named = number::of_trunk(db, tenant, trunk.id).await?;
    let claimed = number::trunks_of(db, tenant, &named).await?.into_iter();
    let on_it = claimed.filter(|(_, on)| *on == trunk.id);
    let mut own: Vec<E164> = on_it.map(|(number, _)| number).collect();
    own.sort();
    match from {
        Some(number) if own.contains(&number) => Ok(number),
        Some(_) => Err(Error::invalid(
            "--from",
            "is not a claimed number of the workspace that uses this trunk",
        )),
        None => own.into_iter().next().ok_or_else(|| {
            let why = "the trunk has no claimed number to call from: claim one with `callboard workspace claim-number`, and give \
                       it the trunk with PATCH /v1/numbers/{id}";
            Error::invalid("--from", why)
        }),
    }
}
