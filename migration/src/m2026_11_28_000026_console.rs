//! What the console's pages look for, show and do: lists by what people ask for, calls over time, who is invited.
use crate::{columns::*, schema::Schema, steps::*};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        // None: it did not say.
        ("logins", text_null("user_agent")),
        // Who has added it, or taken it off; none: nobody in the workspace, or before this was kept.
        ("dnc_entries", text_null("created_by")),
        ("dnc_entries", text_null("removed_by")),
        ("imports", text_null("created_by")),
    ];
    let tables = vec![
        clustered(
            schema.backend(),
            "call_hours",
            3,
            vec![
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                big_integer("hour").to_owned(),
                big_integer("started").to_owned(),
                big_integer("answered").to_owned(),
                big_integer("duration_seconds").to_owned(),
                big_integer("cost_cents").to_owned(),
            ],
        ),
        table(
            "invitations",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("email").to_owned(),
                text("role").to_owned(),
                uuid("invited_by").to_owned(),
                text("token_hash").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer("expires_at").to_owned(),
            ],
        ),
        table(
            "password_resets",
            1,
            vec![
                text("token_hash").to_owned(),
                uuid("user_id").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
    ];
    schema.apply(columns, tables, STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    // One of the two holds a call: by the number of the other side.
    "CREATE INDEX sessions_called ON sessions (tenant_id, env, to_number, id) WHERE direction = 'outbound'",
    "CREATE INDEX sessions_caller ON sessions (tenant_id, env, from_number, id) WHERE direction = 'inbound'",
    // As the others begin: SQLite is to see which is the narrowest.
    "DROP INDEX sessions_campaign",
    "CREATE INDEX sessions_campaign ON sessions (tenant_id, env, campaign_id, id) WHERE campaign_id IS NOT NULL",
    "CREATE INDEX sessions_agent ON sessions (tenant_id, env, agent_id, id)",
    "CREATE INDEX sessions_status ON sessions (tenant_id, env, status, id)",
    "CREATE INDEX sessions_reference ON sessions (tenant_id, env, client_reference_id, id) WHERE client_reference_id IS NOT NULL",
    "CREATE INDEX sessions_disposition ON sessions (tenant_id, env, disposition_code, id) WHERE disposition_code IS NOT NULL",
    "CREATE INDEX contacts_status ON contacts (campaign_id, status, id)",
    "CREATE INDEX dnc_entries_removed ON dnc_entries (tenant_id, env, id) WHERE removed_at IS NOT NULL",
    // One invitation for each address.
    "CREATE UNIQUE INDEX invitations_address ON invitations (tenant_id, email)",
    "CREATE UNIQUE INDEX invitations_token ON invitations (token_hash)",
    "CREATE INDEX password_resets_user ON password_resets (user_id)",
    // Calls that have ended before there were counts.
    "INSERT INTO call_hours (tenant_id, env, hour, started, answered, duration_seconds, cost_cents) \
     SELECT tenant_id, env, hour, COUNT(*), COUNT(answered_by), COALESCE(SUM(duration_seconds), 0), COALESCE(SUM(actual_cost_cents), 0) \
     FROM (SELECT tenant_id, env, COALESCE(dialed_at, created_at) / 3600000 * 3600000 AS hour, answered_by, duration_seconds, \
     actual_cost_cents FROM sessions WHERE phase = 'ended' AND CASE WHEN room_id IS NULL \
     THEN dialed_at IS NOT NULL OR direction = 'inbound' ELSE answered_by IS NOT NULL END) AS calls GROUP BY tenant_id, env, hour",
];
