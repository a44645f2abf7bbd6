//! What a workspace's owner and its operator decide about it.
use super::Author;
use entities::{
    Error, Result,
    audit_log::Action,
    bulk::{self, OnConflict},
    connection::Connection,
    ids::TenantId,
    legal_identity::{self, Identity},
    retention::{self, Retention},
    tenant,
    values::{Countries, Country, Moment, Zone},
};
use serde_json::{Value, json};
use std::time::Duration;

/// What is to be another; `None` stays.
#[derive(Clone, Default)]
pub struct Change {
    pub name: Option<String>,
    /// How numbers without `+` are read from now on.
    pub country: Option<Country>,
    /// Where calls are placed whose zone is unknown.
    pub timezone: Option<Zone>,
    /// May it train clones of voices? The operator's.
    pub voice_clones: Option<bool>,
    /// Where its live calls may ring; none of its own: its country. The operator's.
    pub countries: Option<Option<Countries>>,
}

/// Changes the workspace's row, by a version: a dial that was planned with the one before is planned anew. Nothing new writes
/// nothing. `Stale`: somebody else changed it at this moment.
pub async fn change(db: &Connection, by: &Author, id: TenantId, asked: &Change) -> Result<tenant::Model> {
    let before = tenant::load(db, id).await?;
    let mut after = before.clone();
    if let Some(name) = &asked.name {
        after.name.clone_from(name);
    }
    if let Some(country) = asked.country {
        after.country = country.to_string();
    }
    after.timezone = asked.timezone.unwrap_or(before.timezone);
    after.voice_clones = asked.voice_clones.unwrap_or(before.voice_clones);
    if let Some(countries) = &asked.countries {
        after.countries.clone_from(countries);
    }
    if after == before {
        return Ok(before);
    }
    after.version += 1;
    bulk::save(db, std::slice::from_ref(&after), OnConflict::ReplacePredecessor).await?;
    by.note(
        db,
        id,
        Action::WorkspaceChanged,
        &after.slug,
        &differences(&before, &after),
    )
    .await?;
    Ok(after)
}

/// Each setting that is another, with what it is now.
fn differences(before: &tenant::Model, after: &tenant::Model) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    if before.name != after.name {
        all.push(("name", json!(after.name)));
    }
    if before.country != after.country {
        all.push(("country", json!(after.country)));
    }
    if before.timezone != after.timezone {
        all.push(("timezone", json!(after.timezone)));
    }
    if before.voice_clones != after.voice_clones {
        all.push(("voice_clones", json!(after.voice_clones)));
    }
    if before.countries != after.countries {
        all.push(("countries", json!(after.countries)));
    }
    all
}

/// The server keeps messages as long as events: nobody can ask for more. What was asked for before the operator lowered that stays.
pub fn check_retention(before: &Retention, asked: &Retention, events: Duration) -> Result<()> {
    let most = events.as_secs() / (24 * 3600);
    match asked.messages_days {
        Some(days) if asked.messages_days != before.messages_days && u64::from(days.get().unsigned_abs()) > most => {
            Err(Error::invalid(
                "messages_days",
                format!("must be at most {most}: so long this server keeps messages (`event_retention_days`)"),
            ))
        }
        _ => Ok(()),
    }
}

/// Nothing new writes nothing. `Stale`: somebody else changed it since it was `known`.
pub async fn change_retention(
    db: &Connection,
    by: &Author,
    tenant: &tenant::Model,
    known: &retention::Model,
    asked: &Retention,
) -> Result<Retention> {
    let before = known.settings();
    if before == *asked {
        return Ok(before);
    }
    let kept = retention::set(db, known, asked, by.now()).await?;
    let days = [
        ("sessions_days", known.sessions_days, kept.sessions_days),
        ("transcripts_days", known.transcripts_days, kept.transcripts_days),
        ("contacts_days", known.contacts_days, kept.contacts_days),
        ("messages_days", known.messages_days, kept.messages_days),
        ("imports_days", known.imports_days, kept.imports_days),
    ];
    let others = days.into_iter().filter(|(_, before, after)| before != after);
    let others: Vec<_> = others.map(|(name, _, after)| (name, json!(after))).collect();
    by.note(db, tenant.id, Action::WorkspaceChanged, &tenant.slug, &others)
        .await?;
    Ok(kept.settings())
}

/// Who the workspace is by law; noted in the audit log. `Stale`: somebody else changed it since it was `known`.
pub async fn change_identity(
    db: &Connection,
    by: &Author,
    tenant: &tenant::Model,
    known: &legal_identity::Model,
    asked: &Identity,
) -> Result<legal_identity::Model> {
    let (row, others) = set_identity(db, known, asked, by.email(), by.now()).await?;
    if !others.is_empty() {
        by.note(db, tenant.id, Action::WorkspaceChanged, &tenant.slug, &others)
            .await?;
    }
    Ok(row)
}

/// The same for whoever is no author, such as an API key; answers each part that is another, with what it is now. Nothing new writes
/// nothing.
pub async fn set_identity(
    db: &Connection,
    known: &legal_identity::Model,
    asked: &Identity,
    by: Option<String>,
    now: Moment,
) -> Result<(legal_identity::Model, Vec<(&'static str, Value)>)> {
    let (before, after) = (json!(known.identity()), json!(asked));
    if before == after {
        return Ok((known.clone(), Vec::new()));
    }
    let row = known.changed(asked, by, now);
    legal_identity::set(db, &row).await?;
    let others = IDENTITY.into_iter().filter(|part| before[*part] != after[*part]);
    let others = others.map(|part| (part, after[part].clone())).collect();
    Ok((row, others))
}

/// Its parts.
const IDENTITY: [&str; 6] = [
    "registered_name",
    "trade_name",
    "callback_number",
    "toll_free_number",
    "postal_address",
    "registrations",
];
