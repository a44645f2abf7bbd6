//! What is asked for and what is given are two things, though often of one type: what may be left out when an agent is made
//! always stands in the answer. Both are read off the types, and where they differ the answer's is called `…Output`.
use super::super::routes::SchemaOf;
use rules::event::never_null_where_absent;
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(super) const PREFIX: &str = "#/components/schemas/";

/// Both sides of every type. Each is asked for the same in the same order, so that both call it the same.
pub(super) struct Contracts {
    asked: SchemaGenerator,
    given: SchemaGenerator,
}

impl Contracts {
    pub fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        Contracts {
            asked: settings().into_generator(),
            given: settings().for_serialize().into_generator(),
        }
    }

    /// Of a request.
    pub fn asked(&mut self, of: SchemaOf) -> Value {
        of(&mut self.given);
        of(&mut self.asked).to_value()
    }

    /// Of an answer.
    pub fn given(&mut self, of: SchemaOf) -> Value {
        of(&mut self.asked);
        of(&mut self.given).to_value()
    }

    /// All schemas: as they are asked for, and as they are given.
    pub fn take(mut self) -> (Map<String, Value>, Map<String, Value>) {
        let asked = self.asked.take_definitions(true).into_iter().collect();
        let mut given: Map<String, Value> = self.given.take_definitions(true).into_iter().collect();
        given.values_mut().for_each(exact);
        (asked, given)
    }
}

/// What is given has no defaults, and is null only where it may be null.
fn exact(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let required = fields.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                let is_required =
                    |name: &String| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
                for (_, property) in properties.iter_mut().filter(|(name, _)| is_required(name)) {
                    if let Some(property) = property.as_object_mut() {
                        property.shift_remove("default");
                    }
                }
            }
            fields.values_mut().for_each(exact);
            if let Ok(schema) = <&mut Schema>::try_from(schema) {
                never_null_where_absent(schema);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(exact),
        _ => {}
    }
}

/// Puts what is given into the document's answers and webhooks. Answers the names of those that are given otherwise than they
/// are asked for: the given one has [`OUTPUT`] behind its name.
pub(super) fn part(document: &mut Value, given: Map<String, Value>) -> BTreeSet<String> {
    let schemas = document["components"]["schemas"].as_object_mut();
    let asked = schemas.map(std::mem::take).unwrap_or_default();
    let (mut asking, mut giving) = (BTreeSet::new(), BTreeSet::new());
    for_each_operation(document, &mut |operation| {
        for (part, value) in operation.as_object_mut().into_iter().flatten() {
            match part.as_str() {
                "responses" => reach(value, &given, &mut giving),
                _ => reach(value, &asked, &mut asking),
            }
        }
    });
    for (_, webhook) in document["webhooks"].as_object().into_iter().flatten() {
        reach(webhook, &given, &mut giving);
    }
    let differing = differing(&asked, &given, asking.intersection(&giving));
    for_each_operation(document, &mut |operation| {
        retarget(&mut operation["responses"], &differing)
    });
    retarget(&mut document["webhooks"], &differing);
    let mut schemas = Map::new();
    for (name, schema) in asked.into_iter().filter(|(name, _)| asking.contains(name)) {
        schemas.insert(name, schema);
    }
    for (name, mut schema) in given.into_iter().filter(|(name, _)| giving.contains(name)) {
        retarget(&mut schema, &differing);
        if differing.contains(&name) {
            schemas.insert(format!("{name}{OUTPUT}"), schema);
        } else {
            schemas.insert(name, schema);
        }
    }
    document["components"]["schemas"] = schemas.into();
    differing
}

pub(super) const OUTPUT: &str = "Output";

fn for_each_operation(document: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, item) in paths {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            act(operation);
        }
    }
}

/// Of those, what is asked for and given in two ways, or refers to what is.
fn differing<'a>(
    asked: &Map<String, Value>,
    given: &Map<String, Value>,
    both: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let both: Vec<&String> = both.collect();
    let mut differing = BTreeSet::new();
    loop {
        let before = differing.len();
        for name in &both {
            let differs = asked.get(*name) != given.get(*name);
            let refers = || {
                let mut referred = BTreeSet::new();
                if let Some(schema) = given.get(*name) {
                    references(schema, &mut referred);
                }
                !referred.is_disjoint(&differing)
            };
            if differs || refers() {
                differing.insert((*name).clone());
            }
        }
        if differing.len() == before {
            return differing;
        }
    }
}

/// Whatever a value refers to, in itself and in what it refers to.
fn reach(value: &Value, schemas: &Map<String, Value>, found: &mut BTreeSet<String>) {
    let mut referred = BTreeSet::new();
    references(value, &mut referred);
    for name in referred {
        if found.insert(name.clone())
            && let Some(schema) = schemas.get(&name)
        {
            reach(schema, schemas, found);
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let path = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = path.and_then(|path| path.strip_prefix(PREFIX)) {
                found.insert(name.to_owned());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn retarget(value: &mut Value, differing: &BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(path)) = fields.get_mut("$ref")
                && path.strip_prefix(PREFIX).is_some_and(|name| differing.contains(name))
            {
                path.push_str(OUTPUT);
            }
            fields.values_mut().for_each(|value| retarget(value, differing));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| retarget(item, differing)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Order {
        name: String,
        #[serde(default)]
        place: Place,
        size: Size,
    }
    #[derive(Default, Deserialize, Serialize, JsonSchema)]
    struct Place {
        #[serde(default)]
        street: Option<String>,
    }
    #[derive(Deserialize, Serialize, JsonSchema)]
    enum Size {
        Small,
    }
    #[derive(Serialize, JsonSchema)]
    struct OrderView {
        place: Place,
        size: Size,
        note: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
    }

    #[test]
    fn what_is_given_says_what_is_always_there() {
        let mut contracts = Contracts::new();
        let body = contracts.asked(|all| all.subschema_for::<Order>());
        let answer = contracts.given(|all| all.subschema_for::<OrderView>());
        let (asked, given) = contracts.take();
        let mut document = json!({
            "paths": { "/orders": { "post": { "requestBody": body, "responses": { "201": answer } } } },
            "webhooks": {},
            "components": { "schemas": asked },
        });
        assert_eq!(part(&mut document, given), BTreeSet::from(["Place".to_owned()]));
        let schemas = &document["components"]["schemas"];
        let names: Vec<&String> = schemas.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert_eq!(schemas["Order"]["required"], json!(["name", "size"]));
        assert_eq!(schemas["Place"].get("required"), None);
        assert_eq!(schemas["PlaceOutput"]["required"], json!(["street"]));
        let view = &schemas["OrderView"];
        assert_eq!(view["required"], json!(["place", "size", "note"]));
        assert_eq!(view["properties"]["place"]["$ref"], "#/components/schemas/PlaceOutput");
        assert_eq!(view["properties"]["note"]["type"], json!(["string", "null"]));
        assert_eq!(view["properties"]["secret"]["type"], "string");
    }
}
