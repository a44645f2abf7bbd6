//! Prepared lines: deterministic, needs no provider.
use super::{Act, Brain, Briefing, Failure, Heard};
use entities::{agent::Reply, values::Variables};
use futures_util::{
    future::{BoxFuture, FutureExt, ready},
    stream::{self, BoxStream, StreamExt},
};
use rules::{
    conversation::{phrases, stock_phrases, tools},
    template::fill,
};
use std::collections::VecDeque;

pub struct Scripted {
    first_message: String,
    language: String,
    can_transfer: bool,
    /// Those not said yet.
    replies: Vec<Reply>,
    /// Where the last one stood that was taken for what was heard, and how many calls there were before it.
    taken: (Option<(usize, Reply)>, usize),
    variables: Variables,
    calls: usize,
    waiting: VecDeque<Act>,
}

impl Scripted {
    pub fn new(briefing: Briefing, replies: &[Reply], variables: &Variables) -> Self {
        Scripted {
            can_transfer: briefing.tools.iter().any(|tool| tool.name == tools::TRANSFER),
            first_message: briefing.first_message.unwrap_or_default(),
            language: briefing.language,
            replies: replies.to_vec(),
            taken: (None, 0),
            variables: variables.clone(),
            calls: 0,
            waiting: VecDeque::new(),
        }
    }

    /// The first line left that listens for what was heard, else the first that fits anything.
    fn next(&mut self, heard: &str) -> Vec<Act> {
        self.taken = (None, self.calls);
        let lower = heard.to_lowercase();
        let hears = |reply: &Reply| reply.hear.iter().any(|words| lower.contains(&words.to_lowercase()));
        let found = self.replies.iter().position(hears);
        if found.is_none() && self.can_transfer && phrases::wants_human(heard, &self.language) {
            let line = stock_phrases::of(&self.language).one_moment;
            return vec![say(line), self.call(tools::TRANSFER, "{}")];
        }
        let found = found.or_else(|| self.replies.iter().position(|reply| reply.hear.is_empty()));
        match found.map(|at| (at, self.replies.remove(at))) {
            Some((at, reply)) => {
                self.taken.0 = Some((at, reply.clone()));
                let mut acts = vec![say(fill(&reply.say, &self.variables))];
                if let Some(call) = &reply.call {
                    let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
                    acts.push(self.call(&call.name, &arguments));
                }
                if reply.hang_up {
                    acts.push(self.call(tools::END, "{}"));
                }
                acts
            }
            None => vec![
                say(stock_phrases::of(&self.language).closing),
                self.call(tools::END, "{}"),
            ],
        }
    }

    fn call(&mut self, name: &str, arguments: &str) -> Act {
        self.calls += 1;
        Act::Call {
            id: format!("call_{}", self.calls),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }
}

fn say(text: impl Into<String>) -> Act {
    Act::Say {
        text: text.into(),
        audio: None,
    }
}

impl Brain for Scripted {
    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>> {
        let acts = match heard {
            Heard::Opening => {
                vec![say(self.first_message.clone())]
            }
            Heard::Words(speech) | Heard::Answered { speech, .. } => self.next(&speech.text),
            // What functions answer changes nothing in a script.
            Heard::Results(_) => Vec::new(),
        };
        self.waiting = acts.into();
        stream::iter(self.waiting.drain(..).map(Ok)).boxed()
    }

    fn interrupted<'a>(&'a mut self, _: &'a str, _: u64) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    /// What was taken for it is there again.
    fn retract(&mut self) -> BoxFuture<'_, ()> {
        self.calls = self.taken.1;
        if let Some((at, reply)) = self.taken.0.take() {
            self.replies.insert(at.min(self.replies.len()), reply);
        }
        ready(()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brain::Speech;
    use entities::values::Text;
    use rules::conversation::tools::Tool;

    fn reply(hear: &[&str], say: &str) -> Reply {
        Reply {
            hear: hear.iter().map(|words| Text::parse(words).unwrap()).collect(),
            say: Text::parse(say).unwrap(),
            call: None,
            hang_up: false,
        }
    }

    fn briefing(tools: &[&str]) -> Briefing {
        let tool = |name: &&str| Tool {
            name: (*name).into(),
            description: String::new(),
            parameters: serde_json::json!({}),
        };
        Briefing {
            instructions: "Be kind.".into(),
            first_message: Some("Hi!".into()),
            tools: tools.iter().map(tool).collect(),
            language: "en-US".into(),
            voice: None,
        }
    }

    fn acts(brain: &mut Scripted, heard: Heard) -> Vec<Act> {
        let acts = brain.think(heard).map(Result::unwrap).collect::<Vec<_>>();
        acts.now_or_never().unwrap()
    }
    fn words(text: &str) -> Heard {
        Heard::Words(Speech {
            text: text.into(),
            audio: None,
        })
    }

    #[test]
    fn says_what_fits_then_the_rest_then_goodbye() {
        let mut variables = Variables::default();
        variables.0.insert("first_name".into(), "Zoë".into());
        let replies = [
            reply(&[], "Fine, {{first_name}}{{ unknown }}."),
            reply(&["no", "nein"], "A pity."),
        ];
        let mut brain = Scripted::new(briefing(&[]), &replies, &variables);
        assert_eq!(acts(&mut brain, Heard::Opening), [say("Hi!")]);
        assert_eq!(acts(&mut brain, words("NO, thanks")), [say("A pity.")]);
        assert_eq!(acts(&mut brain, words("no")), [say("Fine, Zoë.")]);
        let last = acts(&mut brain, words("no"));
        assert!(
            matches!(&last[1], Act::Call { name, .. } if name == tools::END),
            "{last:?}"
        );
    }

    /// Half a sentence has taken a reply away, and the whole one gets its own.
    #[test]
    fn what_was_not_said_to_its_end_takes_nothing() {
        let booked = Reply {
            call: Some(entities::agent::ScriptedCall {
                name: Text::parse("book").unwrap(),
                arguments: serde_json::Map::new(),
            }),
            ..reply(&["book"], "I will book it.")
        };
        let replies = [reply(&[], "Fine."), booked, reply(&[], "Well.")];
        let mut brain = Scripted::new(briefing(&[]), &replies, &Variables::default());
        let first = acts(&mut brain, words("I would like to book"));
        brain.retract().now_or_never().unwrap();
        assert_eq!(acts(&mut brain, words("I would like to book a table")), first);
        assert_eq!(acts(&mut brain, words("Hm")), [say("Fine.")]);
        for _ in 0..2 {
            // A second time there is nothing to take back.
            brain.retract().now_or_never().unwrap();
        }
        assert_eq!(acts(&mut brain, words("Hm?")), [say("Fine.")]);
        assert_eq!(acts(&mut brain, words("Hm!")), [say("Well.")]);
        assert_eq!(acts(&mut brain, words("And?")).len(), 2);
        brain.retract().now_or_never().unwrap();
        assert_eq!(acts(&mut brain, words("And?")).len(), 2, "nothing is left to take");
    }

    #[test]
    fn connects_people_who_ask_for_a_person_if_it_may() {
        let asks = "I would like to talk to a human, please.";
        let mut brain = Scripted::new(briefing(&[tools::TRANSFER]), &[], &Variables::default());
        let moves = acts(&mut brain, words(asks));
        assert!(
            matches!(&moves[1], Act::Call { name, .. } if name == tools::TRANSFER),
            "{moves:?}"
        );
        let mut brain = Scripted::new(briefing(&[]), &[], &Variables::default());
        let moves = acts(&mut brain, words(asks));
        assert!(
            matches!(&moves[1], Act::Call { name, .. } if name == tools::END),
            "{moves:?}"
        );
    }
}
