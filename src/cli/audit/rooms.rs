//! Rooms: how each has gone. What was said in one is its session's.
use super::{Dump, PAGE};
use crate::error::CannotStart;
use entities::room::{self, Model};
use serde_json::{Value, json};
use std::io::Write;

impl<W: Write> Dump<'_, W> {
    pub(super) async fn rooms(&mut self) -> Result<(), CannotStart> {
        let mut after = None;
        loop {
            let mut rows = room::all_after(self.db, after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.id);
            rows.retain(|row| self.is_wanted(row.tenant_id));
            for row in &rows {
                self.line(&room_line(row))?;
            }
        }
    }
}

/// Without what its link is made of.
fn room_line(row: &Model) -> Value {
    json!({
        "kind": "room",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "session": row.session_id,
        "status": row.status,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "viewed_at": row.viewed_at,
        "connect_by": row.connect_by,
        "joined_at": row.joined_at,
        "lost_at": row.lost_at,
        "ended_at": row.ended_at,
    })
}
