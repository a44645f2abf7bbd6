//! What generators of clients make little of, said as they like it.
use super::marks::MEANINGS;
use serde_json::{Map, Value};

/// A choice of constants becomes the enumeration that it is; what each means stands beside it. A pair becomes a list of two.
pub(super) fn enumerate(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some((values, meanings)) = fields.get("oneOf").and_then(choice) {
                fields.remove("oneOf");
                fields.insert("type".into(), "string".into());
                fields.insert("enum".into(), values.into());
                if !meanings.is_empty() {
                    fields.insert(MEANINGS.into(), meanings.into());
                }
            }
            // A pair of the same is a list of two.
            if let Some(all) = fields.get("prefixItems").and_then(Value::as_array)
                && let Some(first) = all.first().cloned()
                && all.iter().all(|one| *one == first)
            {
                fields.remove("prefixItems");
                fields.insert("items".into(), first);
            }
            // Of what may be anything some can only read it as a schema that says nothing.
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
            for property in properties.into_iter().flat_map(|all| all.values_mut()) {
                if *property == Value::Bool(true) {
                    *property = Map::new().into();
                }
            }
            fields.values_mut().for_each(enumerate);
        }
        Value::Array(items) => items.iter_mut().for_each(enumerate),
        _ => {}
    }
}

/// The values of texts to choose from, if that is what it is, and what is said of some.
fn choice(variants: &Value) -> Option<(Vec<Value>, Map<String, Value>)> {
    let (mut values, mut meanings) = (Vec::new(), Map::new());
    for variant in variants.as_array()? {
        let fields = variant.as_object()?;
        let known = |name: &String| matches!(name.as_str(), "type" | "const" | "enum" | "description");
        if fields.get("type")? != "string" || !fields.keys().all(known) {
            return None;
        }
        match (fields.get("const"), fields.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => {
                if let (Some(name), Some(meaning)) = (value.as_str(), fields.get("description")) {
                    meanings.insert(name.to_owned(), meaning.clone());
                }
                values.push(value.clone());
            }
            (None, Some(several)) => values.extend(several.iter().cloned()),
            (None, None) => return None,
        }
    }
    Some((values, meanings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_choice_of_texts_is_an_enumeration() {
        let mut schema = json!({ "description": "How far it is.", "oneOf": [
            { "type": "string", "enum": ["training", "queued"] },
            { "type": "string", "const": "ready", "description": "It can be used." },
        ] });
        enumerate(&mut schema);
        let expected = json!({
            "description": "How far it is.", "type": "string", "enum": ["training", "queued", "ready"],
            "x-enumDescriptions": { "ready": "It can be used." },
        });
        assert_eq!(schema, expected);
        let mut pair = json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "string" }], "minItems": 2, "maxItems": 2 });
        enumerate(&mut pair);
        assert_eq!(
            pair,
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 })
        );
        let mut anything = json!({ "properties": { "output": true }, "uniqueItems": true });
        enumerate(&mut anything);
        assert_eq!(anything, json!({ "properties": { "output": {} }, "uniqueItems": true }));
        let forms = json!({ "properties": { "brain": { "oneOf": [
            { "type": "object", "properties": { "mode": { "const": "chat", "type": "string" } } },
            { "type": "string", "const": "none" },
        ] } } });
        let mut same = forms.clone();
        enumerate(&mut same);
        assert_eq!(same, forms, "forms of an object stay a union");
    }
}
