//! How many of a campaign's contacts each rule of the law keeps from being reached.
use rules::law::{Judgement, Verdict};
use std::collections::BTreeMap;

/// Of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LawCount {
    /// Never reached, as things are.
    pub barred: i64,
    /// Put off for now.
    pub held: i64,
}

/// By the rules' ids; those that bar nobody are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LawCounts(pub BTreeMap<String, LawCount>);

impl LawCounts {
    /// One contact more: every rule that says no counts it, not the first alone, so that whoever mends one sees what is left.
    pub fn add(&mut self, judgement: &Judgement) {
        for asked in judgement.noes() {
            let count = self.0.entry(asked.rule.to_string()).or_default();
            match asked.verdict {
                Verdict::Never => count.barred += 1,
                Verdict::Wait(_) => count.held += 1,
                Verdict::Yes | Verdict::Overridden => {}
            }
        }
    }

    /// Somebody more whom that rule keeps from being reached, and no other.
    pub fn bar(&mut self, rule: String) {
        self.0.entry(rule).or_default().barred += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::law::{Asked, GateKind};

    #[test]
    fn every_rule_that_says_no_counts() {
        let asked = |rule: &str, verdict| Asked {
            kind: GateKind::Consent,
            rule: rule.into(),
            verdict,
        };
        let judgement = |asked| Judgement { asked };
        let mut counts = LawCounts::default();
        counts.add(&judgement(vec![
            asked("a", Verdict::Never),
            asked("b", Verdict::Wait(None)),
            asked("c", Verdict::Overridden),
        ]));
        counts.add(&judgement(vec![asked("a", Verdict::Never), asked("c", Verdict::Yes)]));
        let of = |rule: &str| counts.0.get(rule).map(|count| (count.barred, count.held));
        assert_eq!((of("a"), of("b"), of("c")), (Some((2, 0)), Some((0, 1)), None));
    }
}
