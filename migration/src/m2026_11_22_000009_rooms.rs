//! Rooms: links by which a person talks with an agent in a browser. Their sessions have no number.
use crate::{columns::*, schema::Schema};
use sea_orm::{DbBackend, DbErr, sea_query::{Alias, Table}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let rooms = Table::create()
        .table(Alias::new("rooms"))
        .col(uuid("id").primary_key())
        .col(uuid("tenant_id"))
        .col(text("env"))
        .col(uuid("session_id"))
        .col(uuid("agent_id"))
        .col(text("status"))
        .col(text("nonce"))
        .col(big_integer("expires_at"))
        .col(big_integer_null("viewed_at"))
        .col(uuid_null("participant_id"))
        .col(big_integer_null("connect_by"))
        .col(big_integer_null("joined_at"))
        .col(big_integer_null("lost_at"))
        .col(big_integer_null("ended_at"))
        .col(text_null("error_code"))
        .col(text_null("error_message"))
        .col(big_integer_null("wake_at"))
        .col(big_integer_null("deleted_at"))
        .col(integer("version"))
        .col(big_integer("created_at"))
        .to_owned();
    schema.create(rooms).await?;
    let nullable = match schema.backend() {
        DbBackend::Sqlite => SQLITE_NULLABLE,
        _ => &["ALTER TABLE sessions ALTER COLUMN to_number DROP NOT NULL"],
    };
    let room = vec![("sessions", uuid_null("room_id"))];
    schema.apply(room, Vec::new(), nullable).await?;
    schema.apply(Vec::new(), Vec::new(), INDEXES).await
}

/// SQLite cannot take a NOT NULL away: another column takes its place.
const SQLITE_NULLABLE: &[&str] = &[
    "ALTER TABLE sessions ADD COLUMN callee text",
    "UPDATE sessions SET callee = to_number",
    "ALTER TABLE sessions DROP COLUMN to_number",
    "ALTER TABLE sessions RENAME COLUMN callee TO to_number",
];

const INDEXES: &[&str] = &[
    "CREATE INDEX rooms_tenant ON rooms (tenant_id, env, id)",
    "CREATE INDEX rooms_due ON rooms (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE UNIQUE INDEX rooms_session ON rooms (session_id)",
];
