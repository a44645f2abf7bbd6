//! The do-not-call list: adding to it and taking off it, each in one transaction with its place among all commits.
use crate::{deps::Deps, writer::Commit};
use entities::{
    Error, Result,
    dnc::{self, Channels, DncChannel, Model, Source},
    ids::{DncId, Owned, SessionId, TenantId},
    values::{E164, Env},
};
use sea_orm::ConnectionTrait;

/// Whom not to reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    Number(E164),
    /// In lower case.
    Email(String),
}

/// An entry that is asked for.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: DncId,
    pub whom: Whom,
    /// Empty: all that the number, or the address, can be reached by.
    pub channels: Vec<DncChannel>,
    pub reason: Option<String>,
    pub source: Source,
    pub session_id: Option<SessionId>,
}

/// Adds one; a second entry of one number or address adds its channels to the first. Answers the entry and whether it is new.
pub async fn add(deps: &Deps, owner: (TenantId, Env), entry: Entry) -> Result<(Model, bool)> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            let entry = entry.clone();
            Box::pin(async move {
                let (row, outcome) = place(db, owner, entry, now).await?;
                let mut commit = Commit::default();
                if outcome != Outcome::Known {
                    commit.changes.dnc.push(row.clone());
                }
                Ok(((row, outcome == Outcome::New), commit))
            })
        })
        .await
}

/// What an entry is to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    New,
    /// Known, and bars more than before.
    Wider,
    Known,
}

/// The row of an entry. One that was added meanwhile makes its commit fail.
pub async fn place(
    db: &impl ConnectionTrait,
    (tenant_id, env): (TenantId, Env),
    entry: Entry,
    now: entities::values::Moment,
) -> Result<(Model, Outcome)> {
    let owner = (tenant_id, env);
    let known = match &entry.whom {
        Whom::Number(number) => dnc::of_number(db, owner, number).await?,
        Whom::Email(email) => dnc::of_email(db, owner, email).await?,
    };
    let channels = if entry.channels.is_empty() {
        match entry.whom {
            Whom::Number(_) => vec![DncChannel::Phone, DncChannel::Sms],
            Whom::Email(_) => vec![DncChannel::Email],
        }
    } else {
        entry.channels
    };
    if let Some(known) = known {
        let all = Channels::of(known.channels.0.iter().copied().chain(channels).collect());
        if all == known.channels {
            return Ok((known, Outcome::Known));
        }
        let wider = Model {
            channels: all,
            version: known.version + 1,
            ..known
        };
        return Ok((wider, Outcome::Wider));
    }
    let (phone_number, email) = match entry.whom {
        Whom::Number(number) => (Some(number), None),
        Whom::Email(email) => (None, Some(email)),
    };
    let row = Model {
        id: entry.id,
        tenant_id,
        env,
        phone_number,
        email,
        channels: Channels::of(channels),
        reason: entry.reason,
        source: entry.source,
        session_id: entry.session_id,
        added_seq: 0,
        removed_at: None,
        removed_reason: None,
        removed_seq: None,
        version: 1,
        created_at: now,
    };
    Ok((row, Outcome::New))
}

/// Takes one off the list; the row stays, with the reason.
pub async fn remove(deps: &Deps, key: Owned<DncId>, reason: String) -> Result<()> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            let reason = reason.clone();
            Box::pin(async move {
                let row = dnc::load(db, key).await?;
                let mut commit = Commit::default();
                commit.changes.dnc.push(Model {
                    removed_at: Some(now),
                    removed_reason: Some(reason),
                    version: row.version + 1,
                    ..row
                });
                Ok(((), commit))
            })
        })
        .await
}

/// An address as it is compared: in lower case, with one `@` between two parts.
pub fn email(text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let fits = text.len() <= 254 && !text.contains(char::is_whitespace);
    match text.split_once('@') {
        Some((user, host)) if fits && !user.is_empty() && host.contains('.') && !host.contains('@') => Ok(text),
        Some(_) | None => Err(Error::invalid("email", "is no e-mail address")),
    }
}
