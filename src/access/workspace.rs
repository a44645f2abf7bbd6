//! What a workspace's owner and its operator decide about it.
use super::Author;
use entities::{
    Result,
    audit_log::Action,
    bulk::{self, OnConflict},
    connection::Connection,
    ids::TenantId,
    tenant,
    values::{Countries, Country, Zone},
};
use serde_json::{Value, json};

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
