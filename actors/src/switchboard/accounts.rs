//! Accounts of trunks, read again when their rows have changed, and the addresses that a call is tried at.
//!
//! The trunk's actor knows where the peer is. If it has not looked yet, the call looks by itself.
use super::{account::Account, line::Target, phones::Switchboard};
use crate::{deps::Deps, trunk::board::Refused};
use adapters::trunk::{peering::Peering, ping::words, resolve::resolve};
use entities::{
    Error, Result, boxed,
    ids::{TenantId, TrunkId},
    sip_trunk::{self, Model},
    tenant,
    values::Country,
};
use rules::effect::DispatchHint;
use runtime::keyring::purpose;
use sip::digest::{Authorizer, Credentials, Verifier};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// Addresses of one trunk that a call is tried at.
const MOST_TARGETS: usize = 4;
/// In which a name is looked up.
const FOUND_WITHIN: Duration = Duration::from_secs(5);

/// As it is now.
#[boxed]
pub async fn account(deps: &Deps, switchboard: &Switchboard, tenant: TenantId, trunk: TrunkId) -> Result<Arc<Account>> {
    let row = sip_trunk::load(&deps.db.read, tenant, trunk).await?;
    if let Some(known) = switchboard.account(trunk, row.version) {
        return Ok(known);
    }
    let authorizer = authorizer(deps, switchboard, &row)?;
    let inbound = verifier(deps, switchboard, &row)?;
    let account = Arc::new(Account::new(row, authorizer, inbound));
    switchboard.keep_account(account.clone());
    Ok(account)
}

fn authorizer(deps: &Deps, switchboard: &Switchboard, row: &Model) -> Result<Option<Authorizer>> {
    let credentials = Peering::of(row).credentials(&deps.keyring)?;
    Ok(credentials.map(|credentials| Authorizer::new(credentials, switchboard.secret(), row.id.0.as_bytes())))
}

/// What its peer has to prove; `None`: its address is enough.
fn verifier(deps: &Deps, switchboard: &Switchboard, row: &Model) -> Result<Option<(Verifier, Credentials)>> {
    let definition = &row.definition;
    let (Some(auth), Some(sealed)) = (&definition.inbound_auth, &row.sealed_inbound_password) else {
        return Ok(None);
    };
    let credentials = Credentials {
        username: auth.username.to_string(),
        password: deps.keyring.open(purpose::TRUNK_INBOUND_PASSWORD, sealed)?.to_string(),
    };
    let realm = match &definition.from_domain {
        Some(domain) => domain.to_string(),
        None => definition.host.domain().to_string(),
    };
    Ok(Some((Verifier::new(switchboard.secret(), &realm), credentials)))
}

/// Where a call over the trunk is tried next: what its actor has found, or else what its host leads to. `None`: all were tried. Errors:
/// in words for users.
#[boxed]
pub async fn next_target(
    deps: &Deps,
    account: &Account,
    tried: &[SocketAddr],
) -> std::result::Result<Option<Target>, String> {
    let trunk = account.row.id;
    let next = || deps.trunks.next_target(trunk, tried, Instant::now());
    if let Some(target) = next() {
        return Ok((tried.len() < MOST_TARGETS).then_some(target));
    }
    if !tried.is_empty() {
        return Ok(None);
    }
    let definition = &account.row.definition;
    let hop = definition.outbound_proxy.as_ref().unwrap_or(&definition.host);
    let found = timeout(FOUND_WITHIN, resolve(&deps.outbound, hop, definition.transport)).await;
    let found = found.map_err(|_| "the trunk's host cannot be looked up: no name server answers in time".to_owned())?;
    let found = found.map_err(|failure| format!("the trunk's host cannot be reached: {}", words(&failure)))?;
    let peer = (definition.transport, hop.host().into(), found.addresses);
    deps.trunks.leads_to(trunk, Some(peer));
    Ok(next())
}

/// The peer's last word to an INVITE. The fifth in a row that wants other credentials closes the trunk to calls, until it is changed.
pub fn judged(deps: &Deps, account: &Account, is_unauthorized: bool, sip_code: u16, reason: &str) {
    if !account.was_unauthorized(is_unauthorized) {
        return;
    }
    let refused = Refused {
        sip_code,
        reason: reason.to_owned(),
    };
    if deps.trunks.refuse_calls(account.row.id, refused) {
        tracing::warn!(trunk = %account.row.id, sip_code, "a trunk's peer refuses its credentials: nothing more is dialled over it");
        deps.router
            .dispatcher(account.row.tenant_id, DispatchHint::CampaignsChanged);
    }
}

/// The workspace's country.
#[boxed]
pub async fn home(deps: &Deps, tenant: TenantId) -> Result<Country> {
    let row = tenant::load(&deps.db.read, tenant).await?;
    row.country.parse().map_err(|_| Error::Corrupt {
        table: "tenants",
        column: "country",
        id: tenant.to_string(),
    })
}
