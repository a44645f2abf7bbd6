//! A talk with typed lines, for whoever tries an agent out: nobody is called and nothing is stored.
use super::{
    Caller, Conversation, briefing, leg::Place, session_link::SessionLink, speech_out::SpeechOut, typed::Typed,
};
use crate::deps::Deps;
use entities::{
    Error, Result, agent, boxed,
    campaign::AgentSnapshot,
    ids::TenantId,
    session,
    values::{Country, E164, Env, Variables},
};
use rules::{
    conversation::tools::ToolSet,
    session::{
        command::Command,
        machine::{self, Session},
        settings::{self, CallOverrides},
    },
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

/// A talk that is only written: what the other side says, and what functions would answer.
pub struct DryRun {
    pub owner: (TenantId, Env),
    pub agent: agent::Model,
    pub heard: VecDeque<String>,
    pub variables: Variables,
    pub functions: BTreeMap<String, Value>,
}

/// Holds the talk with the very machine of a call, in memory only; answers the session as it is then.
#[boxed]
pub async fn simulate(deps: &Deps, dry: DryRun) -> Result<Session> {
    let (tenant, env) = dry.owner;
    let functions = entities::function::of_ids(&deps.db.read, tenant, &dry.agent.definition.function_ids).await?;
    let row = dry_row(deps, (tenant, env), &dry.agent, dry.variables)?;
    let agent = Arc::new(AgentSnapshot {
        id: dry.agent.id,
        version: dry.agent.version,
        definition: dry.agent.definition,
    });
    let definition = &agent.definition;
    let now = deps.clock.now();
    let (session, _) = Session::received(row, deps.base_url.clone(), now);
    let answer = Command::Answer {
        by: session::AnsweredBy::Human,
        recording_id: deps.ids.next(),
    };
    let (session, _) = machine::transition(session, answer, now)?;
    let call = session.call.clone();
    let tool_set = ToolSet::new(definition, functions, &[], None);
    let briefing = briefing(&call, definition, &tool_set, &Place::Phone { operator: None });
    let brain = deps.providers.brain(definition, briefing, &call.mentions(), false);
    let speech_out = SpeechOut::new(SessionLink::Dry(Box::new(session), now), Typed(dry.heard));
    let talk = Conversation::new(speech_out, brain, call, agent, tool_set, Caller::Stubbed(dry.functions));
    let held = tokio::time::timeout(LONGEST_DRY_RUN, talk.hold()).await;
    let speech_out = held.map_err(|_| Error::Unavailable("the agent did not come to an end in time".into()))?;
    match speech_out.session_link {
        SessionLink::Dry(session, _) => Ok(*session),
        SessionLink::Live { .. } => Err(Error::Internal("a dry run became a call".into())),
    }
}

const LONGEST_DRY_RUN: Duration = Duration::from_secs(120);

/// Nobody is called there: a number of the sandbox.
const NOBODY: &str = "+15002000000";

fn dry_row(deps: &Deps, owner: (TenantId, Env), agent: &agent::Model, variables: Variables) -> Result<session::Model> {
    let nobody = E164::parse(NOBODY, Country::US).map_err(Error::Internal)?;
    let now = deps.clock.now();
    let version = (agent.id, agent.version);
    // Nothing is recorded, so nobody is asked.
    let options = session::Options {
        recording: None,
        silence_seconds: 0,
        ..settings::options(&agent.definition, CallOverrides::default())
    };
    Ok(session::Model {
        direction: session::Direction::Inbound,
        variables,
        options,
        max_duration_seconds: agent.definition.max_duration_seconds.get(),
        ..session::Model::new(owner, deps.ids.next(), version, nobody, now)
    })
}
