//! Puts examples into the document: of requests those that are written down, of answers what follows from them and from the schemas.
use super::{contracts::PREFIX, errors, events, sample::Samples};
use crate::http::examples;
use rules::event::CATALOGUE;
use serde_json::{Map, Value, json};

pub(super) fn add(document: &mut Value) {
    let schemas = document["components"]["schemas"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut values = examples::values();
    values.extend(made(document));
    // Events have an id of their own, whatever they tell.
    if let Some(id) = values.get("Event.id").cloned() {
        values.extend(
            CATALOGUE
                .iter()
                .map(|event| (format!("{}.id", events::name(event)), id.clone())),
        );
    }
    let mut shown = errors::examples();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let method = method.to_uppercase();
            if let Some(example) = examples::request(&method, path) {
                let kinds = operation["requestBody"]["content"].as_object_mut().into_iter();
                for (_, content) in kinds.flatten() {
                    // A text shows no image and no sound.
                    if content["schema"]["format"] != "binary" {
                        content["example"] = example.clone();
                    }
                }
            }
            for (status, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
                if !status.starts_with('2') {
                    continue;
                }
                // Secrets are shown once: when they are made.
                let is_whole = matches!(status.as_str(), "201" | "202") || path.ends_with("/rotate_secret");
                let samples = |is_whole| Samples {
                    schemas: &schemas,
                    values: &values,
                    is_whole,
                };
                let content = answer.get_mut("content").and_then(Value::as_object_mut);
                for (kind, content) in content.into_iter().flatten() {
                    if let Some(example) = examples::answer(&method, path, kind) {
                        content["example"] = example.clone();
                    } else if kind == "application/json" {
                        let (plain, whole) = (samples(false), samples(true));
                        let name = name(&content["schema"], &plain, is_whole.then_some(&whole), &mut shown);
                        let reference = json!({ "$ref": format!("#/components/examples/{name}") });
                        content["examples"] = json!({ "default": reference });
                    }
                }
            }
        }
    }
    let whole = Samples {
        schemas: &schemas,
        values: &values,
        is_whole: true,
    };
    for (_, webhook) in document["webhooks"].as_object_mut().into_iter().flatten() {
        let content = &mut webhook["post"]["requestBody"]["content"]["application/json"];
        let example = whole.of(&content["schema"], None);
        content["example"] = example;
    }
    document["components"]["examples"] = shown.into();
}

/// What the answers to requests that make something say, by their schemas: what was asked for.
fn made(document: &Value) -> Map<String, Value> {
    let mut made = Map::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let post = &item["post"]["responses"];
        let answer = ["201", "202"].iter().find_map(|status| post.get(status));
        let schema = answer.and_then(|answer| answer.pointer("/content/application~1json/schema/$ref")?.as_str());
        if let Some(name) = schema.and_then(|path| path.strip_prefix(PREFIX))
            && let Some(example @ Value::Object(_)) = examples::request("POST", path)
        {
            made.entry(name).or_insert_with(|| example.clone());
        }
    }
    made
}

/// The name of the example of an answer, which is shown once however many operations give it.
fn name(schema: &Value, plain: &Samples<'_>, whole: Option<&Samples<'_>>, shown: &mut Map<String, Value>) -> String {
    let path = schema["$ref"].as_str().unwrap_or_default();
    let name = path.strip_prefix(PREFIX).unwrap_or("Anything").to_owned();
    let example = plain.of(schema, None);
    let of_whole = whole.map(|whole| whole.of(schema, None));
    let (name, example) = match of_whole {
        Some(whole) if whole != example => (format!("{name}Created"), whole),
        Some(_) | None => (name, example),
    };
    shown.entry(&name).or_insert_with(|| json!({ "value": example }));
    name
}
