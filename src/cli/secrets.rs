//! `callboard secrets`: everything that is sealed is sealed anew, with the key that is in force.
use super::commands::{open, print};
use crate::error::CannotStart;
use actors::{attempts::exports, consent::files, recording::studio, voice_clone::samples};
use adapters::recording::{
    spool::{self, Resealed},
    vault::Vault,
};
use clap::Subcommand;
use entities::{
    Error, compliance_export, connection::Transaction, consent::file, db::Db, event, function, mail, page, recording,
    sip_trunk, verified_number, voice::sample, webhook_endpoint,
};
use runtime::{
    keyring::{Keyring, Purpose, purpose},
    link_keys,
};
use serde_json::json;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Secrets {
    /// Seal everything that a previous key sealed with the current key. Run it while `serve` is stopped.
    Rotate,
    /// Print a new random secret key
    Generate,
}

impl Secrets {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        if let Secrets::Generate = self {
            let key = Keyring::generate();
            if json {
                print(&json!({ "secret_key": key }))
            } else {
                println!("{key}")
            }
            return Ok(());
        }
        let (settings, db, _, _) = open(config).await?;
        let keyring = settings.keyring()?;
        let lock = entities::lock::Lock::take(&settings.location()?, entities::lock::Holders::One)
            .await
            .map_err(|why| CannotStart(format!("database_url: {why}")))?;
        let transaction = db.begin().await.map_err(Error::from)?;
        let resealed = reseal_endpoints(&transaction, &keyring).await?;
        let functions = reseal_functions(&transaction, &keyring).await?;
        let trunks = reseal_trunks(&transaction, &keyring).await?;
        reseal_codes(&transaction, &keyring).await?;
        // A database from before they were stored gets them now: the old key is here for the last time.
        link_keys::stored(&transaction, &keyring).await?;
        reseal_own(&transaction, &keyring).await?;
        reseal_answers(&transaction, &keyring).await?;
        reseal_events(&transaction, &keyring).await?;
        reseal_mails(&transaction, &keyring).await?;
        transaction.commit().await.map_err(Error::from)?;
        let vault = settings.vault(&keyring)?;
        let recordings = reseal_recordings(&db, &vault).await?;
        let samples = reseal_samples(&db, &vault).await?;
        let files = reseal_files(&db, &vault).await?;
        reseal_exports(&db, &vault).await?;
        let spools = spool::reseal(settings.recordings_spool.as_ref(), &vault)
            .map_err(|why| CannotStart(format!("recordings_spool: {why}")))?;
        for (name, why) in &spools.left {
            eprintln!("callboard: recordings_spool: {name}: {why}");
        }
        lock.release().await;
        db.close().await;
        if json {
            print(&json!({
                "endpoints_resealed": resealed,
                "functions_resealed": functions,
                "trunks_resealed": trunks,
                "recordings_resealed": recordings,
                "spools_resealed": spools.done,
                "spools_left": spools.left.len(),
                "voice_samples_resealed": samples,
                "consent_files_resealed": files,
                "key_id": keyring.key_id(),
            }));
        } else {
            let Resealed { done: spools, left } = &spools;
            let rest = match left.len() {
                0 => "everything now opens".to_owned(),
                count => format!("{count} unfinished recordings are damaged and stay as they are; all else now opens"),
            };
            println!(
                "{resealed} endpoints, {functions} functions, {trunks} trunks, {recordings} recordings, {spools} unfinished ones, {samples} samples of voices and {files} files that prove consents resealed; {rest} with key {} alone",
                keyring.key_id()
            );
        }
        Ok(())
    }
}

async fn reseal_endpoints(db: &Transaction, keyring: &Keyring) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    for endpoint in webhook_endpoint::all(db).await? {
        let secret = keyring.reseal(purpose::ENDPOINT_SECRET, &endpoint.sealed_secret)?;
        let headers = keyring.reseal(purpose::ENDPOINT_HEADERS, &endpoint.sealed_headers)?;
        let previous = endpoint.sealed_previous_secret.as_deref();
        let previous = again(keyring, purpose::ENDPOINT_SECRET, previous)?;
        if secret.is_some() || headers.is_some() || previous.is_some() {
            resealed += 1;
            let sealed_secret = secret.unwrap_or(endpoint.sealed_secret.clone());
            let sealed_headers = headers.unwrap_or(endpoint.sealed_headers.clone());
            let sealed_previous = previous.or(endpoint.sealed_previous_secret.clone());
            webhook_endpoint::reseal(db, endpoint.id, sealed_secret, sealed_previous, sealed_headers).await?;
        }
    }
    Ok(resealed)
}

/// What proves that the key is the right one, and the keys of links.
async fn reseal_own(db: &Transaction, keyring: &Keyring) -> Result<(), CannotStart> {
    for (key, purpose) in [
        (entities::meta::SECRET_CHECK, purpose::SECRET_CHECK),
        (entities::meta::LINK_KEYS, purpose::LINK_KEYS),
    ] {
        if let Some(sealed) = entities::meta::get(db, key).await?
            && let Some(again) = keyring.reseal(purpose, &sealed)?
        {
            entities::meta::set(db, key, &again).await?;
        }
    }
    Ok(())
}

/// Answers that are kept for requests that are made again.
async fn reseal_answers(db: &Transaction, keyring: &Keyring) -> Result<(), CannotStart> {
    for row in entities::idempotency::answered(db).await? {
        if let Some(sealed) = &row.sealed_body
            && let Some(again) = keyring.reseal(purpose::IDEMPOTENT_ANSWER, sealed)?
        {
            let status = u16::try_from(row.status.unwrap_or(200)).unwrap_or(200);
            entities::idempotency::answer(db, &row, status, again).await?;
        }
    }
    Ok(())
}

async fn reseal_functions(db: &Transaction, keyring: &Keyring) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    let key = |row: &function::Model| row.id;
    page::each(db, function::all_after, key, async |rows| {
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
        Ok::<(), CannotStart>(())
    })
    .await?;
    Ok(resealed)
}

async fn reseal_trunks(db: &Transaction, keyring: &Keyring) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    let key = |row: &sip_trunk::Model| row.id;
    page::each(db, sip_trunk::sealed_after, key, async |rows| {
        for row in &rows {
            let own = again(keyring, purpose::TRUNK_PASSWORD, row.sealed_password.as_deref())?;
            let inbound = row.sealed_inbound_password.as_deref();
            let inbound = again(keyring, purpose::TRUNK_INBOUND_PASSWORD, inbound)?;
            if own.is_some() || inbound.is_some() {
                resealed += 1;
                let own = own.or(row.sealed_password.clone());
                let inbound = inbound.or(row.sealed_inbound_password.clone());
                sip_trunk::reseal(db, row.id, own, inbound).await?;
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    Ok(resealed)
}

/// What is sealed, sealed anew; `None`: there is nothing, or the key in force has sealed it.
fn again(keyring: &Keyring, purpose: Purpose, sealed: Option<&str>) -> Result<Option<String>, CannotStart> {
    let again = sealed.map(|sealed| keyring.reseal(purpose, sealed)).transpose()?;
    Ok(again.flatten())
}

/// Bodies of events that hold a link.
async fn reseal_events(db: &Transaction, keyring: &Keyring) -> Result<(), CannotStart> {
    let key = |row: &event::Model| row.seq;
    page::each(db, event::sealed_after, key, async |rows| {
        for row in &rows {
            if let Some(again) = runtime::at_rest::resealed(keyring, &row.body)? {
                event::reseal(db, row.seq, again).await?;
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await
}

/// Those that wait to be sent and let somebody in.
async fn reseal_mails(db: &Transaction, keyring: &Keyring) -> Result<(), CannotStart> {
    let key = |row: &mail::Model| row.id;
    page::each(db, mail::sealed_after, key, async |rows| {
        for row in rows {
            if let Some(body) = keyring.reseal(purpose::MAIL_BODY, &row.body)? {
                mail::save(db, &[mail::Model { body, ..row }]).await?;
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await
}

/// Codes that are shown to test keys, for the minutes that they are good.
async fn reseal_codes(db: &Transaction, keyring: &Keyring) -> Result<(), CannotStart> {
    let key = |row: &verified_number::Model| row.id;
    page::each(db, verified_number::sealed_after, key, async |rows| {
        for row in &rows {
            if let Some(again) = again(keyring, purpose::VERIFICATION_CODE, row.sealed_code.as_deref())? {
                verified_number::reseal(db, row.id, again).await?;
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await
}

/// Each is read, with whichever key opens it, and stored anew: repeated after a crash, it does no harm.
async fn reseal_recordings(db: &Db, vault: &Vault) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    let key = |row: &recording::Model| row.id;
    page::each(&db.read, recording::all_after, key, async |rows| {
        for row in rows {
            resealed += u32::from(reseal_object(vault, &studio::name(row.key())).await?);
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    Ok(resealed)
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

/// Files of exports, for the days that they are kept.
async fn reseal_exports(db: &Db, vault: &Vault) -> Result<(), CannotStart> {
    let key = |row: &compliance_export::Model| row.id;
    page::each(&db.read, compliance_export::all_after, key, async |rows| {
        for row in rows {
            for part in 1..=row.files.0.len() {
                reseal_object(vault, &exports::file_name(row.key(), part)).await?;
            }
        }
        Ok::<(), CannotStart>(())
    })
    .await
}

/// What voices are cloned from.
async fn reseal_samples(db: &Db, vault: &Vault) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    let key = |row: &sample::Model| row.id;
    page::each(&db.read, sample::all_after, key, async |rows| {
        for row in rows {
            resealed += u32::from(reseal_object(vault, &samples::name(&row)).await?);
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    Ok(resealed)
}

/// What proves consents.
async fn reseal_files(db: &Db, vault: &Vault) -> Result<u32, CannotStart> {
    let mut resealed = 0;
    let key = |row: &file::Model| row.id;
    page::each(&db.read, file::all_after, key, async |rows| {
        for row in rows {
            resealed += u32::from(reseal_object(vault, &files::name(row.tenant_id, row.id)).await?);
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    Ok(resealed)
}
