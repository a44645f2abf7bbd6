//! How soon the other side is answered: the marks of one turn, and what they make of a talk.
//!
//! All of them count from the end of speech, the last moment in which the other side was heard to speak, in milliseconds.
//! What cannot be so (before it, two minutes later, an answer that is heard before it was thought) is not believed: then a
//! clock was wrong, not the agent slow.
use entities::session::Latency;
use std::fmt;

/// What happens between somebody's last word and the first of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It was decided that the turn is over.
    Endpoint,
    /// Its words were known.
    Text,
    /// The first of the answer came from the model.
    Token,
    /// The first piece of it that can be said was there.
    Clause,
    /// The first of its sound was there.
    Sound,
    /// The first of it was taken to be sent.
    Packet,
}

impl Stage {
    pub const ALL: [Stage; 6] = [
        Stage::Endpoint,
        Stage::Text,
        Stage::Token,
        Stage::Clause,
        Stage::Sound,
        Stage::Packet,
    ];

    /// As timeline and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Endpoint => "endpoint",
            Stage::Text => "text",
            Stage::Token => "token",
            Stage::Clause => "clause",
            Stage::Sound => "sound",
            Stage::Packet => "packet",
        }
    }
}

/// Beyond it nothing is believed, in milliseconds.
pub const LONGEST_MS: i64 = 120_000;

/// Of one answered turn, stage by stage; `None`: that is not known, or there was no such stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnMarks([Option<u32>; Stage::ALL.len()]);

impl TurnMarks {
    /// Milliseconds since the end of speech, in the order of the stages. `None`: the turn is not to be measured, for nothing of its
    /// answer was sent or the marks contradict each other. A mark that cannot be is left out. Answers that were begun before the turn
    /// was known to be over have their first marks before its endpoint; but nothing of them is sent before it.
    pub fn of(marks: [Option<i64>; Stage::ALL.len()]) -> Option<Self> {
        let believed = |ms: i64| {
            let ms = (0..=LONGEST_MS).contains(&ms).then_some(ms)?;
            u32::try_from(ms).ok()
        };
        let turn = TurnMarks(marks.map(|mark| mark.and_then(believed)));
        let packet = turn.at(Stage::Packet)?;
        let answer = [Stage::Token, Stage::Clause, Stage::Sound, Stage::Packet];
        let is_in_order = answer.into_iter().filter_map(|stage| turn.at(stage)).is_sorted();
        let is_over_first = turn.at(Stage::Endpoint).is_none_or(|endpoint| endpoint <= packet);
        (is_in_order && is_over_first).then_some(turn)
    }

    pub fn at(&self, stage: Stage) -> Option<u32> {
        self.0[stage as usize]
    }

    /// What the other side has waited for; there is none without it.
    pub fn packet_ms(&self) -> u32 {
        self.at(Stage::Packet).unwrap_or_default()
    }

    /// How long each of those took whom the answer waits for.
    pub fn shares(&self) -> Shares {
        let (endpoint, text) = (self.at(Stage::Endpoint), self.at(Stage::Text));
        let (token, clause) = (self.at(Stage::Token), self.at(Stage::Clause));
        let between = |from: Option<u32>, to: Option<u32>| Some(to?.saturating_sub(from?));
        // Words that came later than the answer were not waited for.
        let awaited = text.filter(|text| token.is_none_or(|token| *text <= token));
        Shares {
            transcription: between(endpoint, text),
            brain: between(endpoint.max(awaited), token),
            voice: between(clause, self.at(Stage::Sound)),
        }
    }
}

impl fmt::Display for TurnMarks {
    /// As the timeline has it: `endpoint 592 ms, text 740 ms, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Stage::ALL
            .into_iter()
            .filter_map(|stage| Some((stage, self.at(stage)?)));
        for (nth, (stage, ms)) in known.enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{} {ms} ms", stage.name())?;
        }
        Ok(())
    }
}

/// In milliseconds. 0: it was ready before anybody waited for it; `None`: it is not known, or there was nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// From the endpoint to the words.
    pub transcription: Option<u32>,
    /// From the words, or the endpoint where they are not waited for, to the first token.
    pub brain: Option<u32>,
    /// From the first clause to its sound.
    pub voice: Option<u32>,
}

/// Of a talk, from the first packets of its answers, in milliseconds. `None`: nobody was answered.
pub fn summary(packets: &[u32]) -> Option<Latency> {
    let mut sorted = packets.to_vec();
    sorted.sort_unstable();
    Some(Latency {
        turns: i32::try_from(sorted.len()).unwrap_or(i32::MAX),
        p50_ms: percentile(&sorted, 50)?,
        p95_ms: percentile(&sorted, 95)?,
    })
}

/// The nearest rank: the least that so many percent do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> Option<i32> {
    let rank = (sorted.len() * percent).div_ceil(100);
    let ms = sorted.get(rank.checked_sub(1)?)?;
    Some(i32::try_from(*ms).unwrap_or(i32::MAX))
}

#[cfg(test)]
#[path = "latency_tests.rs"]
mod tests;
