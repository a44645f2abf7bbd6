//! JSON values to types: what is wrong with their shape, by field, and why. And changes of a value by another.
mod mend;

pub use mend::{faults_of_text, parse_all};

use entities::error::{Fault, FaultCode};
use serde::de::DeserializeOwned;

/// A value of another shape than it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misshapen {
    /// The path of the field, as `pacing.calls_per_second`; empty: the whole.
    pub param: String,
    pub message: String,
    pub code: FaultCode,
}

impl From<Misshapen> for Fault {
    fn from(Misshapen { param, message, code }: Misshapen) -> Fault {
        Fault {
            field: param,
            reason: message,
            code,
        }
    }
}

/// A JSON value as a `T`.
pub fn parse_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Misshapen> {
    // serde would take a list for a struct, its fields in their order.
    if !value.is_object() {
        return Err(no_object());
    }
    serde_path_to_error::deserialize(value).map_err(at_its_path)
}

fn no_object() -> Misshapen {
    Misshapen {
        param: String::new(),
        message: "must be a JSON object".into(),
        code: FaultCode::InvalidType,
    }
}

impl From<Misshapen> for entities::Error {
    fn from(Misshapen { param, message, .. }: Misshapen) -> Self {
        entities::Error::invalid(param, message)
    }
}

/// A JSON text as a `T`. Fields are known only of what is read directly: a derived enum that is tagged or untagged, and a
/// flattened struct, are read from a buffer, and errors in them name the whole. `entities::agent::Brain` shows the way out.
pub fn parse_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, Misshapen> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text)).map_err(at_its_path)
}

/// A JSON value that is not an object as a `T`; the error says what is wrong with it, without a field's name.
pub fn parse_part<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| plain(&error))
}

fn at_its_path(error: serde_path_to_error::Error<serde_json::Error>) -> Misshapen {
    misshapen(&error.path().to_string(), error.inner())
}

fn misshapen(path: &str, error: &serde_json::Error) -> Misshapen {
    let text = said(error);
    let parent = if path == "." { "" } else { path };
    // serde names unknown, missing and repeated fields in its text and their parent in the path.
    let field = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| text.strip_prefix(start)?.split_once('`'));
    let names_it = |field: &str| parent == field || parent.ends_with(&format!(".{field}"));
    let param = match field {
        Some((field, _)) if parent.is_empty() => field.to_owned(),
        Some((field, _)) if !names_it(field) => format!("{parent}.{field}"),
        Some(_) | None => parent.to_owned(),
    };
    Misshapen {
        param,
        message: plain(error),
        code: code(&text),
    }
}

fn code(said: &str) -> FaultCode {
    let codes = [
        ("missing field `", FaultCode::Required),
        ("unknown field `", FaultCode::UnknownField),
        ("duplicate field `", FaultCode::DuplicateField),
        ("invalid type: ", FaultCode::InvalidType),
        // Of a choice that is given as something else than a text.
        ("expected value", FaultCode::InvalidType),
    ];
    let known = codes.iter().find(|(start, _)| said.starts_with(start));
    known.map_or(FaultCode::InvalidValue, |(_, code)| *code)
}

/// What serde says, without the position that it adds.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((said, _)) if error.line() > 0 => said.to_owned(),
        Some(_) | None => text,
    }
}

const AN_ID: &str = "an id such as `0198c2f4-7d3a-7c1e-9b2a-5f0c6d1e8a47`";
const A_DATE: &str = "a date such as `2027-12-24`";
const A_CHOICE: &str = "a string from the list in the API reference";
/// How chrono says that a text is not a date.
const NOT_A_DATE: [&str; 7] = [
    "input is out of range",
    "no possible date and time matching input",
    "input is not enough for unique date and time",
    "input contains invalid characters",
    "premature end of input",
    "trailing input",
    "bad or unsupported format string",
];
/// Characters of a value that is repeated in a message.
const SHOWN: usize = 80;

/// What is wrong with a value, in our words: those of serde and of other libraries name types of Rust. What our own values say
/// of themselves (`must not be empty`) stays as it is.
fn plain(error: &serde_json::Error) -> String {
    let text = said(error);
    if error.is_data() {
        in_our_words(&text)
    } else {
        unread(&text)
    }
}

/// The same for a text of serde's.
pub fn in_our_words(text: &str) -> String {
    if text.starts_with("missing field `") {
        return "is required".into();
    }
    if text.starts_with("duplicate field `") {
        return "is given twice".into();
    }
    if let Some(rest) = text.strip_prefix("unknown field `") {
        return match rest.rsplit_once("`, expected ") {
            Some((_, known)) => {
                let known = known.strip_prefix("one of ").unwrap_or(known).replace(" or ", ", ");
                format!("is not a known field; allowed: {known}")
            }
            None => "is not a known field; leave it out".into(),
        };
    }
    if let Some((given, allowed)) = text
        .strip_prefix("unknown variant `")
        .and_then(|rest| rest.rsplit_once("`, expected "))
    {
        return format!("must be {allowed}, not `{}`", cut(given));
    }
    if text.starts_with("UUID parsing failed") {
        return format!("must be {AN_ID}");
    }
    if NOT_A_DATE.contains(&text) {
        return format!("must be {A_DATE}");
    }
    if text.starts_with("data did not match any variant") {
        return "has none of the forms that the API reference shows".into();
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((kind, rest)) = kinds.iter().find_map(|kind| Some((*kind, text.strip_prefix(kind)?))) else {
        return text.to_owned();
    };
    match rest.rsplit_once(", expected ") {
        Some((given, expected)) => match wanted(expected) {
            Some(wanted) if kind == "invalid length " => format!("must be {wanted}"),
            Some(wanted) => format!("must be {wanted}, not {}", found(given)),
            None => "has the wrong type; see the API reference".into(),
        },
        None => "has the wrong type; see the API reference".into(),
    }
}

/// What serde expected, for people; none for what our requests do not have.
fn wanted(expected: &str) -> Option<String> {
    let wanted = match expected {
        "a string" | "a borrowed string" | "string" => "a string",
        "a character" => "a single character",
        "a boolean" => "`true` or `false`",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number of 0 or more, with at most 18 digits",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" => "a whole number with at most 18 digits",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        "a formatted UUID string" => AN_ID,
        "a formatted date string" => A_DATE,
        "string or map" | "variant identifier" => A_CHOICE,
        _ if expected.starts_with("a nonzero u") => "a whole number of 1 or more",
        _ if expected.starts_with("enum ") => A_CHOICE,
        _ if ["struct ", "internally tagged enum ", "adjacently tagged enum "]
            .iter()
            .any(|start| expected.starts_with(start)) =>
        {
            "an object"
        }
        _ => {
            let size = ["a tuple of size ", "an array of length "]
                .iter()
                .find_map(|start| expected.strip_prefix(start))?;
            return Some(format!("a list of {size} entries"));
        }
    };
    Some(wanted.to_owned())
}

/// What serde found, for people. A number or a text is repeated; of a list or an object only that it is one.
fn found(unexpected: &str) -> String {
    let shown = ["boolean ", "integer ", "floating point ", "string "]
        .iter()
        .find_map(|start| unexpected.strip_prefix(start));
    match (shown, unexpected) {
        (Some(value), _) => cut(value),
        (None, "null" | "unit value") => "null".into(),
        (None, "sequence") => "a list".into(),
        (None, "map") => "an object".into(),
        (None, _) => "a value of another type".into(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What is JSON, but cannot be read as the value that it should be.
fn unread(said: &str) -> String {
    match said {
        "expected value" => format!("must be {A_CHOICE}"),
        "number out of range" => "is too large a number".into(),
        "recursion limit exceeded" => "nests more than 127 levels deep".into(),
        "invalid unicode code point" | "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "has a character that is cut in half: write UTF-8, or both halves of a \\u pair".into()
        }
        _ => "cannot be read; see the API reference".into(),
    }
}

/// Why a text is not JSON, and where, for the people who wrote it.
pub fn not_json(error: &serde_json::Error) -> String {
    let why = match said(error).as_str() {
        _ if error.is_eof() => "it ends too early",
        "trailing characters" => "there is something after its end",
        "trailing comma" => "there is a comma too many",
        "key must be a string" => "a key in double quotes is missing, or there is a comma too many",
        "expected `:`" => "a colon is missing after a key",
        "expected `,` or `]`" | "expected `,` or `}`" => "a comma or a closing bracket is missing",
        "expected value" | "expected ident" => "a value is missing, misspelled or not in double quotes",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a string has a line break or another control character; write it as an escape, such as \\n"
        }
        "invalid escape" => "a string has a backslash before a character that needs none",
        "invalid number" => "a number is not written as JSON writes it",
        "number out of range" => "a number is too large",
        "invalid unicode code point" | "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "a string has a character that is cut in half"
        }
        "recursion limit exceeded" => "it nests more than 127 levels deep",
        _ => "it has a mistake",
    };
    format!("{why} (line {}, column {})", error.line(), error.column())
}

/// RFC 7396: changes what is named, removes what is null.
pub fn merge(target: &mut serde_json::Value, patch: serde_json::Value) {
    use serde_json::Value;
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(fields) = target {
        for (name, value) in patch {
            if value.is_null() {
                fields.remove(&name);
            } else {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Day {
        Monday,
        Tuesday,
        Friday,
    }
    #[derive(Debug, serde::Deserialize)]
    #[serde(tag = "mode", rename_all = "snake_case")]
    enum Brain {
        Chat,
        Realtime,
    }
    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Asked {
        agent_id: Option<entities::ids::AgentId>,
        count: u8,
        size: i64,
        rate: f64,
        on: bool,
        day: Option<Day>,
        dates: Vec<chrono::NaiveDate>,
        place: Option<Place>,
        brain: Option<Brain>,
        pair: Option<(u8, u8)>,
        at: Option<entities::values::Moment>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Place {
        name: String,
        zip: Option<String>,
    }

    /// Words of serde, serde_json, uuid and chrono, and names of types of Rust.
    const FOREIGN: [&str; 16] = [
        "invalid type",
        "invalid value",
        "invalid length",
        "expected",
        "struct",
        "variant",
        "missing field",
        "unknown field",
        "duplicate field",
        "UUID parsing",
        "sequence",
        "EOF",
        "trailing",
        "premature",
        "tuple",
        "at line",
    ];

    #[test]
    fn what_is_wrong_is_told_in_our_words() {
        for (body, param, message) in [
            (r#"{"agent_id":""}"#, "agent_id", "must be an id such as `0198"),
            (r#"{"agent_id":7}"#, "agent_id", "must be an id such as `0198"),
            (
                r#"{"count":300}"#,
                "count",
                "must be a whole number from 0 to 255, not `300`",
            ),
            (
                r#"{"count":"7"}"#,
                "count",
                "must be a whole number from 0 to 255, not \"7\"",
            ),
            (
                r#"{"size":1.5}"#,
                "size",
                "must be a whole number with at most 18 digits, not `1.5`",
            ),
            (r#"{"rate":[]}"#, "rate", "must be a number, not a list"),
            (r#"{"on":"yes"}"#, "on", "must be `true` or `false`, not \"yes\""),
            (r#"{"on":null}"#, "on", "must be `true` or `false`, not null"),
            (
                r#"{"day":"sunday"}"#,
                "day",
                "must be one of `monday`, `tuesday`, `friday`, not `sunday`",
            ),
            (
                r#"{"day":7}"#,
                "day",
                "must be a string from the list in the API reference",
            ),
            (
                r#"{"dates":["2027-12-24","soon"]}"#,
                "dates[1]",
                "must be a date such as `2027-12-24`",
            ),
            (r#"{"dates":[7]}"#, "dates[0]", "must be a date such as `2027-12-24`"),
            (r#"{"dates":{}}"#, "dates", "must be a list, not an object"),
            (r#"{"place":{}}"#, "place.name", "is required"),
            (r#"{"place":7}"#, "place", "must be an object, not `7`"),
            (
                r#"{"place":{"name":"x","street":"y"}}"#,
                "place.street",
                "is not a known field; allowed: `name`, `zip`",
            ),
            (r#"{"place":{"name":"x","name":"y"}}"#, "place.name", "is given twice"),
            (r#"{"brain":{}}"#, "brain.mode", "is required"),
            (r#"{"pair":[1]}"#, "pair", "must be a list of 2 entries"),
            (r#"{"at":"soon"}"#, "at", "`soon` is not a time"),
        ] {
            let wrong = parse_text::<Asked>(body.as_bytes()).unwrap_err();
            assert_eq!(wrong.param, param, "{body}: {wrong:?}");
            assert!(wrong.message.starts_with(message), "{body}: {wrong:?}");
            let foreign = FOREIGN.iter().find(|word| wrong.message.contains(**word));
            assert_eq!(foreign, None, "{body}: {wrong:?}");
        }
        let long = format!(r#"{{"day":"{}"}}"#, "ü".repeat(1000));
        let wrong = parse_text::<Asked>(long.as_bytes()).unwrap_err();
        assert!(wrong.message.chars().count() < 200, "{wrong:?}");
    }

    #[test]
    fn what_is_not_json_is_told_with_its_place() {
        for (text, expected) in [
            (r#"{"a":"#, "it ends too early (line 1, column 5)"),
            (r#"{"a":1} b"#, "there is something after its end (line 1, column 9)"),
            (
                "{\"a\":1,\n}",
                "a key in double quotes is missing, or there is a comma too many (line 2, column 1)",
            ),
            (
                "{a:1}",
                "a key in double quotes is missing, or there is a comma too many (line 1, column 2)",
            ),
            (r#"{"a" 1}"#, "a colon is missing after a key (line 1, column 6)"),
            (
                r#"{"a":1 "b":2}"#,
                "a comma or a closing bracket is missing (line 1, column 8)",
            ),
            (
                r#"{"a":'b'}"#,
                "a value is missing, misspelled or not in double quotes (line 1, column 6)",
            ),
        ] {
            let error = serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap_err();
            assert_eq!(not_json(&error), expected, "{text}");
        }
    }

    #[test]
    fn a_merge_patch_changes_adds_and_removes() {
        let mut target = serde_json::json!({"a": 1, "b": {"c": 2, "d": 3}});
        merge(&mut target, serde_json::json!({"a": null, "b": {"c": 4}, "e": [1]}));
        assert_eq!(target, serde_json::json!({"b": {"c": 4, "d": 3}, "e": [1]}));
    }
}
