//! API keys: how one is made, noted and revoked, and how many there may be.
use super::{Author, random_token};
use entities::{
    Error, Result, api_key,
    audit_log::Action,
    connection::Connection,
    ids::{ApiKeyId, TenantId},
    values::{Bounded, Env, Moment, Scopes, Text},
};
use runtime::keyring::sha256_hex;
use serde_json::json;
use zeroize::Zeroizing;

/// A new key: `vk_<env>_<256 random bits>`. The plaintext exists only in the answer to its creation.
pub fn new_key(deps_id: ApiKeyId, tenant: TenantId, asked: NewKey, now: Moment) -> (api_key::Model, Zeroizing<String>) {
    let plaintext = Zeroizing::new(format!("vk_{}_{}", asked.env, random_token()));
    let key = api_key::Model {
        id: deps_id,
        tenant_id: tenant,
        name: asked.name.into_string(),
        key_prefix: plaintext[..12].to_owned(),
        key_hash: sha256_hex(plaintext.as_bytes()),
        env: asked.env,
        scopes: asked.scopes,
        max_spend_cents_per_day: asked.limits.max_spend_cents_per_day.map(Bounded::get),
        max_calls_per_minute: asked.limits.max_calls_per_minute.map(Bounded::get),
        expires_at: asked.expires_at,
        created_at: now,
        last_used_at: None,
        revoked_at: None,
    };
    (key, plaintext)
}

pub struct NewKey {
    pub name: Text<1, 100>,
    pub env: Env,
    pub scopes: Scopes,
    pub limits: CallLimits,
    pub expires_at: Option<Moment>,
}

/// What bounds the calls that are asked for with a key; none: nothing does.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallLimits {
    pub max_spend_cents_per_day: Option<Bounded<0, 2_000_000_000>>,
    pub max_calls_per_minute: Option<Bounded<1, 60_000>>,
}

/// Notes what was done to a key; its text and its hash are kept out of it.
pub async fn note_key(db: &Connection, by: &Author, action: Action, key: &api_key::Model) -> Result<()> {
    let details = [
        ("name", json!(key.name)),
        ("prefix", json!(key.key_prefix)),
        ("env", json!(key.env)),
        ("scopes", json!(key.scopes)),
        ("max_spend_cents_per_day", json!(key.max_spend_cents_per_day)),
        ("max_calls_per_minute", json!(key.max_calls_per_minute)),
        ("expires_at", json!(key.expires_at)),
    ];
    by.note(db, key.tenant_id, action, &key.id.to_string(), &details).await
}

/// Revokes a key: its next request is refused. A second time changes nothing and is not noted.
pub async fn revoke_key(db: &Connection, by: &Author, tenant: TenantId, id: ApiKeyId) -> Result<()> {
    let key = api_key::load(db, tenant, id).await?;
    if api_key::revoke(db, tenant, id, by.now()).await? {
        note_key(db, by, Action::KeyRevoked, &key).await?;
    }
    Ok(())
}

/// Neither revoked nor expired.
pub fn is_valid(key: &api_key::Model, now: Moment) -> bool {
    key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now)
}

/// Keys of a workspace that are neither revoked nor expired.
pub const MAX_KEYS: u64 = 100;

/// May the workspace have one more key? Asked inside the transaction that makes it.
pub async fn check_room_for_key(db: &Connection, tenant: TenantId, now: Moment) -> Result<()> {
    if api_key::count_active(db, tenant, now).await? >= MAX_KEYS {
        let why = format!("a workspace can have at most {MAX_KEYS} valid keys; revoke some that are not in use");
        return Err(Error::PlanLimit(why));
    }
    Ok(())
}

/// Spares the database a look-up of what cannot be a key.
pub fn looks_like_a_key(text: &str) -> bool {
    let random = text.strip_prefix("vk_live_").or_else(|| text.strip_prefix("vk_test_"));
    random.is_some_and(|random| random.len() == 43)
}
