//! Taking consents back: each channel for itself, with its place among all commits, so that every dial lies before it or after it.
use super::{Address, Column, Entity, Model, Withdrawal, file, of_people, owned, text};
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::{Connection, Transaction},
    dnc::Channels,
    error::Result,
    ids::{ConsentId, TenantId},
    values::{Env, Moment},
};
use sea_orm::entity::prelude::*;
use std::collections::BTreeMap;

/// What is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// All that this person has given to the workspace.
    Of(Address),
    One(ConsentId),
}

/// Somebody does not want it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    pub tenant_id: TenantId,
    pub env: Env,
    pub what: Revoked,
    /// Empty: all of them.
    pub channels: Channels,
    /// Only what was given by then: what was given later is another wish.
    pub given_by: Option<Moment>,
    pub at: Moment,
    /// Who has noted it; none: the person it is about.
    pub by: Option<String>,
    pub reason: String,
    /// Its place among all commits; the writer gives it.
    pub seq: i64,
}

impl Revocation {
    fn concerns(&self, row: &Model) -> bool {
        let is_meant = match &self.what {
            Revoked::One(id) => row.id == *id,
            Revoked::Of(Address::Number(number)) => row.phone_number.as_ref() == Some(number),
            Revoked::Of(Address::Email(email)) => row.email.as_ref() == Some(email),
        };
        let is_owned = (row.tenant_id, row.env) == (self.tenant_id, self.env);
        is_owned && is_meant && self.given_by.is_none_or(|by| row.given_at <= by)
    }

    /// Takes from a consent what this takes back. Answers whether anything was left to be taken.
    fn take_from(&self, row: &mut Model) -> bool {
        if !self.concerns(row) {
            return false;
        }
        let taken: Vec<Withdrawal> = row
            .standing()
            .0
            .into_iter()
            .filter(|channel| self.channels.0.is_empty() || self.channels.contain(*channel))
            .map(|channel| Withdrawal {
                channel,
                at: self.at,
                seq: self.seq,
                by: self.by.clone(),
                reason: self.reason.clone(),
            })
            .collect();
        if taken.is_empty() {
            return false;
        }
        row.withdrawals.0.extend(taken);
        row.revoked_seq = Some(self.seq);
        if row.standing().0.is_empty() {
            row.revoked_at = Some(self.at);
            row.revoked_by.clone_from(&self.by);
            row.revoked_reason = Some(self.reason.clone());
        }
        true
    }
}

/// Takes back all that these say, in the caller's transaction.
#[boxed]
pub async fn revoke(db: &Transaction, revocations: &[Revocation]) -> Result<()> {
    let mut rows = concerned(db, revocations).await?;
    let mut changed: BTreeMap<ConsentId, Model> = BTreeMap::new();
    for revocation in revocations {
        for row in rows.values_mut() {
            if revocation.take_from(row) {
                changed.insert(row.id, row.clone());
            }
        }
    }
    // However many took something of it: it is one step.
    let next = |row: Model| Model {
        version: row.version + 1,
        ..row
    };
    let changed: Vec<Model> = changed.into_values().map(next).collect();
    bulk::save(db, &changed, OnConflict::ReplacePredecessor).await.map(drop)
}

/// All consents that any of these may take something from.
async fn concerned(db: &Connection, revocations: &[Revocation]) -> Result<BTreeMap<ConsentId, Model>> {
    let mut people: BTreeMap<(TenantId, Env), Vec<Address>> = BTreeMap::new();
    let mut rows = BTreeMap::new();
    for revocation in revocations {
        let owner = (revocation.tenant_id, revocation.env);
        match &revocation.what {
            Revoked::Of(person) => people.entry(owner).or_default().push(person.clone()),
            Revoked::One(id) => {
                let one = owned(owner.0, owner.1).filter(Column::Id.eq(*id));
                rows.extend(one.one(db).await?.map(|row| (row.id, row)));
            }
        }
    }
    for (owner, people) in people {
        let found = of_people(db, owner, &people).await?;
        rows.extend(found.into_values().flatten().map(|row| (row.id, row)));
    }
    Ok(rows)
}

/// Removes a consent with its texts. Its file is left to be erased: see [`file::abandoned`].
#[boxed]
pub async fn remove(db: &Connection, row: &Model) -> Result<()> {
    text::remove(db, row.id).await?;
    if let Some(evidence) = &row.evidence {
        file::abandon(db, evidence.id).await?;
    }
    Entity::delete_by_id(row.id).exec(db).await?;
    Ok(())
}

#[cfg(test)]
#[path = "revocation_tests.rs"]
mod tests;
