//! JSON values to types: what is wrong with their shape, by field, and why. And changes of a value by another.
use serde::de::DeserializeOwned;

/// A value of another shape than it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misshapen {
    /// The path of the field, as `pacing.calls_per_second`; empty: the whole.
    pub param: String,
    pub message: String,
}

/// A JSON value as a `T`.
pub fn parse_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Misshapen> {
    // serde would take a list for a struct, its fields in their order.
    if !value.is_object() {
        return Err(Misshapen {
            param: String::new(),
            message: "must be a JSON object".into(),
        });
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        misshapen(&path, error.inner())
    })
}

impl From<Misshapen> for entities::Error {
    fn from(Misshapen { param, message }: Misshapen) -> Self {
        entities::Error::invalid(param, message)
    }
}

/// A JSON text as a `T`.
pub fn parse_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, Misshapen> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text)).map_err(|error| {
        let path = error.path().to_string();
        misshapen(&path, error.inner())
    })
}

fn misshapen(path: &str, error: &serde_json::Error) -> Misshapen {
    let text = error.to_string();
    let parent = if path == "." { "" } else { path };
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    // serde names unknown and missing fields in its text and their parent in the path.
    let field = ["unknown field `", "missing field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split_once('`'));
    let param = match field {
        Some((field, _)) if parent.is_empty() || parent.ends_with(field) => {
            if parent.is_empty() {
                field.to_owned()
            } else {
                parent.to_owned()
            }
        }
        Some((field, _)) => format!("{parent}.{field}"),
        None => parent.to_owned(),
    };
    Misshapen {
        param,
        message: message.to_owned(),
    }
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

    #[test]
    fn a_merge_patch_changes_adds_and_removes() {
        let mut target = serde_json::json!({"a": 1, "b": {"c": 2, "d": 3}});
        merge(&mut target, serde_json::json!({"a": null, "b": {"c": 4}, "e": [1]}));
        assert_eq!(target, serde_json::json!({"b": {"c": 4, "d": 3}, "e": [1]}));
    }
}
