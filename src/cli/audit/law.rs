//! `callboard audit law`: what is on record about one person.
use super::unwritten;
use crate::error::CannotStart;
use actors::attempts::person;
use clap::Args;
use entities::{
    Error,
    attempt::{self, Model},
    connection::Connection,
    ids::{AttemptId, TenantId},
    tenant,
    values::{E164, Env, Moment},
};
use rules::{barred, law::record::line::Line};
use runtime::{keyring::Keyring, link_keys};
use std::{collections::BTreeSet, io::Write};

#[derive(Args)]
pub struct Asked {
    /// The number, as +12025550123
    #[arg(
        long,
        value_name = "NUMBER",
        required_unless_present = "email",
        conflicts_with = "email"
    )]
    number: Option<String>,
    /// Or the e-mail address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Only what was written down then or later, as 2026-11-30T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only this workspace's
    #[arg(long, value_name = "SLUG")]
    pub tenant: Option<String>,
}

impl Asked {
    fn address(&self) -> Result<String, CannotStart> {
        match (&self.number, &self.email) {
            (Some(number), _) => {
                let number: Result<E164, _> = number.parse();
                number
                    .map(|number| number.to_string())
                    .map_err(|why| CannotStart(format!("--number: {why}")))
            }
            (None, Some(email)) => {
                barred::email(email).map_err(|_| CannotStart(format!("--email: `{email}` is not an e-mail address")))
            }
            (None, None) => Err(CannotStart("give --number or --email".into())),
        }
    }
}

/// Openings and wishes that are read at once.
const PAGE: u64 = 500;

/// Writes a line for each row, of one workspace or of all, in the order of each chain.
pub async fn write(
    db: &Connection,
    keyring: &Keyring,
    only: Option<TenantId>,
    asked: &Asked,
    mut out: impl Write,
) -> Result<(), CannotStart> {
    let address = asked.address()?;
    let from = asked.from.as_deref().map(Moment::parse).transpose();
    let from = from.map_err(|why| CannotStart(format!("--from: {why}")))?;
    let Some(keys) = link_keys::read(db, keyring).await? else {
        return Ok(());
    };
    let key = person::key(&keys);
    let tenants = tenant::all(db).await?.into_iter().map(|row| row.id);
    for tenant in tenants.filter(|tenant| only.is_none_or(|only| only == *tenant)) {
        let hash = person::hash(&key, tenant, &address);
        for env in [Env::Live, Env::Test] {
            for row in of_person(db, (tenant, env), &hash).await? {
                if from.is_none_or(|from| row.at >= from) {
                    writeln!(out, "{}", line(&row)?).map_err(unwritten)?;
                }
            }
        }
    }
    out.flush().map_err(unwritten)
}

async fn of_person(db: &Connection, owner: (TenantId, Env), hash: &str) -> Result<Vec<Model>, Error> {
    let hashes = [hash.to_owned()];
    let mut rows: Vec<Model> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.n);
        let page = attempt::of_person(db, owner, &hashes, after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        rows.extend(page);
    }
    let attempts: BTreeSet<AttemptId> = rows.iter().map(|row| row.attempt_id).collect();
    let attempts: Vec<AttemptId> = attempts.into_iter().collect();
    rows.extend(attempt::of_attempts(db, owner, &attempts).await?);
    rows.sort_by_key(|row| row.n);
    rows.dedup_by_key(|row| row.n);
    Ok(rows)
}

fn line(row: &Model) -> Result<String, CannotStart> {
    let text = Line::of(row).and_then(|line| serde_json::to_string(&line));
    text.map_err(|error| CannotStart(format!("row {} of the record cannot be read: {error}", row.n)))
}
