//! The record of attempts: what is written when somebody is about to be reached, and when it is over.
//!
//! Whoever commits an intent hands an [`Opening`] in with it ([`opened`]); ends come as facts of the machines
//! (`Fact::CloseAttempt`), wishes with the entries of the do-not-call list. The writer gives each row its place and its
//! hashes, in the same transaction (`chaining`), so a row stands if and only if what it tells of stands.
pub mod chaining;
pub mod exports;
pub mod heads;
pub mod person;
pub mod retention;
mod wishes;

pub use wishes::{Revoked, lifted, of_entry, opted_out, revoked};

use crate::deps::Deps;
use entities::{
    Result,
    attempt::{New, RecordKind},
    contact::Model as Contact,
    dial,
    ids::{AttemptId, CampaignId, ErasureId, SessionId, TenantId},
    session,
    values::{E164, Env},
};
use rules::{
    barred,
    commit::Commit,
    law::record::{AttemptBody, Closing, ErasureBody, Hashes, Person, Subject, chain::digest, record},
};
use serde::Serialize;
use uuid::Uuid;

/// An attempt that is about to be made.
#[derive(Clone, Debug)]
pub struct Opening {
    pub owner: (TenantId, Env),
    /// The session's id, or the message's.
    pub attempt_id: AttemptId,
    /// The `n` of the intent that it is written with.
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    /// Its salt is given here.
    pub person: Person,
    pub body: AttemptBody,
}

impl Opening {
    /// Of a call, with the intent of that `n`.
    pub fn of_call(call: &session::Model, dial_n: i32, body: AttemptBody) -> Self {
        Opening {
            owner: (call.tenant_id, call.env),
            attempt_id: AttemptId(call.id.0),
            dial_n,
            campaign_id: call.campaign_id,
            person: Person {
                phone_number: call.to_number.clone(),
                email: call.email.clone(),
                first_name: call.first_name.clone(),
                last_name: call.last_name.clone(),
                salt: Uuid::nil(),
            },
            body: AttemptBody {
                attempt_no: call.attempt,
                contact_id: call.contact_id,
                agent_id: Some(call.agent_id),
                agent_version: Some(call.agent_version),
                voice_id: call.voice_id.clone(),
                ..body
            },
        }
    }
}

/// A message that is about to be handed over.
pub struct Written<'a> {
    pub owner: (TenantId, Env),
    pub message: Uuid,
    /// The `n` of its intent.
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    /// Of a campaign.
    pub contact: Option<&'a Contact>,
    /// A number in E.164, or an e-mail address in lower case.
    pub address: String,
    /// SHA-256, in hex, of all that it says.
    pub words_sha256: String,
}

impl Opening {
    pub fn of_message(written: Written<'_>, body: AttemptBody) -> Self {
        let contact = written.contact;
        // Of a contact that has both, so that the person is found by either.
        let (number, email) = match written.address.parse::<E164>() {
            Ok(number) => (Some(number), contact.and_then(|contact| contact.email.clone())),
            Err(_) => {
                let number = contact.and_then(|contact| contact.phone_number.parse().ok());
                (number, Some(written.address))
            }
        };
        Opening {
            owner: written.owner,
            attempt_id: AttemptId(written.message),
            dial_n: written.dial_n,
            campaign_id: written.campaign_id,
            person: Person {
                phone_number: number,
                email,
                first_name: contact.and_then(|contact| contact.first_name.clone()),
                last_name: contact.and_then(|contact| contact.last_name.clone()),
                salt: Uuid::nil(),
            },
            body: AttemptBody {
                attempt_no: contact.map_or(1, |contact| contact.attempts + 1),
                contact_id: contact.map(|contact| contact.id),
                // Salted when it is written down.
                text_sha256: Some(written.words_sha256),
                ..body
            },
        }
    }
}

/// Records that somebody is about to be reached. It stands with the intent, or neither does.
pub fn opened(deps: &Deps, commit: &mut Commit, opening: Opening) -> Result<()> {
    let person = Person {
        salt: salt(),
        ..opening.person
    };
    let body = AttemptBody {
        text_sha256: (opening.body.text_sha256).map(|words| digest(&format!("{}\n{words}", person.salt))),
        ..opening.body
    };
    let subject = Subject {
        owner: opening.owner,
        kind: RecordKind::Attempt,
        attempt_id: opening.attempt_id,
        dial_n: opening.dial_n,
        campaign_id: opening.campaign_id,
        hashes: hashes_of(deps, opening.owner.0, &person),
        consent_id: body.facts.consent.as_ref().map(|consent| consent.id),
    };
    let row = record(subject, &body, Some(&person))?;
    commit.changes.attempt_records.push(row);
    Ok(())
}

/// Nobody finds out by trying numbers what a digest that is left was made of.
fn salt() -> Uuid {
    Uuid::from_u128(rand::random())
}

/// Under what somebody is found again: an address in its one spelling.
fn hashes_of(deps: &Deps, tenant: TenantId, person: &Person) -> Hashes {
    let key = person::key(&deps.links);
    let number = person.phone_number.as_ref().map(E164::as_str);
    // What is not an address was never written to, and is found as it was typed.
    let email = person.email.as_ref();
    let email = email.map(|email| barred::email(email).unwrap_or_else(|_| email.to_lowercase()));
    Hashes {
        number: number.map(|number| person::hash(&key, tenant, number)),
        email: email.map(|email| person::hash(&key, tenant, &email)),
    }
}

/// Records what came of an attempt.
pub async fn close(deps: &Deps, owner: (TenantId, Env), closing: &Closing, commit: &mut Commit) -> Result<()> {
    let row = match closing {
        Closing::Outcome {
            attempt_id,
            campaign_id,
            unless_undialled,
            body,
        } => {
            if let Some(number) = unless_undialled
                && !was_dialled(deps, owner, number, *attempt_id).await?
            {
                return Ok(());
            }
            follows(owner, RecordKind::Outcome, (*attempt_id, *campaign_id), body)?
        }
        Closing::Disposition {
            attempt_id,
            campaign_id,
            body,
        } => follows(owner, RecordKind::Disposition, (*attempt_id, *campaign_id), body)?,
    };
    commit.changes.attempt_records.push(row);
    Ok(())
}

/// A call that ends in the queue was dialled if a trunk has sent it back.
async fn was_dialled(deps: &Deps, (tenant, env): (TenantId, Env), number: &E164, id: AttemptId) -> Result<bool> {
    let session = SessionId(id.0);
    let dials = dial::of_sessions(&deps.db.read, &[(tenant, env, number.clone(), session)]).await?;
    Ok(dials.contains_key(&session))
}

/// A row that names nobody: its opening does.
fn follows(
    owner: (TenantId, Env),
    kind: RecordKind,
    (attempt_id, campaign_id): (AttemptId, Option<CampaignId>),
    body: &impl Serialize,
) -> Result<New> {
    let subject = Subject {
        owner,
        kind,
        attempt_id,
        dial_n: 0,
        campaign_id,
        hashes: Hashes::default(),
        consent_id: None,
    };
    record(subject, body, None::<&Person>)
}

/// Places that one row of an erasure names: of more there are several.
pub const MOST_PLACES: usize = 1_000;

/// Records that what these rows say of a person was blanked (`entities::attempt::blank`), in the same transaction. `hashes`: under
/// which the person is found.
pub fn erased(
    owner: (TenantId, Env),
    erasure_id: ErasureId,
    hashes: Hashes,
    (places, asked_by): (&[i64], Option<String>),
) -> Result<New> {
    let body = ErasureBody {
        erasure_id,
        places: places.to_vec(),
        rows: i64::try_from(places.len()).unwrap_or(i64::MAX),
        asked_by,
    };
    let subject = Subject {
        owner,
        kind: RecordKind::Erasure,
        attempt_id: AttemptId(erasure_id.0),
        dial_n: 0,
        campaign_id: None,
        hashes,
        consent_id: None,
    };
    record(subject, &body, None::<&Person>)
}
