//! Reads rules as they are written: TOML tables, each with the fields of [`LawRule`]. What is wrong is told with its file, rule and field.
use super::rule::{Confidence, LawRule, Says, Where};
use chrono::NaiveDate;
use entities::{
    dnc::DncChannel,
    law::{Audience, ConsentTier, Purpose, Vertical},
    values::Place,
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use toml::{Table, Value};

/// What is wrong with a file of rules, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawError {
    pub file: String,
    pub rule: Option<String>,
    pub field: Option<String>,
    pub why: String,
}

impl LawError {
    pub fn of_file(file: &str, why: impl Into<String>) -> Self {
        LawError {
            file: file.to_owned(),
            rule: None,
            field: None,
            why: why.into(),
        }
    }

    pub fn of_rule(file: &str, rule: &str, field: &str, why: impl Into<String>) -> Self {
        LawError {
            rule: Some(rule.to_owned()),
            field: Some(field.to_owned()),
            ..LawError::of_file(file, why)
        }
    }
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(rule) = &self.rule {
            write!(f, ", rule {rule}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field {field}")?;
        }
        write!(f, ": {}", self.why)
    }
}
impl std::error::Error for LawError {}

/// Of `pack.toml`: what is said of all rules together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preface {
    pub version: String,
    /// In which the texts of disclosures exist: the first part of a BCP 47 tag.
    pub languages: BTreeSet<String>,
    pub groups: Groups,
}

/// Names for several places.
pub type Groups = BTreeMap<String, Vec<Place>>;

pub fn preface(file: &str, text: &str) -> Result<Preface, LawError> {
    let preface: Preface = deserialized(file, Value::Table(table(file, text)?), None)?;
    match preface
        .groups
        .keys()
        .find(|name| name.parse::<Place>().is_ok() && name.as_str() != "EU")
    {
        Some(name) => Err(LawError::of_file(file, format!("group {name} looks like a place"))),
        None => Ok(preface),
    }
}

/// The tables of a file that has nothing but rules.
pub fn tables(file: &str, text: &str) -> Result<Vec<Table>, LawError> {
    let mut written = table(file, text)?;
    let rules = taken(file, &mut written, "rule")?;
    match written.keys().next() {
        Some(other) => Err(LawError::of_file(
            file,
            format!("unknown field `{other}`, expected `rule`"),
        )),
        None => Ok(rules),
    }
}

pub fn table(file: &str, text: &str) -> Result<Table, LawError> {
    toml::from_str(text).map_err(|error: toml::de::Error| LawError::of_file(file, error.to_string()))
}

/// Takes the array of tables of that name out; none: empty.
pub fn taken(file: &str, written: &mut Table, name: &str) -> Result<Vec<Table>, LawError> {
    let bad = || LawError::of_file(file, format!("`{name}` must be written as [[{name}]]"));
    match written.remove(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::Table(table) => Ok(table),
                _ => Err(bad()),
            })
            .collect(),
        Some(_) => Err(bad()),
    }
}

/// The id of a rule's table, if it has one.
pub fn id_of(table: &Table) -> Option<&str> {
    table.get("id").and_then(Value::as_str)
}

/// One rule of its table.
pub fn rule(file: &str, table: Table, groups: &Groups) -> Result<LawRule, LawError> {
    let id = id_of(&table).map(str::to_owned);
    let written: Written = deserialized(file, Value::Table(table), id.as_deref())?;
    let wrong = |field: &str, why: String| LawError::of_rule(file, &written.id, field, why);
    let places = places(&written.places, groups).map_err(|why| wrong("places", why))?;
    let excepted = self::places(&written.excepted_places, groups).map_err(|why| wrong("excepted_places", why))?;
    if excepted.is_everywhere || excepted.is_unnamed || excepted.is_nowhere {
        return Err(wrong("excepted_places", "must be places".to_owned()));
    }
    if let Some(why) = super::lint::of_written_id(&written.id) {
        return Err(wrong("id", why));
    }
    let rule = LawRule {
        id: written.id,
        title: written.title,
        places,
        excepted_places: excepted.places,
        purposes: written.purposes,
        audiences: written.audiences,
        channels: written.channels,
        verticals: written.verticals,
        says: written.says,
        from: written.from,
        until: written.until,
        lifted_by_consent: written.lifted_by_consent,
        keep_years: written.keep_years,
        is_firm: written.firm,
        source: written.source,
        confidence: written.confidence,
        mend: written.mend,
    };
    Ok(rule)
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    title: String,
    places: Vec<String>,
    #[serde(default)]
    excepted_places: Vec<String>,
    purposes: Vec<Purpose>,
    #[serde(default)]
    audiences: Vec<Audience>,
    channels: Vec<DncChannel>,
    #[serde(default)]
    verticals: Vec<Vertical>,
    says: Says,
    from: Option<NaiveDate>,
    until: Option<NaiveDate>,
    lifted_by_consent: Option<ConsentTier>,
    keep_years: Option<u8>,
    #[serde(default)]
    firm: bool,
    source: String,
    confidence: Confidence,
    mend: String,
}

fn places(written: &[String], groups: &Groups) -> Result<Where, String> {
    let mut found = Where::default();
    for name in written {
        match (name.as_str(), groups.get(name)) {
            ("*", _) => found.is_everywhere = true,
            ("?", _) => found.is_unnamed = true,
            ("nowhere", _) => found.is_nowhere = true,
            (_, Some(group)) => found.places.extend(group.iter().cloned()),
            (name, None) => found.places.push(
                name.parse()
                    .map_err(|_| format!("`{name}` is neither a place nor a group"))?,
            ),
        }
    }
    found.places.sort();
    found.places.dedup();
    Ok(found)
}

/// Any part of a file, with the path to what is wrong in it.
pub fn deserialized<T: DeserializeOwned>(file: &str, value: Value, rule: Option<&str>) -> Result<T, LawError> {
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<toml::de::Error>| {
        let path = error.path().to_string();
        LawError {
            file: file.to_owned(),
            rule: rule.map(str::to_owned),
            field: (path != ".").then_some(path),
            // What follows the first line repeats the path.
            why: error
                .inner()
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        }
    })
}
