//! The do-not-call list: adding to it and taking off it, each in one transaction with its place among all commits, and with what it
//! means for the consents of that person.
use crate::{attempts, deps::Deps};
use entities::{
    Error, Result,
    attempt::{self, RecordKind},
    boxed,
    connection::Connection,
    consent::{self, Revocation},
    dnc::{self, Channels, DncChannel, Model, Source, Wish},
    ids::{DncId, SessionId, TenantId, TenantScoped},
    values::{Env, Moment, Times},
};
use rules::{
    barred::{self, Entry, Whom},
    commit::Commit,
};
use std::time::Duration;

/// Adds one; a second entry of one number or address adds its channels to the first. Answers the entry and whether it is new.
#[boxed]
pub async fn add(deps: &Deps, owner: (TenantId, Env), entry: Entry) -> Result<(Model, bool)> {
    let (its, now) = (deps.clone(), deps.clock.times());
    deps.writer
        .run(owner.0, move |db| {
            let (its, entry) = (its.clone(), entry.clone());
            Box::pin(async move {
                let mut commit = Commit::default();
                let (row, outcome) = place(db, owner, entry, now).await?.write(&its, &mut commit, None)?;
                Ok(((row, outcome == DncOutcome::New), commit))
            })
        })
        .await
}

/// What an entry is to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DncOutcome {
    New,
    /// Known, and bars more than before, or for longer.
    Wider,
    /// Known, and bars no more than before; but it is on record that it was said again.
    Again,
    /// The same, so soon that only the entry says so.
    Noted,
    Known,
}

impl DncOutcome {
    /// Is more barred than before, so that it has a place of its own among all commits?
    pub fn bars_more(self) -> bool {
        match self {
            DncOutcome::New | DncOutcome::Wider => true,
            DncOutcome::Again | DncOutcome::Noted | DncOutcome::Known => false,
        }
    }
}

/// An entry that is to be written, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub row: Model,
    pub outcome: DncOutcome,
    /// Also of one that is known: consents may have been given since.
    pub revocation: Revocation,
}

impl Placed {
    /// With the record of the wish. `words`: what was said, where that is known.
    pub fn write(self, deps: &Deps, commit: &mut Commit, words: Option<String>) -> Result<(Model, DncOutcome)> {
        commit.changes.revocations.push(self.revocation);
        match self.outcome {
            DncOutcome::New | DncOutcome::Wider | DncOutcome::Again => {
                let wish = attempts::opted_out(deps, &self.row, words)?;
                commit.changes.attempt_records.push(wish);
            }
            DncOutcome::Noted | DncOutcome::Known => {}
        }
        match self.outcome {
            DncOutcome::New | DncOutcome::Wider => commit.changes.dnc.push(self.row.clone()),
            // What it bars, it has barred since the place that it has.
            DncOutcome::Again | DncOutcome::Noted => commit.changes.dnc_wishes.push(Wish::of(&self.row)),
            DncOutcome::Known => {}
        }
        Ok((self.row, self.outcome))
    }
}

/// The row of an entry. One that was added meanwhile makes its commit fail. What was said now was said by the clock that shows more: what a
/// consent must be newer than lies rather too late than too early.
#[boxed]
pub async fn place(db: &Connection, owner: (TenantId, Env), entry: Entry, now: Times) -> Result<Placed> {
    let revocation = entry.revocation(owner, now.later());
    let (row, outcome) = row_of(db, owner, entry, now).await?;
    Ok(Placed {
        row,
        outcome,
        revocation,
    })
}

async fn row_of(
    db: &Connection,
    (tenant_id, env): (TenantId, Env),
    entry: Entry,
    now: Times,
) -> Result<(Model, DncOutcome)> {
    let owner = (tenant_id, env);
    let (channels, opted_out_at) = (entry.barred(), entry.source.is_own_wish().then_some(now.later()));
    let known = match &entry.whom {
        Whom::Number(number) => dnc::of_number(db, owner, number).await?,
        Whom::Email(email) => dnc::of_email(db, owner, email).await?,
    };
    if let Some(known) = known {
        let (before, requested_at) = (known.clone(), entry.requested_at);
        let joined = joined(
            known,
            channels,
            entry.source,
            entry.reason,
            entry.session_id,
            entry.created_by,
        );
        let (after, outcome) = said_again(joined, opted_out_at, requested_at);
        let is_ahead = is_dated_ahead(&before, opted_out_at);
        let is_repeat = outcome == DncOutcome::Again || outcome == DncOutcome::Known && is_ahead;
        if !is_repeat || after.requested_at != before.requested_at {
            return Ok((after, outcome));
        }
        let said_before = match is_ahead {
            true => last_on_record(db, &before).await?,
            false => before.own_wish_at(),
        };
        let agreed_since = agrees(db, &before).await?;
        return Ok(match repeated(said_before, now.later(), agreed_since) {
            DncOutcome::Known => (before, DncOutcome::Known),
            repeated => (after, repeated),
        });
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
        channels,
        reason: entry.reason,
        source: entry.source,
        session_id: entry.session_id,
        requested_at: entry.requested_at,
        opted_out_at,
        created_by: entry.created_by,
        added_seq: 0,
        removed_at: None,
        removed_reason: None,
        removed_by: None,
        removed_seq: None,
        version: 1,
        created_at: now.ours,
    };
    Ok((row, DncOutcome::New))
}

/// An entry that is there, with what another adds to it. A START lifts what a STOP has barred, and nothing else: so whoever
/// else bars that person makes the entry their own. That the person had said so stays.
fn joined(
    known: Model,
    channels: Channels,
    source: Source,
    reason: Option<String>,
    session_id: Option<SessionId>,
    created_by: Option<String>,
) -> (Model, DncOutcome) {
    let all = Channels::of(known.channels.0.iter().copied().chain(channels.0).collect());
    let is_taken_over = known.source == Source::SmsStop && source != Source::SmsStop;
    if all == known.channels && !is_taken_over {
        return (known, DncOutcome::Known);
    }
    let mut wider = Model {
        channels: all,
        version: known.version + 1,
        ..known
    };
    if is_taken_over {
        // Of an old entry only its source tells.
        wider.opted_out_at = wider.own_wish_at();
        (wider.source, wider.reason, wider.session_id, wider.created_by) = (source, reason, session_id, created_by);
    }
    (wider, DncOutcome::Wider)
}

/// When somebody has said so themselves is kept, whoever had put them on the list: it says what a consent must be newer than.
fn said_again(
    (row, outcome): (Model, DncOutcome),
    opted_out_at: Option<Moment>,
    requested_at: Option<Moment>,
) -> (Model, DncOutcome) {
    let after = Model {
        opted_out_at: row.opted_out_at.max(opted_out_at),
        requested_at: row.requested_at.max(requested_at),
        ..row.clone()
    };
    match outcome {
        DncOutcome::Known if after != row => (after, DncOutcome::Again),
        DncOutcome::Known | DncOutcome::Noted | DncOutcome::New | DncOutcome::Wider | DncOutcome::Again => {
            (after, outcome)
        }
    }
}

/// Does the entry claim an opt-out later than now? A wall clock was ahead by mistake then. What it says stays, for of
/// two moments the later one protects; but it does not tell how long ago that was.
fn is_dated_ahead(entry: &Model, said_at: Option<Moment>) -> bool {
    let ahead = |(before, now): (Moment, Moment)| before > now.plus(SAME);
    entry.own_wish_at().zip(said_at).is_some_and(ahead)
}

/// When it was last put on record, by our time, that the person of that entry wants nothing more.
async fn last_on_record(db: &Connection, entry: &Model) -> Result<Option<Moment>> {
    let rows = attempt::of_attempts(db, (entry.tenant_id, entry.env), &[attempts::of_entry(entry)]).await?;
    let wishes = rows.iter().filter(|row| row.kind == RecordKind::OptOut);
    Ok(wishes.map(|row| row.at).max())
}

/// Who says it again within that time has said it once, and within a day is not put on record once more: whoever presses a button for
/// hours fills nothing.
const SAME: Duration = Duration::from_secs(60);
const SAME_DAY: Duration = Duration::from_secs(24 * 3600);

/// What a repeat is to the list. `agreed_since`: it takes something back.
fn repeated(said_before: Option<Moment>, now: Moment, agreed_since: bool) -> DncOutcome {
    match said_before {
        Some(before) if !agreed_since && now < before.plus(SAME) => DncOutcome::Known,
        Some(before) if !agreed_since && now < before.plus(SAME_DAY) => DncOutcome::Noted,
        Some(_) | None => DncOutcome::Again,
    }
}

/// Does any consent of that person stand for what the entry bars?
async fn agrees(db: &Connection, entry: &Model) -> Result<bool> {
    let Some(whom) = barred::whom(entry) else {
        return Ok(false);
    };
    let consents = consent::of_people(db, (entry.tenant_id, entry.env), &[whom.address()]).await?;
    let stands = |one: &consent::Model| {
        let standing = one.standing();
        entry.channels.0.iter().any(|channel| standing.contain(*channel))
    };
    Ok(consents.values().flatten().any(stands))
}

/// Takes one off the list; the row stays, with the reason. In the live environment who has opted out must have agreed anew.
#[boxed]
pub async fn remove(deps: &Deps, key: TenantScoped<DncId>, reason: String, by: String) -> Result<()> {
    let times = deps.clock.times();
    let (its, now) = (deps.clone(), times.ours);
    deps.writer
        .run(key.tenant_id, move |db| {
            let (its, reason, by) = (its.clone(), reason.clone(), by.clone());
            Box::pin(async move {
                let row = dnc::load(db, key).await?;
                if key.env == Env::Live {
                    check_agreed_anew(db, &row, times.later()).await?;
                }
                let mut commit = Commit::default();
                commit
                    .changes
                    .revocations
                    .extend(barred::still_revoked(&row, times.later()));
                let lifted = Model {
                    removed_at: Some(now),
                    removed_reason: Some(reason.clone()),
                    removed_by: Some(by),
                    version: row.version + 1,
                    ..row
                };
                let told = attempts::lifted(&its, &lifted, "staff", Some(reason))?;
                commit.changes.attempt_records.push(told);
                commit.changes.dnc.push(lifted);
                Ok(((), commit))
            })
        })
        .await
}

/// Whoever has opted out, here or elsewhere, may be reached again by what they agreed to later, and by nothing else.
async fn check_agreed_anew(db: &Connection, entry: &Model, at: Moment) -> Result<()> {
    let (Some(said_no_at), Some(whom)) = (entry.said_no_at(), barred::whom(entry)) else {
        return Ok(());
    };
    let consents = consent::of_people(db, (entry.tenant_id, entry.env), &[whom.address()]).await?;
    let newer = |channel: DncChannel| {
        let agrees = |consent: &consent::Model| consent.given_at > said_no_at && consent.stands(channel, at);
        consents.values().flatten().any(agrees)
    };
    let hint = match entry.channels.0.iter().filter(|channel| newer(**channel)).count() {
        all if all == entry.channels.0.len() => return Ok(()),
        0 => "the person has opted out; record a consent that was given later first (POST /v1/consents)",
        _ => {
            "the consents that the person has given later do not cover all channels that the entry bars; record one that covers the \
             others too"
        }
    };
    Err(Error::InvalidState {
        kind: "do-not-call entry",
        state: "opted_out",
        command: "be taken off the list",
        hint,
    })
}

#[cfg(test)]
#[path = "dnc_tests.rs"]
mod tests;
