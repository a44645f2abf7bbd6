//! Examples of answers, made from their schemas: each field says what the same field of the request says, or what the list of
//! values has for its name, or else the least that its type allows. So no field and no operation can be forgotten.
use super::contracts::{OUTPUT, PREFIX};
use serde_json::{Map, Value, json};

/// Levels of values; ends schemas that contain themselves.
const DEPTH: usize = 12;

pub(super) struct Samples<'a> {
    pub schemas: &'a Map<String, Value>,
    /// By `Schema.field`, by field, or by schema.
    pub values: &'a Map<String, Value>,
    /// With what is not in every answer, such as a secret that is shown once.
    pub is_whole: bool,
}

/// Where a value stands: in a field of a schema.
#[derive(Clone, Copy)]
struct Place<'a> {
    owner: &'a str,
    field: &'a str,
    depth: usize,
}

impl<'a> Samples<'a> {
    /// An example of a schema. `given`: what it says, as far as that fits.
    pub fn of(&self, schema: &'a Value, given: Option<&'a Value>) -> Value {
        let place = Place {
            owner: "",
            field: "",
            depth: DEPTH,
        };
        self.value(schema, given, place)
    }

    fn value(&self, schema: &'a Value, given: Option<&'a Value>, place: Place<'a>) -> Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix(PREFIX)) {
            let Some(referred) = self.schemas.get(name) else {
                return Value::Null;
            };
            if referred.get("$ref").is_some() {
                return self.value(referred, given.or_else(|| self.known(place)), place);
            }
            let is_object = referred.get("properties").is_some() || referred.get("oneOf").is_some();
            let of_field = given.or_else(|| self.known(place));
            return match is_object {
                true => {
                    let inside = Place { owner: name, ..place };
                    self.shaped(referred, of_field.or_else(|| self.values.get(bare(name))), inside)
                }
                false => self.shaped(referred, of_field.or_else(|| self.values.get(bare(name))), place),
            };
        }
        self.shaped(schema, given.or_else(|| self.known(place)), place)
    }

    /// What the list says of a field: of this schema's, or of any that is called so.
    fn known(&self, place: Place<'_>) -> Option<&'a Value> {
        let own = self.values.get(&format!("{}.{}", bare(place.owner), place.field));
        own.or_else(|| self.values.get(place.field).filter(|_| !place.field.is_empty()))
    }

    fn shaped(&self, schema: &'a Value, given: Option<&'a Value>, place: Place<'a>) -> Value {
        for forms in ["anyOf", "oneOf"] {
            if let Some(forms) = schema[forms].as_array() {
                return self.one_of(forms, given, place);
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = Map::new();
            for part in parts {
                if let Value::Object(fields) = self.value(part, given, place) {
                    whole.extend(fields);
                }
            }
            // What it says itself narrows its parts.
            whole.extend(self.object(schema, given, place));
            return whole.into();
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => vec![],
        };
        if given == Some(&Value::Null) && kinds.contains(&"null") {
            return Value::Null;
        }
        match kinds.iter().find(|kind| **kind != "null") {
            Some(&"object") => self.object(schema, given, place).into(),
            Some(&"array") => self.list(schema, given, place),
            Some(&"string") => text(schema, given),
            Some(&"integer") => number(schema, given.filter(|value| value.is_i64() || value.is_u64())),
            Some(&"number") => number(schema, given.filter(|value| value.is_number())),
            Some(&"boolean") => given.filter(|value| value.is_boolean()).cloned().unwrap_or(true.into()),
            // Anything.
            _ => given.cloned().unwrap_or(json!({})),
        }
    }

    fn one_of(&self, forms: &'a [Value], given: Option<&'a Value>, place: Place<'a>) -> Value {
        let is_null = |form: &&Value| form["type"] == "null";
        if given.or_else(|| self.known(place)) == Some(&Value::Null) && forms.iter().any(|form| is_null(&form)) {
            return Value::Null;
        }
        // The form that has what is given as the tag, or else the first.
        let fits = |form: &&Value| {
            let name = form["$ref"].as_str().and_then(|path| path.strip_prefix(PREFIX));
            let form = name.and_then(|name| self.schemas.get(name)).unwrap_or(*form);
            let tags = form["properties"].as_object().into_iter().flatten();
            let mut tags = tags.filter_map(|(name, field)| Some((name, field.get("const")?)));
            tags.any(|(name, tag)| given.and_then(|given| given.get(name)) == Some(tag))
        };
        let mut real = forms.iter().filter(|form| !is_null(form));
        let form = real.clone().find(fits).or_else(|| real.next());
        form.map_or(Value::Null, |form| self.value(form, given, place))
    }

    fn object(&self, schema: &'a Value, given: Option<&'a Value>, place: Place<'a>) -> Map<String, Value> {
        let Some(properties) = schema["properties"].as_object() else {
            // A map: what its keys are nobody knows.
            return given.and_then(Value::as_object).cloned().unwrap_or_default();
        };
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let mut object = Map::new();
        if place.depth == 0 {
            return object;
        }
        for (name, field) in properties {
            if self.is_whole || is_required(name) {
                let inside = Place {
                    owner: place.owner,
                    field: name,
                    depth: place.depth - 1,
                };
                let said = given.and_then(|given| given.get(name));
                object.insert(name.clone(), self.value(field, said, inside));
            }
        }
        object
    }

    fn list(&self, schema: &'a Value, given: Option<&'a Value>, place: Place<'a>) -> Value {
        let inside = Place {
            depth: place.depth.saturating_sub(1),
            ..place
        };
        // The field's own value is a list: its entries have no name.
        let entry = |said| {
            let nameless = Place { field: "", ..inside };
            self.value(&schema["items"], said, nameless)
        };
        let least = schema["minItems"].as_u64().unwrap_or(0).max(1);
        match given.and_then(Value::as_array) {
            Some(items) => items.iter().map(|item| entry(Some(item))).collect(),
            None if place.depth == 0 => json!([]),
            None => (0..least).map(|_| entry(None)).collect(),
        }
    }
}

/// The name of a schema without what tells what is given from what is asked for.
fn bare(name: &str) -> &str {
    name.strip_suffix(OUTPUT).unwrap_or(name)
}

fn text(schema: &Value, given: Option<&Value>) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        let known = given.filter(|value| values.contains(value));
        return known
            .or_else(|| values.iter().find(|value| !value.is_null()))
            .cloned()
            .unwrap_or_default();
    }
    let fits = |value: &&Value| value.is_string();
    if let Some(known) = given.filter(fits).or_else(|| schema.get("default").filter(fits)) {
        return known.clone();
    }
    match schema["format"].as_str() {
        Some("uuid") => "0198c2f4-7d3a-7c1e-9b2a-5f0c6d1e8a47".into(),
        Some("date-time") => "2027-03-02T14:00:00.000Z".into(),
        Some("date") => "2027-03-02".into(),
        Some("uri") => "https://example.com/".into(),
        _ => "text".into(),
    }
}

fn number(schema: &Value, given: Option<&Value>) -> Value {
    let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    let fits = |value: &&Value| value.as_f64().is_some_and(|value| (least..=most).contains(&value));
    let known = given.filter(fits).or_else(|| schema.get("default").filter(fits));
    let one = json!(1);
    let likely = known
        .or_else(|| Some(&one).filter(fits))
        .or_else(|| schema.get("minimum"));
    likely.cloned().unwrap_or(json!(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(schema: Value, given: Value, is_whole: bool) -> Value {
        let schemas = json!({
            "Agent": { "type": "object", "required": ["name", "brain", "next"], "properties": {
                "name": { "type": "string" },
                "secret": { "type": "string" },
                "brain": { "$ref": "#/components/schemas/Brain" },
                "next": { "anyOf": [{ "$ref": "#/components/schemas/Agent" }, { "type": "null" }] },
            } },
            "Brain": { "oneOf": [
                { "type": "object", "required": ["mode"], "properties": { "mode": { "const": "chat" } } },
                { "type": "object", "required": ["mode", "replies"], "properties": {
                    "mode": { "const": "scripted" }, "replies": { "type": "array", "items": { "type": "integer", "minimum": 3 } } } },
            ] },
        });
        let values = json!({ "Agent.name": "Ann", "name": "Somebody", "next": null });
        let samples = Samples {
            schemas: schemas.as_object().unwrap(),
            values: values.as_object().unwrap(),
            is_whole,
        };
        samples.of(&schema, Some(&given).filter(|given| !given.is_null()))
    }

    #[test]
    fn an_example_says_what_is_given_then_what_is_known_then_the_least() {
        let agent = || json!({ "$ref": "#/components/schemas/Agent" });
        let plain = sample(agent(), Value::Null, false);
        assert_eq!(
            plain,
            json!({ "name": "Ann", "brain": { "mode": "chat" }, "next": null })
        );
        let whole = sample(agent(), Value::Null, true);
        assert_eq!(whole["secret"], "text");
        let given = sample(agent(), json!({ "name": "Bo", "brain": { "mode": "scripted" } }), false);
        assert_eq!(given["name"], "Bo");
        assert_eq!(given["brain"], json!({ "mode": "scripted", "replies": [3] }));
        let list = json!({ "type": "array", "items": { "type": ["string", "null"], "enum": ["a", null] } });
        assert_eq!(sample(list, json!(["b"]), false), json!(["a"]));
    }
}
