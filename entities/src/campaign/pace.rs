//! How fast a campaign goes through its contacts, and how often one is called at most.
use crate::values::Bounded;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Limits on calls. Counted over all of the workspace's campaigns and direct calls in one env.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Calls to one number in any 24 hours; null lifts it.
    #[serde(default = "three")]
    pub per_number_24h: Option<Bounded<1, 1000>>,
    /// Calls to one number in any 7 days; null lifts it.
    #[serde(default = "seven")]
    pub per_number_7d: Option<Bounded<1, 1000>>,
    /// Calls of this campaign in one day of its `timezone`.
    #[serde(default)]
    pub campaign_per_day: Option<Bounded<1, 10_000_000>>,
    /// What the campaign may cost; calls in flight count at their longest.
    #[serde(default)]
    pub budget_cents: Option<Bounded<0, 2_000_000_000>>,
    /// What happens to a contact that a cap keeps from being called.
    #[serde(default)]
    pub on_cap: OnCap,
}
impl Default for Caps {
    fn default() -> Self {
        Caps {
            per_number_24h: three(),
            per_number_7d: seven(),
            campaign_per_day: None,
            budget_cents: None,
            on_cap: OnCap::default(),
        }
    }
}
fn three() -> Option<Bounded<1, 1000>> {
    Bounded::new(3).ok()
}
fn seven() -> Option<Bounded<1, 1000>> {
    Bounded::new(7).ok()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCap {
    /// It is called when the cap allows it again.
    #[default]
    Defer,
    /// It is skipped as `daily_cap_reached`.
    Skip,
}

/// How fast contacts are dispatched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// Calls started per second, 0.1 to the operator's maximum.
    #[serde(default)]
    pub calls_per_second: CallsPerSecond,
    /// Concurrent calls of this campaign; null: the workspace's limit.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
    /// The campaign's share of the workspace's calls, relative to the workspace's other running campaigns.
    #[serde(default = "ten")]
    pub weight: Bounded<1, 100>,
    /// A contact whose turn has come but for whom no slot is free is skipped as `concurrency_full` after this; null: it waits.
    #[serde(default)]
    pub max_wait_seconds: Option<Bounded<0, 86_400>>,
}
impl Default for Pacing {
    fn default() -> Self {
        Pacing {
            calls_per_second: CallsPerSecond::default(),
            max_concurrency: None,
            weight: ten(),
            max_wait_seconds: None,
        }
    }
}
fn ten() -> Bounded<1, 100> {
    Bounded::new(10).unwrap_or_else(|_| unreachable!("a constant"))
}

/// 0.1 to 10,000; the operator's maximum may be lower.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct CallsPerSecond(f64);
impl CallsPerSecond {
    pub fn new(value: f64) -> Result<Self, String> {
        if (0.1..=10_000.0).contains(&value) {
            Ok(CallsPerSecond(value))
        } else {
            Err(format!("must be from 0.1 to 10000, not {value}"))
        }
    }
    pub fn get(self) -> f64 {
        self.0
    }
}
impl Default for CallsPerSecond {
    fn default() -> Self {
        CallsPerSecond(1.0)
    }
}
impl<'de> Deserialize<'de> for CallsPerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
impl JsonSchema for CallsPerSecond {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallsPerSecond".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0.1, "maximum": 10000, "default": 1 })
    }
}
