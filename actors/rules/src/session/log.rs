//! What is said and done in a talk, kept in memory until its end.
use super::{
    latency::{TurnMarks, summary},
    sip_answer::{Attestation, SipAnswer},
};
use bytes::Bytes;
use entities::{
    ids::SessionId,
    session::{Latency, Quality},
    transcript::{self, Entry, Invocation, InvocationStatus, Invocations, Speaker, Timeline, ToolCall, Turn, Turns},
    values::Moment,
};

/// A talk has at most so many turns, and so much else happens in it; more is not kept.
const MAX_TURNS: usize = 2_000;
const MAX_ENTRIES: usize = 2_000;
/// Of these so many tell how soon a turn was answered; of the turns beyond them the figures are kept.
const MAX_TIMED: usize = 500;
/// Bytes of sound that are kept of a talk that is heard, more than an hour of words; what is beyond is said by the service's
/// own voice.
const MAX_SOUND: usize = 32 * 1024 * 1024;
/// Of mu-law at 8 kHz.
const BYTES_PER_MS: u64 = 8;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub turns: Vec<Turn>,
    pub timeline: Vec<Entry>,
    pub invocations: Vec<Invocation>,
    pub answers: Vec<Answered>,
    /// The sound of some turns, by their place: G.711 mu-law, 8 kHz.
    pub sounds: Vec<(usize, Bytes)>,
    /// How soon the other side was answered, turn by turn: the first packet, milliseconds after the end of speech.
    pub latencies: Vec<u32>,
    /// How well the other side can be heard; the last word counts.
    pub quality: Option<Quality>,
    /// How long after the greeting the first sound of ours was sent, in milliseconds.
    pub first_sound_ms: Option<u32>,
    /// When the agent itself began to speak, in milliseconds since the pick-up.
    pub first_words_ms: Option<u32>,
    /// Whoever has picked up was kept waiting for it for two seconds.
    pub was_kept_waiting: bool,
    /// The agent had nothing to say; was the message played that stands ready for that?
    pub left_alone: Option<bool>,
    /// What was taken for a machine may have been a person.
    pub has_doubt: bool,
    /// Turned down for the number that the call showed, which is no matter of the person's.
    pub is_blocked: bool,
    /// Turned down by the person, whose phone rang.
    pub is_declined: bool,
    /// Of a call that its carrier has not connected: what it said.
    pub sip_answer: Option<SipAnswer>,
    /// How the carrier says that it has signed the call.
    pub attestation: Option<Attestation>,
    /// Functions whose answers are awaited: call, name, since when.
    awaited: Vec<(String, String, Moment)>,
}

/// Somebody begins to say something.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    pub role: Speaker,
    /// The agent's own words, and not what the service says in its place.
    pub is_own: bool,
    pub content: String,
    /// How long it takes to say, milliseconds; a guess for what is still being made.
    pub ms: u64,
    /// Began so long ago, for what is known when it has ended; `None`: it begins now.
    pub ago_ms: Option<u64>,
    /// Its sound is still being made: the other side's silence does not count before it has been said.
    pub is_open: bool,
    /// Its sound as a recording keeps it, where it has one: G.711 mu-law, 8 kHz.
    pub audio: Option<Bytes>,
}

/// What was answered to one of the agent's questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub key: String,
    pub question: String,
    pub value: serde_json::Value,
    /// The place of the turn that shows it.
    pub evidence_turn: Option<usize>,
}

impl Log {
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.timeline.is_empty()
    }

    /// Adds what is being said, from `began` until `ends`; answers the turn, if there is room for it.
    pub fn utter(&mut self, utterance: Utterance, (started_at, began, ends): (Moment, Moment, Moment)) -> Option<Turn> {
        if let Some(audio) = utterance.audio
            && self.turns.len() < MAX_TURNS
        {
            self.keep(self.turns.len(), audio);
        }
        self.push(Turn {
            role: utterance.role,
            content: Some(utterance.content),
            t: began.since(started_at).as_secs_f64(),
            end_t: Some(ends.since(started_at).as_secs_f64()),
            tool_calls: Vec::new(),
            tool_call_id: None,
        })
    }

    fn keep(&mut self, place: usize, audio: Bytes) {
        let kept: usize = self.sounds.iter().map(|(_, sound)| sound.len()).sum();
        if kept + audio.len() <= MAX_SOUND {
            self.sounds.push((place, audio));
        }
    }

    /// The agent's words of that turn have been said, in so many milliseconds; answers when they ended, if there is such a turn.
    pub fn spoken(
        &mut self,
        place: usize,
        ms: i64,
        audio: Option<Bytes>,
        (started_at, now): (Moment, Moment),
    ) -> Option<Moment> {
        let is_said = |turn: &&mut Turn| turn.role == Speaker::Agent && turn.content.is_some();
        let turn = self.turns.get_mut(place).filter(is_said)?;
        let began = started_at.plus_millis((turn.t * 1000.0).round() as i64);
        // A line that stood still meanwhile has made them longer.
        let ends = began.plus_millis(ms).max(now);
        turn.end_t = Some(ends.since(started_at).as_secs_f64());
        if let Some(audio) = audio {
            // What was kept of it when it began was nothing, so that nobody else says it in a recording.
            self.sounds
                .retain(|(known, sound)| *known != place || !sound.is_empty());
            if self.sounds.iter().all(|(known, _)| *known != place) {
                self.keep(place, audio);
            }
        }
        Some(ends)
    }

    /// What the agent says in that turn, as far as it is known; answers the turn, if that is news.
    pub fn said(&mut self, place: usize, words: String) -> Option<Turn> {
        let turn = self.turns.get_mut(place)?;
        let is_news = turn.content.as_ref().is_some_and(|known| *known != words);
        if turn.role != Speaker::Agent || !is_news {
            return None;
        }
        turn.content = Some(words);
        Some(turn.clone())
    }

    /// The words of something that the other side said; answers the turn with them.
    pub fn understood(&mut self, place: usize, words: String) -> Option<Turn> {
        let turn = self.turns.get_mut(place)?;
        if turn.role != Speaker::User {
            return None;
        }
        turn.content = Some(words);
        Some(turn.clone())
    }

    /// Of the agent's last words only `said` was heard, and so much of their sound: a line may have stood still meanwhile.
    pub fn cut(&mut self, said: String, played_ms: u64, t: f64) {
        let is_said = |turn: &Turn| turn.role == Speaker::Agent && turn.content.is_some();
        if let Some(place) = self.turns.iter().rposition(is_said) {
            let turn = &mut self.turns[place];
            (turn.content, turn.end_t) = (Some(said), Some(t));
            if let Some((_, sound)) = self.sounds.iter_mut().find(|(known, _)| *known == place) {
                sound.truncate(usize::try_from(played_ms.saturating_mul(BYTES_PER_MS)).unwrap_or(usize::MAX));
            }
        }
    }

    /// Words that were being said end there, and so does their sound.
    fn shorten(&mut self, place: usize, end: f64) {
        let turn = &mut self.turns[place];
        let meant = turn.end_t.replace(end).unwrap_or(end);
        let own = self.sounds.iter_mut().find(|(known, _)| *known == place);
        if let Some((_, sound)) = own
            && end < meant
        {
            let heard = (end - turn.t).max(0.0) / (meant - turn.t);
            sound.truncate((sound.len() as f64 * heard) as usize);
        }
    }

    /// `own`: one of the user's functions, not a built-in tool.
    pub fn called(&mut self, call: ToolCall, own: bool, (started_at, now): (Moment, Moment)) -> Option<Turn> {
        if own {
            self.awaited.push((call.id.clone(), call.name.clone(), now));
        }
        let t = now.since(started_at).as_secs_f64();
        self.push(Turn {
            role: Speaker::Agent,
            content: None,
            t,
            end_t: None,
            tool_calls: vec![call],
            tool_call_id: None,
        })
    }

    pub fn returned(&mut self, call_id: String, output: String, t: f64) -> Option<Turn> {
        self.awaited.retain(|(id, ..)| *id != call_id);
        self.push(Turn {
            role: Speaker::Tool,
            content: Some(output),
            t,
            end_t: None,
            tool_calls: Vec::new(),
            tool_call_id: Some(call_id),
        })
    }

    fn push(&mut self, turn: Turn) -> Option<Turn> {
        if self.turns.len() >= MAX_TURNS {
            return None;
        }
        self.turns.push(turn.clone());
        Some(turn)
    }

    pub fn invoked(&mut self, invocation: Option<Invocation>) {
        if self.invocations.len() < MAX_ENTRIES {
            self.invocations.extend(invocation);
        }
    }

    /// The last answer to a question counts.
    pub fn answer(&mut self, answered: Answered) {
        self.answers.retain(|known| known.key != answered.key);
        self.answers.push(answered);
    }

    pub fn note(&mut self, kind: &str, detail: Option<String>, at: Moment) {
        if self.timeline.len() < MAX_ENTRIES {
            self.timeline.push(Entry {
                at,
                kind: kind.to_owned(),
                detail,
            });
        }
    }

    /// The other side was answered so soon.
    pub fn measured(&mut self, marks: &TurnMarks, at: Moment) {
        if self.latencies.len() >= MAX_TURNS {
            return;
        }
        if self.latencies.len() < MAX_TIMED {
            self.note("turn_latency", Some(marks.to_string()), at);
        }
        self.latencies.push(marks.packet_ms());
    }

    /// The first sound of ours was sent so long after the greeting, or after the pick-up; what is said later is no first sound.
    pub fn first_sound(&mut self, ms: u32, greeted: bool, at: Moment) {
        if self.first_sound_ms.is_none() {
            self.first_sound_ms = Some(ms);
            let since = if greeted { "greeting" } else { "pick-up" };
            self.note("first_sound", Some(format!("{ms} ms after the {since}")), at);
        }
    }

    pub fn latency(&self) -> Option<Latency> {
        summary(&self.latencies)
    }

    /// When the last turn so far began.
    pub fn last_begun(&self, started_at: Moment) -> Moment {
        let last = self.turns.last().map_or(0.0, |turn| turn.t);
        started_at.plus_millis((last * 1000.0).round() as i64)
    }

    /// Until when the words said so far take.
    pub fn spoken_until(&self, started_at: Moment) -> Moment {
        let last = self.turns.iter().rev().find_map(|turn| turn.end_t).unwrap_or(0.0);
        started_at.plus(std::time::Duration::from_secs_f64(last.max(0.0)))
    }

    /// At its end: words that were being said then end there, and what was awaited is canceled.
    pub fn closed(mut self, started_at: Option<Moment>, now: Moment) -> Self {
        for (_, name, since) in std::mem::take(&mut self.awaited) {
            self.invoked(Some(Invocation {
                name,
                status: InvocationStatus::Canceled,
                duration_ms: i64::try_from(now.since(since).as_millis()).unwrap_or(i64::MAX),
            }));
        }
        let Some(started_at) = started_at else { return self };
        let end = now.since(started_at).as_secs_f64();
        for place in 0..self.turns.len() {
            let turn = &self.turns[place];
            if let Some(until) = turn.end_t.map(|at| at.min(end).max(turn.t)) {
                self.shorten(place, until);
            }
        }
        self
    }

    pub fn transcript(&self, session_id: SessionId) -> transcript::Model {
        transcript::Model {
            session_id,
            turns: Turns(self.turns.clone()),
            timeline: Timeline(self.timeline.clone()),
            invocations: Invocations(self.invocations.clone()),
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
