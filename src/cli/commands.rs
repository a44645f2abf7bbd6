//! The operator's commands. They work on the database itself, beside a running `serve`.
use crate::{
    access::{self, Author, NewKey},
    error::CannotStart,
    http::{openapi as document, views::ApiKeyView},
    settings::{DEFAULTS, Settings},
};
use actors::{recording::studio, voice_clone::samples};
use adapters::recording::vault::Vault;
use clap::Subcommand;
use entities::{
    Error, api_key,
    audit_log::Action,
    changes::Changes,
    db::Db,
    function,
    page::Page,
    recording, sip_trunk, tenant,
    values::{Env, Moment, Scopes, Text},
    verified_number,
    voice::sample,
    webhook_endpoint,
};
use migration::MigratorTrait;
use runtime::{
    clock::Clock,
    ids::Ids,
    keyring::{Keyring, purpose},
    link_keys,
};
use sea_orm::DatabaseTransaction;
use serde_json::json;
use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};
use zeroize::Zeroizing;

#[derive(Subcommand)]
pub enum Keys {
    /// Create a key and print the API's answer; its plaintext is shown only once
    Create {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        env: Env,
        #[arg(long)]
        name: String,
        /// Separated by commas; default: all
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// ISO 8601; default: never
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List a workspace's keys
    List {
        #[arg(long)]
        workspace: String,
    },
    /// Revoke a key: its next request is refused
    Revoke {
        #[arg(long)]
        workspace: String,
        id: entities::ids::ApiKeyId,
    },
}

#[derive(Subcommand)]
pub enum Secrets {
    /// Seal everything that a previous key sealed with the current key. Run it while `serve` is stopped.
    Rotate,
    /// Print a new random secret key
    Generate,
}

impl From<Error> for CannotStart {
    fn from(error: Error) -> Self {
        CannotStart(match error {
            Error::NotFound(kind) => format!("no such {kind}"),
            other => other.to_string(),
        })
    }
}

/// The database, migrated, for a command.
pub(super) async fn open(config: Option<PathBuf>) -> Result<(Settings, Db, Clock, Ids), CannotStart> {
    let settings = Settings::load(config, &[])?;
    let location = settings.location()?;
    let cannot = |what: &str, error: sea_orm::DbErr| {
        CannotStart(format!("database_url: cannot {what} {}: {error}", location.shown()))
    };
    let db = Db::open(&location).await.map_err(|error| cannot("open", error))?;
    migration::Migrator::up(&db.write, None)
        .await
        .map_err(|error| cannot("migrate", error))?;
    let clock = Clock::wall();
    Ok((settings, db, clock.clone(), Ids::new(clock)))
}

pub(super) async fn write(db: &Db, changes: Changes) -> Result<(), Error> {
    let transaction = db.begin().await?;
    changes.apply(&transaction, Clock::wall().times()).await?;
    Ok(transaction.commit().await?)
}

pub(super) fn print(value: &impl serde::Serialize) {
    // Views are plain structs: they always serialise.
    println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}

pub(super) fn password_from_stdin() -> Result<Zeroizing<String>, CannotStart> {
    if std::io::stdin().is_terminal() {
        eprint!("Password (at least 12 characters; it is shown as you type, better pipe it): ");
    }
    let mut password = Zeroizing::new(String::new());
    // The first line: what a person types or a script pipes.
    std::io::stdin()
        .take(4096)
        .read_to_string(&mut password)
        .map_err(|error| CannotStart(format!("reading the password: {error}")))?;
    Ok(Zeroizing::new(password.lines().next().unwrap_or_default().to_owned()))
}

impl Keys {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, clock, ids) = open(config).await?;
        match self {
            Keys::Create {
                workspace,
                env,
                name,
                scopes,
                expires_at,
            } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let scopes = if scopes.is_empty() {
                    Scopes::all()
                } else {
                    let parsed = scopes
                        .iter()
                        .map(|scope| scope.trim().parse())
                        .collect::<Result<Vec<_>, String>>();
                    parsed
                        .and_then(Scopes::new)
                        .map_err(|why| Error::invalid("scopes", why))?
                };
                let name = Text::parse(&name).map_err(|why| Error::invalid("name", why))?;
                let expires_at = expires_at
                    .map(|text| Moment::parse(&text))
                    .transpose()
                    .map_err(|why| Error::invalid("expires-at", why))?;
                if expires_at.is_some_and(|at| at <= clock.now()) {
                    return Err(Error::invalid("expires-at", "is in the past").into());
                }
                let (key, plaintext) = access::new_key(
                    ids.next(),
                    tenant.id,
                    NewKey {
                        name,
                        env,
                        scopes,
                        expires_at,
                    },
                    clock.now(),
                );
                let changes = Changes {
                    api_keys: vec![key.clone()],
                    ..Changes::default()
                };
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                access::check_room_for_key(&transaction, tenant.id, by.now()).await?;
                changes.apply(&transaction, clock.times()).await?;
                access::note_key(&transaction, &by, Action::KeyCreated, &key).await?;
                transaction.commit().await.map_err(Error::from)?;
                let mut view = ApiKeyView::from(key);
                view.plaintext = Some(plaintext.to_string());
                // For people, too: it is the API's creation answer.
                print(&view);
                if !json {
                    eprintln!("The plaintext is shown only once.");
                }
            }
            Keys::List { workspace } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let keys = all_keys(&db, tenant.id).await?;
                if json {
                    print(&keys.into_iter().map(ApiKeyView::from).collect::<Vec<_>>());
                } else {
                    for key in keys {
                        let used = key
                            .last_used_at
                            .map_or("never used".to_owned(), |at| format!("used {at}"));
                        let revoked = if key.revoked_at.is_some() { "  revoked" } else { "" };
                        println!(
                            "{}  {}…  {:<4}  {:<24}  {used}{revoked}",
                            key.id, key.key_prefix, key.env, key.name
                        );
                    }
                }
            }
            Keys::Revoke { workspace, id } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let transaction = db.begin().await.map_err(Error::from)?;
                let by = Author::operator(ids, clock.now());
                access::revoke_key(&transaction, &by, tenant.id, id).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "id": id, "revoked": true }));
                } else {
                    println!("Key {id} is revoked");
                }
            }
        }
        db.close().await;
        Ok(())
    }
}

async fn all_keys(db: &Db, tenant: entities::ids::TenantId) -> Result<Vec<api_key::Model>, Error> {
    let mut keys = Vec::new();
    let mut page = Page {
        limit: 100,
        ..Page::default()
    };
    loop {
        let listed = api_key::list(&db.read, tenant, page).await?;
        page.after = listed.rows.last().map(|key| key.id.0);
        keys.extend(listed.rows);
        if !listed.has_more {
            return Ok(keys);
        }
    }
}

impl Secrets {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        if let Secrets::Generate = self {
            let key = runtime::keyring::Keyring::generate();
            if json {
                print(&json!({ "secret_key": key }))
            } else {
                println!("{key}")
            }
            return Ok(());
        }
        let (settings, db, _, _) = open(config).await?;
        let keyring = settings.keyring()?;
        let lock = entities::lock::Lock::take(&settings.location()?)
            .await
            .map_err(|why| CannotStart(format!("database_url: {why}")))?;
        let transaction = db.begin().await.map_err(Error::from)?;
        let mut resealed = 0;
        for endpoint in webhook_endpoint::all(&transaction).await? {
            let secret = keyring.reseal(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?;
            let headers = keyring.reseal(purpose::ENDPOINT_HEADERS, &endpoint.sealed_headers)?;
            let previous = endpoint.sealed_previous_secret.as_deref();
            let previous = previous
                .map(|sealed| keyring.reseal(purpose::ENDPOINT_SECRET, sealed))
                .transpose()?
                .flatten();
            if secret.is_some() || headers.is_some() || previous.is_some() {
                resealed += 1;
                let sealed_secret = secret.unwrap_or(endpoint.sealed_secret.clone());
                let sealed_headers = headers.unwrap_or(endpoint.sealed_headers.clone());
                let sealed_previous = previous.or(endpoint.sealed_previous_secret.clone());
                webhook_endpoint::reseal(
                    &transaction,
                    endpoint.id,
                    sealed_secret,
                    sealed_previous,
                    sealed_headers,
                )
                .await?;
            }
        }
        let functions = reseal_functions(&transaction, &keyring).await?;
        let trunks = reseal_trunks(&transaction, &keyring).await?;
        reseal_codes(&transaction, &keyring).await?;
        // A database from before they were stored gets them now: the old key is here for the last time.
        link_keys::stored(&transaction, &keyring).await?;
        for (key, purpose) in [
            (entities::meta::SECRET_CHECK, purpose::SECRET_CHECK),
            (entities::meta::LINK_KEYS, purpose::LINK_KEYS),
        ] {
            if let Some(sealed) = entities::meta::get(&transaction, key).await?
                && let Some(again) = keyring.reseal(purpose, &sealed)?
            {
                entities::meta::set(&transaction, key, &again).await?;
            }
        }
        for row in entities::idempotency::answered(&transaction).await? {
            if let Some(sealed) = &row.sealed_body
                && let Some(again) = keyring.reseal(purpose::IDEMPOTENT_ANSWER, sealed)?
            {
                let status = u16::try_from(row.status.unwrap_or(200)).unwrap_or(200);
                entities::idempotency::answer(&transaction, &row, status, again).await?;
            }
        }
        reseal_events(&transaction, &keyring).await?;
        transaction.commit().await.map_err(Error::from)?;
        let vault = settings.vault(&keyring)?;
        let recordings = reseal_recordings(&db, &vault).await?;
        let samples = reseal_samples(&db, &vault).await?;
        lock.release().await;
        db.close().await;
        if json {
            print(&json!({
                "endpoints_resealed": resealed,
                "functions_resealed": functions,
                "trunks_resealed": trunks,
                "recordings_resealed": recordings,
                "voice_samples_resealed": samples,
                "key_id": keyring.key_id(),
            }));
        } else {
            println!(
                "{resealed} endpoints, {functions} functions, {trunks} trunks, {recordings} recordings and {samples} samples of voices resealed; everything now opens with key {} alone",
                keyring.key_id()
            );
        }
        Ok(())
    }
}

async fn reseal_functions(db: &DatabaseTransaction, keyring: &Keyring) -> Result<u32, CannotStart> {
    let (mut after, mut resealed) = (None, 0);
    loop {
        let rows = function::all_after(db, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(resealed) };
        after = Some(last.id);
        for row in rows {
            let secret = keyring.reseal(purpose::FUNCTION_SECRET, &row.sealed_secret)?;
            let headers = keyring.reseal(purpose::FUNCTION_HEADERS, &row.sealed_headers)?;
            if secret.is_some() || headers.is_some() {
                resealed += 1;
                let sealed_secret = secret.unwrap_or(row.sealed_secret);
                let sealed_headers = headers.unwrap_or(row.sealed_headers);
                function::reseal(db, row.id, sealed_secret, sealed_headers).await?;
            }
        }
    }
}

async fn reseal_trunks(db: &DatabaseTransaction, keyring: &Keyring) -> Result<u32, CannotStart> {
    let (mut after, mut resealed) = (None, 0);
    loop {
        let rows = sip_trunk::sealed_after(db, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(resealed) };
        after = Some(last.id);
        for row in &rows {
            let sealed = row.sealed_password.as_deref();
            let again = sealed.map(|sealed| keyring.reseal(purpose::TRUNK_PASSWORD, sealed));
            if let Some(again) = again.transpose()?.flatten() {
                resealed += 1;
                sip_trunk::reseal(db, row.id, again).await?;
            }
        }
    }
}

/// Bodies of events that hold a link.
async fn reseal_events(db: &DatabaseTransaction, keyring: &Keyring) -> Result<(), CannotStart> {
    let mut after = None;
    loop {
        let rows = entities::event::sealed_after(db, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.seq);
        for row in &rows {
            if let Some(again) = runtime::at_rest::resealed(keyring, &row.body)? {
                entities::event::reseal(db, row.seq, again).await?;
            }
        }
    }
}

/// Codes that are shown to test keys, for the minutes that they are good.
async fn reseal_codes(db: &DatabaseTransaction, keyring: &Keyring) -> Result<(), CannotStart> {
    let mut after = None;
    loop {
        let rows = verified_number::sealed_after(db, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.id);
        for row in &rows {
            let sealed = row.sealed_code.as_deref();
            let again = sealed.map(|sealed| keyring.reseal(purpose::VERIFICATION_CODE, sealed));
            if let Some(again) = again.transpose()?.flatten() {
                verified_number::reseal(db, row.id, again).await?;
            }
        }
    }
}

/// Each is read, with whichever key opens it, and stored anew: repeated after a crash, it does no harm.
async fn reseal_recordings(db: &Db, vault: &Vault) -> Result<u32, CannotStart> {
    let (mut after, mut resealed) = (None, 0);
    loop {
        let rows = recording::all_after(&db.read, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(resealed) };
        after = Some(last.id);
        for row in rows {
            resealed += u32::from(reseal_object(vault, &studio::name(row.key())).await?);
        }
    }
}

/// Of one that is not there there is nothing to do.
async fn reseal_object(vault: &Vault, name: &str) -> Result<bool, CannotStart> {
    let broken = |error: adapters::recording::vault::Failure| CannotStart(format!("recordings: {name}: {error}"));
    let Some(size) = vault.size(name).await.map_err(broken)? else {
        return Ok(false);
    };
    let sound = vault.read(name, 0..size).await.map_err(broken)?;
    vault.put(name, sound.to_vec()).await.map_err(broken)?;
    Ok(true)
}

/// What voices are cloned from.
async fn reseal_samples(db: &Db, vault: &Vault) -> Result<u32, CannotStart> {
    let (mut after, mut resealed) = (None, 0);
    loop {
        let rows = sample::all_after(&db.read, after, 500).await?;
        let Some(last) = rows.last() else { return Ok(resealed) };
        after = Some(last.id);
        for row in rows {
            resealed += u32::from(reseal_object(vault, &samples::name(&row)).await?);
        }
    }
}

pub async fn migrate(config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
    let (settings, db, _, _) = open(config).await?;
    db.close().await;
    let database = settings.location()?.shown();
    if json {
        print(&json!({ "database": database, "migrated": true }));
    } else {
        println!("{database} is up to date");
    }
    Ok(())
}

pub fn config(config: Option<PathBuf>, json: bool, defaults: bool) -> Result<(), CannotStart> {
    if defaults {
        print!("{DEFAULTS}");
        return Ok(());
    }
    let settings = Settings::load(config, &[])?.redacted();
    if json {
        print(&settings);
    } else {
        let value = serde_json::to_value(&settings).unwrap_or_default();
        for (name, value) in value.as_object().into_iter().flatten() {
            println!("{name} = {value}");
        }
    }
    Ok(())
}

pub fn openapi() -> Result<(), CannotStart> {
    print(&document::document());
    Ok(())
}
