//! Where a chain stood on each day, as it was published and as somebody has kept it: a chain that was made anew, and signed anew, does
//! not fit.
use super::text_of;
use crate::error::CannotStart;
use entities::{
    attempt::Model,
    ids::TenantId,
    values::{Env, Moment},
};
use rules::law::record::line::{Manifest, head_text};
use runtime::signing::is_signed;
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf};

/// As `GET /v1/compliance/heads` answers.
#[derive(Deserialize)]
struct Published {
    heads: Vec<Head>,
}

#[derive(Deserialize)]
struct Head {
    day: String,
    n: i64,
    row_hash: String,
    head_signed_at: Moment,
    public_key: String,
    signature: String,
}

/// What was published, by its place in the chain.
#[derive(Default)]
pub(super) struct Heads {
    by_place: BTreeMap<i64, Head>,
    /// Of a row that was read.
    pub met: u64,
}

impl Heads {
    pub(super) fn read(files: &[PathBuf], public_key: Option<&str>) -> Result<Self, CannotStart> {
        let mut heads = Heads::default();
        for file in files {
            let wrong = |why: String| CannotStart(format!("{}: {why}", file.display()));
            let published: Published = serde_json::from_str(&text_of(file)?)
                .map_err(|_| wrong("is not what GET /v1/compliance/heads has answered".to_owned()))?;
            for head in published.heads {
                if public_key.is_some_and(|key| key != head.public_key) {
                    let (day, key) = (&head.day, &head.public_key);
                    return Err(wrong(format!("the head of {day} is signed with another key: {key}")));
                }
                let (n, hash) = (head.n, head.row_hash.clone());
                if let Some(other) = heads.by_place.insert(n, head)
                    && other.row_hash != hash
                {
                    return Err(wrong(format!("row {n} was published with two hashes")));
                }
            }
        }
        Ok(heads)
    }

    pub(super) fn count(&self) -> usize {
        self.by_place.len()
    }

    /// Was each signed for this chain?
    pub(super) fn are_of(&self, owner: (TenantId, Env)) -> Result<(), String> {
        let is_signed_for = |head: &&Head| {
            let text = head_text(owner, &head.day, head.n, &head.row_hash);
            is_signed(&head.public_key, text.as_bytes(), &head.signature)
        };
        match self.by_place.values().find(|head| !is_signed_for(head)) {
            None => Ok(()),
            Some(head) => Err(format!(
                "the head of {} is not one of this workspace and environment, or was changed: its signature does not fit",
                head.day
            )),
        }
    }

    /// Is the row as it was published?
    pub(super) fn meet(&mut self, row: &Model) -> Result<(), String> {
        match self.by_place.get(&row.n) {
            None => Ok(()),
            Some(head) if head.row_hash == row.hash => {
                self.met += 1;
                Ok(())
            }
            Some(head) => Err(format!(
                "row {} was published on {} with another hash: the record was made anew since",
                row.n, head.day
            )),
        }
    }

    /// What was published before the manifest was made must have been in the chain by then.
    pub(super) fn end_by(&self, manifest: &Manifest) -> Result<(), CannotStart> {
        let is_cut = |head: &&Head| head.n > manifest.head.n && head.head_signed_at < manifest.made_at;
        match self.by_place.values().find(is_cut) {
            None => Ok(()),
            Some(head) => Err(CannotStart(format!(
                "row {} was published on {}, and the record ended with row {} later: rows were cut off",
                head.n, head.day, manifest.head.n
            ))),
        }
    }
}
