//! Messages: SMS and e-mails one by one, and every intent to send one.
use crate::{columns::*, schema::Schema, steps::{clustered, table}};
use sea_orm::{DbBackend, DbErr, sea_query::{ColumnDef, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), tables(schema.backend()), &STATEMENTS).await
}

/// What SMS and e-mails have in common: whose they are, how far they are, what they cost.
fn message(own: Vec<ColumnDef>) -> Vec<ColumnDef> {
    let mut columns = vec![
        uuid("id").to_owned(),
        uuid("tenant_id").to_owned(),
        text("env").to_owned(),
        text("phase").to_owned(),
    ];
    columns.extend(own);
    columns.extend([
        uuid_null("campaign_id").to_owned(),
        uuid_null("contact_id").to_owned(),
        text_null("client_reference_id").to_owned(),
        json_binary("metadata").to_owned(),
        big_integer_null("scheduled_at").to_owned(),
        // For a campaign's: not sent later than this.
        big_integer_null("send_by").to_owned(),
        // The next moment at which its actor has something to do.
        big_integer_null("wake_at").to_owned(),
        integer("attempts").to_owned(),
        big_integer("price_cents").to_owned(),
        big_integer("held_cents").to_owned(),
        big_integer("cost_cents").to_owned(),
        boolean("settled").to_owned(),
        text_null("error_code").to_owned(),
        text_null("error_message").to_owned(),
        text_null("provider_message_id").to_owned(),
        integer("version").to_owned(),
        big_integer("created_at").to_owned(),
        big_integer_null("sent_at").to_owned(),
        big_integer_null("ended_at").to_owned(),
    ]);
    columns
}

fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![
        table(
            "sms_messages",
            1,
            message(vec![
                text("direction").to_owned(),
                text("to_number").to_owned(),
                text_null("from_number").to_owned(),
                text("body").to_owned(),
                text("encoding").to_owned(),
                integer("segments").to_owned(),
                big_integer_null("delivered_at").to_owned(),
            ]),
        ),
        table(
            "email_messages",
            1,
            message(vec![
                text("to_address").to_owned(),
                text_null("from_name").to_owned(),
                text_null("reply_to").to_owned(),
                text("subject").to_owned(),
                text("kind").to_owned(),
            ]),
        ),
        // Apart, because it may be large and never changes.
        table(
            "email_contents",
            1,
            vec![
                uuid("message_id").to_owned(),
                uuid("tenant_id").to_owned(),
                text_null("text").to_owned(),
                text_null("html").to_owned(),
                json_binary("attachments").to_owned(),
            ],
        ),
        clustered(
            backend,
            "message_sends",
            6,
            vec![
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                text("channel").to_owned(),
                text("address").to_owned(),
                uuid("message_id").to_owned(),
                integer("n").to_owned(),
                uuid_null("campaign_id").to_owned(),
                big_integer("sent_at").to_owned(),
                big_integer("seq").to_owned(),
            ],
        ),
    ]
}

const STATEMENTS: [&str; 14] = [
    "CREATE INDEX sms_messages_tenant ON sms_messages (tenant_id, env, id)",
    "CREATE INDEX sms_messages_to ON sms_messages (tenant_id, env, to_number, id)",
    "CREATE INDEX sms_messages_wake ON sms_messages (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX sms_messages_open ON sms_messages (tenant_id, env) WHERE phase IN ('scheduled', 'queued', 'sending')",
    "CREATE INDEX sms_messages_age ON sms_messages (created_at)",
    // A message that comes in is told of once, however often its provider tells.
    "CREATE UNIQUE INDEX sms_messages_inbound ON sms_messages (tenant_id, env, provider_message_id) WHERE direction = 'inbound'",
    // Who has texted somebody from a number that all workspaces share.
    "CREATE INDEX sms_messages_pair ON sms_messages (to_number, from_number, id) WHERE direction = 'outbound' AND env = 'live'",
    "CREATE INDEX email_messages_tenant ON email_messages (tenant_id, env, id)",
    "CREATE INDEX email_messages_to ON email_messages (tenant_id, env, to_address, id)",
    "CREATE INDEX email_messages_wake ON email_messages (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX email_messages_open ON email_messages (tenant_id, env) WHERE phase IN ('scheduled', 'queued', 'sending', 'deferred')",
    "CREATE INDEX email_messages_age ON email_messages (created_at)",
    // Whose number was written to.
    "CREATE INDEX numbers_by_number ON numbers (phone_number, id) WHERE deleted_at IS NULL",
    "CREATE INDEX message_sends_seq ON message_sends (seq)",
];
