//! SIP trunks, numbers that prove whose they are by a code, slots kept free for calls that come in, why a workspace is
//! suspended.
use crate::{columns::*, schema::Schema, steps::{editable, table}};
use sea_orm::{DbErr, sea_query::{ColumnDef, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(columns(), tables(), &STATEMENTS).await
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("tenants", integer("inbound_reserve").default(0).to_owned()),
        // The operator opened those that are there: they stay open.
        ("verified_numbers", text("status").default("verified").to_owned()),
        ("verified_numbers", text("method").default("sms").to_owned()),
        ("verified_numbers", text_null("label").to_owned()),
        // Whose key asked for the code.
        ("verified_numbers", text("env").default("test").to_owned()),
        ("verified_numbers", text_null("code_hash").to_owned()),
        ("verified_numbers", text_null("sealed_code").to_owned()),
        ("verified_numbers", integer("wrong_tries").default(0).to_owned()),
        ("verified_numbers", big_integer_null("expires_at").to_owned()),
        ("verified_numbers", big_integer_null("verified_at").to_owned()),
        ("verified_numbers", integer("version").default(1).to_owned()),
    ]
}

fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "sip_trunks",
            1,
            editable(vec![
                json_binary("definition").to_owned(),
                text_null("sealed_password").to_owned(),
                text("status").to_owned(),
                big_integer_null("tested_at").to_owned(),
            ]),
        ),
        // Codes that were made, for an hour: a number that is deleted and asked for again is not told more often.
        table(
            "verification_codes",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("phone_number").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "suspensions",
            1,
            vec![
                uuid("tenant_id").to_owned(),
                text_null("reason").to_owned(),
                big_integer("since").to_owned(),
            ],
        ),
    ]
}

const STATEMENTS: [&str; 5] = [
    "CREATE INDEX sip_trunks_tenant ON sip_trunks (tenant_id, id)",
    "CREATE INDEX numbers_trunk ON numbers (trunk_id) WHERE deleted_at IS NULL",
    "CREATE INDEX verification_codes_tenant ON verification_codes (tenant_id, created_at)",
    "UPDATE verified_numbers SET verified_at = created_at",
    // Suspensions of before have no reason.
    "INSERT INTO suspensions (tenant_id, reason, since) SELECT tenant_id, NULL, MIN(since) FROM dispatch_blocks WHERE reason = 'suspension' GROUP BY tenant_id",
];
