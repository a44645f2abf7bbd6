//! With which digits a number begins that may be shown to somebody, by the law of the places where it rings.
use super::{Law, Scope, rule::Says};
use entities::values::E164;

/// Of all rules of some places together; by default any number may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerPrefixes {
    /// With none of these.
    pub forbidden: Vec<String>,
    /// With one of each of these.
    pub required: Vec<Vec<String>>,
}

impl CallerPrefixes {
    pub fn allow(&self, caller: &E164) -> bool {
        let begins = |prefix: &String| caller.as_str().starts_with(prefix.as_str());
        !self.forbidden.iter().any(begins) && self.required.iter().all(|any| any.iter().any(begins))
    }
}

impl Law {
    /// What the rules in force say of it; those that the operator has overridden say nothing. Asked once for all numbers of which one is
    /// chosen: after that only digits are compared.
    pub fn caller_prefixes(&self, scope: &Scope<'_>) -> CallerPrefixes {
        let mut found = CallerPrefixes::default();
        let entries = self.in_force(scope).into_iter();
        for entry in entries.filter(|entry| !self.overrides(&entry.rule)) {
            let Says::CallerId {
                forbidden_prefixes,
                required_prefixes,
                ..
            } = &entry.rule.says
            else {
                continue;
            };
            found.forbidden.extend(forbidden_prefixes.iter().cloned());
            if !required_prefixes.is_empty() {
                found.required.push(required_prefixes.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::tests::facts;

    #[test]
    fn some_numbers_may_not_be_shown_in_some_places() {
        for (place, caller, expected) in [
            ("US-NY", "+12025550100", true),
            ("US-NY", "+33612345678", true),
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
            let facts = facts(&format!("{place} 2026-12-01T12:00"));
            let prefixes = Law::untouched().caller_prefixes(&Scope::from(&facts));
            assert_eq!(prefixes.allow(&caller.parse().unwrap()), expected, "{place} {caller}");
        }
    }
}
