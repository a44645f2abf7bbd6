//! Agents.
use entities::{
    agent, agent_version,
    ids::{AgentId, SessionId},
    session,
    transcript::{Entry, Invocation, Turn},
    values::Moment,
};
use rules::session::machine::{Phase, Session};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize, JsonSchema)]
pub struct AgentView {
    pub id: AgentId,
    #[serde(flatten)]
    pub definition: agent::Definition,
    /// Grows by one with every change.
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
}

impl From<agent::Model> for AgentView {
    fn from(agent: agent::Model) -> Self {
        AgentView {
            id: agent.id,
            definition: agent.definition,
            version: agent.version,
            created_at: agent.created_at,
            updated_at: agent.updated_at,
        }
    }
}

/// An agent as it was.
#[derive(Serialize, JsonSchema)]
pub struct AgentVersionView {
    pub agent_id: AgentId,
    pub version: i32,
    #[serde(flatten)]
    pub definition: agent::Definition,
    pub created_at: Moment,
}

impl From<agent_version::Model> for AgentVersionView {
    fn from(row: agent_version::Model) -> Self {
        AgentVersionView {
            agent_id: row.agent_id,
            version: row.version,
            definition: row.definition,
            created_at: row.created_at,
        }
    }
}

/// The result of a dry run.
#[derive(Serialize, JsonSchema)]
pub struct SimulationView {
    pub turns: Vec<Turn>,
    /// What else happened, as refused tool calls.
    pub timeline: Vec<Entry>,
    pub function_invocations: Vec<Invocation>,
    /// How the call would have ended; null: the agent was still talking.
    pub end_reason: Option<session::EndReason>,
    /// Why it broke off.
    pub error: Option<String>,
    pub disposition_code: Option<String>,
    pub disposition_note: Option<String>,
    pub answers: BTreeMap<String, serde_json::Value>,
}

impl SimulationView {
    pub fn of(session: Session) -> Self {
        let end = match &session.phase {
            Phase::Ended(end) => Some(end.clone()),
            _ => None,
        };
        // What was typed had come to its end: that is no hanging up.
        let typed_out = end.as_ref().is_some_and(|end| end.by == session::EndedBy::Caller);
        SimulationView {
            end_reason: end.as_ref().filter(|_| !typed_out).map(|end| end.reason),
            error: end.and_then(|end| end.error),
            disposition_code: session.call.disposition_code.clone(),
            disposition_note: session.call.disposition_note.clone(),
            answers: session
                .log
                .answers
                .into_iter()
                .map(|answer| (answer.key, answer.value))
                .collect(),
            turns: session.log.turns,
            timeline: session.log.timeline,
            function_invocations: session.log.invocations,
        }
    }
}

/// Everything that happened in a session, in order.
#[derive(Serialize, JsonSchema)]
pub struct TimelineView {
    pub session_id: SessionId,
    pub entries: Vec<Entry>,
}
