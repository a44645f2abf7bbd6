//! The reference of the operator's law file, docs/law-file.md: each key and each name that the parser takes stands in it, and no other;
//! what it calls required is; its examples are read, and its errors are the parser's own words.
use callboard::settings::Settings;
use rules::law::{LawError, OperatorLaw, pack};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../docs/law-file.md");
const COMPLIANCE: &str = include_str!("../../docs/compliance.md");

/// What no key and no value is called.
const UNKNOWN: &str = "zzz";

/// Keys with their values, as TOML writes them.
type Pairs = &'static [(&'static str, &'static str)];

const RULE: Pairs = &[
    ("id", "\"house.rule\""),
    ("title", "\"t\""),
    ("places", "[\"US\"]"),
    ("excepted_places", "[\"US-NY\"]"),
    ("purposes", "[\"marketing\"]"),
    ("audiences", "[\"consumer\"]"),
    ("channels", "[\"phone\"]"),
    ("verticals", "[\"energy\"]"),
    ("says", "{ kind = \"cap\", most = 1, hours = 24 }"),
    ("from", "\"2027-01-01\""),
    ("until", "\"2028-01-01\""),
    ("lifted_by_consent", "\"express\""),
    ("keep_years", "6"),
    ("firm", "true"),
    ("source", "\"s\""),
    ("confidence", "\"high\""),
    ("mend", "\"m\""),
];

const OVERRIDE: Pairs = &[
    ("rule", "\"everywhere.emergency\""),
    ("reason", "\"Counsel has agreed\""),
    ("approved_by", "\"J. Doe\""),
    ("workspaces", "[\"0198c2f4-7d3a-7c1e-9b2a-5f0c6d1e8a47\"]"),
];

/// All that each kind of saying has.
const KINDS: &[(&str, Pairs)] = &[
    ("open", &[]),
    ("closed", &[]),
    ("forbidden", &[]),
    (
        "windows",
        &[
            ("open", "[\"daily 08:00-21:00\"]"),
            ("holidays", "\"fr\""),
            ("blackouts", "[[\"2026-12-24\", \"2027-01-03\"]]"),
        ],
    ),
    ("cap", &[("most", "1"), ("hours", "24")]),
    ("rest", &[("cause", "\"declined\""), ("hours", "24")]),
    (
        "consent",
        &[
            ("any_of", "[\"express\"]"),
            ("automated_voice", "true"),
            ("max_age_days", "365"),
            ("contract_max_age_days", "365"),
            ("newer_than_register", "\"it_rpo\""),
            ("unless_register", "{ name = \"au_dncr\", max_age_days = 30 }"),
        ],
    ),
    (
        "register",
        &[
            ("name", "\"us_dnc\""),
            ("max_age_days", "7"),
            ("listed", "\"barred\""),
            ("waived_by", "\"express\""),
        ],
    ),
    ("own_list", &[]),
    ("reassigned", &[("max_age_days", "30"), ("ask_after_days", "30")]),
    (
        "caller_id",
        &[
            ("answered", "true"),
            ("right_to_use", "true"),
            ("registered", "true"),
            ("forbidden_prefixes", "[\"+336\"]"),
            ("required_prefixes", "[\"+33\"]"),
        ],
    ),
    ("identity", &[("fields", "[\"registered_name\"]")]),
    (
        "disclosure",
        &[("what", "[\"ai\"]"), ("within_ms", "2000"), ("repeat_minutes", "10")],
    ),
    ("recording", &[("consent", "\"verbal\"")]),
    ("ring", &[("least_seconds", "15")]),
    (
        "abandonment",
        &[
            ("limit_permille", "30"),
            ("brake_permille", "20"),
            ("hours", "720"),
            ("first_sound_ms", "2000"),
        ],
    ),
    (
        "honour_opt_out",
        &[("days", "1"), ("hang_up_ms", "5000"), ("everything", "true")],
    ),
    ("keep_record", &[("years", "6")]),
    ("marking", &[]),
    ("registration", &[("name", "\"texas_telephone_solicitation\"")]),
];

/// Rows of the table of names, each with a line of a rule in which an unknown one stands.
const NAMES: &[(&str, &str)] = &[
    ("purposes", "purposes = [\"zzz\"]"),
    ("audiences", "audiences = [\"zzz\"]"),
    ("channels", "channels = [\"zzz\"]"),
    ("trades", "verticals = [\"zzz\"]"),
    ("tiers, from the weakest", "lifted_by_consent = \"zzz\""),
    ("confidence", "confidence = \"zzz\""),
    ("kinds", "says = { kind = \"zzz\" }"),
    ("causes of a rest", "says = { kind = \"rest\", cause = \"zzz\" }"),
    ("listed", "says = { kind = \"register\", listed = \"zzz\" }"),
    (
        "fields of the identity",
        "says = { kind = \"identity\", fields = [\"zzz\"] }",
    ),
    ("disclosures", "says = { kind = \"disclosure\", what = [\"zzz\"] }"),
    (
        "consents to a recording",
        "says = { kind = \"recording\", consent = \"zzz\" }",
    ),
];

fn read(text: &str) -> Result<OperatorLaw, LawError> {
    pack().tighten("law.toml", text)
}

/// What the parser would have taken instead of what it does not know.
fn expected(text: &str) -> BTreeSet<String> {
    let why = read(text).unwrap_err().why;
    let mut names = why.split('`').skip(1).step_by(2).map(str::to_owned);
    assert_eq!(names.next().as_deref(), Some(UNKNOWN), "{why}");
    names.collect()
}

/// Of the page: from below a heading to the next one.
fn section(heading: &str) -> &'static str {
    let found = PAGE.split_once(&format!("\n{heading}\n"));
    let (_, rest) = found.unwrap_or_else(|| panic!("there is no {heading}"));
    let ends = ["\n## ", "\n### "].into_iter().filter_map(|next| rest.find(next));
    &rest[..ends.min().unwrap_or(rest.len())]
}

/// The keys of a section's table, each with whether it is required.
fn documented(heading: &str) -> Vec<(&'static str, bool)> {
    let rows = section(heading).lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (key, rest) = row.split_once('`').unwrap();
        (key, rest.starts_with(" * |"))
    })
    .collect()
}

/// The names in a row of the table of names.
fn named(label: &str) -> BTreeSet<String> {
    let row = section("## Names").lines().find_map(|line| {
        let (first, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        (first == label).then_some(rest)
    });
    let row = row.unwrap_or_else(|| panic!("there is no row of {label}"));
    row.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn written<'a>(table: &str, pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    let mut text = format!("[[{table}]]\n");
    for (key, value) in pairs {
        text += &format!("{key} = {value}\n");
    }
    text
}

fn says<'a>(kind: &str, pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(key, value)| format!(", {key} = {value}"));
    format!("{{ kind = \"{kind}\"{} }}", pairs.collect::<String>())
}

/// A rule of one's own in which nothing is wrong but what is changed; an empty value takes a key out.
fn house(changes: &[(&str, &str)]) -> String {
    let required = documented("## A rule")
        .into_iter()
        .filter(|(_, is_required)| *is_required);
    let required: BTreeSet<&str> = required.map(|(key, _)| key).collect();
    let mut pairs: Vec<(&str, &str)> = RULE.iter().copied().filter(|(key, _)| required.contains(key)).collect();
    for (key, value) in changes {
        pairs.retain(|(known, _)| known != key);
        if !value.is_empty() {
            pairs.push((*key, *value));
        }
    }
    written("rule", &pairs)
}

/// Of a rule of the pack what differs.
fn tightened(id: &str, rest: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\n{rest}\n")
}

fn overriding(rule: &str, reason: &str, approved_by: &str, rest: &str) -> String {
    format!("[[override]]\nrule = \"{rule}\"\nreason = \"{reason}\"\napproved_by = \"{approved_by}\"\n{rest}\n")
}

/// The blocks of code in a language.
fn fences(text: &'static str, language: &str) -> Vec<&'static str> {
    let begin = format!("\n```{language}\n");
    let blocks = text.split(begin.as_str()).skip(1);
    blocks.map(|rest| rest.split_once("\n```").unwrap().0).collect()
}

/// A table of the page has the keys that the parser knows, and marks those that cannot be left out. `made`: with these pairs.
fn check(heading: &str, known: &BTreeSet<String>, all: Pairs, made: impl Fn(&[(&str, &str)]) -> String) {
    let documented = documented(heading);
    let keys: BTreeSet<String> = documented.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(keys.len(), documented.len(), "{heading}: a key stands there twice");
    assert_eq!(&keys, known, "{heading}: the page, and what the parser knows");
    let sample: BTreeSet<String> = all.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(&sample, known, "{heading}: the sample");
    for (key, is_required) in documented {
        let without: Vec<(&str, &str)> = all.iter().copied().filter(|(other, _)| *other != key).collect();
        match read(&made(&without)) {
            Ok(_) => assert!(!is_required, "{heading}: {key} can be left out"),
            Err(refused) => {
                let is_missing = refused.why == format!("missing field `{key}`");
                assert!(is_required && is_missing, "{heading}: without {key}: {refused}");
            }
        }
    }
}

#[test]
fn every_key_of_a_rule_and_of_an_override_is_described() {
    let rule = expected(&format!("[[rule]]\n{UNKNOWN} = 1\n"));
    assert!(rule.len() > 10, "{rule:?}");
    check("## A rule", &rule, RULE, |pairs| written("rule", pairs));
    let made = expected(&format!("[[override]]\n{UNKNOWN} = 1\n"));
    check("## An override", &made, OVERRIDE, |pairs| written("override", pairs));
    for whole in [written("rule", RULE), written("override", OVERRIDE)] {
        assert!(read(&whole).is_ok(), "{whole}");
    }
    let tables = expected(&format!("[[{UNKNOWN}]]\n"));
    assert_eq!(tables, BTreeSet::from(["rule".to_owned(), "override".to_owned()]));
}

#[test]
fn every_key_of_every_kind_is_described() {
    let kinds: BTreeSet<String> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    assert_eq!(kinds, named("kinds"));
    for &(kind, all) in KINDS {
        let saying = |pairs: &[(&str, &str)]| {
            let says = says(kind, pairs);
            house(&[("says", says.as_str())])
        };
        let known = expected(&saying(&[(UNKNOWN, "1")]));
        check(&format!("### `{kind}`"), &known, all, saying);
        // Only the pack may open something.
        assert_eq!(read(&saying(all)).is_ok(), kind != "open", "{kind}");
    }
    let register = says("consent", &[("unless_register", "{ zzz = 1 }")]);
    let known = expected(&house(&[("says", register.as_str())]));
    let row = section("### `consent`")
        .lines()
        .find(|line| line.starts_with("| `unless_register`"));
    for key in known {
        assert!(row.unwrap().contains(&key), "unless_register: {key}");
    }
}

#[test]
fn every_name_is_listed() {
    for &(label, line) in NAMES {
        assert_eq!(named(label), expected(&format!("[[rule]]\n{line}\n")), "{label}");
    }
    let calendars: BTreeSet<String> = pack().holidays.keys().cloned().collect();
    assert_eq!(named("calendars of holidays"), calendars);
    let groups: BTreeSet<String> = pack().groups.keys().cloned().collect();
    assert_eq!(named("groups of places"), groups);
    let firm: BTreeSet<&str> = pack()
        .rules
        .iter()
        .filter(|rule| rule.is_firm)
        .map(|rule| rule.id.as_str())
        .collect();
    let told = section("## An override").split('`').skip(1).step_by(2);
    let told = told.filter(|name| pack().rule(name).is_some());
    assert_eq!(told.collect::<BTreeSet<_>>(), firm);
}

#[test]
fn its_examples_are_read() {
    let examples = fences(section("## A worked example"), "toml");
    let [whole] = examples[..] else { panic!("{examples:?}") };
    let found = read(whole).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!((found.rules.len(), found.overrides.len()), (5, 1));
    let short = fences(COMPLIANCE, "toml");
    assert!(!short.is_empty());
    for example in short {
        assert!(read(example).is_ok(), "{example}");
    }
}

#[test]
fn its_errors_are_the_parsers() {
    let saying = |says: &str| house(&[("says", says)]);
    let abandonment = |limits: &str| saying(&format!("{{ kind = \"abandonment\", limit_permille = 30, {limits} }}"));
    let wrong = [
        "[[rules]]\n".to_owned(),
        "rule = 3\n".to_owned(),
        "[[rule]]\n".repeat(1_001),
        house(&[("mend", "")]),
        house(&[("id", "\"House\"")]),
        house(&[]).repeat(2),
        house(&[("title", "\" \"")]),
        house(&[("places", "[]")]),
        house(&[("places", "[\"Europe\"]")]),
        house(&[("places", "[\"XX\"]")]),
        house(&[("excepted_places", "[\"*\"]")]),
        house(&[("purposes", "[]")]),
        house(&[("channels", "[]")]),
        house(&[("from", "\"2027-01-01\""), ("until", "\"2027-01-01\"")]),
        saying("{ kind = \"open\" }"),
        house(&[
            ("says", "{ kind = \"windows\", open = [\"daily 09:00-20:00\"] }"),
            ("lifted_by_consent", "\"express\""),
        ]),
        saying("{ kind = \"windows\", open = [] }"),
        saying("{ kind = \"windows\", open = [\"mon 9-20\"] }"),
        saying("{ kind = \"windows\", open = [\"mon 20:00-09:00\"] }"),
        saying("{ kind = \"windows\", open = [\"daily 09:00-20:00\"], holidays = \"xx\" }"),
        saying(
            "{ kind = \"windows\", open = [\"daily 09:00-20:00\"], blackouts = [[\"2027-01-03\", \"2026-12-24\"]] }",
        ),
        saying("{ kind = \"cap\", most = 1, hours = 721 }"),
        saying("{ kind = \"rest\", cause = \"declined\", hours = 0 }"),
        saying("{ kind = \"consent\", any_of = [] }"),
        saying("{ kind = \"register\", name = \"X\", max_age_days = 1, listed = \"barred\" }"),
        saying("{ kind = \"caller_id\", forbidden_prefixes = [\"44\"] }"),
        saying("{ kind = \"identity\", fields = [] }"),
        saying("{ kind = \"disclosure\", what = [] }"),
        saying("{ kind = \"disclosure\", what = [\"ai\"], within_ms = 1999 }"),
        abandonment("brake_permille = 20, hours = 48, first_sound_ms = 2000"),
        abandonment("brake_permille = 20, hours = 24, first_sound_ms = 1000"),
        abandonment("brake_permille = 31, hours = 24, first_sound_ms = 2000"),
        saying("{ kind = \"ring\", least_seconds = 61 }"),
        tightened("us.cap.day", "says = { most = 4 }"),
        tightened("everywhere.own_list", "says = { kind = \"marking\" }"),
        tightened("us.cap.day", "places = [\"US-FL\"]"),
        tightened("us.hours", "says = { open = [\"daily 07:59-21:00\"] }"),
        tightened("fr.hours", "says = { holidays = \"de\" }"),
        "[[override]]\nrule = \"us.cap.day\"\nreason = \"Counsel has agreed\"\n".to_owned(),
        overriding("us.cap.month", "Counsel has agreed", "J. Doe", ""),
        overriding("everywhere.floor", "Counsel has agreed", "J. Doe", ""),
        overriding("us.cap.day", "because", "J. Doe", ""),
        overriding("us.cap.day", "Counsel has agreed", " ", ""),
        overriding(
            "us.cap.day",
            "Counsel has agreed",
            "J. Doe",
            "workspaces = [\"0198c2f4-7d3a-7c1e-9b2a-5f0c6d1e8a47\"]",
        ),
        overriding("us.cap.day", "Counsel has agreed", "J. Doe", "").repeat(2),
    ];
    let found: BTreeSet<String> = wrong.iter().map(|text| read(text).unwrap_err().to_string()).collect();
    let blocks = fences(section("## Errors"), "text");
    let told: BTreeSet<String> = blocks
        .iter()
        .flat_map(|block| block.lines())
        .map(str::to_owned)
        .collect();
    let untold: Vec<&String> = found.difference(&told).collect();
    assert!(untold.is_empty(), "not in docs/law-file.md: {untold:#?}");
    let gone: Vec<&String> = told.difference(&found).collect();
    assert!(gone.is_empty(), "in docs/law-file.md, and nowhere else: {gone:#?}");
}

#[test]
fn a_file_that_is_too_large_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("law.toml").to_str().unwrap().to_owned();
    let start = || Settings::load(None, &[("dev", "true".into()), ("law_file", path.clone())]);
    std::fs::write(&path, "#".repeat(1024 * 1024)).unwrap();
    assert!(start().is_ok());
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    let why = "is larger than 1048576 bytes";
    assert_eq!(start().err().unwrap().0, format!("law_file: {path}: {why}"));
    assert!(PAGE.contains(why));
}
