//! What receivers get: a schema for each event, told apart by its `type`, and the union of them all.
use super::{
    contracts::{Contracts, PREFIX},
    first_sentence,
    names::pascal,
};
use entities::{
    ids::{EventId, TenantId},
    values::Moment,
};
use rules::event::{CATALOGUE, EventType};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Behind the name of what an event tells: `SessionEnded` is the data of a `SessionEndedEvent`.
pub(super) const SUFFIX: &str = "Event";

/// What an event looks like: one of all that there are.
pub struct Envelope;

impl JsonSchema for Envelope {
    fn schema_name() -> Cow<'static, str> {
        SUFFIX.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let forms: Vec<Value> = CATALOGUE.iter().map(|event| json!({ "$ref": path(event) })).collect();
        let by_type: Map<String, Value> = CATALOGUE
            .iter()
            .map(|event| (event.name.to_owned(), path(event).into()))
            .collect();
        json_schema!({
            "description": "What an event looks like; `type` says what its `data` is.",
            "oneOf": forms,
            "discriminator": { "propertyName": "type", "mapping": by_type },
        })
    }
}

/// What all of them have.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Head {
    /// The same each time the event is sent.
    id: EventId,
    tenant_id: TenantId,
    created_at: Moment,
}

/// By its name.
pub(super) fn name(event: &EventType) -> String {
    format!("{}{SUFFIX}", pascal(event.name))
}

fn path(event: &EventType) -> String {
    format!("{PREFIX}{}", name(event))
}

/// The webhooks, each with its body; and the schemas of the events and of what they tell.
pub(super) fn webhooks(contracts: &mut Contracts) -> (Map<String, Value>, Map<String, Value>) {
    let (mut webhooks, mut told) = (Map::new(), Map::new());
    let head = contracts.given(Head::json_schema);
    for event in CATALOGUE {
        let data = (event.schema)().to_value();
        let of_data = data["title"].as_str().unwrap_or(event.name).to_owned();
        told.insert(name(event), envelope(event, &head, &of_data));
        let schema = json!({ "$ref": path(event) });
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        let answers = json!({ "2XX": { "description": "Received. Anything else is tried again or refused; see docs/webhooks.md." } });
        let when = event.when.trim();
        webhooks.insert(
            event.name.into(),
            json!({ "post": {
                "operationId": format!("on{of_data}"), "summary": first_sentence(when), "description": when, "security": [],
                "requestBody": body, "responses": answers,
            } }),
        );
        told.insert(of_data, data);
    }
    (webhooks, told)
}

fn envelope(event: &EventType, head: &Value, of_data: &str) -> Value {
    let of_head = &head["properties"];
    json!({
        "type": "object",
        "description": event.when.trim(),
        "required": ["id", "type", "tenant_id", "created_at", "data"],
        "properties": {
            "id": of_head["id"],
            "type": { "type": "string", "const": event.name },
            "tenant_id": of_head["tenant_id"],
            "created_at": of_head["created_at"],
            "data": { "$ref": format!("{PREFIX}{of_data}") },
        },
    })
}
