use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, sea_query::StringLen};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The two worlds of a tenant. What one holds, the other never shows. Source: specification, "Authentication" 4.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "`live` or `test`; what one holds, the other never shows.")]
pub enum Env {
    /// Real calls, real money.
    Live,
    /// The sandbox carrier and the verified-number allow-list.
    Test,
}

impl Env {
    pub const fn as_str(self) -> &'static str {
        match self {
            Env::Live => "live",
            Env::Test => "test",
        }
    }
}
impl fmt::Display for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl FromStr for Env {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "live" => Ok(Env::Live),
            "test" => Ok(Env::Test),
            _ => Err(format!("`{text}` is not an environment: use `live` or `test`")),
        }
    }
}
