//! Consents of people to be called or written to, the texts that they were shown, and the files that prove it; and when somebody on
//! the do-not-call list has asked to be on it.
use crate::{columns::*, schema::Schema, steps::table};
use sea_orm::{DbErr, sea_query::ColumnDef};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        // When a member of staff says that they were asked.
        ("dnc_entries", big_integer_null("requested_at").to_owned()),
        // When the person has said it to the service itself, the last time.
        ("dnc_entries", big_integer_null("opted_out_at").to_owned()),
    ];
    let tables = vec![
        table("consents", 1, consents()),
        table("consent_texts", 1, consent_texts()),
        table("consent_files", 1, consent_files()),
    ];
    schema.apply(columns, tables, &STATEMENTS).await
}

fn consents() -> Vec<ColumnDef> {
    vec![
        uuid("id").to_owned(),
        uuid("tenant_id").to_owned(),
        text("env").to_owned(),
        text_null("phone_number").to_owned(),
        text_null("email").to_owned(),
        text_null("name").to_owned(),
        text("seller").to_owned(),
        // In lower case, with single blanks: as it is compared.
        text("seller_key").to_owned(),
        json_binary("channels").to_owned(),
        json_binary("purposes").to_owned(),
        text("tier").to_owned(),
        boolean("covers_automated_voice").to_owned(),
        text("method").to_owned(),
        text_null("source_url").to_owned(),
        text_null("source_ip").to_owned(),
        uuid_null("recording_id").to_owned(),
        // Of the texts in `consent_texts`, hex.
        text_null("request_sha256").to_owned(),
        text_null("consent_sha256").to_owned(),
        boolean("not_a_condition_of_purchase").to_owned(),
        text_null("contract_ref").to_owned(),
        big_integer("given_at").to_owned(),
        big_integer_null("expires_at").to_owned(),
        json_binary_null("evidence").to_owned(),
        json_binary("withdrawals").to_owned(),
        big_integer_null("revoked_at").to_owned(),
        text_null("revoked_by").to_owned(),
        text_null("revoked_reason").to_owned(),
        big_integer("given_seq").to_owned(),
        big_integer_null("revoked_seq").to_owned(),
        // The same facts make the same one: no list is read in twice.
        text("fingerprint").to_owned(),
        integer("version").to_owned(),
        big_integer("created_at").to_owned(),
        text_null("created_by").to_owned(),
    ]
}

/// Beside the consents: these are looked up with each dial, and what is long would come along.
fn consent_texts() -> Vec<ColumnDef> {
    vec![
        uuid("consent_id").to_owned(),
        text_null("request_copy").to_owned(),
        text_null("consent_copy").to_owned(),
    ]
}

/// What lies in the recordings' store.
fn consent_files() -> Vec<ColumnDef> {
    vec![
        uuid("id").to_owned(),
        uuid("tenant_id").to_owned(),
        boolean("stored").to_owned(),
        big_integer("bytes").to_owned(),
        big_integer("created_at").to_owned(),
    ]
}

const STATEMENTS: [&str; 11] = [
    "CREATE INDEX consents_tenant ON consents (tenant_id, env, id)",
    // All that there ever were of one person.
    "CREATE INDEX consents_of_number ON consents (tenant_id, env, phone_number, id) WHERE phone_number IS NOT NULL",
    "CREATE INDEX consents_of_email ON consents (tenant_id, env, email, id) WHERE email IS NOT NULL",
    // Those that a dial looks at, however many were revoked.
    "CREATE INDEX consents_number ON consents (tenant_id, env, phone_number) WHERE revoked_at IS NULL AND phone_number IS NOT NULL",
    "CREATE INDEX consents_email ON consents (tenant_id, env, email) WHERE revoked_at IS NULL AND email IS NOT NULL",
    "CREATE UNIQUE INDEX consents_same ON consents (tenant_id, env, fingerprint)",
    // What proves one is not erased.
    "CREATE INDEX consents_recording ON consents (recording_id) WHERE recording_id IS NOT NULL",
    "CREATE INDEX consents_given ON consents (given_seq)",
    "CREATE INDEX consents_revoked ON consents (revoked_seq) WHERE revoked_seq IS NOT NULL",
    // What they take together, without a look at the rows.
    "CREATE INDEX consent_files_bytes ON consent_files (tenant_id, bytes)",
    "CREATE INDEX consent_files_uploading ON consent_files (created_at) WHERE NOT stored",
];
