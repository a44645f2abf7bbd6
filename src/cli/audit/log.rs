//! `callboard audit log`: who changed whose access.
use super::unwritten;
use crate::error::CannotStart;
use entities::{
    audit_log::{self, Model},
    connection::Connection,
    ids::TenantId,
    page,
};
use serde_json::{Value, json};
use std::io::Write;

/// Writes a line for each act, oldest first, of one workspace or of all.
pub async fn write(db: &Connection, only: Option<TenantId>, mut out: impl Write) -> Result<(), CannotStart> {
    let key = |row: &Model| row.id;
    page::each(db, audit_log::all_after, key, async |rows| {
        for row in rows.iter().filter(|row| only.is_none() || row.tenant_id == only) {
            writeln!(out, "{}", line(row)).map_err(unwritten)?;
        }
        Ok::<(), CannotStart>(())
    })
    .await?;
    out.flush().map_err(unwritten)
}

fn line(row: &Model) -> Value {
    json!({
        "id": row.id,
        "at": row.at,
        "tenant": row.tenant_id,
        "actor": row.actor,
        "user_id": row.user_id,
        "user_email": row.user_email,
        "action": row.action,
        "subject": row.subject,
        "details": row.details,
    })
}
