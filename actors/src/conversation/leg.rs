//! A call becomes a talk: whatever its line, the agent brings the same brain, tools and rules.
use super::{
    Caller, Conversation, SessionLink, SpeechOut, Standby, briefing, judge::Judge, late_words::LateWords,
    moments::Moments, transport::CallTransport,
};
use crate::{call::leg::Leg, deps::Deps};
use adapters::brain::FirstToken;
use entities::{function, session::EndReason, values::E164};
use rules::{conversation::tools::ToolSet, session::command::Command};
use std::sync::Arc;

/// Where the other side is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// On a telephone line. `operator`: where calls are handed over of agents that have no transfer number.
    Phone { operator: Option<E164> },
    /// In a browser, where no call can be handed over.
    Room,
}

impl Place {
    /// What a brain is told of it.
    pub fn in_words(&self) -> &'static str {
        match self {
            Place::Phone { .. } => {
                "You speak on the phone. `[speech]` is something that was said and not understood, `[pressed 1]` a key \
                 that was pressed"
            }
            Place::Room => {
                "You speak with somebody in a browser. `[speech]` is something that was said and not understood, \
                 `[pressed 1]` a key that was pressed"
            }
        }
    }
}

/// A talk that could not begin.
pub struct Broken {
    deps: Deps,
    leg: Arc<Leg>,
    pub why: String,
}

impl Broken {
    fn new(deps: &Deps, leg: &Arc<Leg>, why: String) -> Self {
        Broken {
            deps: deps.clone(),
            leg: leg.clone(),
            why,
        }
    }

    /// Ends the call for it.
    pub fn report(self) {
        let Broken { deps, leg, why } = self;
        let reason = EndReason::AgentError;
        let command = Command::Break { reason, why };
        deps.router.sessions().tell(leg.session(), command);
    }
}

impl<L: CallTransport> Conversation<L> {
    /// Everything that a talk needs.
    pub async fn of(deps: &Deps, leg: &Arc<Leg>, transport: L, place: Place) -> Result<Self, Broken> {
        let (call, definition) = (&leg.call, &leg.agent.definition);
        let found = function::of_ids(&deps.db.read, call.tenant_id, &definition.function_ids).await;
        let functions = found.map_err(|error| Broken::new(deps, leg, error.to_string()))?;
        let dispositions = &call.options.dispositions;
        let tool_set = match &place {
            Place::Phone { operator } => ToolSet::new(definition, functions, dispositions, operator.clone()),
            Place::Room => ToolSet::new(definition, functions, dispositions, None).without_transfer(),
        };
        let briefing = briefing(call, definition, &tool_set, &place);
        let mut brain = deps
            .providers
            .brain(definition, briefing, &call.mentions(), place == Place::Room);
        let stopwatch = transport.stopwatch();
        brain.on_first_token(FirstToken::new(move || stopwatch.token()));
        let session_link = SessionLink::Live {
            deps: deps.clone(),
            session: leg.session(),
        };
        let moments = transport.moments();
        // What goes over a line that carries sound is recorded there.
        let keeps_sound = call.options.recording.is_some() && transport.voice().is_none();
        let (mut speech_out, caller) = (SpeechOut::new(session_link, transport), Caller::Live(deps.clone()));
        speech_out.keeps_sound = keeps_sound;
        let mut talk = Conversation::new(speech_out, brain, call.clone(), leg.agent.clone(), tool_set, caller);
        let (calls, recording) = (definition.opt_out.enabled, call.options.recording.is_some());
        talk.standby = call.options.safe_harbour.as_ref().map(|message| Standby {
            text: message.text.clone(),
            sound: None,
        });
        talk.late_words = LateWords::of(deps, leg);
        talk.moments = moments.unwrap_or_else(|| Moments::new(Some(deps.clock.clone())));
        talk.judge = Judge::of(deps, leg.session(), calls, recording);
        Ok(talk)
    }
}
