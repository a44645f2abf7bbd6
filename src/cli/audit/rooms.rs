//! Rooms: how each has gone. What was said in one is its session's.
use entities::room::Model;
use serde_json::{Value, json};

/// Without what its link is made of.
pub(super) fn room_line(row: &Model) -> Value {
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
