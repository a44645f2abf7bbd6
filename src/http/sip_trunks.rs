//! SIP trunks: a workspace's ways to the telephone network. Shared by its two envs.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Params},
    views::{List, TrunkView},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use entities::{
    Error,
    checks::Checks,
    error::Fault,
    ids::{TenantId, TrunkId},
    number, session,
    sip_trunk::{self as store, Definition, Model, Srtp, Status, Transport},
};
use rules::{commit::Commit, effect::Hint};
use runtime::keyring::purpose;

/// As it is shown, with the calls that are on it.
async fn view(state: &State, row: Model) -> ApiResult<TrunkView> {
    let in_use = session::in_use_by_trunk(&state.deps.db.read, row.tenant_id).await?;
    Ok(TrunkView::of(&state.deps, row, &in_use))
}

/// Trunks of a workspace.
const MAX_TRUNKS: u64 = 100;

/// POST /v1/sip_trunks
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Definition>) -> ApiResult<HttpResponse> {
    let db = &state.deps.db.read;
    // A repeat of a request whose answer was lost.
    if let Some(id) = caller.object_id
        && let Ok(row) = store::load(db, caller.tenant_id(), id.into()).await
    {
        return Ok(HttpResponse::Created().json(view(&state, row).await?));
    }
    let mut definition = asked;
    let passwords = Passwords::take(&state, &mut definition, Passwords::default())?;
    check(&state, &definition, &passwords)?;
    if store::count(db, caller.tenant_id()).await? >= MAX_TRUNKS {
        let why = format!("a workspace has at most {MAX_TRUNKS} SIP trunks; delete some");
        return Err(Error::PlanLimit(why).into());
    }
    let now = state.deps.clock.now();
    let row = Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        definition,
        sealed_password: passwords.own,
        sealed_inbound_password: passwords.inbound,
        status: Status::Untested,
        tested_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    save(&state, row.clone()).await?;
    Ok(HttpResponse::Created().json(view(&state, row).await?))
}

/// GET /v1/sip_trunks
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<TrunkView>>> {
    let page = params.page()?;
    params.finish()?;
    let db = &state.deps.db.read;
    let listed = store::list(db, caller.tenant_id(), page).await?;
    let in_use = session::in_use_by_trunk(db, caller.tenant_id()).await?;
    Ok(web::Json(List::of(
        listed,
        |row| row.id.0,
        |row| TrunkView::of(&state.deps, row, &in_use),
    )))
}

/// GET /v1/sip_trunks/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<TrunkId>) -> ApiResult<web::Json<TrunkView>> {
    let row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    Ok(web::Json(view(&state, row).await?))
}

/// PATCH /v1/sip_trunks/{id}: a JSON merge patch. Passwords that are not named stay; null removes them. A pause, and whatever else
/// is changed, holds from the next dial on.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<TrunkId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<TrunkView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let kept = Passwords {
        own: before
            .sealed_password
            .clone()
            .filter(|_| patch.get("password").is_none()),
        inbound: before
            .sealed_inbound_password
            .clone()
            .filter(|_| patch.pointer("/inbound_auth/password").is_none()),
    };
    let settings = serde_json::to_value(&before.definition).map_err(|error| Error::Internal(error.to_string()))?;
    let mut definition: Definition = extract::merged(settings, patch)?;
    let passwords = Passwords::take(&state, &mut definition, kept)?;
    check(&state, &definition, &passwords)?;
    let peer = |of: &Definition| (of.host.clone(), of.outbound_proxy.clone(), of.transport);
    let same_peer = peer(&definition) == peer(&before.definition);
    let after = Model {
        status: if same_peer { before.status } else { Status::Untested },
        tested_at: before.tested_at.filter(|_| same_peer),
        definition,
        sealed_password: passwords.own,
        sealed_inbound_password: passwords.inbound,
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    save(&state, after.clone()).await?;
    Ok(web::Json(view(&state, after).await?))
}

/// DELETE /v1/sip_trunks/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<TrunkId>) -> ApiResult<HttpResponse> {
    let (tenant, now) = (caller.tenant_id(), state.deps.clock.now());
    // In the writer's own transaction: no number takes it up meanwhile.
    let deleting = state.deps.writer.run(tenant, move |db| {
        Box::pin(async move {
            let before = store::load(db, tenant, id).await?;
            let users = number::of_trunk(db, tenant, id).await?;
            if !users.is_empty() {
                return Err(in_use(&users));
            }
            let after = Model {
                sealed_password: None,
                sealed_inbound_password: None,
                version: before.version + 1,
                updated_at: now,
                deleted_at: Some(now),
                ..before
            };
            store::save(db, &after).await?;
            Ok(((), Commit::default()))
        })
    });
    deleting.await?;
    state.deps.trunks.forget(id);
    hint(&state, tenant, id);
    Ok(HttpResponse::NoContent().finish())
}

/// Both, sealed.
#[derive(Default)]
struct Passwords {
    own: Option<String>,
    inbound: Option<String>,
}

impl Passwords {
    /// Takes them out of what was asked for. `kept`: what a patch leaves as it is.
    fn take(state: &State, definition: &mut Definition, kept: Passwords) -> ApiResult<Self> {
        let (own, inbound) = definition.take_passwords();
        for (param, password) in [("password", &own), ("inbound_auth.password", &inbound)] {
            if password.as_ref().is_some_and(|password| has_controls(password)) {
                return Err(ApiError::validation(param, NO_CONTROLS));
            }
        }
        let keyring = &state.deps.keyring;
        let own = own.map(|password| keyring.seal(purpose::TRUNK_PASSWORD, &password));
        let inbound = inbound.map(|password| keyring.seal(purpose::TRUNK_INBOUND_PASSWORD, &password));
        Ok(Passwords {
            own: own.or(kept.own),
            // Without a name there is nothing to prove.
            inbound: inbound.or(kept.inbound).filter(|_| definition.inbound_auth.is_some()),
        })
    }
}

fn has_controls(text: &str) -> bool {
    text.chars().any(char::is_control)
}

const NO_CONTROLS: &str = "must not contain control characters";

/// What no field says of itself.
fn check(state: &State, definition: &Definition, passwords: &Passwords) -> Result<(), Error> {
    let inbound = definition.inbound_auth.as_ref().map(|auth| &auth.username);
    let mut checks = Checks::default();
    // They travel in headers.
    for (param, value) in [
        ("username", definition.username.as_ref()),
        ("auth_username", definition.auth_username.as_ref()),
        ("inbound_auth.username", inbound),
    ] {
        if value.is_some_and(|value| has_controls(value)) {
            checks.refuse(param, NO_CONTROLS);
        }
    }
    // It is the user of an address. Source: RFC 3261, section 25.1, less what has a meaning of its own in a header.
    let is_user = |char: char| char.is_ascii_alphanumeric() || "-_.+~".contains(char);
    if let Some(user) = &definition.register.contact_user
        && !user.chars().all(is_user)
    {
        let why = "must be letters, digits, -, _, ., + and ~ only";
        checks.refuse("register.contact_user", why);
    }
    check_login(definition, passwords, &mut checks);
    if definition.srtp == Srtp::Required && definition.transport != Transport::Tls && !state.settings.dev {
        let why = "needs `transport: tls`: over another one everybody on the way reads the keys";
        checks.refuse("srtp", why);
    }
    for (param, host) in [
        ("host", Some(&definition.host)),
        ("outbound_proxy", definition.outbound_proxy.as_ref()),
    ] {
        let Some(host) = host else { continue };
        let reach = state.deps.outbound.check_host(&host.host(), definition.port_of(host));
        checks.add(reach.map_err(|blocked| Error::invalid(param, blocked.0)));
    }
    checks.end()
}

/// Do names and passwords go together?
fn check_login(definition: &Definition, passwords: &Passwords, checks: &mut Checks) {
    if passwords.own.is_some() && definition.username.is_none() {
        let why = "is needed with a password; remove the password with null, or give both";
        checks.refuse("username", why);
    } else if definition.register.enabled && definition.username.is_none() {
        checks.refuse("username", "is needed to register");
    }
    if definition.auth_username.is_some() && passwords.own.is_none() {
        checks.refuse("auth_username", "is used with a `password` only: give both");
    }
    if definition.inbound_auth.is_some() && passwords.inbound.is_none() {
        checks.add(Err(Error::Faults(vec![Fault::missing("inbound_auth.password")])));
    }
}

/// The first of the numbers that use a trunk, and how many more.
fn in_use(numbers: &[entities::values::E164]) -> Error {
    const NAMED: usize = 10;
    let named: Vec<_> = numbers.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match numbers.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Error::InUse(format!(
        "numbers use this trunk: {}{more}; set their `trunk_id` to another first",
        named.join(", ")
    ))
}

async fn save(state: &State, row: Model) -> Result<(), Error> {
    let (tenant, id) = (row.tenant_id, row.id);
    let saving = state.deps.writer.run(tenant, move |db| {
        let row = row.clone();
        Box::pin(async move {
            store::save(db, &row).await?;
            Ok(((), Commit::default()))
        })
    });
    saving.await?;
    hint(state, tenant, id);
    Ok(())
}

/// Whoever dials over it or speaks with its peer looks at it again at once; a hint that is lost is made up for by the next dial's own
/// look, and by the next reconcile.
fn hint(state: &State, tenant: TenantId, id: TrunkId) {
    state.deps.router.trunk(tenant, id);
    state.deps.router.perform(vec![Hint::CampaignsChanged(tenant).into()]);
}
