//! What stands in the address and the head of a request: every parameter with what it means, and choices as enumerations.
use super::super::{
    call_stats::Period,
    caller::Access,
    routes::{Route, SchemaOf},
    voices::VoiceType,
};
use super::contracts::Contracts;
use actix_web::http::Method;
use entities::{
    audit_log, campaign, contact, delivery, dnc, email_message, import, ledger, recording, room, session, sms_message,
    topup, verified_number, voice,
};
use rules::event::CATALOGUE;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeSet};

/// The name of a type of event.
struct EventTypeName;

impl JsonSchema for EventTypeName {
    fn schema_name() -> Cow<'static, str> {
        "EventTypeName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = CATALOGUE.iter().map(|known| known.name).collect();
        json_schema!({ "type": "string", "description": "A type of event.", "enum": names })
    }
}

/// What the handlers of these lists read their filters as; the other filters are texts.
#[rustfmt::skip]
const CHOICES: &[(&str, &str, SchemaOf)] = &[
    ("/v1/voices", "type", |all| all.subschema_for::<VoiceType>()),
    ("/v1/voices", "status", |all| all.subschema_for::<voice::Status>()),
    ("/v1/verified_numbers", "status", |all| all.subschema_for::<verified_number::Status>()),
    ("/v1/recordings", "status", |all| all.subschema_for::<recording::Status>()),
    ("/v1/campaigns", "status", |all| all.subschema_for::<campaign::Status>()),
    ("/v1/campaigns/{id}/contacts", "status", |all| all.subschema_for::<contact::Status>()),
    ("/v1/imports", "kind", |all| all.subschema_for::<import::Kind>()),
    ("/v1/imports", "status", |all| all.subschema_for::<import::ImportStatus>()),
    ("/v1/dnc", "source", |all| all.subschema_for::<dnc::Source>()),
    ("/v1/sessions", "status", |all| all.subschema_for::<session::Status>()),
    ("/v1/sessions", "direction", |all| all.subschema_for::<session::Direction>()),
    ("/v1/sessions", "type", |_| json_schema!({ "type": "string", "enum": ["phone", "webrtc"] })),
    ("/v1/sessions/stats", "period", |all| all.subschema_for::<Period>()),
    ("/v1/rooms", "status", |all| all.subschema_for::<room::Status>()),
    ("/v1/sms_messages", "status", |all| all.subschema_for::<sms_message::Status>()),
    ("/v1/sms_messages", "direction", |all| all.subschema_for::<sms_message::Direction>()),
    ("/v1/email_messages", "status", |all| all.subschema_for::<email_message::Status>()),
    ("/v1/email_messages", "kind", |all| all.subschema_for::<email_message::Kind>()),
    ("/v1/webhook_endpoints/{id}/deliveries", "status", |all| all.subschema_for::<delivery::Status>()),
    ("/v1/webhook_endpoints/{id}/deliveries", "event_type", |all| all.subschema_for::<EventTypeName>()),
    ("/v1/webhook_endpoints/{id}/deliveries", "origin", |all| all.subschema_for::<delivery::Origin>()),
    ("/v1/events", "type", |all| all.subschema_for::<EventTypeName>()),
    ("/v1/credits/ledger", "kind", |all| all.subschema_for::<ledger::Kind>()),
    ("/v1/credits/topups", "status", |all| all.subschema_for::<topup::Status>()),
    ("/v1/_internal/t/{slug}/audit-log", "action", |all| all.subschema_for::<audit_log::Action>()),
];

/// Filters that take several values, with commas between them.
const SEVERAL: &[(&str, &str)] = &[("/v1/sessions", "status")];

/// What names mean, the same wherever they stand; of one path if that is named before them.
#[rustfmt::skip]
const MEANINGS: &[(&str, &str)] = &[
    ("limit", "Objects on one page."),
    ("cursor", "The `next_cursor` of the page before."),
    ("order", "By time of creation; `desc` begins with the newest."),
    ("created_after", "Only what was created after this moment."),
    ("created_before", "Only what was created before this moment."),
    ("id", "From the answer that created the object, or from its list."),
    ("contact_id", "From the list of the campaign's contacts."),
    ("/v1/sessions contact_id", "Only calls to this contact."),
    ("message_id", "Ours, as it stands in the address that the provider was given."),
    ("participant", "Who the page was before it was reloaded."),
    ("participant_id", "From the `Location` of the answer to the join."),
    ("token", "From the link."),
    ("slug", "The workspace's short name."),
    ("expires", "The link's own, as it stands in the recording's `url`."),
    ("sig", "The link's own, as it stands in the recording's `url`."),
    ("/r/{id} sig", "The link's own, as it stands in `room_url`."),
    ("/r/{id}/viewed sig", "The link's own, as it stands in `room_url`."),
    ("/r/{id}/whip sig", "The link's own, as it stands in `room_url`."),
    ("/r/{id}/whip/{participant_id} sig", "The link's own, as it stands in `room_url`."),
    ("period", "The last day by the hour, or the last 30 days by the day. Default: `24h`."),
    ("reason", "Why; it is kept with the entry."),
    ("before", "A day of UTC, such as 2026-11-30: only what was signed before it."),
    ("part", "The file's number, from 1."),
    ("/v1/compliance/attempts session_id", "Only the attempt with this session's, or message's, id."),
    ("/v1/compliance/attempts created_after", "Only what was written down then or later."),
    ("removed", "`true`: those that were taken off the list."),
    ("/v1/dnc/check phone_number", "The number to look for."),
    ("/v1/dnc/check email", "The address to look for."),
    ("name", "How the name begins, in any case."),
    ("/v1/sessions status", "Only those with one of these; several with commas between them."),
    ("/v1/sessions type", "Only calls on the phone, or only those in rooms."),
    ("Idempotency-Key", "A request repeated with the same key takes effect only once; keys are kept for 24 hours."),
];

fn meaning(path: &str, name: &str) -> String {
    let here = format!("{path} {name}");
    let found = |name: &str| MEANINGS.iter().find(|(known, _)| *known == name);
    match found(&here).or_else(|| found(name)) {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => format!("Only those with this `{name}`."),
    }
}

/// Of one operation.
pub(super) fn parameters(route: &Route, contracts: &mut Contracts) -> Vec<Value> {
    let text = || json!({ "type": "string" });
    let told = |name: &str, place: &str, schema: Value| json!({ "name": name, "in": place, "description": meaning(route.path, name), "schema": schema });
    let needed = |mut parameter: Value| {
        parameter["required"] = true.into();
        parameter
    };
    let in_path = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut all: Vec<Value> = in_path.map(|name| needed(told(name, "path", text()))).collect();
    if route.path.starts_with("/r/") {
        all.push(needed(told("sig", "query", text())));
    }
    // A summary that says `?name=` names a parameter.
    let said = route
        .summary
        .split('`')
        .filter_map(|part| part.strip_prefix('?')?.split_once('='));
    let mut filters: Vec<&str> = said.map(|(name, _)| name).collect();
    let reads = |how: &str| route.method == Method::GET && route.summary.starts_with(how);
    let is_list = reads("List ");
    // What is found has one page.
    let narrows = is_list || reads("Find ");
    if narrows {
        let schema = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 50 });
        all.push(told("limit", "query", schema));
        // The summary names what narrows.
        let named = route.summary.split('`').skip(1).step_by(2);
        filters.extend(named.filter(|name| !name.starts_with('?')));
    }
    if is_list {
        all.push(told("cursor", "query", text()));
        let order = json!({ "type": "string", "enum": ["desc", "asc"], "default": "desc" });
        all.push(told("order", "query", order));
        for name in ["created_after", "created_before"] {
            all.push(told(name, "query", json!({ "type": "string", "format": "date-time" })));
        }
    }
    // A summary may name one twice, with each of its values.
    let mut known = BTreeSet::new();
    filters.retain(|name| known.insert(*name));
    for name in filters {
        let filter = filter(route.path, name, contracts, &told);
        let is_needed = (route.path, name) == ("/v1/dnc/{id}", "reason");
        all.push(if is_needed { needed(filter) } else { filter });
    }
    if route.method == Method::POST && matches!(route.access, Access::Needs(_) | Access::NeedsFresh(_)) {
        all.push(told(
            "Idempotency-Key",
            "header",
            json!({ "type": "string", "maxLength": 255 }),
        ));
    }
    all
}

fn filter(path: &str, name: &str, contracts: &mut Contracts, told: &dyn Fn(&str, &str, Value) -> Value) -> Value {
    let of = |known: &str, field: &str| known == path && field == name;
    let choice = CHOICES.iter().find(|(known, field, _)| of(known, field));
    let schema = match (choice, name) {
        (Some((.., schema)), _) => contracts.asked(*schema),
        (None, "removed") => json!({ "type": "boolean" }),
        (None, _) => json!({ "type": "string" }),
    };
    if !SEVERAL.iter().any(|(known, field)| of(known, field)) {
        return told(name, "query", schema);
    }
    let mut parameter = told(name, "query", json!({ "type": "array", "items": schema }));
    parameter["style"] = "form".into();
    parameter["explode"] = false.into();
    parameter
}
