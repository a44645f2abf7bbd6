//! What the calls of an API key may cost, and how many there may be.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        // None: no limit.
        ("api_keys", integer_null("max_spend_cents_per_day")),
        ("api_keys", integer_null("max_calls_per_minute")),
        // None: no key with limits asked for it.
        ("sessions", uuid_null("api_key_id")),
        ("campaigns", uuid_null("api_key_id")),
    ];
    schema.apply(columns, Vec::new(), INDEXES).await
}

/// Calls that count for nobody's limits are in none of them. Whatever a key has done before, its last minute, its day's costs and its open
/// calls are found by themselves: each dial asks for them. A day's costs are no more entries than its limit has cents.
const INDEXES: &[&str] = &[
    "CREATE INDEX sessions_api_key_dialed ON sessions (api_key_id, dialed_at) \
     WHERE api_key_id IS NOT NULL AND dialed_at IS NOT NULL",
    "CREATE INDEX sessions_api_key_cost ON sessions (api_key_id, dialed_at, actual_cost_cents) \
     WHERE api_key_id IS NOT NULL AND actual_cost_cents > 0",
    "CREATE INDEX sessions_api_key_open ON sessions (api_key_id, phase) WHERE api_key_id IS NOT NULL AND phase <> 'ended'",
];
