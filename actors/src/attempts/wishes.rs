//! What people want, on record: that they do not want to be reached any more, that they do again, and that a consent was taken back.
use super::{hashes_of, salt};
use crate::deps::Deps;
use entities::{
    Result,
    attempt::{New, RecordKind},
    dnc,
    ids::{AttemptId, ConsentId, SessionId, TenantId},
    values::{Env, Moment},
};
use rules::{
    commit::Commit,
    law::record::{LiftedBody, OptOutBody, OptOutContent, Person, RevocationBody, Subject, record},
};

/// Records a wish not to be reached any more, as it comes onto the do-not-call list. `words`: what was said, where that is known.
pub fn opted_out(deps: &Deps, entry: &dnc::Model, words: Option<String>) -> Result<New> {
    let owner = (entry.tenant_id, entry.env);
    let person = Person {
        phone_number: entry.phone_number.clone(),
        email: entry.email.clone(),
        salt: salt(),
        ..Person::default()
    };
    let subject = Subject {
        owner,
        kind: RecordKind::OptOut,
        attempt_id: of_entry(entry),
        dial_n: 0,
        campaign_id: None,
        hashes: hashes_of(deps, owner.0, &person),
        consent_id: None,
    };
    let body = OptOutBody {
        how: how(entry.source).to_owned(),
        entry_id: entry.id,
        channels: entry.channels.0.clone(),
        said_at: deps.clock.now(),
        session_id: entry.session_id,
    };
    let content = OptOutContent {
        person,
        words,
        entered_by: entry.created_by.clone(),
    };
    record(subject, &body, Some(&content))
}

/// The attempt id under which an entry of the do-not-call list is recorded.
pub fn of_entry(entry: &dnc::Model) -> AttemptId {
    AttemptId(entry.session_id.map_or(entry.id.0, |session| session.0))
}

/// Records that an entry was taken off the do-not-call list, in the transaction in which it is: `entry` as it is then. `how`: `staff`, or
/// `sms_start`.
pub fn lifted(deps: &Deps, entry: &dnc::Model, how: &str, words: Option<String>) -> Result<New> {
    let owner = (entry.tenant_id, entry.env);
    let person = Person {
        phone_number: entry.phone_number.clone(),
        email: entry.email.clone(),
        salt: salt(),
        ..Person::default()
    };
    let subject = Subject {
        owner,
        kind: RecordKind::Lifted,
        attempt_id: AttemptId(entry.id.0),
        dial_n: 0,
        campaign_id: None,
        hashes: hashes_of(deps, owner.0, &person),
        consent_id: None,
    };
    let body = LiftedBody {
        how: how.to_owned(),
        entry_id: entry.id,
        channels: entry.channels.0.clone(),
        lifted_at: entry.removed_at.unwrap_or_else(|| deps.clock.now()),
    };
    let content = OptOutContent {
        person,
        words,
        entered_by: entry.removed_by.clone(),
    };
    record(subject, &body, Some(&content))
}

/// As the API writes it.
fn how(source: dnc::Source) -> &'static str {
    match source {
        dnc::Source::OptOutVoice => "opt_out_voice",
        dnc::Source::SmsStop => "sms_stop",
        dnc::Source::Unsubscribe => "unsubscribe",
        dnc::Source::Manual => "manual",
        dnc::Source::Import => "import",
    }
}

/// A consent that was taken back.
#[derive(Clone, Debug)]
pub struct Revoked {
    pub owner: (TenantId, Env),
    pub consent_id: ConsentId,
    pub how: String,
    pub said_at: Moment,
    pub session_id: Option<SessionId>,
    /// Its salt is given here.
    pub person: Person,
    pub words: Option<String>,
    pub entered_by: Option<String>,
}

/// Records that a consent was taken back, in the transaction in which it is.
pub fn revoked(deps: &Deps, commit: &mut Commit, revoked: Revoked) -> Result<()> {
    let person = Person {
        salt: salt(),
        ..revoked.person
    };
    let attempt = revoked.session_id.map_or(revoked.consent_id.0, |session| session.0);
    let subject = Subject {
        owner: revoked.owner,
        kind: RecordKind::Revocation,
        attempt_id: AttemptId(attempt),
        dial_n: 0,
        campaign_id: None,
        hashes: hashes_of(deps, revoked.owner.0, &person),
        consent_id: None,
    };
    let body = RevocationBody {
        consent_id: revoked.consent_id,
        how: revoked.how,
        said_at: revoked.said_at,
        session_id: revoked.session_id,
    };
    let content = OptOutContent {
        person,
        words: revoked.words,
        entered_by: revoked.entered_by,
    };
    let row = record(subject, &body, Some(&content))?;
    commit.changes.attempt_records.push(row);
    Ok(())
}
