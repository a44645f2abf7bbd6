//! What the law said of an attempt, asked once more: from the facts that were recorded, and with the pack that was in force.
use super::AttemptBody;
use crate::law::{Asked, Law, judge};
use std::fmt::{self, Display};

/// The first thing that comes out differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The rule; none: it is not about one.
    pub rule: Option<String>,
    pub what: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "{rule}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Every rule that the law asks of these facts was asked, and said the same. `law`: of the version that the record names.
pub fn prove(body: &AttemptBody, law: &Law) -> Result<(), Difference> {
    let asked = judge(law, &body.facts).asked;
    let recorded = &body.asked;
    for (now, then) in asked.iter().zip(recorded) {
        if now != then {
            return Err(differs(now, then));
        }
    }
    match (asked.get(recorded.len()), recorded.get(asked.len())) {
        (Some(missing), _) => Err(of_rule(missing, "was not asked")),
        (None, Some(more)) => Err(of_rule(more, "was asked, and does not concern this attempt")),
        (None, None) => Ok(()),
    }
}

fn differs(now: &Asked, then: &Asked) -> Difference {
    match now.rule == then.rule {
        true => of_rule(now, &format!("comes out as `{now}`, and `{then}` is recorded")),
        false => of_rule(now, &format!("was not asked where `{}` is recorded", then.rule)),
    }
}

fn of_rule(asked: &Asked, what: &str) -> Difference {
    Difference {
        rule: Some(asked.rule.to_string()),
        what: what.to_owned(),
    }
}

#[cfg(test)]
#[path = "prove_tests.rs"]
mod tests;
