//! The call itself: versions of agents, functions, recordings, dispositions and answers, numbers and the calls that come in.
use crate::{columns::*, schema::Schema, steps::{clustered, editable, table}};
use sea_orm::{DbBackend, DbErr, sea_query::{ColumnDef, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(columns(), tables(schema.backend()), &STATEMENTS).await
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("sessions", text("direction").default("outbound").to_owned()),
        ("sessions", text("consent").default("not_required").to_owned()),
        ("sessions", json_binary("options").default("{}").to_owned()),
        ("sessions", text_null("disposition_code").to_owned()),
        ("sessions", text_null("disposition_note").to_owned()),
        ("sessions", text_null("disposition_by").to_owned()),
        ("sessions", uuid_null("recording_id").to_owned()),
        ("sessions", big_integer_null("opted_out_at").to_owned()),
        ("sessions", big_integer_null("purge_after").to_owned()),
        ("sessions", big_integer_null("deleted_at").to_owned()),
        ("transcripts", json_binary("timeline").default("[]").to_owned()),
        ("transcripts", json_binary("invocations").default("[]").to_owned()),
        ("contacts", text_null("disposition_code").to_owned()),
    ]
}

fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![
        clustered(
            backend,
            "agent_versions",
            2,
            vec![
                uuid("agent_id").to_owned(),
                integer("version").to_owned(),
                uuid("tenant_id").to_owned(),
                json_binary("definition").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "functions",
            1,
            editable(vec![
                text("name").to_owned(),
                json_binary("definition").to_owned(),
                text("sealed_headers").to_owned(),
                text("sealed_secret").to_owned(),
                text("secret_hint").to_owned(),
            ]),
        ),
        table(
            "recordings",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("session_id").to_owned(),
                text("status").to_owned(),
                text("channels").to_owned(),
                // Milliseconds of the talk that came before it.
                big_integer("from_ms").to_owned(),
                integer("tries").to_owned(),
                big_integer_null("wake_at").to_owned(),
                big_integer_null("duration_ms").to_owned(),
                big_integer_null("bytes").to_owned(),
                text_null("sha256").to_owned(),
                big_integer_null("purge_after").to_owned(),
                text_null("purge_reason").to_owned(),
                text_null("error").to_owned(),
                big_integer_null("completed_at").to_owned(),
                big_integer_null("purged_at").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "recording_reads",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                uuid("recording_id").to_owned(),
                // The key that asked for it; none: a signed link.
                uuid_null("api_key_id").to_owned(),
                big_integer("at").to_owned(),
            ],
        ),
        table(
            "evaluations",
            1,
            vec![
                uuid("session_id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("status").to_owned(),
                integer("tries").to_owned(),
                big_integer("give_up_at").to_owned(),
                text_null("error").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "answers",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("session_id").to_owned(),
                uuid("agent_id").to_owned(),
                uuid_null("campaign_id").to_owned(),
                uuid_null("contact_id").to_owned(),
                text("question_key").to_owned(),
                text("question").to_owned(),
                json_binary("value").to_owned(),
                integer_null("evidence_turn").to_owned(),
                text("source").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "numbers",
            1,
            editable(vec![
                text("phone_number").to_owned(),
                text_null("label").to_owned(),
                uuid_null("trunk_id").to_owned(),
                uuid_null("agent_id").to_owned(),
                json_binary("inbound").to_owned(),
            ]),
        ),
        table(
            "inbound_calls",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("number_id").to_owned(),
                text_null("from_number").to_owned(),
                uuid_null("session_id").to_owned(),
                text("outcome").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "number_alarms",
            2,
            vec![
                uuid("number_id").to_owned(),
                text("env").to_owned(),
                boolean("armed").to_owned(),
                big_integer_null("alarmed_at").to_owned(),
            ],
        ),
    ]
}

const STATEMENTS: [&str; 14] = [
    "INSERT INTO agent_versions (agent_id, version, tenant_id, definition, created_at) SELECT id, version, tenant_id, definition, updated_at FROM agents",
    "CREATE UNIQUE INDEX functions_name ON functions (tenant_id, name) WHERE deleted_at IS NULL",
    "CREATE INDEX functions_tenant ON functions (tenant_id, id)",
    "CREATE INDEX recordings_tenant ON recordings (tenant_id, env, id)",
    "CREATE INDEX recordings_session ON recordings (session_id)",
    "CREATE INDEX recordings_wake ON recordings (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX recording_reads_recording ON recording_reads (recording_id, id)",
    "CREATE INDEX evaluations_pending ON evaluations (session_id) WHERE status = 'pending'",
    "CREATE UNIQUE INDEX answers_session ON answers (session_id, question_key)",
    "CREATE INDEX answers_tenant ON answers (tenant_id, env, id)",
    "CREATE UNIQUE INDEX numbers_number ON numbers (tenant_id, phone_number) WHERE deleted_at IS NULL",
    "CREATE INDEX numbers_tenant ON numbers (tenant_id, id)",
    "CREATE INDEX numbers_agent ON numbers (agent_id) WHERE deleted_at IS NULL",
    "CREATE INDEX inbound_calls_number ON inbound_calls (number_id, env, created_at)",
];
