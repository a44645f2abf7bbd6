//! A room's talk: from the agent's arrival to the last word.
use super::{
    live_rooms::Ways,
    speech_input::{Source, SpeechInput, Tell},
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
use adapters::transcription::{Ask, Provider};
use entities::{
    agent::TurnMode,
    boxed,
    room::ErrorCode,
    transcript::{Speaker, Turn},
};
use futures_util::{FutureExt, future::pending};
use media::{bridge::MediaBridge, mic::MicEvent};
use rules::{session::command::Command, turn::settings::Settings};
use std::sync::Arc;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc,
};

/// The agent is there and knows its part.
pub struct RoomConversation {
    talk: Conversation<RoomTransport>,
    speech_input: SpeechInput,
    turns: broadcast::Receiver<(usize, Turn)>,
    bridge: Arc<MediaBridge>,
    /// Of a talk that may be recorded.
    line: Option<Attached>,
    /// Turns were to be detected by a provider that does not: who is told of that.
    fallen_back: Option<Tell>,
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
        let source = source(transcription.as_ref(), leg, bridge.clone(), heard);
        let detects_turns = transcription.as_ref().is_some_and(Provider::detects_turns);
        let settings = Settings::of(&leg.agent.definition, detects_turns);
        let falls_back = leg.agent.definition.turn_detection.mode == TurnMode::Provider && !detects_turns;
        let (speech_input, user) = SpeechInput::new(deps.clock.clone(), settings, source, tell.clone());
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
            fallen_back: falls_back.then_some(tell),
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
            fallen_back,
        } = self;
        if let Some(tell) = fallen_back {
            let detail = "no transcription provider detects turns here: silence decides".into();
            tell(Command::Note {
                kind: "turn_detection",
                detail,
            });
        }
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
    deps.latencies.begin(session.id);
    let names = Names {
        transcription: deps.providers.transcription.as_ref().map(Provider::name),
        brain: deps.providers.brain_name(&leg.agent.definition),
    };
    Stopwatch::new(deps.clock.clone(), names, move |command| {
        if let Some(deps) = Deps::upgrade(&its) {
            if let Command::Measure(marks) = &command {
                deps.latencies.measured(session.id, marks);
            }
            deps.router.sessions().tell(session, command);
        }
    })
}

/// What is heard, and who understands it: he is told what words to expect.
fn source(
    transcription: Option<&Provider>,
    leg: &Leg,
    bridge: Arc<MediaBridge>,
    heard: mpsc::Receiver<MicEvent>,
) -> Source {
    let definition = &leg.agent.definition;
    let mut names = vec![definition.name.to_string()];
    names.extend(
        leg.call
            .mentions()
            .0
            .values()
            .filter_map(|value| value.as_str().map(str::to_owned)),
    );
    // Addresses, numbers and sentences are no names.
    let is_name = |letter: char| letter.is_alphabetic() || letter.is_whitespace() || matches!(letter, '-' | '\'' | '’');
    names.retain(|name| name.chars().count() <= LONGEST_NAME && name.chars().all(is_name));
    names.truncate(MOST_NAMES);
    let language = definition.language.to_string();
    let ask = Ask { language, names };
    Source {
        heard,
        bridge,
        transcript: transcription.map(|provider| provider.open(ask)),
    }
}

/// Words to expect that a transcription provider is told, and characters of each.
const MOST_NAMES: usize = 50;
const LONGEST_NAME: usize = 60;

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
