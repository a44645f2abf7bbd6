//! How each row holds the hash of the one before, so that a row that was changed, taken out, put in or moved is found.
//!
//! The hash is SHA-256 over these texts, each after its length in bytes as four bytes, the highest first: the name of the form
//! ([`FORM`]), the hash of the row before (empty for the first), tenant, env, n, kind, attempt_id, dial_n, campaign_id (empty: none),
//! number_hash (empty: none), email_hash (empty: none), the time in Unix milliseconds, the SHA-256 of the content ([`NO_CONTENT`]: there is none), and the SHA-256
//! of the body. Ids are written in lower case with hyphens, numbers in decimal, digests in lower-case hex.
use crate::digest::{hex, sha256};
use entities::{
    attempt::{Model, New, RecordKind},
    ids::{AttemptId, CampaignId, ConsentId, TenantId},
    values::{Env, Moment},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::{self, Display};

/// Another way to hash gets another name.
pub const FORM: &str = "callboard.attempt.1";
/// In place of a digest.
pub const NO_CONTENT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// SHA-256 in lower-case hex.
pub fn digest(text: &str) -> String {
    sha256(text.as_bytes())
}

/// What is hashed of a row. Its body and its content stand for themselves by their digests.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    pub tenant_id: TenantId,
    pub env: Env,
    pub n: i64,
    pub kind: RecordKind,
    pub attempt_id: AttemptId,
    pub dial_n: i32,
    pub campaign_id: Option<CampaignId>,
    pub number_hash: Option<&'a str>,
    pub email_hash: Option<&'a str>,
    pub at: Moment,
    pub body_sha256: &'a str,
    pub content_sha256: Option<&'a str>,
}

/// The hash of a row that follows one with the hash `before`.
pub fn hash(before: &str, link: &Link<'_>) -> String {
    let mut hasher = Hasher(Sha256::new());
    hasher.add(FORM);
    hasher.add(before);
    hasher.show(link.tenant_id);
    hasher.add(link.env.as_str());
    hasher.show(link.n);
    hasher.add(link.kind.as_str());
    hasher.show(link.attempt_id);
    hasher.show(link.dial_n);
    match link.campaign_id {
        Some(campaign) => hasher.show(campaign),
        None => hasher.add(""),
    }
    hasher.add(link.number_hash.unwrap_or_default());
    hasher.add(link.email_hash.unwrap_or_default());
    hasher.show(link.at.millis());
    hasher.add(link.content_sha256.unwrap_or(NO_CONTENT));
    hasher.add(link.body_sha256);
    hex(&hasher.0.finalize())
}

struct Hasher(Sha256);

impl Hasher {
    fn add(&mut self, text: &str) {
        // Rows are far below that.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.0.update(length.to_be_bytes());
        self.0.update(text.as_bytes());
    }

    fn show(&mut self, value: impl Display) {
        self.add(&value.to_string());
    }
}

/// A row in its place: behind the one with the place and the hash `before`.
pub fn placed(new: New, before: (i64, &str), at: Moment) -> Model {
    let (n, prev_hash) = (before.0 + 1, before.1.to_owned());
    let mut row = Model {
        tenant_id: new.tenant_id,
        env: new.env,
        n,
        kind: new.kind,
        attempt_id: new.attempt_id,
        dial_n: new.dial_n,
        campaign_id: new.campaign_id,
        number_hash: new.number_hash,
        email_hash: new.email_hash,
        consent_id: new.consent_id,
        at,
        body: new.body,
        content: new.content,
        content_sha256: new.content_sha256,
        prev_hash,
        hash: String::new(),
    };
    row.hash = expected(&row);
    row
}

/// The consent that an opening rests on, as its body says. What cannot be read names none: its hash tells whether it was changed.
pub fn consent_in(kind: RecordKind, body: &str) -> Option<ConsentId> {
    #[derive(Deserialize)]
    struct Opening {
        facts: Facts,
    }
    #[derive(Deserialize)]
    struct Facts {
        consent: Option<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        id: ConsentId,
    }
    if kind != RecordKind::Attempt {
        return None;
    }
    let opening: Opening = serde_json::from_str(body).ok()?;
    Some(opening.facts.consent?.id)
}

/// The hash that a row must have.
fn expected(row: &Model) -> String {
    let link = Link {
        tenant_id: row.tenant_id,
        env: row.env,
        n: row.n,
        kind: row.kind,
        attempt_id: row.attempt_id,
        dial_n: row.dial_n,
        campaign_id: row.campaign_id,
        number_hash: row.number_hash.as_deref(),
        email_hash: row.email_hash.as_deref(),
        at: row.at,
        body_sha256: &digest(&row.body),
        content_sha256: row.content_sha256.as_deref(),
    };
    hash(&row.prev_hash, &link)
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Another workspace's, or the other environment's.
    Owner,
    /// It does not stand behind the row before it.
    Place,
    /// It does not hold the hash of the row before it.
    Before,
    /// It says of a person something else than was recorded.
    Content,
    /// It is found under another consent than its body names.
    Consent,
    /// It says something else than was recorded.
    Hash,
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Broken::Owner => "is another workspace's, or of the other environment",
            Broken::Place => "does not stand behind the row before it: rows are missing, repeated or moved",
            Broken::Before => "does not hold the hash of the row before it",
            Broken::Content => "has a content that is not the one whose digest was recorded",
            Broken::Consent => "stands under another consent than its body names",
            Broken::Hash => "is not as it was recorded: its hash is another",
        })
    }
}

/// Is it as it was recorded, whatever stands before it?
pub fn check(row: &Model) -> Result<(), Broken> {
    let content = row.content.as_deref().map(digest);
    // A blanked content leaves its digest.
    if content.is_some() && content != row.content_sha256 {
        return Err(Broken::Content);
    }
    if row.hash != expected(row) {
        return Err(Broken::Hash);
    }
    match row.consent_id == consent_in(row.kind, &row.body) {
        true => Ok(()),
        false => Err(Broken::Consent),
    }
}

/// How far a chain was followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    owner: Option<(TenantId, Env)>,
    /// The last row's.
    pub n: i64,
    pub hash: String,
}

impl Followed {
    /// From its first row on, or from behind an anchor: a row with that place and that hash.
    pub fn from(n: i64, hash: impl Into<String>) -> Self {
        Followed {
            owner: None,
            n,
            hash: hash.into(),
        }
    }

    /// The next row of the chain.
    pub fn follow(&mut self, row: &Model) -> Result<(), Broken> {
        if *self.owner.get_or_insert(row.owner()) != row.owner() {
            return Err(Broken::Owner);
        }
        if row.n != self.n + 1 {
            return Err(Broken::Place);
        }
        self.follow_any(row)
    }

    /// The next of those that were picked from a chain: it stands somewhere behind the one before, and where it is the very next it
    /// holds its hash.
    pub fn follow_picked(&mut self, row: &Model) -> Result<(), Broken> {
        if *self.owner.get_or_insert(row.owner()) != row.owner() {
            return Err(Broken::Owner);
        }
        match row.n {
            n if n <= self.n => Err(Broken::Place),
            n if n == self.n + 1 => self.follow_any(row),
            _ => self.step(row),
        }
    }

    fn follow_any(&mut self, row: &Model) -> Result<(), Broken> {
        if row.prev_hash != self.hash {
            return Err(Broken::Before);
        }
        self.step(row)
    }

    fn step(&mut self, row: &Model) -> Result<(), Broken> {
        check(row)?;
        self.n = row.n;
        self.hash.clone_from(&row.hash);
        Ok(())
    }
}

/// The first row that does not follow from the one before it, and why; `before`: what the first follows.
pub fn first_broken(before: (i64, &str), rows: &[Model]) -> Option<(i64, Broken)> {
    let mut followed = Followed::from(before.0, before.1);
    rows.iter()
        .find_map(|row| followed.follow(row).err().map(|broken| (row.n, broken)))
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
