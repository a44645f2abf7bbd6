//! The first schema: access, agents, campaigns, sessions, events and their delivery.
use super::steps::{self, clustered, editable, table};
use sea_orm_migration::{prelude::*, schema::*, sea_orm::DbBackend};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        steps::apply(manager, Vec::new(), tables(manager.get_database_backend()), &INDEXES).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in tables(manager.get_database_backend())
            .iter()
            .rev()
            .filter_map(|table| table.get_table_name().cloned())
        {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        Ok(())
    }
}

fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    // On SQLite a key of type `integer` is the row's own number, and it holds 64 bits.
    let seq = match backend {
        DbBackend::Sqlite => integer("seq"),
        _ => big_integer("seq"),
    };
    vec![
        table("meta", 1, vec![text("key").to_owned(), text("value").to_owned()]),
        table(
            "tenants",
            1,
            vec![
                uuid("id").to_owned(),
                text("slug").to_owned(),
                text("name").to_owned(),
                text("country").to_owned(),
                integer("concurrency_limit").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "users",
            1,
            vec![
                uuid("id").to_owned(),
                text("email").to_owned(),
                text("password_hash").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "memberships",
            2,
            vec![
                uuid("user_id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("role").to_owned(),
            ],
        ),
        table(
            "logins",
            1,
            vec![
                text("token_hash").to_owned(),
                uuid("user_id").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer("last_seen_at").to_owned(),
            ],
        ),
        table(
            "api_keys",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("name").to_owned(),
                text("key_prefix").to_owned(),
                text("key_hash").to_owned(),
                text("env").to_owned(),
                json_binary("scopes").to_owned(),
                big_integer_null("expires_at").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer_null("last_used_at").to_owned(),
                big_integer_null("revoked_at").to_owned(),
            ],
        ),
        table(
            "idempotency_keys",
            3,
            vec![
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("key").to_owned(),
                text("fingerprint").to_owned(),
                uuid("object_id").to_owned(),
                integer_null("status").to_owned(),
                text_null("sealed_body").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table("agents", 1, editable(vec![json_binary("definition").to_owned()])),
        table(
            "verified_numbers",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("phone_number").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "webhook_endpoints",
            1,
            editable(vec![
                text("env").to_owned(),
                text("url").to_owned(),
                json_binary("event_types").to_owned(),
                text_null("description").to_owned(),
                integer("timeout_ms").to_owned(),
                text("sealed_headers").to_owned(),
                integer("max_concurrency").to_owned(),
                text("ordering").to_owned(),
                text("status").to_owned(),
                integer("failure_streak").to_owned(),
                big_integer_null("suspended_at").to_owned(),
                text("sealed_secret").to_owned(),
                text("secret_hint").to_owned(),
                text_null("sealed_previous_secret").to_owned(),
                big_integer_null("previous_secret_expires_at").to_owned(),
            ]),
        ),
        table(
            "campaigns",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                json_binary("plan").to_owned(),
                json_binary_null("agent").to_owned(),
                text("status").to_owned(),
                text_null("pause_reason").to_owned(),
                big_integer_null("cancel_requested_at").to_owned(),
                big_integer_null("started_at").to_owned(),
                big_integer_null("paused_at").to_owned(),
                big_integer_null("completed_at").to_owned(),
                text_null("completed_reason").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "campaign_tallies",
            1,
            vec![
                uuid("campaign_id").to_owned(),
                big_integer("total").to_owned(),
                big_integer("pending").to_owned(),
                big_integer("waiting").to_owned(),
                big_integer("dispatched").to_owned(),
                big_integer("completed").to_owned(),
                big_integer("failed").to_owned(),
                big_integer("skipped").to_owned(),
                big_integer("canceled").to_owned(),
                big_integer("completed_sessions").to_owned(),
                big_integer("failed_sessions").to_owned(),
            ],
        ),
        table(
            "contacts",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("campaign_id").to_owned(),
                text_null("external_id").to_owned(),
                text("phone_number").to_owned(),
                text_null("email").to_owned(),
                text_null("first_name").to_owned(),
                text_null("last_name").to_owned(),
                json_binary("variables").to_owned(),
                integer("priority").to_owned(),
                text("status").to_owned(),
                text_null("wait_reason").to_owned(),
                integer("attempts").to_owned(),
                uuid_null("last_session_id").to_owned(),
                big_integer_null("next_attempt_at").to_owned(),
                text_null("skip_reason").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "sessions",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("status").to_owned(),
                text("phase").to_owned(),
                text_null("end_reason").to_owned(),
                text_null("ended_by").to_owned(),
                text_null("answered_by").to_owned(),
                uuid("agent_id").to_owned(),
                integer("agent_version").to_owned(),
                text_null("voice_id").to_owned(),
                text_null("from_number").to_owned(),
                text("to_number").to_owned(),
                text_null("email").to_owned(),
                text_null("first_name").to_owned(),
                text_null("last_name").to_owned(),
                text_null("client_reference_id").to_owned(),
                uuid_null("campaign_id").to_owned(),
                uuid_null("contact_id").to_owned(),
                integer("attempt").to_owned(),
                json_binary("variables").to_owned(),
                json_binary("metadata").to_owned(),
                integer("ring_timeout_seconds").to_owned(),
                integer("max_duration_seconds").to_owned(),
                big_integer_null("queued_until").to_owned(),
                big_integer_null("dialed_at").to_owned(),
                big_integer_null("started_at").to_owned(),
                big_integer_null("ended_at").to_owned(),
                integer("duration_seconds").to_owned(),
                big_integer("actual_cost_cents").to_owned(),
                text_null("error_code").to_owned(),
                text_null("error_message").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "transcripts",
            1,
            vec![uuid("session_id").to_owned(), json_binary("turns").to_owned()],
        ),
        table(
            "events",
            1,
            vec![
                seq,
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("event_type").to_owned(),
                uuid("subject_id").to_owned(),
                big_integer("created_at").to_owned(),
                text("body").to_owned(),
            ],
        ),
        // The owner first: one tree holds the rows and each endpoint's log in its order.
        clustered(
            backend,
            "deliveries",
            2,
            vec![
                uuid("endpoint_id").to_owned(),
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("event_id").to_owned(),
                big_integer("event_seq").to_owned(),
                text("origin").to_owned(),
                uuid_null("replay_of").to_owned(),
                text("status").to_owned(),
                text_null("failed_reason").to_owned(),
                integer("attempts").to_owned(),
                big_integer_null("first_attempt_at").to_owned(),
                big_integer_null("next_attempt_at").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        clustered(
            backend,
            "delivery_attempts",
            2,
            vec![
                uuid("delivery_id").to_owned(),
                integer("n").to_owned(),
                big_integer("started_at").to_owned(),
                big_integer("signed_at").to_owned(),
                integer("duration_ms").to_owned(),
                integer_null("dns_ms").to_owned(),
                integer_null("connect_ms").to_owned(),
                integer_null("tls_ms").to_owned(),
                integer_null("first_byte_ms").to_owned(),
                text_null("remote_address").to_owned(),
                integer("status").to_owned(),
                text_null("error_code").to_owned(),
                text_null("error_message").to_owned(),
                text("response_headers").to_owned(),
                text_null("response_body").to_owned(),
            ],
        ),
        clustered(
            backend,
            "endpoint_health",
            1,
            vec![
                uuid("endpoint_id").to_owned(),
                integer("last_status").to_owned(),
                big_integer_null("last_success_at").to_owned(),
                big_integer_null("paused_until").to_owned(),
            ],
        ),
        clustered(
            backend,
            "endpoint_hours",
            2,
            vec![
                uuid("endpoint_id").to_owned(),
                big_integer("hour").to_owned(),
                big_integer("attempts").to_owned(),
                big_integer("succeeded").to_owned(),
                big_integer("failed").to_owned(),
                big_integer("duration_ms").to_owned(),
                big_integer("longest_ms").to_owned(),
            ],
        ),
        table(
            "recoveries",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                uuid("endpoint_id").to_owned(),
                big_integer("since").to_owned(),
                big_integer("until").to_owned(),
                text("status").to_owned(),
                uuid_null("after_id").to_owned(),
                big_integer("released").to_owned(),
                big_integer("replayed").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer_null("ended_at").to_owned(),
            ],
        ),
        table(
            "mails",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("recipient").to_owned(),
                text("kind").to_owned(),
                text("subject").to_owned(),
                text("body").to_owned(),
                text("status").to_owned(),
                integer("attempts").to_owned(),
                big_integer_null("next_attempt_at").to_owned(),
                text_null("last_error").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer_null("ended_at").to_owned(),
            ],
        ),
    ]
}

const INDEXES: [&str; 27] = [
    "CREATE UNIQUE INDEX tenants_slug ON tenants (slug)",
    "CREATE UNIQUE INDEX users_email ON users (email)",
    "CREATE UNIQUE INDEX api_keys_hash ON api_keys (key_hash)",
    "CREATE INDEX api_keys_tenant ON api_keys (tenant_id, id)",
    "CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at)",
    "CREATE INDEX agents_tenant ON agents (tenant_id, id)",
    "CREATE UNIQUE INDEX verified_numbers_number ON verified_numbers (tenant_id, phone_number)",
    "CREATE INDEX webhook_endpoints_tenant ON webhook_endpoints (tenant_id, env, id)",
    "CREATE INDEX campaigns_tenant ON campaigns (tenant_id, env, id)",
    "CREATE INDEX campaigns_open ON campaigns (status, tenant_id) WHERE status IN ('running', 'paused')",
    "CREATE UNIQUE INDEX contacts_number ON contacts (campaign_id, phone_number)",
    "CREATE UNIQUE INDEX contacts_external_id ON contacts (campaign_id, external_id) WHERE external_id IS NOT NULL",
    "CREATE INDEX contacts_campaign ON contacts (campaign_id, id)",
    // The dispatcher's two queues.
    "CREATE INDEX contacts_fresh ON contacts (campaign_id, priority DESC, id) WHERE status = 'pending'",
    "CREATE INDEX contacts_due ON contacts (campaign_id, next_attempt_at) WHERE status = 'waiting'",
    "CREATE INDEX sessions_tenant ON sessions (tenant_id, env, id)",
    "CREATE INDEX sessions_campaign ON sessions (campaign_id, id) WHERE campaign_id IS NOT NULL",
    "CREATE INDEX sessions_open ON sessions (tenant_id, phase, id) WHERE phase <> 'ended'",
    // Ids grow as `seq` does, so this serves lists, streams and look-ups.
    "CREATE UNIQUE INDEX events_tenant ON events (tenant_id, env, id)",
    "CREATE INDEX deliveries_event ON deliveries (event_seq)",
    // The retry queue of each endpoint.
    "CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_attempt_at, event_seq) WHERE status IN ('pending', 'retrying')",
    "CREATE INDEX deliveries_held ON deliveries (endpoint_id, id) WHERE status = 'held'",
    "CREATE INDEX webhook_endpoints_overlap ON webhook_endpoints (id) WHERE previous_secret_expires_at IS NOT NULL",
    "CREATE INDEX endpoint_hours_age ON endpoint_hours (hour)",
    "CREATE INDEX recoveries_endpoint ON recoveries (endpoint_id, id)",
    "CREATE INDEX recoveries_running ON recoveries (id) WHERE status = 'running'",
    "CREATE INDEX mails_due ON mails (next_attempt_at) WHERE status = 'queued'",
];
