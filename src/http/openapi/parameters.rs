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
    audit_log, campaign, consent, contact, delivery, dnc, email_message, import, law, ledger, recording, room, session,
    sms_message, topup, verified_number, voice,
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
    ("/v1/consents", "tier", |all| all.subschema_for::<law::ConsentTier>()),
    ("/v1/consents", "purpose", |all| all.subschema_for::<law::Purpose>()),
    ("/v1/consents", "status", |all| all.subschema_for::<consent::ConsentStatus>()),
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
    ("/v1/compliance/check", "channel", |all| all.subschema_for::<dnc::DncChannel>()),
    ("/v1/compliance/check", "purpose", |all| all.subschema_for::<law::Purpose>()),
    ("/v1/compliance/check", "audience", |all| all.subschema_for::<law::Audience>()),
    ("/v1/compliance/check", "vertical", |all| all.subschema_for::<law::Vertical>()),
    ("/v1/compliance/check", "consent", |all| all.subschema_for::<law::ConsentTier>()),
    ("/v1/compliance/check", "cloned_voice", |_| json_schema!({ "type": "boolean" })),
    ("/v1/compliance/rules", "channel", |all| all.subschema_for::<dnc::DncChannel>()),
    ("/v1/compliance/rules", "purpose", |all| all.subschema_for::<law::Purpose>()),
    ("/v1/compliance/rules", "audience", |all| all.subschema_for::<law::Audience>()),
    ("/v1/people/file", "format", |_| json_schema!({ "type": "string", "enum": ["json", "html"], "default": "json" })),
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
    ("/v1/consents seller", "Only those given to this seller; case and blanks do not count."),
    ("/v1/consents status", "Only those that stand, have expired, or were revoked as a whole."),
    ("/v1/consents purpose", "Only those given for this, maybe among others."),
    ("/v1/dnc/check phone_number", "The number to look for."),
    ("/v1/dnc/check email", "The address to look for."),
    ("/v1/compliance/check to", "A number, however it is typed, or an e-mail address. This or `region`."),
    ("/v1/compliance/check region", "Where the person is: a country (ISO 3166-1) or a part of one (ISO 3166-2)."),
    ("/v1/compliance/check at", "A time, or a date: noon of that day, where the person is. Default: now."),
    ("/v1/compliance/check channel", "Default: `phone`; `email` for an address."),
    ("/v1/compliance/check purpose", "What it is for. Default: `marketing`."),
    ("/v1/compliance/check audience", "To whom it goes. Default: `consumer`."),
    ("/v1/compliance/check vertical", "A trade that has rules of its own."),
    ("/v1/compliance/check seller", "For whom it is made. Default: the workspace's registered name."),
    ("/v1/compliance/check subject", "What it is about."),
    ("/v1/compliance/check contract_ref", "The contract that is being fulfilled. Default: none is named."),
    ("/v1/compliance/check language", "In which it is spoken or written, BCP 47. Default: `en`."),
    ("/v1/compliance/check from", "The number that is shown. Default: the workspace's."),
    ("/v1/compliance/check timezone", "The person's, an IANA name. Default: what the number or the place says."),
    ("/v1/compliance/check consent", "As if there were a consent of this tier. Default: those that are there."),
    ("/v1/compliance/check cloned_voice", "The voice is a clone of somebody's."),
    ("/v1/compliance/rules place", "Only those that hold there: a country, or a part of one."),
    ("/v1/compliance/rules at", "Only those that hold on that day, as `2026-08-11`."),
    ("/v1/people phone_number", "The person's number."),
    ("/v1/people email", "The person's address."),
    ("/v1/people/file phone_number", "The person's number."),
    ("/v1/people/file email", "The person's address."),
    ("/v1/people/file format", "A page to print, or JSON."),
    ("name", "How the name begins, in any case."),
    ("/v1/registers/{name} name", "As rules name it, such as `us_dnc`."),
    ("/v1/registers/{name}/files name", "As rules name it, such as `us_dnc`; or a name of your own, 2 to 32 small letters, digits and `_`."),
    ("fetched_at", "The day on which its maker gave the file out, or the time; not in the future."),
    ("country", "Two letters of ISO 3166-1. Default: the register's, else the workspace's."),
    ("area_codes", "Such as `212,646`: area codes that the file covers though it holds no number of them."),
    ("allow_shrink", "`true`: the file is whole, though it holds less than half as many numbers as the one before."),
    ("/v1/sessions status", "Only those with one of these; several with commas between them."),
    ("/v1/sessions type", "Only calls on the phone, or only those in rooms."),
    ("/v1/events/stream Last-Event-ID", "Begin after this event: the `id` of the last one that was read."),
    ("/v1/sessions/{id}/stream Last-Event-ID", "Begin after this turn: the `id` of the last one that was read."),
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
        let is_needed = matches!(
            (route.path, name),
            ("/v1/dnc/{id}", "reason") | ("/v1/registers/{name}/files", "fetched_at")
        );
        all.push(if is_needed { needed(filter) } else { filter });
    }
    // As EventSource sends it when it connects again.
    if route.path.ends_with("/stream") {
        all.push(told("Last-Event-ID", "header", text()));
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
        (None, "removed" | "allow_shrink") => json!({ "type": "boolean" }),
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
