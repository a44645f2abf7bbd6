//! A talk on a line that carries sound, from the agent's arrival to the last word: a room's and a telephone's.
//!
//! They differ in how sound travels, and in what the line can do beside carrying it (`Side`); all else is the same.
use super::{
    side::Side,
    speech_input::{Early, Screen, Source, SpeechInput, Tell},
    standby,
    transport::{Sounds, VoiceTransport},
    voices::Voices,
};
use crate::{
    call::{
        leg::{Leg, Ways},
        voice,
    },
    conversation::{
        Conversation, Place,
        latency::{Names, Stopwatch},
        opt_out_key, screen_last,
    },
    deps::Deps,
    recording::lines::Attached,
    traces::call::answer,
};
use adapters::transcription::{Ask, Provider};
use entities::{
    agent::TurnMode,
    boxed,
    session::{self, AnsweredBy},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, pending},
};
use media::{bridge::MediaBridge, mic::MicEvent};
use rules::{
    session::{command::Command, latency::TurnMarks},
    turn::settings::Settings,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::timeout};

/// In words for users.
const UNPREPARED: &str = "the agent could not be prepared";
/// How long whoever thinks for the agent has to say that it is there.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// The agent is there and knows its part.
pub struct Talk {
    conversation: Conversation<VoiceTransport>,
    speech_input: SpeechInput,
    bridge: Arc<MediaBridge>,
    /// Until somebody is talked to.
    screen: Option<Screen>,
    /// Of a talk that may be recorded.
    line: Option<Attached>,
    /// Turns were to be detected by a provider that does not: who is told of that.
    fallen_back: Option<Tell>,
}

impl Talk {
    /// Everything but whoever thinks for the agent, who is [reached](Self::reach) next. `side`: `None` for a browser. `Err`: something
    /// of ours has failed; in words for users.
    #[boxed]
    pub async fn prepare(
        deps: &Deps,
        leg: &Arc<Leg>,
        bridge: Arc<MediaBridge>,
        (heard, inbox): Ways,
        (place, side): (Place, Option<Arc<dyn Side>>),
    ) -> Result<Self, &'static str> {
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
            UNPREPARED
        })?;
        let standby = match &call.options.safe_harbour {
            Some(message) => {
                let whose = (call.voice_id.as_deref().unwrap_or_default(), language.as_str());
                standby::ready(deps, call.tenant_id, whose, &message.text).await
            }
            None => None,
        };
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
        let speech_input = speech_input
            .timed_by(stopwatch.clone())
            .opting_out_by(opt_out_key(&leg.agent.definition));
        let transport = VoiceTransport::new(deps.clock.clone(), sounds, bridge.clone(), user, inbox);
        let transport = match side {
            Some(side) => transport.beside(side),
            None => transport,
        };
        let conversation = Conversation::of(deps, leg, transport.timed_by(stopwatch), place).await;
        let mut conversation = conversation.map_err(|broken| {
            tracing::error!(error = broken.why, "an agent could not be prepared for a line");
            UNPREPARED
        })?;
        if let Some(message) = &mut conversation.standby {
            message.sound = standby;
        }
        Ok(Talk {
            conversation,
            speech_input,
            bridge,
            screen: Some(screen(deps, leg)),
            line,
            fallen_back: falls_back.then_some(tell),
        })
    }

    /// Can whoever thinks for the agent be reached? Seconds at most: nobody is called to a line on which nobody can answer. `Err`: why
    /// not, in words for users; whoever is there already hears an apology for it when the talk is [held](Self::hold).
    #[boxed]
    pub async fn reach(&mut self) -> Result<(), String> {
        let Conversation { brain, speech_out, .. } = &mut self.conversation;
        let voices = &speech_out.transport.agent.voices;
        let (reached, ()) = tokio::join!(timeout(REACHED_WITHIN, brain.reach()), voices.warm());
        let why = match reached {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => {
                let seconds = REACHED_WITHIN.as_secs();
                format!("the agent's provider did not answer within {seconds} seconds")
            }
        };
        self.conversation.cannot_think(why.clone());
        Err(why)
    }

    /// Nobody waits any longer for whoever thinks for the agent.
    pub fn is_too_late(&mut self) {
        let why = "the agent's provider did not answer in time";
        self.conversation.cannot_think(why.to_owned());
    }

    /// When that resolves and nothing of ours has been heard, the agent is given up.
    pub fn give_up_when(&mut self, too_late: BoxFuture<'static, ()>) {
        self.conversation.give_up_when(too_late);
    }

    /// Words are understood.
    pub fn understands(&self) -> bool {
        self.speech_input.understands()
    }

    /// What is noticed of whoever has picked up, before the talk [begins](Self::begin). May be dropped and called again.
    pub async fn greeting(&mut self) -> Early {
        self.speech_input.greeting().await
    }

    /// The agent is about to speak. What a machine says is nobody's wish.
    pub fn begin(&mut self, to: AnsweredBy) {
        if to.is_talked_to()
            && let Some(screen) = self.screen.take()
        {
            self.speech_input.screened_by(screen);
        }
        self.conversation.speech_out.transport.begin();
        self.speech_input.forget();
        self.bridge.join();
    }

    /// To its end, which is a command to the session; dropped early, it is cut off. The session is answered by then and the sound
    /// flows: the first word comes at once.
    #[boxed]
    pub async fn hold(self) {
        if let Some(tell) = self.fallen_back {
            let detail = "no transcription provider detects turns here: silence decides".into();
            tell(Command::Note {
                kind: "turn_detection",
                detail,
            });
        }
        let _line = self.line;
        converse(self.conversation, self.speech_input).await;
    }

    /// The same with a machine: nothing of it is recorded, and what it says is nobody's wish.
    #[boxed]
    pub async fn hold_with_a_machine(mut self) {
        self.conversation.with_a_machine();
        converse(self.conversation, self.speech_input).await;
    }

    /// Leaves the call's message to a machine. It begins with each `Begin`, and anew after a `Wait`. `first`: the cue that came already.
    #[boxed]
    pub async fn leave_message(mut self, first: Option<MessageCue>, mut cues: mpsc::Receiver<MessageCue>) {
        let words = self.conversation.message();
        let mut begins = first == Some(MessageCue::Begin);
        loop {
            let cue = match begins {
                false => cues.recv().await,
                true => tokio::select! {
                    biased;
                    () = self.conversation.say_message(&words) => break self.conversation.message_left(),
                    cue = cues.recv() => cue,
                },
            };
            match cue {
                Some(MessageCue::Begin) => begins = true,
                Some(MessageCue::Wait) => begins = false,
                // The line is gone, and the call with it.
                None => break,
            }
            self.bridge.stop();
        }
    }
}

/// What a machine's greeting says of the message that is to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageCue {
    Begin,
    /// The greeting goes on.
    Wait,
}

async fn converse(conversation: Conversation<VoiceTransport>, speech_input: SpeechInput) {
    tokio::select! {
        // What has been played to its end is over before anything else is heard.
        biased;
        _ = conversation.hold() => {}
        // It may end before the talk does: then nothing more is heard.
        () = speech_input.run().then(|()| pending()) => {}
    }
}

/// The bridge may be there for longer than the service: it must not keep it alive.
fn stopwatch(deps: &Deps, leg: &Leg) -> Stopwatch {
    let (its, session, call) = (deps.downgrade(), leg.session(), leg.call.clone());
    deps.latencies.begin(session.id);
    let names = Names {
        transcription: deps.providers.transcription.as_ref().map(Provider::name),
        brain: deps.providers.brain_name(&leg.agent.definition),
    };
    Stopwatch::new(deps.clock.clone(), names, move |command| {
        if let Some(deps) = Deps::upgrade(&its) {
            if let Command::Measure(marks) = &command {
                deps.latencies.measured(session.id, marks);
                trace(&deps, &call, marks, names);
            }
            deps.router.sessions().tell(session, command);
        }
    })
}

fn trace(deps: &Deps, call: &session::Model, marks: &TurnMarks, names: Names) {
    if let Some(talk) = deps.traces.in_talk(call).filter(|talk| talk.sampled) {
        let names = (names.transcription, names.brain);
        let spans = answer(marks, talk, names, deps.clock.now(), || deps.ids.next());
        deps.traces.record(spans);
    }
}

/// Of what is left when the talk is cut off.
fn screen(deps: &Deps, leg: &Arc<Leg>) -> Screen {
    let (deps, leg) = (deps.clone(), leg.clone());
    Box::new(move |agent: &str, said: &[String]| screen_last(&deps, &leg, agent, said))
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
