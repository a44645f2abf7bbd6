//! Nodes that serve one database together, and which of them has each workspace.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "CREATE TABLE nodes (
        id uuid NOT NULL PRIMARY KEY,
        name varchar(64) NOT NULL,
        address varchar(255) NOT NULL,
        sip_address varchar(255),
        version varchar(32) NOT NULL,
        started_at bigint NOT NULL,
        seen_at bigint NOT NULL,
        until_ms bigint NOT NULL,
        ended_ms bigint,
        draining boolean NOT NULL DEFAULT FALSE,
        workspaces bigint NOT NULL DEFAULT 0,
        live_calls bigint NOT NULL DEFAULT 0,
        deliveries_waiting bigint NOT NULL DEFAULT 0
    )",
    "CREATE INDEX nodes_live ON nodes (until_ms) WHERE ended_ms IS NULL",
    // The installation's own has the id that no workspace has.
    "CREATE TABLE workspace_leases (
        tenant_id uuid NOT NULL PRIMARY KEY,
        node_id uuid,
        epoch bigint NOT NULL DEFAULT 0,
        wanted_by uuid,
        wanted_until_ms bigint,
        last_seen_at bigint
    )",
    "CREATE INDEX workspace_leases_node ON workspace_leases (node_id, tenant_id)",
    "CREATE TABLE trunk_sources (
        trunk_id uuid NOT NULL PRIMARY KEY,
        tenant_id uuid NOT NULL,
        networks jsonb NOT NULL
    )",
];
