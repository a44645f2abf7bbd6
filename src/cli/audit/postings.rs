//! The ledgers as postings: two for each entry, so that every transaction adds up to nothing.
use super::Dump;
use crate::error::CannotStart;
use entities::{
    connection::Connection,
    ids::TenantId,
    ledger::{self, Book, Model, account},
    page,
    values::Env,
};
use serde_json::{Value, json};
use std::io::Write;

impl<W: Write> Dump<'_, W> {
    pub(super) async fn postings(&mut self) -> Result<(), CannotStart> {
        for account in account::all(self.db).await? {
            if !self.is_wanted(account.tenant_id) {
                continue;
            }
            self.line(&account_line(&account))?;
            self.postings_of((account.tenant_id, account.env)).await?;
        }
        Ok(())
    }

    async fn postings_of(&mut self, owner: (TenantId, Env)) -> Result<(), CannotStart> {
        let key = |row: &Model| row.n;
        let read = async |db: &Connection, after: Option<i64>, limit| {
            ledger::entries_after(db, owner, after.unwrap_or(0), limit).await
        };
        page::each(self.db, read, key, async |rows| {
            for row in &rows {
                self.line(&posting_line(row, row.from_book, -row.cents.0))?;
                self.line(&posting_line(row, row.to_book, row.cents.0))?;
            }
            Ok::<(), CannotStart>(())
        })
        .await
    }
}

fn account_line(row: &account::Model) -> Value {
    json!({
        "kind": "account",
        "tenant": row.tenant_id,
        "env": row.env,
        "balance": row.balance_cents,
        "held": row.held_cents,
        "threshold": row.warning_threshold_cents,
        "depleted_at": row.depleted_at,
        "entries": row.entries,
        "last_hash": row.last_hash,
    })
}

fn posting_line(row: &Model, book: Book, cents: i64) -> Value {
    json!({
        "kind": "posting",
        "seq": row.seq,
        "txn": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "n": row.n,
        "account": book,
        "cents": cents,
        "entry": row.kind,
        "ref": row.subject_id,
        "note": row.note,
        "balance_after": row.balance_after_cents,
        "held_after": row.held_after_cents,
        "hash": row.hash,
        "created_at": row.created_at,
    })
}
