use super::sample::{Row, moment};
use crate::law::{Duties, GateKind, Law, LawRule, Pack, Says, Scope, Verdict, judge, pack};
use std::collections::{BTreeMap, BTreeSet};

const CASES: &str = include_str!("cases.txt");

/// A rule with its source, and its rows.
struct Section {
    rule: &'static str,
    source: &'static str,
    rows: Vec<(&'static str, &'static str)>,
}

fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[') {
            let (rule, source) = head.split_once("] ").unwrap();
            sections.push(Section {
                rule,
                source,
                rows: Vec::new(),
            });
        } else {
            let row = line.split_once(" -> ").unwrap_or_else(|| panic!("{line}"));
            sections.last_mut().unwrap().rows.push(row);
        }
    }
    sections
}

/// The duties of one rule alone.
fn duties(rule: &LawRule, row: &Row<'_>) -> Duties {
    let alone = Pack {
        rules: vec![rule.clone()],
        ..Pack::default()
    };
    let law = Law::new(Box::leak(Box::new(alone)), None);
    law.spoken(Scope::from(&row.facts(&rule.id)))
}

/// What is wrong with a row; none: nothing.
fn flaw(rule: &LawRule, row: &str, expected: &str) -> Option<String> {
    let row = Row::read(row);
    let found = judge(Law::untouched(), &row.facts(&rule.id)).of(&rule.id);
    let (word, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let is_right = match (word, found) {
        ("duty", Some(_)) => {
            let duties = serde_json::to_value(duties(rule, &row)).unwrap();
            let is_so = |wanted: &str| {
                let (field, json) = wanted.split_once('=').unwrap();
                duties
                    .get(field)
                    .is_some_and(|found| found.to_string().as_str() == json)
            };
            if rest.split(' ').all(is_so) {
                return None;
            }
            return Some(format!("wants {duties}"));
        }
        ("absent", None) | ("present", Some(_)) => true,
        ("yes", Some(Verdict::Yes)) | ("never", Some(Verdict::Never)) => true,
        ("overridden", Some(Verdict::Overridden)) => true,
        ("wait", Some(Verdict::Wait(_))) if rest.is_empty() => true,
        ("wait", Some(Verdict::Wait(Some(until)))) => until == moment(row.zone(), rest),
        _ => false,
    };
    (!is_right).then(|| format!("says {found:?}"))
}

#[test]
fn each_rule_says_what_its_source_says() {
    let mut flaws = Vec::new();
    for Section { rule, source, rows } in sections() {
        let known = pack().rule(rule).unwrap_or_else(|| panic!("{rule} is not in the pack"));
        assert_eq!(known.source, source, "{rule}");
        for (row, expected) in rows {
            let found = flaw(known, row, expected);
            flaws.extend(found.map(|found| format!("{source} [{rule}]: {row} -> {expected}, but {found}")));
        }
    }
    assert!(
        flaws.is_empty(),
        "{} rows are wrong:\n{}",
        flaws.len(),
        flaws.join("\n")
    );
}

/// A rule that is added without rows on both sides of it fails here.
#[test]
fn each_rule_of_the_pack_is_exercised_on_both_sides() {
    let seen: BTreeMap<&str, BTreeSet<&str>> = sections()
        .into_iter()
        .map(|section| {
            let words = section
                .rows
                .iter()
                .map(|(_, expected)| expected.split(' ').next().unwrap());
            (section.rule, words.collect())
        })
        .collect();
    for rule in &pack().rules {
        let words = seen
            .get(rule.id.as_str())
            .unwrap_or_else(|| panic!("no rows for {}", rule.id));
        let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
        let (says_yes, says_no) = match &rule.says {
            Says::Open {} => (true, false),
            Says::Closed {} | Says::Forbidden {} => (rule.lifted_by_consent.is_some(), true),
            says => (!says.is_duty(), !says.is_duty()),
        };
        assert!(!says_yes || has(&["yes"]), "{}: no row says yes", rule.id);
        assert!(!says_no || has(&["never", "wait"]), "{}: no row says no", rule.id);
        assert!(
            !rule.says.is_duty() || has(&["duty"]),
            "{}: no row says what it wants",
            rule.id
        );
        let is_dated = rule.from.is_some() || rule.until.is_some();
        assert!(
            !is_dated || (has(&["absent"]) && has(&["present"])),
            "{}: not on both sides of its days",
            rule.id
        );
    }
}

/// The days themselves: the last moment before a rule begins or ends, and the first after it.
#[test]
fn rules_begin_and_end_on_their_days() {
    for section in sections() {
        let rule = pack().rule(section.rule).unwrap();
        for (date, begins) in [(rule.from, true), (rule.until, false)] {
            let Some(date) = date else { continue };
            let before = format!("{}T23:59:59", date.pred_opt().unwrap());
            let after = format!("{date}T00:00");
            let has = |at: &str, expected: &str| {
                let mut rows = section.rows.iter();
                rows.any(|(row, found)| *found == expected && row.split(' ').nth(1) == Some(at))
            };
            let (was, is) = if begins {
                ("absent", "present")
            } else {
                ("present", "absent")
            };
            assert!(has(&before, was) && has(&after, is), "{}: {date}", rule.id);
        }
    }
}

/// It is asked in the order of kinds, each rule once.
#[test]
fn rules_are_asked_in_order() {
    let facts = Row::read("US-FL,US-TX 2026-12-01T12:00").facts("");
    let asked = judge(Law::untouched(), &facts).asked;
    let kinds: Vec<GateKind> = asked.iter().map(|asked| asked.kind).collect();
    assert!(kinds.is_sorted());
    let rules: BTreeSet<&str> = asked.iter().map(|asked| &*asked.rule).collect();
    assert_eq!(rules.len(), asked.len());
    for wanted in ["us.consent.voice", "us-fl.hours", "us-tx.hours", "everywhere.floor"] {
        assert!(rules.contains(wanted), "{wanted}");
    }
    assert!(!rules.contains("us-ok.hours"));
}
