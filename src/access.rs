//! Who may come in: passwords, dashboard sessions, API keys, and how workspaces and users are made.
pub mod account;
mod audit;
pub mod members;
pub mod workspace;

pub use audit::Author;

use crate::state::State;
use actors::{
    deps::Deps,
    housekeeping::{LOGIN_ABSOLUTE, LOGIN_IDLE},
};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::{
    Error, Result, api_key,
    audit_log::Action,
    changes::Changes,
    db::Db,
    ids::{ApiKeyId, TenantId},
    login, membership, meta, tenant, user,
    values::{Country, Env, Moment, Role, Scopes, Text, Zone},
};
use rules::commit::Commit;
use runtime::keyring::sha256_hex;
use sea_orm::ConnectionTrait;
use serde_json::json;
use zeroize::Zeroizing;

/// 256 random bits, as text.
fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

// --- API keys ---

/// A new key: `vk_<env>_<256 random bits>`. The plaintext exists only in the answer to its creation.
pub fn new_key(
    deps_id: entities::ids::ApiKeyId,
    tenant: TenantId,
    asked: NewKey,
    now: Moment,
) -> (api_key::Model, Zeroizing<String>) {
    let plaintext = Zeroizing::new(format!("vk_{}_{}", asked.env, random_token()));
    let key = api_key::Model {
        id: deps_id,
        tenant_id: tenant,
        name: asked.name.into_string(),
        key_prefix: plaintext[..12].to_owned(),
        key_hash: sha256_hex(plaintext.as_bytes()),
        env: asked.env,
        scopes: asked.scopes,
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
    pub expires_at: Option<Moment>,
}

/// Notes what was done to a key; its text and its hash are kept out of it.
pub async fn note_key(db: &impl ConnectionTrait, by: &Author, action: Action, key: &api_key::Model) -> Result<()> {
    let details = [
        ("name", json!(key.name)),
        ("prefix", json!(key.key_prefix)),
        ("env", json!(key.env)),
        ("scopes", json!(key.scopes)),
        ("expires_at", json!(key.expires_at)),
    ];
    by.note(db, key.tenant_id, action, &key.id.to_string(), &details).await
}

/// Revokes a key: its next request is refused. A second time changes nothing and is not noted.
pub async fn revoke_key(db: &impl ConnectionTrait, by: &Author, tenant: TenantId, id: ApiKeyId) -> Result<()> {
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
pub async fn check_room_for_key(db: &impl ConnectionTrait, tenant: TenantId, now: Moment) -> Result<()> {
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

// --- Passwords ---

pub type Password = Zeroizing<String>;

pub fn check_password(password: &str) -> Result<()> {
    match password.chars().count() {
        0..12 => Err(Error::invalid("password", "must have at least 12 characters")),
        12..=200 => Ok(()),
        _ => Err(Error::invalid("password", "must have at most 200 characters")),
    }
}

/// Argon2id. Takes tens of milliseconds: not on an async thread.
pub fn hash_password(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| Error::Internal(format!("hashing a password failed: {error}")))
}

/// Takes as long for an unknown user (`None`) as for a known one.
pub fn password_matches(password: &str, stored: Option<&str>) -> bool {
    // The hash of a random password nobody has.
    const NOBODY: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$1nLYAqWYbS0yvn6QPQTkX6yxZ4l1lYV1kqXs0y0o4hY";
    let Ok(hash) = PasswordHash::new(stored.unwrap_or(NOBODY)) else {
        return false;
    };
    Argon2::default().verify_password(password.as_bytes(), &hash).is_ok() && stored.is_some()
}

pub fn parse_email(text: &str) -> Result<String> {
    let email = text.trim().to_lowercase();
    let well_formed = email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && domain.contains('.')
            && !domain.starts_with('.')
            && !domain.ends_with('.')
            && !domain.contains('@')
    });
    if well_formed && email.len() <= 254 && !email.contains(char::is_whitespace) {
        Ok(email)
    } else {
        Err(Error::invalid(
            "email",
            "is not an e-mail address; write name@example.com",
        ))
    }
}

// --- Workspaces ---

pub fn check_slug(slug: &str) -> Result<()> {
    let bytes = slug.as_bytes();
    let fits = (2..=40).contains(&slug.len())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    let edges = bytes.first().is_some_and(|byte| *byte != b'-') && bytes.last().is_some_and(|byte| *byte != b'-');
    if fits && edges {
        Ok(())
    } else {
        Err(Error::invalid(
            "slug",
            "must be 2 to 40 characters from a-z, 0-9 and -, and must not start or end with -",
        ))
    }
}

/// What a new workspace is made of; everything has been checked.
#[derive(Clone)]
pub struct NewWorkspace {
    pub slug: String,
    pub name: String,
    pub country: Country,
    pub timezone: Zone,
    pub email: String,
    pub password_hash: String,
}

/// Where most people of a country are that has several zones.
const MAIN_ZONES: [(&str, &str); 9] = [
    ("US", "America/New_York"),
    ("CA", "America/Toronto"),
    ("MX", "America/Mexico_City"),
    ("BR", "America/Sao_Paulo"),
    ("GB", "Europe/London"),
    ("ES", "Europe/Madrid"),
    ("PT", "Europe/Lisbon"),
    ("RU", "Europe/Moscow"),
    ("AU", "Australia/Sydney"),
];

/// The zone of a country, as far as it can be told.
pub fn zone_of(country: Country) -> Zone {
    let main = MAIN_ZONES.iter().find(|(name, _)| *name == country.to_string());
    let by_prefix = || {
        rules::zone::of_prefix(&country.calling_code()?)
            .first()
            .copied()
            .map(Zone::from)
    };
    main.and_then(|(_, zone)| zone.parse().ok())
        .or_else(by_prefix)
        .unwrap_or(Zone::NEW_YORK)
}

impl NewWorkspace {
    pub fn parse(slug: &str, name: &str, country: &str, email: &str, password: &str) -> Result<Self> {
        check_slug(slug)?;
        check_password(password)?;
        let name = Text::<1, 100>::parse(name)
            .map_err(|why| Error::invalid("name", why))?
            .into_string();
        let country: Country = country.parse().map_err(|why: String| Error::invalid("country", why))?;
        Ok(NewWorkspace {
            timezone: zone_of(country),
            slug: slug.to_owned(),
            name,
            country,
            email: parse_email(email)?,
            password_hash: hash_password(password)?,
        })
    }

    /// The rows to write, for one who signs up: not for somebody who is a user already.
    pub async fn rows_for_a_new_user(
        &self,
        db: &impl ConnectionTrait,
        ids: &runtime::ids::Ids,
        now: Moment,
        limit: i32,
    ) -> Result<(tenant::Model, user::Model, Changes)> {
        if user::by_email(db, &self.email).await?.is_some() {
            return Err(Error::AlreadyExists { field: "email" });
        }
        self.rows(db, ids, now, limit).await
    }

    /// The rows to write, for the operator. An owner who is a user already keeps the password that is known.
    pub async fn rows(
        &self,
        db: &impl ConnectionTrait,
        ids: &runtime::ids::Ids,
        now: Moment,
        limit: i32,
    ) -> Result<(tenant::Model, user::Model, Changes)> {
        if tenant::slug_is_taken(db, &self.slug).await? {
            return Err(Error::AlreadyExists { field: "slug" });
        }
        let mut changes = Changes::default();
        let tenant = tenant::Model {
            voice_clones: true,
            id: ids.next(),
            slug: self.slug.clone(),
            name: self.name.clone(),
            country: self.country.to_string(),
            timezone: self.timezone,
            concurrency_limit: limit,
            inbound_reserve: 0,
            version: 1,
            created_at: now,
        };
        changes.tenants.push(tenant.clone());
        let owner = match user::by_email(db, &self.email).await? {
            Some(user) => user,
            None => {
                let user = user::Model {
                    id: ids.next(),
                    email: self.email.clone(),
                    password_hash: self.password_hash.clone(),
                    created_at: now,
                };
                changes.users.push(user.clone());
                user
            }
        };
        changes.memberships.push(membership::Model {
            user_id: owner.id,
            tenant_id: tenant.id,
            role: Role::Owner,
        });
        Ok((tenant, owner, changes))
    }
}

/// Calls at once of a new workspace, if the operator allows as many.
pub const DEFAULT_CONCURRENCY: i32 = 20;

// --- Dashboard sessions ---

/// A password that was given within this time opens what asks for it again. Source: PROMISES, "Hostile hands" 7.
pub const FRESH: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Was the session's password given a moment ago? Not if that lies ahead: then a clock was wrong.
pub fn is_fresh(login: &login::Model, now: Moment) -> bool {
    login.authenticated_at <= now && now.since(login.authenticated_at) < FRESH
}

/// Signs a user in whose password was found right; answers the cookie's token, of which only the hash is kept. `None`: the
/// password was changed since it was looked at.
pub async fn sign_in(deps: &Deps, user: &user::Model) -> Result<Option<String>> {
    let token = random_token();
    let now = deps.clock.now();
    let row = login::Model {
        token_hash: sha256_hex(token.as_bytes()),
        user_id: user.id,
        created_at: now,
        last_seen_at: now,
        authenticated_at: now,
    };
    let password_hash = user.password_hash.clone();
    let begun = deps.writer.run(move |db| {
        let (row, password_hash) = (row.clone(), password_hash.clone());
        Box::pin(async move {
            // Else a password that was just replaced would leave a session behind.
            let still = user::still_has(db, row.user_id, &password_hash).await?;
            if still {
                entities::bulk::save(db, &[row], entities::bulk::OnConflict::Fail).await?;
            }
            Ok((still, Commit::default()))
        })
    });
    Ok(begun.await?.then_some(token))
}

/// The user behind a cookie, unless the session has ended by time.
pub async fn signed_in(state: &State, token: &str) -> Result<Option<(user::Model, login::Model)>> {
    let hash = sha256_hex(token.as_bytes());
    let Some((login, user)) = login::find(&state.deps.db.read, &hash).await? else {
        return Ok(None);
    };
    let times = state.deps.clock.times();
    let (now, later) = (times.ours, times.later());
    if later.since(login.created_at) >= LOGIN_ABSOLUTE || later.since(login.last_seen_at) >= LOGIN_IDLE {
        return Ok(None);
    }
    if now.since(login.last_seen_at) >= std::time::Duration::from_secs(60) {
        let seen = hash.clone();
        state
            .deps
            .writer
            .run(move |db| {
                let seen = seen.clone();
                Box::pin(async move {
                    login::touch(db, &seen, now).await?;
                    Ok(((), Commit::default()))
                })
            })
            .await?;
    }
    Ok(Some((user, login)))
}

pub async fn sign_out(deps: &Deps, login_hash: String) -> Result<()> {
    deps.writer
        .run(move |db| {
            let hash = login_hash.clone();
            Box::pin(async move {
                login::remove(db, &hash).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

// --- First run ---

/// While there is no user: a new one-time token for the set-up link. Older ones are void.
pub async fn set_up_token(db: &Db) -> Result<Option<String>> {
    if user::exist(&db.read).await? {
        return Ok(None);
    }
    let token = random_token();
    let transaction = db.begin().await?;
    meta::set(&transaction, meta::SETUP_TOKEN, &sha256_hex(token.as_bytes())).await?;
    transaction.commit().await?;
    Ok(Some(token))
}
