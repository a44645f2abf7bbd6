//! The rules of calling: hours, do-not-call, caps; what a campaign's dispatch looks at, and jobs that import lists.
use crate::{columns::*, schema::Schema, steps::{clustered, table}};
use sea_orm::{DbBackend, DbErr, sea_query::{ColumnDef, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(columns(), tables(schema.backend()), &STATEMENTS).await
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("tenants", text("timezone").default("America/New_York").to_owned()),
        ("campaigns", big_integer_null("armed_at").to_owned()),
        ("campaigns", big_integer_null("next_open_at").to_owned()),
        ("campaigns", big_integer_null("wake_at").to_owned()),
        ("campaigns", big_integer_null("deleted_at").to_owned()),
        ("campaign_tallies", big_integer("cost_cents").default(0).to_owned()),
        ("contacts", text_null("timezone").to_owned()),
        ("contacts", text("zone").default("").to_owned()),
        ("contacts", big_integer_null("not_before").to_owned()),
        ("contacts", integer("granted_attempts").default(0).to_owned()),
        ("sessions", big_integer_null("scheduled_at").to_owned()),
        ("sessions", integer("queue_ttl_seconds").default(300).to_owned()),
        ("sessions", text_null("timezone").to_owned()),
        ("sessions", integer("price_cents_per_minute").default(0).to_owned()),
    ]
}

fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![
        // The number first: its recent calls are one short range.
        clustered(
            backend,
            "dials",
            5,
            vec![
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("phone_number").to_owned(),
                // One per attempt to place the call: a trunk that was full is asked again.
                uuid("session_id").to_owned(),
                integer("n").to_owned(),
                uuid_null("campaign_id").to_owned(),
                big_integer("dialed_at").to_owned(),
                big_integer("seq").to_owned(),
            ],
        ),
        table(
            "dnc_entries",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text_null("phone_number").to_owned(),
                text_null("email").to_owned(),
                json_binary("channels").to_owned(),
                text_null("reason").to_owned(),
                text("source").to_owned(),
                uuid_null("session_id").to_owned(),
                big_integer("added_seq").to_owned(),
                big_integer_null("removed_at").to_owned(),
                text_null("removed_reason").to_owned(),
                big_integer_null("removed_seq").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "dispatch_blocks",
            3,
            vec![
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("reason").to_owned(),
                big_integer("since").to_owned(),
            ],
        ),
        table(
            "campaign_moves",
            2,
            vec![
                uuid("campaign_id").to_owned(),
                big_integer("seq").to_owned(),
                text("moved_to").to_owned(),
                text_null("reason").to_owned(),
                big_integer("at").to_owned(),
            ],
        ),
        clustered(
            backend,
            "campaign_hours",
            2,
            vec![
                uuid("campaign_id").to_owned(),
                big_integer("hour").to_owned(),
                big_integer("dialed").to_owned(),
                big_integer("answered").to_owned(),
                big_integer("ended").to_owned(),
                big_integer("duration_seconds").to_owned(),
            ],
        ),
        table(
            "imports",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid_null("campaign_id").to_owned(),
                text("kind").to_owned(),
                text("status").to_owned(),
                big_integer("bytes").to_owned(),
                big_integer("bytes_done").to_owned(),
                big_integer("rows_done").to_owned(),
                big_integer("accepted").to_owned(),
                big_integer("duplicates").to_owned(),
                big_integer("rejected").to_owned(),
                json_binary("rejections").to_owned(),
                text_null("error").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer_null("ended_at").to_owned(),
            ],
        ),
        table(
            "import_bodies",
            1,
            vec![uuid("import_id").to_owned(), text("body").to_owned()],
        ),
    ]
}

const STATEMENTS: [&str; 13] = [
    "DROP INDEX contacts_fresh",
    "DROP INDEX contacts_due",
    // What may be called at once, in its order: a range per group of contacts that keep the same hours.
    "CREATE INDEX contacts_fresh ON contacts (campaign_id, zone, priority DESC, id) WHERE status = 'pending' AND next_attempt_at IS NULL",
    // What waits for a time, and where.
    "CREATE INDEX contacts_due ON contacts (campaign_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL",
    "CREATE INDEX contacts_due_zones ON contacts (campaign_id, zone) WHERE next_attempt_at IS NOT NULL",
    "CREATE INDEX campaign_moves_seq ON campaign_moves (seq)",
    "CREATE INDEX campaigns_wake ON campaigns (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX campaigns_deleted ON campaigns (id) WHERE deleted_at IS NOT NULL",
    "CREATE UNIQUE INDEX dnc_entries_number ON dnc_entries (tenant_id, env, phone_number) WHERE removed_at IS NULL AND phone_number IS NOT NULL",
    "CREATE UNIQUE INDEX dnc_entries_email ON dnc_entries (tenant_id, env, email) WHERE removed_at IS NULL AND email IS NOT NULL",
    "CREATE INDEX dnc_entries_tenant ON dnc_entries (tenant_id, env, id)",
    "CREATE INDEX imports_tenant ON imports (tenant_id, env, id)",
    "CREATE INDEX imports_running ON imports (id) WHERE status = 'running'",
];
