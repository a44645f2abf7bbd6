//! Prepared lines: deterministic, needs no provider.
use super::{Brain, Line};
use entities::{agent::Reply, values::Variables};
use futures_util::future::{BoxFuture, FutureExt, ready};

pub struct Scripted {
    first_message: String,
    /// Those not said yet.
    replies: Vec<Reply>,
    variables: Variables,
}

/// Said when the script has nothing left.
const CLOSING: &str = "Thank you for your time. Goodbye!";

impl Scripted {
    pub fn new(first_message: &str, replies: &[Reply], variables: &Variables) -> Self {
        Scripted {
            first_message: first_message.to_owned(),
            replies: replies.to_vec(),
            variables: variables.clone(),
        }
    }

    /// The first line left that listens for what was heard, else the first that fits anything.
    fn next(&mut self, heard: &str) -> Line {
        let heard = heard.to_lowercase();
        let hears = |reply: &Reply| reply.hear.iter().any(|words| heard.contains(&words.to_lowercase()));
        let found = self
            .replies
            .iter()
            .position(hears)
            .or_else(|| self.replies.iter().position(|reply| reply.hear.is_empty()));
        match found.map(|at| self.replies.remove(at)) {
            Some(reply) => Line {
                say: self.fill(&reply.say),
                hang_up: reply.hang_up,
            },
            None => Line {
                say: CLOSING.into(),
                hang_up: true,
            },
        }
    }

    /// Puts the call's variables in the place of `{{name}}`; an unknown name vanishes.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                break;
            };
            filled.push_str(before);
            match self.variables.0.get(name.trim()) {
                Some(serde_json::Value::String(value)) => filled.push_str(value),
                Some(serde_json::Value::Null) | None => {}
                Some(value) => filled.push_str(&value.to_string()),
            }
            rest = after;
        }
        filled + rest
    }
}

impl Brain for Scripted {
    fn open(&mut self) -> BoxFuture<'_, Line> {
        ready(Line {
            say: self.fill(&self.first_message),
            hang_up: false,
        })
        .boxed()
    }
    fn reply<'a>(&'a mut self, heard: &'a str) -> BoxFuture<'a, Line> {
        ready(self.next(heard)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Text;

    fn reply(hear: &[&str], say: &str) -> Reply {
        Reply {
            hear: hear.iter().map(|words| Text::parse(words).unwrap()).collect(),
            say: Text::parse(say).unwrap(),
            hang_up: false,
        }
    }

    #[test]
    fn says_what_fits_then_the_rest_then_goodbye() {
        let mut variables = Variables::default();
        variables.0.insert("first_name".into(), "Zoë".into());
        let replies = [
            reply(&[], "Fine, {{first_name}}{{ unknown }}."),
            reply(&["no", "nein"], "A pity."),
        ];
        let mut brain = Scripted::new("Hi {{first_name}}!", &replies, &variables);
        assert_eq!(brain.open().now_or_never().unwrap().say, "Hi Zoë!");
        assert_eq!(brain.next("NO, thanks").say, "A pity.");
        assert_eq!(brain.next("no").say, "Fine, Zoë.");
        assert_eq!(
            brain.next("no"),
            Line {
                say: CLOSING.into(),
                hang_up: true
            }
        );
    }
}
