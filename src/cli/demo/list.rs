//! Reading a contact list. Columns that are no field of a contact become variables.
use serde_json::{Map, Value, json};
use std::path::Path;

const EXAMPLE: &str = include_str!("../../../examples/contacts.csv");
const FIELDS: [&str; 5] = ["external_id", "phone_number", "email", "first_name", "last_name"];

/// Contacts as the API takes them.
pub fn read(file: Option<&Path>) -> Result<Vec<Value>, String> {
    match file {
        None => parse(EXAMPLE.as_bytes()),
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            parse(&bytes).map_err(|why| format!("{}: {why}", path.display()))
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<Value>, String> {
    // A byte-order mark, as some spreadsheets write it, is no part of the first column's name.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let header = reader.headers().map_err(|_| "the first row is not UTF-8")?.clone();
    if !header.iter().any(|name| name.trim() == "phone_number") {
        return Err("needs a header with a column `phone_number`".into());
    }
    let mut contacts = Vec::new();
    for row in reader.records() {
        let row =
            row.map_err(|error| format!("line {} is not UTF-8", error.position().map_or(0, csv::Position::line)))?;
        let (mut contact, mut variables) = (Map::new(), Map::new());
        for (name, value) in header.iter().map(str::trim).zip(&row) {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            let into = if FIELDS.contains(&name) {
                &mut contact
            } else {
                &mut variables
            };
            into.insert(name.to_owned(), value.into());
        }
        contact.insert("variables".into(), json!(variables));
        contacts.push(Value::Object(contact));
    }
    if contacts.is_empty() || contacts.len() > 10_000 {
        return Err(format!("has {} rows; the demo takes 1 to 10000", contacts.len()));
    }
    Ok(contacts)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_example_is_a_messy_list_of_200_rows() {
        let contacts = read(None).unwrap();
        assert_eq!(contacts.len(), 200);
        assert!(contacts.iter().any(|contact| {
            contact["variables"]["company"]
                .as_str()
                .is_some_and(|name| name.contains(','))
        }));
    }
    #[test]
    fn refuses_what_is_no_list() {
        assert!(parse(b"name\nx\n").unwrap_err().contains("phone_number"));
        assert!(parse(b"phone_number\n").unwrap_err().contains("0 rows"));
    }
}
