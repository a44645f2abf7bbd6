//! Calls that were answered by a person and abandoned, who is given a rest, and how well the numbers do that calls show.
use crate::{columns::*, schema::Schema, steps::*};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        ("campaign_hours", big_integer("answered_live").default(0).to_owned()),
        ("campaign_hours", big_integer("abandoned").default(0).to_owned()),
        ("sessions", integer_null("first_sound_ms")),
        ("sessions", text_null("abandoned")),
        ("numbers", text_null("sms_registration")),
    ];
    let backend = schema.backend();
    let tables = vec![
        clustered(
            backend,
            "rests",
            4,
            vec![
                uuid("tenant_id"),
                text("env"),
                text("phone_number"),
                text("cause"),
                big_integer("since"),
                uuid_null("session_id"),
            ],
        ),
        clustered(
            backend,
            "number_hours",
            4,
            vec![
                uuid("tenant_id"),
                text("env"),
                text("phone_number"),
                big_integer("hour"),
                big_integer("dialed"),
                big_integer("answered"),
                big_integer("blocked"),
            ],
        ),
        clustered(
            backend,
            "caller_rests",
            3,
            vec![
                uuid("tenant_id"),
                text("env"),
                text("phone_number"),
                text("cause"),
                big_integer("since"),
                big_integer("ends_at"),
            ],
        ),
        clustered(
            backend,
            "campaign_brakes",
            1,
            vec![uuid("campaign_id"), uuid("tenant_id"), big_integer("since")],
        ),
    ];
    schema.apply(columns, tables, STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    // By these the old ones are found.
    "CREATE INDEX rests_since ON rests (since)",
    "CREATE INDEX number_hours_hour ON number_hours (hour)",
    "CREATE INDEX campaign_brakes_tenant ON campaign_brakes (tenant_id)",
];
