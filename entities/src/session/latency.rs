//! How soon a talk's other side was answered.
use schemars::JsonSchema;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};

/// From the end of what the other side said to the first sound of its answer that was sent, of the turns that were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[schemars(
    description = "How soon the agent answered: milliseconds from the end of what was said to the first packet of the answer."
)]
pub struct Latency {
    /// Turns that were answered and measured.
    pub turns: i32,
    pub p50_ms: i32,
    pub p95_ms: i32,
}
