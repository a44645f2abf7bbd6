//! What stands inside of a merge patch has no defaults either: what is left out of a patch stays as it is, and what need not be there
//! is set back by null. Objects that have defaults are given to patches as a schema of their own, `…Update`. Lists are replaced as a
//! whole, so their entries keep what they have.
use super::{contracts::PREFIX, schema_names};
use crate::http::patch::allow_null;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const SUFFIX: &str = "Update";

/// Where a schema's own parts stand, those in lists left out.
const FORMS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

pub(super) fn part(document: &mut Value) {
    let schemas = document["components"]["schemas"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut parts = Parts {
        schemas: &schemas,
        made: BTreeMap::new(),
    };
    let mut bodies = Map::new();
    for name in patches(document) {
        let mut body = schemas.get(&name).cloned().unwrap_or_default();
        // `http::patch` has said already what may be null of the body's own fields.
        parts.take(&mut body, false);
        bodies.insert(name, body);
    }
    let made = parts.made;
    let Some(all) = document["components"]["schemas"].as_object_mut() else {
        return;
    };
    for (name, body) in bodies {
        all.insert(name, body);
    }
    for (new, schema) in made.values() {
        all.insert(new.clone(), schema.clone());
    }
    // What only patches had.
    let mut uses = BTreeMap::new();
    schema_names::count(document, &mut uses);
    if let Some(all) = document["components"]["schemas"].as_object_mut() {
        all.retain(|name, _| !made.contains_key(name) || uses.contains_key(name));
    }
}

/// The schemas of the bodies of merge patches.
fn patches(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let bodies = paths.filter_map(|(_, item)| {
        item["patch"]["requestBody"]
            .pointer("/content/application~1json/schema/$ref")?
            .as_str()?
            .strip_prefix(PREFIX)
    });
    bodies.map(str::to_owned).collect()
}

struct Parts<'a> {
    schemas: &'a Map<String, Value>,
    /// By the name of the whole: the name of the part, and its schema.
    made: BTreeMap<String, (String, Value)>,
}

impl Parts<'_> {
    /// Takes the defaults out of a schema, leads it to parts that have none, and lets its fields be null that need not be there.
    fn take(&mut self, schema: &mut Value, is_inside: bool) {
        let Some(fields) = schema.as_object_mut() else { return };
        fields.shift_remove("default");
        if let Some(Value::String(path)) = fields.get_mut("$ref")
            && let Some(name) = path.strip_prefix(PREFIX).map(str::to_owned)
            && self.has_defaults(&name, &mut BTreeSet::new())
        {
            *path = format!("{PREFIX}{}", self.of(&name));
        }
        for forms in FORMS {
            for form in fields
                .get_mut(forms)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                self.take(form, is_inside);
            }
        }
        let required = fields.get("required").and_then(Value::as_array).cloned();
        let is_required = |name: &str| required.iter().flatten().any(|known| known == name);
        let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            self.take(property, true);
            if is_inside && !is_required(name) {
                allow_null(property);
            }
        }
    }

    /// The name of the part of a schema, which is made if it is not there yet.
    fn of(&mut self, name: &str) -> String {
        if let Some((new, _)) = self.made.get(name) {
            return new.clone();
        }
        let mut new = format!("{name}{SUFFIX}");
        if self.schemas.contains_key(&new) {
            new = format!("{name}Change");
        }
        // Before its own parts are: it may contain itself.
        self.made.insert(name.to_owned(), (new.clone(), Value::Null));
        let mut schema = self.schemas.get(name).cloned().unwrap_or_default();
        self.take(&mut schema, true);
        schema["title"] = new.clone().into();
        self.made.insert(name.to_owned(), (new.clone(), schema));
        new
    }

    fn has_defaults(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        seen.insert(name.to_owned())
            && self
                .schemas
                .get(name)
                .is_some_and(|schema| self.says_defaults(schema, seen))
    }

    fn says_defaults(&self, schema: &Value, seen: &mut BTreeSet<String>) -> bool {
        if schema.get("default").is_some() {
            return true;
        }
        let referred = schema["$ref"].as_str().and_then(|path| path.strip_prefix(PREFIX));
        if referred.is_some_and(|name| self.has_defaults(name, seen)) {
            return true;
        }
        let forms = FORMS.iter().filter_map(|forms| schema[*forms].as_array()).flatten();
        let properties = schema["properties"].as_object().into_iter().flat_map(Map::values);
        forms.chain(properties).any(|part| self.says_defaults(part, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_has_no_defaults_wherever_they_stand() {
        let of = |name: &str| json!({ "$ref": format!("{PREFIX}{name}") });
        let content = |name: &str| json!({ "content": { "application/json": { "schema": of(name) } } });
        let mut document = json!({
            "paths": {
                "/agents": { "post": { "requestBody": content("AgentCreate") } },
                "/agents/{id}": { "patch": { "requestBody": content("AgentUpdate") } },
            },
            "components": { "schemas": {
                "AgentCreate": { "properties": { "turns": of("Turns") } },
                "AgentUpdate": { "properties": {
                    "turns": { "anyOf": [of("Turns"), { "type": "null" }] },
                    "plain": of("Plain"),
                    "own": of("Own"),
                    "questions": { "type": "array", "items": of("Question") },
                    "default": { "type": "string" },
                } },
                "Turns": { "title": "Turns", "required": ["mode"], "properties": {
                    "eager": { "type": "boolean", "default": true },
                    "again": of("Turns"),
                    "mode": { "type": "string" },
                    "pauses": { "type": "object", "properties": { "short": { "type": "integer", "default": 5 } } },
                } },
                "Plain": { "properties": { "name": { "type": "string" } } },
                "Own": { "properties": { "size": { "type": "integer", "default": 1 } } },
                "Question": { "properties": { "required": { "type": "boolean", "default": false } } },
            } },
        });
        part(&mut document);
        let schemas = &document["components"]["schemas"];
        let patch = &schemas["AgentUpdate"]["properties"];
        assert_eq!(patch["turns"]["anyOf"][0], of("TurnsUpdate"));
        assert_eq!((&patch["plain"], &patch["own"]), (&of("Plain"), &of("OwnUpdate")));
        assert_eq!(patch["questions"]["items"], of("Question"), "replaced as a whole");
        assert_eq!(
            patch["default"],
            json!({ "type": "string" }),
            "a field may be called so"
        );
        let turns = json!({ "title": "TurnsUpdate", "required": ["mode"], "properties": {
            "eager": { "type": ["boolean", "null"] },
            "again": { "anyOf": [of("TurnsUpdate"), { "type": "null" }] },
            "mode": { "type": "string" },
            "pauses": { "type": ["object", "null"], "properties": { "short": { "type": ["integer", "null"] } } },
        } });
        assert_eq!(
            schemas["TurnsUpdate"], turns,
            "what need not be there is set back by null"
        );
        assert_eq!(
            schemas["Turns"]["properties"]["eager"]["default"], true,
            "what makes one has it"
        );
        assert!(schemas.get("Own").is_none(), "nothing refers to it any more");
    }
}
