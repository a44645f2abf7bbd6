//! What was measured beside what is wanted.
use crate::{
    peers::sipp::Message,
    rooms::{self, row},
};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Table {
    pub broken: usize,
}

impl Table {
    pub fn at_most(&mut self, what: &str, value: f64, goal: f64, unit: &str) {
        self.tell(what, value, value <= goal, &format!("at most {goal} {unit}"), unit);
    }

    pub fn at_least(&mut self, what: &str, value: f64, goal: f64, unit: &str) {
        self.tell(what, value, value >= goal, &format!("at least {goal} {unit}"), unit);
    }

    /// What was not measured is no number, and meets no goal.
    fn tell(&mut self, what: &str, value: f64, is_met: bool, goal: &str, unit: &str) {
        self.broken += usize::from(!is_met);
        let verdict = if is_met { "" } else { "   GOAL NOT MET" };
        row(what, format!("{value:.2} {unit}   (goal: {goal}){verdict}"));
    }
}

/// A median and a 99th percentile; of nothing neither is a number.
pub fn percentiles(all: Vec<f64>) -> [f64; 2] {
    if all.is_empty() {
        return [f64::NAN; 2];
    }
    rooms::percentiles(all)
}

/// From the first message of one kind to the first of the other in each call, in ms.
pub fn between(messages: &[Message], first: impl Fn(&Message) -> bool, then: impl Fn(&Message) -> bool) -> Vec<f64> {
    let mut begun: BTreeMap<&str, (i64, Option<i64>)> = BTreeMap::new();
    for message in messages {
        let Some(call) = message.header("Call-ID") else {
            continue;
        };
        if first(message) {
            begun.entry(call).or_insert((message.at_ms, None));
        } else if then(message)
            && let Some((_, end @ None)) = begun.get_mut(call)
        {
            *end = Some(message.at_ms);
        }
    }
    let ended = begun
        .values()
        .filter_map(|(began, ended)| Some((ended.as_ref()? - began) as f64));
    ended.collect()
}

pub fn of_invite(message: &Message) -> bool {
    message.header("CSeq").is_some_and(|cseq| cseq.ends_with("INVITE"))
}
