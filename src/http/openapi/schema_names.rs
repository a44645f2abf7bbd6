//! What generated clients call schemas: by whose they are (`AgentList`, `CampaignPreflight`), requests by what they ask for.
use super::{contracts::PREFIX, events, names::pascal};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Those whose own name says too little outside the file that they stand in.
#[rustfmt::skip]
const TELLING: &[(&str, &str)] = &[
    ("Given", "NewContact"),
    ("Added", "AddedContacts"),
    ("Rejected", "RejectedContact"),
    ("Rejection", "ImportRejection"),
    ("CheckView", "DncCheck"),
    ("CountsView", "CampaignCounts"),
    ("SlotsView", "CampaignSlots"),
    ("Caps", "CampaignCaps"),
    ("Pacing", "CampaignPacing"),
    ("Retry", "RetryPolicy"),
    ("Schedule", "CampaignSchedule"),
    ("Window", "ScheduleWindow"),
    ("GivenWindow", "ScheduleWindowCreate"),
    ("Template", "MessageTemplate"),
    ("OutlookView", "CampaignPreflight"),
    ("ProblemView", "PreflightProblem"),
    ("SkipsView", "PreflightSkips"),
    ("TextsView", "PreflightTexts"),
    ("ZoneView", "PreflightZone"),
    ("RuleView", "EligibilityRule"),
    ("Rule", "EligibilityRuleName"),
    ("VerdictView", "EligibilityVerdict"),
    ("Target", "TransferTarget"),
    ("Reply", "ScriptedReply"),
    ("Detection", "VoicemailDetection"),
    ("Sandbox", "SandboxCall"),
    ("Step", "SandboxStep"),
    ("Entry", "TimelineEntry"),
    ("Invocation", "FunctionInvocation"),
    ("AttemptView", "DeliveryAttempt"),
    ("AttemptsView", "EndpointAttempts"),
    ("WaitingView", "EndpointWaiting"),
    ("TimingsView", "AttemptTimings"),
    ("Origin", "DeliveryOrigin"),
    ("Ordering", "EndpointOrdering"),
    ("Encoding", "SmsEncoding"),
    ("Period", "StatsPeriod"),
    ("ReceivedView", "PaymentNotice"),
    ("Inbound", "NumberInbound"),
    ("Otherwise", "InboundOtherwise"),
    ("Book", "LedgerBook"),
];

/// Gives schemas their new names.
pub(super) fn rename(document: &mut Value, renamed: &BTreeMap<String, String>) {
    replace(document, renamed);
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else {
        return;
    };
    let old = std::mem::take(schemas);
    for (name, mut schema) in old {
        let name = renamed.get(&name).cloned().unwrap_or(name);
        schema["title"] = name.clone().into();
        schemas.insert(name, schema);
    }
}

/// The names by which a reader looks for schemas, by those that they have.
pub(super) fn renamings(document: &Value) -> BTreeMap<String, String> {
    let empty = Map::new();
    let schemas = document["components"]["schemas"].as_object().unwrap_or(&empty);
    let mut new = Renaming {
        names: BTreeMap::new(),
        taken: schemas.keys().cloned().collect(),
    };
    let operations = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let operations: Vec<&Value> = operations.map(|(_, operation)| operation).collect();
    for (name, telling) in TELLING.iter().filter(|(name, _)| schemas.contains_key(*name)) {
        new.give(name, (*telling).to_owned());
    }
    let mut uses = BTreeMap::new();
    count(document, &mut uses);
    // What is given: `AgentCreate`, `AgentUpdate`, `TestFunctionRequest`.
    for operation in &operations {
        let Some(id) = operation["operationId"].as_str() else {
            continue;
        };
        let content = &operation["requestBody"]["content"];
        let body = content.as_object().and_then(|content| content.values().next());
        let Some(name) = body.and_then(|body| referred(&body["schema"])) else {
            continue;
        };
        for (verb, suffix) in [("create", "Create"), ("update", "Update")] {
            if let Some(whose) = id.strip_prefix(verb) {
                new.give(&name, format!("{whose}{suffix}"));
            }
        }
        let is_its_own = uses.get(&name) == Some(&1) && (!id.starts_with("console") || is_one_word(&name));
        if is_numbered(&name, schemas) || is_its_own {
            new.give(&name, format!("{}Request", pascal(id)));
        }
    }
    // What several have, by who has it: `TrunkStatus`.
    for (parent, schema) in schemas.iter().filter(|(parent, _)| !parent.ends_with(events::SUFFIX)) {
        let parent = new.names.get(parent).unwrap_or(parent);
        let whose = ["View", "Create", "Update", "Request"]
            .iter()
            .find_map(|end| parent.strip_suffix(end));
        let whose = whose.unwrap_or(parent).to_owned();
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(name) = referred(schema)
                && (is_numbered(&name, schemas) || schemas.contains_key(&format!("{name}View")))
            {
                new.give(&name, format!("{whose}{}", pascal(field)));
            }
        }
    }
    // What comes back: a view by what it shows, a list by what is in it.
    for name in schemas.keys().filter(|name| name.ends_with("View") && name.len() > 4) {
        new.give(name, name[..name.len() - 4].to_owned());
    }
    for (name, schema) in schemas {
        let properties = &schema["properties"];
        if properties.get("has_more").is_some()
            && let Some(item) = referred(&properties["data"]["items"])
        {
            let item = new.names.get(&item).cloned().unwrap_or(item);
            new.give(name, format!("{item}List"));
        }
    }
    new.names
}

struct Renaming {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Renaming {
    /// Unless it has one already, or something else is called so.
    fn give(&mut self, old: &str, new: String) {
        if old != new && !self.names.contains_key(old) && self.taken.insert(new.clone()) {
            self.taken.remove(old);
            self.names.insert(old.to_owned(), new);
        }
    }
}

/// One of several of that name, which the generator counts.
fn is_numbered(name: &str, schemas: &Map<String, Value>) -> bool {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    stem != "E" && (stem != name || schemas.contains_key(&format!("{name}2")))
}

fn is_one_word(name: &str) -> bool {
    name.matches(|letter: char| letter.is_ascii_uppercase()).count() == 1
}

/// How often each is referred to.
pub(super) fn count(value: &Value, uses: &mut BTreeMap<String, usize>) {
    match value {
        Value::Object(fields) => {
            let path = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = path.and_then(|path| path.strip_prefix(PREFIX)) {
                *uses.entry(name.to_owned()).or_default() += 1;
            }
            fields.values().for_each(|value| count(value, uses));
        }
        Value::Array(items) => items.iter().for_each(|item| count(item, uses)),
        _ => {}
    }
}

/// The schema that it is, is a list of, or may be.
fn referred(schema: &Value) -> Option<String> {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().map(str::to_owned);
    }
    if let Some(found) = schema.get("items").and_then(referred) {
        return Some(found);
    }
    ["anyOf", "allOf"]
        .iter()
        .find_map(|kind| schema[kind].as_array()?.iter().find_map(referred))
}

fn replace(value: &mut Value, renamed: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(path)) = fields.get_mut("$ref")
                && let Some(new) = path.strip_prefix(PREFIX).and_then(|name| renamed.get(name))
            {
                *path = format!("{PREFIX}{new}");
            }
            fields.values_mut().for_each(|value| replace(value, renamed));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| replace(value, renamed)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_called_by_whose_it_is() {
        let body = |name: &str| json!({ "content": { "application/json": { "schema": { "$ref": format!("{PREFIX}{name}") } } } });
        let operation = |id: &str, asked: &str| json!({ "operationId": id, "requestBody": body(asked) });
        let schema = |field: &str, of: &str| json!({ "type": "object", "properties": { field: { "$ref": format!("{PREFIX}{of}") } } });
        let document = json!({
            "paths": {
                "/pets": { "post": operation("createPet", "Create") },
                "/pets/{id}": { "patch": operation("updatePet", "Change") },
                "/pets/{id}/feed": { "post": operation("feedPet", "Feed") },
                "/pets/{id}/test": { "post": operation("testPet", "Shared") },
                "/console/look": { "post": operation("consolePostLook", "Look") },
                "/console/join": { "post": operation("consolePostJoin", "JoinPack") },
            },
            "components": { "schemas": {
                "Create": schema("of", "Shared"), "Change": {}, "Feed": {}, "Shared": {}, "Look": {}, "JoinPack": {}, "CheckView": {},
                "PetView": schema("status", "Status"), "Status": {}, "Status2": {},
                "PetFedEvent": schema("data", "PetFed"), "PetFed": {}, "PetFedView": {},
            } },
        });
        let renamed = renamings(&document);
        let new = |name: &str| renamed.get(name).map_or("-", String::as_str);
        for (name, expected) in [
            ("Create", "PetCreate"),
            ("Change", "PetUpdate"),
            ("Feed", "FeedPetRequest"),
            ("Shared", "-"),
            ("Look", "ConsolePostLookRequest"),
            ("JoinPack", "-"),
            ("CheckView", "DncCheck"),
            ("PetView", "Pet"),
            ("Status", "PetStatus"),
            ("PetFed", "-"),
        ] {
            assert_eq!(new(name), expected, "{name}");
        }
    }
}
