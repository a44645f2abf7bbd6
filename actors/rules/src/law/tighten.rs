//! The operator's own law: a file that makes rules of the pack stricter, adds others, and overrides some for a reason.
//!
//! What it tightens stands beside the rule of the pack and never in its place, so that no slip in it opens anything. It is refused
//! all the same if it is looser: its author would believe that it counts.
use super::{
    Law, Pack,
    read::{self, LawError},
    rule::{LawRule, Says},
    stricter,
};
use crate::digest::sha256;
use entities::ids::TenantId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// A reason shorter than this is none.
const LEAST_REASON: usize = 10;
/// More than the pack has ever had.
const MOST_RULES: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
pub struct OperatorLaw {
    pub rules: Vec<LawRule>,
    pub overrides: Vec<Override>,
    /// Of the file, in hexadecimal: attempts that were judged by it say so.
    pub sha256: String,
}

/// A rule of the pack that the operator does not keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    pub rule: String,
    pub reason: String,
    pub approved_by: String,
    /// Empty: it holds for all of them. Others may be named only where the rule closes something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<TenantId>,
}

impl Override {
    pub(super) fn is_for(&self, tenant: TenantId) -> bool {
        self.workspaces.is_empty() || self.workspaces.contains(&tenant)
    }
}

impl Pack {
    /// Reads an operator's file. `[[rule]]` with the id of a rule of the pack says only what is stricter in it; with another id it is
    /// a rule of its own. `[[override]]` with `rule`, `reason` and `approved_by` is the only way to loosen anything.
    pub fn tighten(&self, file: &str, text: &str) -> Result<OperatorLaw, LawError> {
        let mut written = read::table(file, text)?;
        let tables = read::taken(file, &mut written, "rule")?;
        let overrides = read::taken(file, &mut written, "override")?;
        if let Some(other) = written.keys().next() {
            let why = format!("unknown field `{other}`, expected `rule` or `override`");
            return Err(LawError::of_file(file, why));
        }
        if tables.len() > MOST_RULES {
            return Err(LawError::of_file(file, format!("has more than {MOST_RULES} rules")));
        }
        let mut rules: Vec<LawRule> = Vec::with_capacity(tables.len());
        for table in tables {
            let rule = self.tightened(file, table)?;
            if rules.iter().any(|known| known.id == rule.id) {
                return Err(LawError::of_rule(file, &rule.id, "id", "stands in the file twice"));
            }
            rules.push(rule);
        }
        Ok(OperatorLaw {
            rules,
            overrides: self.overrides(file, overrides)?,
            sha256: sha256(text.as_bytes()),
        })
    }

    fn tightened(&self, file: &str, table: Table) -> Result<LawRule, LawError> {
        let base = read::id_of(&table).and_then(|id| Some((self.rule(id)?, self.tables.get(id)?)));
        let rule = match base {
            Some((_, written)) => read::rule(file, over(written, table), &self.groups)?,
            None => read::rule(file, table, &self.groups)?,
        };
        let refused = |field: &str, why: String| LawError::of_rule(file, &rule.id, field, why);
        if let Some(flaw) = super::lint::of_rule(&rule, self) {
            return Err(flaw.in_file(file, &rule.id));
        }
        if matches!(rule.says, Says::Open {}) {
            return Err(refused(
                "says",
                "opens something: only an [[override]] may do that".to_owned(),
            ));
        }
        match base.and_then(|(base, _)| stricter::looser(base, &rule)) {
            Some((field, why)) => Err(refused(field, format!("{why}: only an [[override]] may loosen a rule"))),
            None => Ok(rule),
        }
    }

    fn overrides(&self, file: &str, tables: Vec<Table>) -> Result<Vec<Override>, LawError> {
        let mut seen = BTreeSet::new();
        let mut overrides = Vec::with_capacity(tables.len());
        for table in tables {
            let made: Override = read::deserialized(file, Value::Table(table), None)?;
            let refused = |field: &str, why: &str| Err(LawError::of_rule(file, &made.rule, field, why));
            let Some(rule) = self.rule(&made.rule) else {
                return refused("rule", "is not a rule of the pack");
            };
            if rule.is_firm {
                return refused("rule", "nobody may override this rule");
            }
            if made.reason.trim().chars().count() < LEAST_REASON {
                return refused("reason", "must say why, in 10 characters or more");
            }
            if made.approved_by.trim().is_empty() {
                return refused("approved_by", "must name who has approved it");
            }
            // Duties and hours are looked up for whole places, whoever calls there.
            if !made.workspaces.is_empty() && !matches!(rule.says, Says::Closed {} | Says::Forbidden {}) {
                return refused(
                    "workspaces",
                    "can be named only where a rule closes or forbids something",
                );
            }
            if !seen.insert(made.rule.clone()) {
                return refused("rule", "is overridden twice");
            }
            overrides.push(made);
        }
        Ok(overrides)
    }
}

impl Law {
    /// A pack under an operator's file; none: the pack as it is.
    pub fn read(pack: &'static Pack, file: Option<(&str, &str)>) -> Result<Self, LawError> {
        let operator = file.map(|(name, text)| pack.tighten(name, text)).transpose()?;
        Ok(Law::new(pack, operator))
    }
}

/// What is written now over what stands in the pack; `says` is taken field by field.
fn over(base: &Table, written: Table) -> Table {
    let mut table = base.clone();
    for (field, value) in written {
        let value = match (table.remove(&field), value) {
            (Some(Value::Table(mut known)), Value::Table(value)) => {
                known.extend(value);
                Value::Table(known)
            }
            (_, value) => value,
        };
        table.insert(field, value);
    }
    table
}

#[cfg(test)]
#[path = "tighten_tests.rs"]
mod tests;
