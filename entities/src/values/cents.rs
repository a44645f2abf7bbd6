use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Serialize};

/// Money in cents of the tenant's currency; never a float.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, DeriveValueType,
)]
#[serde(transparent)]
pub struct Cents(pub i64);
