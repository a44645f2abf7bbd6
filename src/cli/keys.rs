//! `callboard keys`: a workspace's API keys. Works beside a running `serve`.
use super::commands::{open, print};
use crate::{
    access::{self, Author, CallLimits, NewKey},
    error::CannotStart,
    http::views::ApiKeyView,
};
use clap::Subcommand;
use entities::{
    Error, api_key,
    audit_log::Action,
    changes::Changes,
    db::Db,
    ids::{ApiKeyId, TenantId},
    page::Page,
    tenant,
    values::{Bounded, Env, Moment, Scopes, Text},
};
use runtime::{clock::Clock, ids::Ids};
use serde_json::json;
use std::path::PathBuf;

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
        /// What its calls may cost in a day (UTC); default: no limit
        #[arg(long)]
        max_spend_cents_per_day: Option<i64>,
        /// How many of its calls may be dialled in any minute; default: no limit
        #[arg(long)]
        max_calls_per_minute: Option<i64>,
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
        id: ApiKeyId,
    },
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
                max_spend_cents_per_day,
                max_calls_per_minute,
                expires_at,
            } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let limits = CallLimits {
                    max_spend_cents_per_day: bounded("max-spend-cents-per-day", max_spend_cents_per_day)?,
                    max_calls_per_minute: bounded("max-calls-per-minute", max_calls_per_minute)?,
                };
                let new = NewKey {
                    limits,
                    ..parse(env, &name, &scopes, expires_at, clock.now())?
                };
                create(&db, &clock, ids, tenant.id, new, json).await?;
            }
            Keys::List { workspace } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                show(all_keys(&db, tenant.id).await?, json);
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

/// What was typed.
fn parse(
    env: Env,
    name: &str,
    scopes: &[String],
    expires_at: Option<String>,
    now: Moment,
) -> Result<NewKey, CannotStart> {
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
    let name = Text::parse(name).map_err(|why| Error::invalid("name", why))?;
    let expires_at = expires_at
        .map(|text| Moment::parse(&text))
        .transpose()
        .map_err(|why| Error::invalid("expires-at", why))?;
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Error::invalid("expires-at", "is in the past").into());
    }
    Ok(NewKey {
        name,
        env,
        scopes,
        limits: CallLimits::default(),
        expires_at,
    })
}

fn bounded<const MIN: i32, const MAX: i32>(
    name: &str,
    typed: Option<i64>,
) -> Result<Option<Bounded<MIN, MAX>>, CannotStart> {
    let bounded = typed.map(Bounded::new).transpose();
    Ok(bounded.map_err(|why| Error::invalid(name, why))?)
}

async fn create(
    db: &Db,
    clock: &Clock,
    ids: Ids,
    tenant: TenantId,
    new: NewKey,
    json: bool,
) -> Result<(), CannotStart> {
    let (key, plaintext) = access::new_key(ids.next(), tenant, new, clock.now());
    let changes = Changes {
        api_keys: vec![key.clone()],
        ..Changes::default()
    };
    let by = Author::operator(ids, clock.now());
    let transaction = db.begin().await.map_err(Error::from)?;
    access::check_room_for_key(&transaction, tenant, by.now()).await?;
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
    Ok(())
}

fn show(keys: Vec<api_key::Model>, json: bool) {
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

async fn all_keys(db: &Db, tenant: TenantId) -> Result<Vec<api_key::Model>, Error> {
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
