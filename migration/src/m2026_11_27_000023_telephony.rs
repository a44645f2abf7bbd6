//! Live telephone calls: what a session knows of its carrier, and the legs that are on the wire.
use crate::{columns::*, schema::Schema, steps::table};
use sea_orm::{DbErr, sea_query::{ColumnDef, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(columns(), vec![legs()], INDEXES).await
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("sessions", uuid_null("trunk_id")),
        ("sessions", big_integer_null("picked_up_at")),
        ("sessions", big_integer_null("bridged_at")),
        ("sessions", integer_null("sip_code")),
        ("sessions", integer_null("q850")),
        ("sessions", json_binary_null("quality")),
    ]
}

fn legs() -> TableCreateStatement {
    let columns = vec![
        uuid("id"),
        uuid("tenant_id"),
        text("env"),
        uuid("session_id"),
        integer("leg"),
        uuid("trunk_id"),
        text("call_id"),
        text("target"),
        text("transport"),
        text("phase"),
        text("local_uri"),
        text("remote_uri"),
        text_null("remote_tag"),
        text("remote_target"),
        json_binary("route_set"),
        big_integer("cseq"),
        big_integer("created_at"),
    ];
    table("sip_legs", 1, columns)
}

/// Few rows stand in the table: as many as legs are on the wire.
const INDEXES: &[&str] = &[
    "CREATE INDEX sip_legs_session ON sip_legs (session_id)",
    "CREATE INDEX sip_legs_call_id ON sip_legs (call_id)",
];
