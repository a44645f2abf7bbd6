//! Consents: taking them down, taking them back and, when the law no longer requires them to be kept, deleting them.
pub mod files;
pub mod recordings;

use crate::{attempts, deps::Deps, dnc};
use entities::{
    Error, Result, boxed,
    connection::Connection,
    consent::{self, Address, Model, Revocation, Revoked},
    dnc::{self as barred_list, Channels, DncChannel, Source},
    ids::{ConsentId, DncId, TenantId, TenantScoped},
    recording::{self, PurgeReason, Status},
    values::{Env, Moment, Times},
};
use rules::{
    barred::{Entry, Whom},
    commit::Commit,
    consent::{
        Accepted, MOST_OF_A_PERSON, kept,
        taken_back::{Given, TakenBack, check_not_revoked, given, people},
    },
    law::record::Person,
};
use std::collections::HashSet;

/// Stores one. Answers it and whether it is new: the same facts are the same consent.
#[boxed]
pub async fn give(deps: &Deps, accepted: Accepted) -> Result<(Model, bool)> {
    let owner = (accepted.row.tenant_id, accepted.row.env);
    deps.writer
        .run(owner.0, move |db| {
            let accepted = accepted.clone();
            Box::pin(async move {
                let known = consent::known(db, owner, std::slice::from_ref(&accepted.row.fingerprint)).await?;
                if let Some(known) = known.into_values().next() {
                    check_not_revoked(&known)?;
                    return Ok(((known, false), Commit::default()));
                }
                taken_back(db, owner, &[&accepted.row]).await?.check(&accepted.row)?;
                check_recording(db, &accepted.row).await?;
                check_room(db, owner, &accepted.row).await?;
                let mut commit = Commit::default();
                commit.changes.consents.push(accepted.row.clone());
                commit.changes.consent_texts.extend(accepted.text);
                Ok(((accepted.row, true), commit))
            })
        })
        .await
}

/// What the people of these consents have taken back of the same sellers' ones: read once for all of them.
#[boxed]
pub(crate) async fn taken_back(db: &Connection, owner: (TenantId, Env), rows: &[&Model]) -> Result<TakenBack> {
    let mut taken_back = TakenBack::default();
    let people: HashSet<Address> = rows.iter().flat_map(|row| people(row)).collect();
    let people: Vec<Address> = people.into_iter().collect();
    let who = consent::who_took_back(db, owner, &people).await?;
    let wanted: HashSet<Given> = rows.iter().flat_map(|row| given(row)).collect();
    for given in wanted.intersection(&who) {
        let mut after = None;
        loop {
            let page = consent::taken_back(db, owner, (&given.0, &given.1), after).await?;
            let is_read = page.iter().all(|(_, withdrawals)| taken_back.note(given, withdrawals));
            match page.last() {
                Some((last, _)) if is_read && page.len() as u64 >= consent::TAKEN_BACK_AT_ONCE => after = Some(*last),
                Some(_) | None => break,
            }
        }
    }
    Ok(taken_back)
}

pub(crate) async fn check_recording(db: &Connection, row: &Model) -> Result<()> {
    let Some(id) = row.recording_id else { return Ok(()) };
    let found = recording::load(db, TenantScoped::new(row.tenant_id, row.env, id)).await;
    let found = found.map_err(|error| match error {
        Error::NotFound(_) => Error::invalid("recording_id", "is not a recording of this workspace and environment"),
        other => other,
    })?;
    let is_gone = matches!(found.status, Status::Failed | Status::Purged);
    match is_gone || found.purge_reason == Some(PurgeReason::Deleted) {
        true => Err(Error::invalid(
            "recording_id",
            "has no sound any more, and proves nothing",
        )),
        false => Ok(()),
    }
}

async fn check_room(db: &Connection, owner: (TenantId, Env), row: &Model) -> Result<()> {
    let people: Vec<Address> = people(row).collect();
    let found = consent::of_people(db, owner, &people).await?;
    match found.values().any(|consents| consents.len() >= MOST_OF_A_PERSON) {
        false => Ok(()),
        true => Err(too_many()),
    }
}

pub(crate) fn too_many() -> Error {
    Error::PlanLimit(format!(
        "this person has {MOST_OF_A_PERSON} consents that are not revoked: revoke those that are no longer needed"
    ))
}

/// Somebody takes one back.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Empty: all that it covers.
    pub channels: Vec<DncChannel>,
    pub reason: String,
    /// When the person said so.
    pub requested_at: Option<Moment>,
    /// Whoever takes it back does not want to be reached at all: other consents of theirs end, too.
    pub do_not_call: bool,
    pub by: String,
}

/// Takes one back, for some channels or all; in the same transaction the person is put on the do-not-call list. A second time changes
/// nothing.
#[boxed]
pub async fn revoke(deps: &Deps, key: TenantScoped<ConsentId>, wish: Wish) -> Result<Model> {
    let (now, ids): (Times, [DncId; 2]) = (deps.clock.times(), [deps.ids.next(), deps.ids.next()]);
    let owner = (key.tenant_id, key.env);
    let its = deps.clone();
    deps.writer
        .run(key.tenant_id, move |db| {
            let (its, wish) = (its.clone(), wish.clone());
            Box::pin(async move {
                let row = consent::load(db, key).await?;
                let mut commit = Commit::default();
                if wish.do_not_call {
                    for mut entry in entries(&row, &wish, ids) {
                        entry.requested_at = asked_at(db, owner, (&row, &entry), now.later()).await?;
                        dnc::place(db, owner, entry, now)
                            .await?
                            .write(&its, &mut commit, None)?;
                    }
                }
                if !takes_any(&row, &wish) {
                    return Ok(((), commit));
                }
                let revoked = attempts::Revoked {
                    owner,
                    consent_id: row.id,
                    how: "staff".to_owned(),
                    said_at: wish.requested_at.unwrap_or(now.ours),
                    session_id: None,
                    person: Person {
                        phone_number: row.phone_number.clone(),
                        email: row.email.clone(),
                        ..Person::default()
                    },
                    words: None,
                    entered_by: Some(wish.by.clone()),
                };
                attempts::revoked(&its, &mut commit, revoked)?;
                commit.changes.revocations.push(Revocation {
                    tenant_id: key.tenant_id,
                    env: key.env,
                    what: Revoked::One(key.id),
                    channels: Channels::of(wish.channels),
                    given_by: None,
                    // Only what is given later is another consent: by either clock.
                    at: now.later(),
                    by: Some(wish.by),
                    reason: wish.reason,
                    seq: 0,
                });
                Ok(((), commit))
            })
        })
        .await?;
    consent::load(&deps.db.read, key).await
}

/// When the person has asked not to be reached: that was now, if nobody says otherwise. `None`: they have asked before, and this takes
/// nothing more.
async fn asked_at(
    db: &Connection,
    owner: (TenantId, Env),
    (row, entry): (&Model, &Entry),
    now: Moment,
) -> Result<Option<Moment>> {
    let takes = entry.channels.iter().any(|channel| row.standing().contain(*channel));
    if takes || entry.requested_at.is_some() {
        return Ok(Some(entry.requested_at.unwrap_or(now)));
    }
    let known = match &entry.whom {
        Whom::Number(number) => barred_list::of_number(db, owner, number).await?,
        Whom::Email(email) => barred_list::of_email(db, owner, email).await?,
    };
    let has_asked = known.is_some_and(|known| known.said_no_at().is_some());
    Ok((!has_asked).then_some(now))
}

/// Is anything left that this takes back?
fn takes_any(row: &Model, wish: &Wish) -> bool {
    let standing = row.standing().0;
    standing
        .iter()
        .any(|channel| wish.channels.is_empty() || wish.channels.contains(channel))
}

/// Those of the do-not-call list that follow from it: of the number, and of the address.
fn entries(row: &Model, wish: &Wish, [of_number, of_email]: [DncId; 2]) -> Vec<Entry> {
    let meant = |channel: &DncChannel| {
        row.channels.contain(*channel) && (wish.channels.is_empty() || wish.channels.contains(channel))
    };
    let entry = |id, whom, reached_by: &[DncChannel]| {
        let channels: Vec<DncChannel> = reached_by.iter().copied().filter(meant).collect();
        (!channels.is_empty()).then(|| Entry {
            id,
            whom,
            channels,
            reason: Some(wish.reason.clone()),
            source: Source::Manual,
            session_id: None,
            requested_at: wish.requested_at,
            created_by: Some(wish.by.clone()),
        })
    };
    let number = row.phone_number.clone().map(Whom::Number);
    let email = row.email.clone().map(Whom::Email);
    let number = number.and_then(|whom| entry(of_number, whom, &[DncChannel::Phone, DncChannel::Sms]));
    let email = email.and_then(|whom| entry(of_email, whom, &[DncChannel::Email]));
    number.into_iter().chain(email).collect()
}

/// Deletes one, with its texts and its file; in the live environment only when the law wants it no longer.
#[boxed]
pub async fn delete(deps: &Deps, key: TenantScoped<ConsentId>) -> Result<()> {
    let times = deps.clock.times();
    let evidence = deps
        .writer
        .run(key.tenant_id, move |db| {
            Box::pin(async move {
                let row = consent::load(db, key).await?;
                let until = kept::kept_until(row.given_at, consent::last_used(db, key).await?);
                if !kept::may_go(key.env, until, times) {
                    return Err(Error::InUse(format!(
                        "the law wants a live consent kept for five years after it was given and after each use, so this one until \
                         {until}; it can be revoked"
                    )));
                }
                consent::remove(db, &row).await?;
                Ok((row.evidence.map(|evidence| evidence.id), Commit::default()))
            })
        })
        .await?;
    // What fails now is found again by the sweep.
    files::erase(deps, key.tenant_id, evidence.as_slice()).await
}
