//! Which calls are abandoned: a person has answered, and nobody of ours was there in time.
//!
//! A person has to hear something of ours within two seconds of the end of the greeting, or of the pick-up where nobody greets. One who
//! hangs up before that was not abandoned. A call is also abandoned if the agent had nothing to say (its model failed, or no agent could
//! be prepared), and if a person was taken for a machine and hung up on. Where nobody can know, the call counts as abandoned.
//! Sources: 16 CFR 310.4(b)(1)(iv), (b)(4); 47 CFR 64.1200(a)(7); Ofcom, persistent misuse.
use super::facts::AbandonmentFact;
use entities::{
    abandonment::{Abandonment, AbandonmentLimit, Answers},
    session::{AnsweredBy, WhyAbandoned},
};

/// Within so long the first sound has to come. Source: 16 CFR 310.4(b)(4)(iii).
pub const FIRST_SOUND_MS: u32 = 2_000;

/// What is known at its end of a call that we placed and that somebody, or something, has picked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickedUp {
    /// `None`: it never became known.
    pub by: Option<AnsweredBy>,
    /// How long the first sound of ours was waited for; `None`: none came.
    pub first_sound_ms: Option<u32>,
    /// The line has seen two seconds pass without any.
    pub was_kept_waiting: bool,
    /// The agent had no word of its own to say.
    pub was_left_alone: bool,
    /// What was taken for a machine has said what no machine says.
    pub has_doubt: bool,
    /// How long it lasted from the pick-up on, in milliseconds.
    pub lasted_ms: i64,
    pub ended: Ended,
}

/// How it came to its end, as far as that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The other side has hung up.
    ByThem,
    /// By us: the talk was over, or could not begin.
    ByUs,
    /// A crash cut it off. `was_heard`: sound goes over its line, and what was sent stands in its row.
    Lost { was_heard: bool },
}

/// What such a call counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// No person was there, or it cannot be told from one who has thought better of it.
    NotLive,
    /// A person has answered, and was not abandoned.
    Live,
    Abandoned(WhyAbandoned),
}

impl Counts {
    pub fn is_live(self) -> bool {
        self != Counts::NotLive
    }

    pub fn why_abandoned(self) -> Option<WhyAbandoned> {
        match self {
            Counts::Abandoned(why) => Some(why),
            Counts::NotLive | Counts::Live => None,
        }
    }
}

/// What a call that was picked up counts as.
pub fn counts(call: &PickedUp) -> Counts {
    use WhyAbandoned::*;
    match call.by {
        // A menu is nobody's greeting, and a fax is nobody.
        Some(AnsweredBy::Ivr | AnsweredBy::Fax) => Counts::NotLive,
        Some(AnsweredBy::Voicemail) if call.has_doubt => Counts::Abandoned(Detector),
        Some(AnsweredBy::Voicemail) => Counts::NotLive,
        Some(AnsweredBy::Human | AnsweredBy::Unknown) => of_a_person(call),
        None => match call.ended {
            // Whoever it was has gone before anybody could know, and had no time to wait.
            Ended::ByThem if !waited(call) => Counts::NotLive,
            Ended::ByThem => Counts::Abandoned(Silence),
            Ended::Lost { was_heard: false } => Counts::NotLive,
            Ended::ByUs | Ended::Lost { was_heard: true } => Counts::Abandoned(NoAgent),
        },
    }
}

fn of_a_person(call: &PickedUp) -> Counts {
    use WhyAbandoned::*;
    match (call.first_sound_ms, call.ended) {
        (Some(ms), _) if ms > FIRST_SOUND_MS => Counts::Abandoned(LateSound),
        _ if call.was_left_alone => Counts::Abandoned(NoBrain),
        (Some(_), _) => Counts::Live,
        // Of a call that was only played nobody has waited for anything.
        (None, Ended::Lost { was_heard: false }) => Counts::Live,
        (None, Ended::ByThem) if !waited(call) => Counts::Live,
        (None, Ended::ByThem | Ended::Lost { was_heard: true }) => Counts::Abandoned(Silence),
        (None, Ended::ByUs) if waited(call) => Counts::Abandoned(Silence),
        (None, Ended::ByUs) => Counts::Abandoned(NoAgent),
    }
}

/// Two seconds without a sound. A line tells that by itself, counted from the end of the greeting; without one it is counted from the
/// pick-up.
fn waited(call: &PickedUp) -> bool {
    call.was_kept_waiting || call.first_sound_ms.is_none() && call.lasted_ms >= i64::from(FIRST_SOUND_MS)
}

/// Has so much been abandoned that nothing more is dialled? See [`entities::abandonment`].
pub fn brake(fact: &AbandonmentFact, limit: &AbandonmentLimit) -> bool {
    let answers = |(live, abandoned): (i64, i64)| Answers { live, abandoned };
    let abandonment = Abandonment {
        day: answers(fact.day),
        month: answers(fact.month),
    };
    abandonment.is_braked(limit)
}

#[cfg(test)]
#[path = "abandonment_tests.rs"]
mod tests;
