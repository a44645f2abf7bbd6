//! The record of attempts as lines of the dump: each row with the digests that its hash is over, and whether its verdicts come out
//! again.
use super::Dump;
use crate::error::CannotStart;
use entities::attempt::{self, Model, RecordKind, anchor, chain, head};
use rules::law::{
    self, Law,
    record::{AttemptBody, chain::digest, prove},
};
use serde_json::{Value, json};
use std::io::Write;

impl<W: Write> Dump<'_, W> {
    pub(super) async fn records(&mut self) -> Result<(), CannotStart> {
        let place = |row: &Model| (row.tenant_id, (row.tenant_id, row.env, row.n));
        self.table(attempt::all_after, place, record_line).await?;
        for end in chain::all(self.db).await? {
            if self.is_wanted(end.tenant_id) {
                let line = json!({ "kind": "record_end", "tenant": end.tenant_id, "env": end.env, "n": end.n, "hash": end.hash });
                self.line(&line)?;
            }
        }
        for anchor in anchor::all(self.db).await? {
            if self.is_wanted(anchor.tenant_id) {
                self.line(&anchor_line(&anchor))?;
            }
        }
        for head in head::all(self.db).await? {
            if self.is_wanted(head.tenant_id) {
                let line = json!({ "kind": "record_head", "tenant": head.tenant_id, "env": head.env, "day": head.day,
                    "n": head.n, "hash": head.hash });
                self.line(&line)?;
            }
        }
        Ok(())
    }
}

fn anchor_line(row: &anchor::Model) -> Value {
    json!({
        "kind": "record_anchor",
        "tenant": row.tenant_id,
        "env": row.env,
        "n": row.n,
        "hash": row.hash,
        "recorded_at": row.recorded_at,
        "pruned_at": row.pruned_at,
    })
}

fn record_line(row: &Model) -> Value {
    json!({
        "kind": "record",
        "tenant": row.tenant_id,
        "env": row.env,
        "n": row.n,
        "what": row.kind,
        "attempt": row.attempt_id,
        "dial_n": row.dial_n,
        "campaign": row.campaign_id,
        "number_hash": row.number_hash,
        "email_hash": row.email_hash,
        "at": row.at,
        "body": row.body,
        "content": row.content.as_deref().map(digest),
        "content_sha256": row.content_sha256,
        "prev_hash": row.prev_hash,
        "hash": row.hash,
        "difference": difference(row),
    })
}

fn told(body: &AttemptBody, law: &Law) -> Option<String> {
    prove(body, law).err().map(|difference| difference.to_string())
}

/// What the law says otherwise of an attempt than was recorded. Null: nothing, or it is not one; an attempt that was judged by an
/// operator's rules, too, is asked about where those are (`callboard compliance prove`).
fn difference(row: &Model) -> Option<String> {
    if row.kind != RecordKind::Attempt {
        return None;
    }
    let body: AttemptBody = match serde_json::from_str(&row.body) {
        Ok(body) => body,
        Err(error) => return Some(format!("it cannot be read: {error}")),
    };
    if body.operator.is_some() {
        return None;
    }
    match law::of_version(&body.law) {
        // Made once: there are many rows.
        Some(pack) if pack.version == law::pack().version => told(&body, Law::untouched()),
        Some(pack) => told(&body, &Law::new(pack, None)),
        None => Some(format!("there is no law pack {}", body.law)),
    }
}
