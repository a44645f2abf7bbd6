//! The JSON Schema of an event's `data`.
use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

/// The schema of what is sent: what may be absent is never null, and what may be null is never absent.
pub(super) fn exact<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let settings = settings.with_transform(RecursiveTransform(never_null_where_absent));
    settings.into_generator().into_root_schema_for::<T>()
}

/// A field that is left out where it has nothing to say is never null.
pub fn never_null_where_absent(schema: &mut Schema) {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if !required.iter().any(|field| field == name) {
            without_null(property);
        }
    }
}

/// Takes back what `Option` adds to the schema of its value.
fn without_null(property: &mut Value) {
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            property["type"] = kind.clone();
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(forms)) = property.get_mut("anyOf") else {
        return;
    };
    forms.retain(|form| form["type"] != "null");
    if forms.len() != 1 {
        return;
    }
    let form = forms.remove(0);
    if let (Value::Object(property), Value::Object(form)) = (property, form) {
        property.remove("anyOf");
        for (name, value) in form {
            property.entry(name).or_insert(value);
        }
    }
}
