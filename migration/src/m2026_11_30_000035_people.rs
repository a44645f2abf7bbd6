//! Who a workspace is by law, and the erasure of one person.
use crate::{columns::*, schema::Schema, steps::*};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let tables = vec![
        table(
            "legal_identities",
            1,
            vec![
                uuid("tenant_id").to_owned(),
                text_null("registered_name").to_owned(),
                text_null("trade_name").to_owned(),
                text_null("callback_number").to_owned(),
                text_null("toll_free_number").to_owned(),
                text_null("postal_address").to_owned(),
                json_binary("registrations").to_owned(),
                text_null("updated_by").to_owned(),
                integer("version").to_owned(),
                big_integer("updated_at").to_owned(),
            ],
        ),
        table(
            "erasures",
            1,
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("env").to_owned(),
                // Whom it is about is known until it has ended; the hash stays.
                text_null("phone_number").to_owned(),
                text_null("email").to_owned(),
                text("whom_hash").to_owned(),
                text("status").to_owned(),
                json_binary("erased").to_owned(),
                json_binary("kept").to_owned(),
                text_null("waits_for").to_owned(),
                text_null("error").to_owned(),
                text("created_by").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer_null("finished_at").to_owned(),
            ],
        ),
    ];
    schema.apply(Vec::new(), tables, STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "CREATE INDEX erasures_list ON erasures (tenant_id, env, id)",
    "CREATE INDEX erasures_open ON erasures (tenant_id, id) WHERE status IN ('queued', 'running')",
];
