use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Serialize};

/// Money in cents of the tenant's currency; never a float.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, DeriveValueType,
)]
#[serde(transparent)]
pub struct Cents(pub i64);

impl Cents {
    /// What a talk of so many seconds costs: each begun cent counts.
    pub fn of_talk(price_cents_per_minute: i32, seconds: i32) -> Self {
        let sixtieths = i64::from(price_cents_per_minute.max(0)) * i64::from(seconds.max(0));
        Cents((sixtieths + 59) / 60)
    }
}
