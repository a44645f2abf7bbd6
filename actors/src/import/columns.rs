//! Which column of a list holds what.
use super::file;
use csv::ByteRecord;
use entities::{
    Error, Result,
    import::{Delimiter, Kind},
    values::Variables,
};
use rules::consent;
use serde_json::{Map, Value};

/// Columns of one file.
pub(super) const MAX_COLUMNS: usize = 100;

/// What a file's first row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(super) names: Vec<String>,
    pub(super) delimiter: Delimiter,
}

impl Columns {
    /// The fields that are no variables, by kind.
    fn known(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Contacts => &[
                "phone_number",
                "external_id",
                "email",
                "first_name",
                "last_name",
                "timezone",
                "region",
                "consent_id",
                "priority",
                "not_before",
            ],
            Kind::Dnc => &["phone_number", "email", "channels", "reason"],
            Kind::Consents => &consent::COLUMNS,
        }
    }

    pub(super) fn read(kind: Kind, body: &str) -> Result<Self> {
        let bad = |why: String| Error::invalid("", why);
        let names_somebody = |name: &str| matches!(column(kind, name).as_str(), "phone_number" | "email");
        let delimiter = file::delimiter(body, names_somebody);
        let mut first = csv::StringRecord::new();
        let any = file::reader(body.as_bytes(), delimiter)
            .read_record(&mut first)
            .map_err(|_| bad("the file is not CSV: its first row cannot be read".into()))?;
        if !any {
            return Err(bad("the file is empty: its first row must name the columns".into()));
        }
        let names: Vec<String> = first.iter().map(|name| column(kind, name)).collect();
        if names.len() > MAX_COLUMNS {
            return Err(bad(format!(
                "the file has {} columns, at most {MAX_COLUMNS} are allowed",
                names.len()
            )));
        }
        // Spreadsheets leave columns without a name at the end: they are passed over.
        let is_twice = |(at, name): &(usize, &String)| !name.is_empty() && names[..*at].contains(name);
        if let Some(twice) = names.iter().enumerate().find(is_twice) {
            return Err(bad(format!("column `{}` is listed twice", twice.1)));
        }
        if !names.iter().any(|name| names_somebody(name)) {
            return Err(bad(
                "the first row must name the columns, and `phone_number` or `email` must be one of them".into(),
            ));
        }
        let is_other = |name: &&String| !name.is_empty() && !Columns::known(kind).contains(&name.as_str());
        let mut others = names.iter().filter(is_other);
        check_needed(kind, &names)?;
        match kind {
            Kind::Dnc | Kind::Consents => {
                if let Some(unknown) = others.next() {
                    return Err(bad(format!("column `{unknown}` is not known")));
                }
            }
            Kind::Contacts => {
                if let Some(long) = others
                    .clone()
                    .find(|name| name.chars().count() > Variables::LONGEST_NAME)
                {
                    return Err(bad(format!(
                        "column `{long}` becomes a variable, and its name has more than {} characters: give it a shorter one",
                        Variables::LONGEST_NAME
                    )));
                }
                if others.clone().count() > Variables::MAX {
                    return Err(bad(format!(
                        "{} columns become variables, at most {} are allowed",
                        others.count(),
                        Variables::MAX
                    )));
                }
            }
        }
        Ok(Columns { names, delimiter })
    }

    /// A row as the API would take it. Empty cells are left out.
    pub(super) fn object(&self, record: &ByteRecord) -> Result<Value, String> {
        let (mut fields, mut variables) = (Map::new(), Map::new());
        for (name, cell) in self.names.iter().zip(record) {
            let cell = std::str::from_utf8(cell)
                .map_err(|_| format!("`{name}` is not UTF-8"))?
                .trim();
            if cell.contains('\0') {
                return Err(format!("`{name}` contains a NUL character"));
            }
            if cell.is_empty() || name.is_empty() {
                continue;
            }
            let value = match name.as_str() {
                // A number that is none is refused by its field.
                "priority" => cell.parse::<i64>().map_or_else(|_| Value::from(cell), Value::from),
                _ => Value::from(cell),
            };
            if Columns::known(Kind::Contacts).contains(&name.as_str()) {
                fields.insert(name.clone(), value);
            } else {
                variables.insert(name.clone(), value);
            }
        }
        if !variables.is_empty() {
            fields.insert("variables".into(), variables.into());
        }
        Ok(fields.into())
    }
}

/// For whom a consent is, and for what, is said by whoever collected them: it is never guessed.
fn check_needed(kind: Kind, names: &[String]) -> Result<()> {
    let needed: &[&str] = match kind {
        Kind::Consents => &consent::NEEDED,
        Kind::Contacts | Kind::Dnc => &[],
    };
    match needed.iter().find(|name| !names.iter().any(|known| known == **name)) {
        Some(missing) => Err(Error::invalid(
            "",
            format!("column `{missing}` is missing: each consent must say it"),
        )),
        None => Ok(()),
    }
}

/// `Phone Number` is `phone_number`; names of variables stay as they are.
pub(super) fn column(kind: Kind, name: &str) -> String {
    let plain = name.trim_start_matches('\u{feff}').trim();
    let snake = plain.to_lowercase().replace([' ', '-'], "_");
    let snake = if snake == "phone" {
        "phone_number".to_owned()
    } else {
        snake
    };
    if Columns::known(kind).contains(&snake.as_str()) {
        snake
    } else {
        plain.to_owned()
    }
}
