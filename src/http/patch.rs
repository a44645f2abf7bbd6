//! How a JSON merge patch reads in the OpenAPI document.
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// Any part of a `T`: what a JSON merge patch may hold.
pub struct Patch<T>(std::marker::PhantomData<T>);

impl<T: schemars::JsonSchema> schemars::JsonSchema for Patch<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Patch", T::schema_name()).into()
    }
    /// Several resources have `Settings` of their own.
    fn schema_id() -> std::borrow::Cow<'static, str> {
        format!("Patch<{}>", T::schema_id()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        let mut schema = T::json_schema(generator);
        let required = schema.remove("required");
        let is_required = |name: &str| {
            let names = required.as_ref().and_then(|names| names.as_array());
            names.is_some_and(|names| names.iter().any(|known| known == name))
        };
        // What may be left out when it is made may be set back.
        if let Some(properties) = schema.get_mut("properties").and_then(|fields| fields.as_object_mut()) {
            for (name, field) in properties.iter_mut() {
                // What is left out of a patch stays as it is.
                if let Some(field) = field.as_object_mut() {
                    field.shift_remove("default");
                }
                if !is_required(name) {
                    allow_null(field);
                }
            }
        }
        schema
    }
}

/// What a merge patch may leave out it may also set back, by null.
pub fn allow_null(schema: &mut Value) {
    let has = |variants: &Value| {
        variants
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "null"))
    };
    let may_be_anything = schema
        .as_object()
        .is_none_or(|fields| fields.keys().all(|name| name == "description"));
    if may_be_anything || has(&schema["anyOf"]) || has(&schema["oneOf"]) {
        return;
    }
    if schema.get("enum").is_none() && schema.get("const").is_none() {
        match schema.get_mut("type") {
            Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "null") => return,
            Some(Value::Array(kinds)) => return kinds.push("null".into()),
            Some(kind @ Value::String(_)) => {
                *kind = json!([kind.clone(), "null"]);
                return;
            }
            _ => {}
        }
    }
    let mut of_it = schema.take();
    // What is said where it is used stays there.
    let mut about = Map::new();
    let description = of_it.as_object_mut().and_then(|fields| fields.remove("description"));
    if let Some(description) = description {
        about.insert("description".into(), description);
    }
    about.insert("anyOf".into(), json!([of_it, { "type": "null" }]));
    *schema = about.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_allowed_once() {
        for (schema, expected) in [
            (
                json!({ "type": "string", "maxLength": 5 }),
                json!({ "type": ["string", "null"], "maxLength": 5 }),
            ),
            (
                json!({ "description": "Anything." }),
                json!({ "description": "Anything." }),
            ),
            (
                json!({ "type": ["string", "null"] }),
                json!({ "type": ["string", "null"] }),
            ),
            (
                json!({ "type": ["string", "integer"] }),
                json!({ "type": ["string", "integer", "null"] }),
            ),
            (
                json!({ "$ref": "#/x", "description": "Whose." }),
                json!({ "description": "Whose.", "anyOf": [{ "$ref": "#/x" }, { "type": "null" }] }),
            ),
            (
                json!({ "anyOf": [{ "$ref": "#/x" }, { "type": "null" }] }),
                json!({ "anyOf": [{ "$ref": "#/x" }, { "type": "null" }] }),
            ),
            (
                json!({ "type": "string", "enum": ["a"] }),
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
            ),
        ] {
            let mut changed = schema.clone();
            allow_null(&mut changed);
            assert_eq!(changed, expected);
        }
    }
}
