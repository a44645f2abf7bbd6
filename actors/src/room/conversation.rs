//! A room's talk: from the agent's arrival to the last word.
use super::{
    live_rooms::Ways,
    speech_input::{SpeechInput, Tell},
    transport::{RoomTransport, Sounds},
    voices::Voices,
};
use crate::{
    call::{leg::Leg, voice},
    conversation::{
        Conversation, Place,
        latency::{Names, Stopwatch},
    },
    deps::Deps,
    recording::lines::Attached,
};
use entities::{
    boxed,
    room::ErrorCode,
    transcript::{Speaker, Turn},
};
use futures_util::{FutureExt, future::pending};
use media::bridge::MediaBridge;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

/// The agent is there and knows its part.
pub struct RoomConversation {
    talk: Conversation<RoomTransport>,
    speech_input: SpeechInput,
    turns: broadcast::Receiver<(usize, Turn)>,
    bridge: Arc<MediaBridge>,
    /// Of a talk that may be recorded.
    line: Option<Attached>,
}

impl RoomConversation {
    /// Fetches the agent, seconds at most: nobody is called to a room in which nobody can answer. Turns are captions from now on.
    #[boxed]
    pub async fn prepare(
        deps: &Deps,
        leg: &Arc<Leg>,
        bridge: Arc<MediaBridge>,
        (heard, inbox): Ways,
    ) -> Result<Self, (ErrorCode, String)> {
        let turns = deps.listeners.listen(leg.session().id);
        let is_recorded = leg.call.options.recording.is_some();
        let line = is_recorded.then(|| deps.studio.lines.attach(leg.session().id, &bridge));
        let language = leg.agent.definition.language.to_string();
        let transcription = deps.providers.transcription.clone();
        let (its, session) = (deps.clone(), leg.session());
        let tell: Tell = Arc::new(move |command| {
            its.router.sessions().tell(session, command);
        });
        let call = &leg.call;
        let cast = voice::cast(
            deps,
            call.tenant_id,
            call.voice_id.as_deref().unwrap_or_default(),
            &language,
        )
        .await;
        let cast = cast.map_err(|error| {
            tracing::error!(%error, "an agent's voice could not be looked up");
            (ErrorCode::InternalError, "the agent could not be prepared".to_owned())
        })?;
        let sounds = Sounds {
            voices: Voices::new(cast, &language, tell.clone()),
            has_ears: transcription.is_some(),
        };
        let stopwatch = stopwatch(deps, leg);
        let first_frame = stopwatch.clone();
        bridge.on_first_frame(move || first_frame.packet());
        let (speech_input, user) = SpeechInput::new(deps.clock.clone(), transcription, &language, tell, heard);
        let speech_input = speech_input.timed_by(stopwatch.clone());
        let transport = RoomTransport::new(deps.clock.clone(), sounds, bridge.clone(), user, inbox);
        let transport = transport.timed_by(stopwatch);
        let talk = Conversation::of(deps, leg, transport, Place::Room).await;
        let mut talk = talk.map_err(|broken| {
            tracing::error!(error = broken.why, "an agent could not be prepared for a room");
            (ErrorCode::InternalError, "the agent could not be prepared".into())
        })?;
        let voices = &talk.speech_out.transport.agent.voices;
        let (reached, ()) = tokio::join!(talk.brain.reach(), voices.warm());
        reached.map_err(|failure| (ErrorCode::AgentUnreachable, failure.to_string()))?;
        Ok(RoomConversation {
            talk,
            speech_input,
            turns,
            bridge,
            line,
        })
    }

    /// The agent is about to speak.
    pub fn begin(&mut self) {
        self.talk.speech_out.transport.begin();
        self.speech_input.forget();
        self.bridge.join();
    }

    /// To its end, which is a command to the session; dropped early, it is cut off. The session is answered by then and the sound
    /// flows: the first word comes at once.
    #[boxed]
    pub async fn hold(self) {
        let RoomConversation {
            talk,
            speech_input,
            turns,
            bridge,
            line: _line,
        } = self;
        let talked = async {
            tokio::select! {
                // What has been played to its end is over before anything else is heard.
                biased;
                _ = talk.hold() => {}
                // It may end before the talk does: then nothing more is heard.
                () = speech_input.run().then(|()| pending()) => {}
            }
        };
        let captions = captions(turns, &bridge);
        tokio::pin!(captions);
        tokio::select! {
            () = &mut captions => return,
            () = talked => {}
        }
        // The last words are shown too.
        captions.await;
    }
}

/// The bridge may be there for longer than the service: it must not keep it alive.
fn stopwatch(deps: &Deps, leg: &Leg) -> Stopwatch {
    let (its, session) = (deps.downgrade(), leg.session());
    let names = Names {
        transcription: deps.providers.transcription.as_ref().map(|_| "openai"),
        brain: deps.providers.brain_name(&leg.agent.definition),
    };
    Stopwatch::new(deps.clock.clone(), names, move |command| {
        if let Some(deps) = Deps::upgrade(&its) {
            deps.router.sessions().tell(session, command);
        }
    })
}

/// Until the call's end. What is said is shown; what tools do is not.
async fn captions(mut turns: broadcast::Receiver<(usize, Turn)>, bridge: &MediaBridge) {
    loop {
        match turns.recv().await {
            Ok((
                place,
                Turn {
                    role,
                    content: Some(text),
                    ..
                },
            )) if role != Speaker::Tool && !text.is_empty() => bridge.caption(place, role, text),
            // What the agent says may be known later than it is heard. Of a page that lags behind, some captions are missing.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
