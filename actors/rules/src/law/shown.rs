//! Which of several numbers may be shown to somebody, by the law of the places where it rings.
use super::{
    Facts, Law,
    entry::Entry,
    facts::CallerFact,
    force::Scope,
    judge::{caller_id, is_set_aside},
    judgement::Verdict,
    rule::Says,
};

/// The rules of the number that is shown, of one attempt. They are looked up once, for all numbers of which one is chosen.
pub struct CallerRules<'l> {
    entries: Vec<&'l Entry>,
}

impl<'l> CallerRules<'l> {
    /// `facts`: of the attempt, whatever number stands in them.
    pub fn of(law: &'l Law, facts: &Facts) -> Self {
        let mut entries = law.in_force(&Scope::from(facts));
        entries.retain(|entry| matches!(entry.rule.says, Says::CallerId { .. }) && !is_set_aside(&entry.rule, facts));
        CallerRules { entries }
    }

    /// Do they all say yes? `None`: no number is shown.
    pub fn allow(&self, caller: Option<&CallerFact>) -> bool {
        let mut said = self.entries.iter().map(|entry| caller_id(&entry.rule.says, caller));
        !said.any(Verdict::is_no)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{GateKind, judge, tests::facts};

    #[test]
    fn some_numbers_may_not_be_shown_in_some_places() {
        for (place, caller, expected) in [
            ("US-NY", "+12025550100", true),
            ("US-NY", "+33612345678", true),
            ("US-NY", "none", false),
            // Decree 2022-1313.
            ("FR", "+33140000000", true),
            ("FR", "+33612345678", false),
            ("GB", "+442079460000", true),
            ("GB", "+12025550100", false),
            // Each of both.
            ("FR,GB", "+442079460000", true),
            ("FR,GB", "+33140000000", false),
            // TCCCPR: the series 140.
            ("IN", "+911401234567", true),
            ("IN", "+919812345678", false),
        ] {
            let facts = facts(&format!("{place} 2026-12-01T12:00 caller={caller}"));
            let found = CallerRules::of(Law::untouched(), &facts).allow(facts.caller.as_ref());
            assert_eq!(found, expected, "{place} {caller}");
            let said = judge(Law::untouched(), &facts).verdict_of(GateKind::CallerId);
            assert_eq!(found, !said.unwrap().is_no(), "as it is judged: {place} {caller}");
        }
    }

    #[test]
    fn what_is_set_aside_bars_no_number() {
        let mut facts = facts("GB 2026-12-01T12:00 caller=+12025550100");
        facts.overrides.push("gb.caller".to_owned());
        assert!(CallerRules::of(Law::untouched(), &facts).allow(facts.caller.as_ref()));
    }
}
