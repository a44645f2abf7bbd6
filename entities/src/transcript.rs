//! What was said in a session, and what else happened in it.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error,
    ids::SessionId,
    keys,
    values::Moment,
};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, QuerySelect, entity::prelude::*};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashMap;

/// Sessions that are read at once.
const AT_ONCE: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Agent,
    User,
    /// What a function answered.
    Tool,
}

/// One utterance, or one turn of functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    pub role: Speaker,
    /// Absent when only functions were called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Seconds since the session's `started_at`, to the millisecond.
    #[serde(serialize_with = "to_the_millisecond")]
    pub t: f64,
    /// When the words were spoken to their end, or cut off.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "some_to_the_millisecond"
    )]
    pub end_t: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For `tool`: the call that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// With three decimals at most: a number that was stored is not always read back to its last bit.
fn to_the_millisecond<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((seconds * 1000.0).round() / 1000.0)
}

fn some_to_the_millisecond<S: Serializer>(seconds: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match seconds {
        Some(seconds) => to_the_millisecond(seconds, serializer),
        None => serializer.serialize_none(),
    }
}

/// A function that the agent called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Names the call in the `tool` turn that answers it.
    pub id: String,
    pub name: String,
    pub arguments: serde_json::Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Turns(pub Vec<Turn>);

/// Something that happened, beside what was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub at: Moment,
    /// As `function_called` or `refused`.
    pub kind: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Timeline(pub Vec<Entry>);

/// A function's call, as the session's last event tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Invocation {
    pub name: String,
    pub status: InvocationStatus,
    pub duration_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvocationStatus {
    Succeeded,
    /// Refused, not reached, or answered with an error.
    Failed,
    TimedOut,
    /// The call ended before the answer came.
    Canceled,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Invocations(pub Vec<Invocation>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "transcripts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: SessionId,
    #[sea_orm(column_type = "JsonBinary")]
    pub turns: Turns,
    #[sea_orm(column_type = "JsonBinary")]
    pub timeline: Timeline,
    #[sea_orm(column_type = "JsonBinary")]
    pub invocations: Invocations,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn empty(session_id: SessionId) -> Self {
        Model {
            session_id,
            turns: Turns::default(),
            timeline: Timeline::default(),
            invocations: Invocations::default(),
        }
    }
}

/// Empty before the session's end and for sessions without a conversation.
#[boxed]
pub async fn load(db: &Connection, session: SessionId) -> error::Result<Model> {
    let found = Entity::find_by_id(session).one(db).await?;
    Ok(found.unwrap_or_else(|| Model::empty(session)))
}

/// Adds to what happened in sessions that have ended. Of one that is forgotten nothing is kept: its row is there, and empty.
#[boxed]
pub async fn add(db: &Connection, entries: &[(SessionId, Entry)]) -> error::Result<()> {
    for some in entries.chunks(AT_ONCE) {
        let ids: Vec<SessionId> = some.iter().map(|(session, _)| *session).collect();
        let mut stored = Vec::new();
        for ids in bulk::padded(&ids) {
            stored.extend(Entity::find().filter(Column::SessionId.is_in(ids)).all(db).await?);
        }
        let is_forgotten = |row: &Model| *row == Model::empty(row.session_id);
        let (forgotten, kept): (Vec<Model>, Vec<Model>) = stored.into_iter().partition(is_forgotten);
        let mut rows: HashMap<SessionId, Model> = kept.into_iter().map(|row| (row.session_id, row)).collect();
        for (session, entry) in some {
            if forgotten.iter().all(|row| row.session_id != *session) {
                let row = rows.entry(*session).or_insert_with(|| Model::empty(*session));
                row.timeline.0.push(entry.clone());
            }
        }
        let rows: Vec<Model> = rows.into_values().collect();
        bulk::save(db, &rows, OnConflict::Replace).await?;
    }
    Ok(())
}

/// Those of which something is kept.
#[boxed]
pub async fn kept_of(db: &Connection, sessions: &[SessionId]) -> error::Result<Vec<SessionId>> {
    let these = Entity::find().filter(Column::SessionId.is_in(sessions.iter().copied()));
    Ok(these
        .select_only()
        .column(Column::SessionId)
        .into_tuple()
        .all(db)
        .await?)
}

/// Nothing of what was said in these sessions is left.
#[boxed]
pub async fn remove(db: &Connection, sessions: &[SessionId]) -> error::Result<()> {
    keys::remove(db, Entity, Column::SessionId, sessions).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(t: f64, end_t: Option<f64>) -> Turn {
        Turn {
            role: Speaker::Agent,
            content: None,
            t,
            end_t,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    #[test]
    fn times_have_three_decimals() {
        for (turn, text) in [
            (turn(65.537 + 2e-14, None), r#"{"role":"agent","t":65.537}"#),
            (turn(0.0, Some(1.0 / 3.0)), r#"{"role":"agent","t":0.0,"end_t":0.333}"#),
            (
                turn(2.5, Some(7200.0014)),
                r#"{"role":"agent","t":2.5,"end_t":7200.001}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&turn).unwrap(), text);
        }
    }

    #[test]
    fn times_survive_being_stored() {
        for millis in (0..7_200_000).step_by(997) {
            let written = serde_json::to_string(&turn(f64::from(millis) / 1000.0, None)).unwrap();
            let read: Turn = serde_json::from_str(&written).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
    }
}
