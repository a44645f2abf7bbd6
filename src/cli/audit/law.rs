//! `callboard audit law`: what is on record about one person.
use super::unwritten;
use crate::error::CannotStart;
use actors::attempts::person;
use clap::Args;
use entities::{
    attempt::{Model, PersonRows},
    connection::Connection,
    ids::TenantId,
    tenant,
    values::{E164, Env, Moment},
};
use rules::{barred, law::record::line::Line};
use runtime::{keyring::Keyring, link_keys};
use std::io::Write;

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

/// Places of the person's rows that are held at once.
const PLACES: usize = 1_000_000;

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
            let mut rows = PersonRows::new((tenant, env), &hash, (0, i64::MAX), PLACES);
            loop {
                let page = rows.next(db).await?;
                if page.is_empty() {
                    break;
                }
                for row in page.iter().filter(|row| from.is_none_or(|from| row.at >= from)) {
                    writeln!(out, "{}", line(row)?).map_err(unwritten)?;
                }
            }
        }
    }
    out.flush().map_err(unwritten)
}

fn line(row: &Model) -> Result<String, CannotStart> {
    let text = Line::of(row).and_then(|line| serde_json::to_string(&line));
    text.map_err(|error| CannotStart(format!("row {} of the record cannot be read: {error}", row.n)))
}
