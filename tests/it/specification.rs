//! The specification's table of events, typed from it by hand, and everything that is told held against it: the published
//! schemas say it exactly, and whatever any scenario's service has told, stored or sent, is as it says.
use entities::values::Moment;
use jsonschema::Validator;
use rules::event::CATALOGUE;
use serde_json::Value;
use std::{collections::BTreeMap, sync::OnceLock};

/// The specification's fields, in its words: `?` may be absent, `~` may be null.
#[rustfmt::skip]
const FIELDS: [(&str, &str); 36] = [
    ("session.created", "session_id to_number from_number campaign_id? contact_id? voice_id status"),
    ("session.started", "session_id started_at"),
    ("session.ended", "session_id client_reference_id~ campaign_id~ contact_id~ from_number~ to_number~ phone_number~ email~ first_name~ last_name~ status end_reason started_at ended_at duration_seconds actual_cost_cents transcript transcript_url~ function_invocations"),
    ("session.failed", "session_id client_reference_id~ campaign_id~ contact_id~ from_number~ to_number~ phone_number~ email~ first_name~ last_name~ status end_reason started_at? ended_at duration_seconds actual_cost_cents transcript transcript_url~ function_invocations"),
    ("session.disposition_set", "session_id campaign_id contact_id disposition_code disposition_note evaluated_at evaluator model?"),
    ("session.recording_completed", "session_id campaign_id? contact_id? from_number to_number phone_number email? first_name? last_name? recording_id status channels started_at? ended_at? duration_seconds? recording_url"),
    ("session.transfer_initiated", "session_id to_number from_number transfer_number transferred_at"),
    ("session.opt_out_detected", "session_id phone_number detected_at"),
    ("session.opt_out_recording_pending_purge", "session_id recording_id purge_after"),
    ("session.opt_out_recording_purged", "session_id recording_id purged_at"),
    ("session.consent_refused", "session_id refused_at"),
    ("campaign.created", "campaign_id name channel session_type"),
    ("campaign.started", "campaign_id started_at"),
    ("campaign.paused", "campaign_id paused_at reason"),
    ("campaign.paused_quiet_hours", "campaign_id paused_at next_open_at"),
    ("campaign.completed", "campaign_id completed_at total_contacts completed_sessions failed_sessions"),
    ("campaign.contact_dispatched", "contact_id campaign_id phone_number email~ first_name~ last_name~ delivery_row_id"),
    ("campaign.contact_completed", "contact_id campaign_id phone_number email~ first_name~ last_name~ session_id duration_seconds actual_cost_cents"),
    ("campaign.contact_failed", "contact_id campaign_id phone_number email~ first_name~ last_name~ session_id duration_seconds actual_cost_cents"),
    ("campaign.contact_skipped", "contact_id campaign_id phone_number email~ first_name~ last_name~ skip_reason"),
    ("credits.low_balance", "balance_cents threshold_cents currency"),
    ("credits.depleted", "balance_cents depleted_at currency"),
    ("credits.topup_succeeded", "amount_cents new_balance_cents currency processor_payment_intent_id"),
    ("voice_clone.training_started", "voice_id name samples"),
    ("voice_clone.training_succeeded", "voice_id name ready_at"),
    ("voice_clone.training_failed", "voice_id name error_code error_message"),
    ("room.created", "room_id room_url expires_at"),
    ("room.landing_viewed", "room_id viewed_at"),
    ("room.joined", "room_id participant_id joined_at"),
    ("room.completed", "room_id completed_at duration_seconds"),
    ("room.expired", "room_id expired_at"),
    ("room.failed", "room_id error_code error_message"),
    ("number.answer_rate_degraded", "phone_number answer_rate window_start window_end"),
    ("function.timeout", "session_id function_id name timeout_ms"),
    ("webhook.test", "endpoint_id emitted_at"),
    ("webhook.endpoint_disabled_notice", "endpoint_id url disabled_at failure_streak last_status"),
];

/// Where there is nothing to tell and the specification knows no null.
#[rustfmt::skip]
const DECIDED: [(&str, &str, &str); 12] = [
    ("session.created", "to_number", "a room has no number"),
    ("session.created", "from_number", "a room has no number, and a caller may hide it"),
    ("session.recording_completed", "to_number", "a room has no number"),
    ("session.recording_completed", "from_number", "a room has no number, and a caller may hide it"),
    ("session.recording_completed", "phone_number", "a room has no number, and a caller may hide it"),
    ("session.transfer_initiated", "from_number", "a caller may hide the number"),
    ("campaign.contact_dispatched", "phone_number", "who is written by e-mail may have none"),
    ("campaign.contact_completed", "phone_number", "who is written by e-mail may have none"),
    ("campaign.contact_failed", "phone_number", "who is written by e-mail may have none"),
    ("campaign.contact_skipped", "phone_number", "who is written by e-mail may have none"),
    ("campaign.contact_completed", "session_id", "who is written has no session"),
    ("campaign.contact_failed", "session_id", "who is written has no session"),
];

/// The specification's closed sets of words.
#[rustfmt::skip]
const WORDS: [(&str, &str, &[&str]); 8] = [
    ("session.created", "status", &["queued"]),
    ("session.ended", "status", &["completed"]),
    ("session.failed", "status", &["failed", "no_answer", "voicemail", "busy"]),
    ("campaign.created", "channel", &["phone", "sms", "email"]),
    ("campaign.created", "session_type", &["phone", "webrtc", "none"]),
    ("campaign.paused", "reason", &["manual"]),
    ("campaign.contact_skipped", "skip_reason", &["invalid", "dnc_blocked", "daily_cap_reached", "quiet_hours_expired", "concurrency_full", "tenant_suspended"]),
    ("session.recording_completed", "channels", &["dual", "mono"]),
];

/// One field of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Field<'a> {
    name: &'a str,
    may_be_absent: bool,
    may_be_null: bool,
}

fn fields(event_type: &'static str, words: &'static str) -> Vec<Field<'static>> {
    let decided = |name: &str| DECIDED.iter().any(|(of, field, _)| *of == event_type && *field == name);
    let field = |word: &'static str| {
        let name = word.trim_end_matches(['?', '~']);
        Field {
            name,
            may_be_absent: word.ends_with('?'),
            may_be_null: word.ends_with('~') || decided(name),
        }
    };
    words.split(' ').map(field).collect()
}

/// What is known of a type, made once for all tests.
struct Known {
    fields: Vec<Field<'static>>,
    validator: Validator,
}

fn known() -> &'static BTreeMap<&'static str, Known> {
    static KNOWN: OnceLock<BTreeMap<&'static str, Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let all = FIELDS.into_iter().map(|(name, words)| {
            let event_type = CATALOGUE.iter().find(|event_type| event_type.name == name).unwrap();
            let validator = jsonschema::validator_for(&(event_type.schema)().to_value()).unwrap();
            let fields = fields(name, words);
            (name, Known { fields, validator })
        });
        all.collect()
    })
}

/// What is wrong with an event, as it was sent: its envelope, its type's schema, the specification's fields.
pub fn faults(event: &Value) -> Vec<String> {
    let (name, data) = (event["type"].as_str().unwrap_or_default(), &event["data"]);
    let mut faults = Vec::new();
    if !(uuid(&event["id"]) && uuid(&event["tenant_id"]) && moment(&event["created_at"])) {
        faults.push("its envelope is not the specification's".to_owned());
    }
    let (Some(known), Some(data)) = (known().get(name), data.as_object()) else {
        return vec![format!("{event} is in no catalogue")];
    };
    let of_schema = known.validator.iter_errors(&event["data"]);
    faults.extend(of_schema.map(|fault| format!("by its schema, {}: {fault}", fault.instance_path())));
    for field in &known.fields {
        match data.get(field.name) {
            None if field.may_be_absent => {}
            None => faults.push(format!("lacks {}", field.name)),
            Some(Value::Null) if field.may_be_null => {}
            Some(Value::Null) => faults.push(format!("{} is null", field.name)),
            Some(value) if is_of_its_kind(name, field.name, value) => {}
            Some(value) => faults.push(format!("{} is {value}", field.name)),
        }
    }
    let is_known = |name: &str| known.fields.iter().any(|field| field.name == name);
    let more = data.keys().filter(|name| !is_known(name));
    faults.extend(more.map(|name| format!("says {name}, which the specification does not know")));
    for (of, field, words) in WORDS.iter().filter(|(of, ..)| *of == name) {
        let word = &event["data"][*field];
        if !words.contains(&word.as_str().unwrap_or_default()) {
            faults.push(format!("{of}: {field} is {word}"));
        }
    }
    // A room has no number on either side; of a call at most the caller's is hidden.
    if data.get("to_number") == Some(&Value::Null) && event["data"]["from_number"] != Value::Null {
        faults.push("has a caller and nobody who was called".to_owned());
    }
    faults
        .iter()
        .map(|fault| format!("{name}: {fault}: {data:?}"))
        .collect()
}

#[test]
fn the_published_schemas_say_what_the_specification_says() {
    let document = callboard::http::openapi::document();
    let webhooks = document["webhooks"].as_object().unwrap();
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let mut published: Vec<&str> = webhooks.keys().map(String::as_str).collect();
    let mut wanted = names.clone();
    published.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(published, wanted);
    assert_eq!(
        CATALOGUE.iter().map(|known| known.name).collect::<Vec<_>>(),
        names,
        "in its order"
    );
    for (name, words) in FIELDS {
        let body = &webhooks[name]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let body = document
            .pointer(body.as_str().unwrap().trim_start_matches('#'))
            .unwrap();
        assert_eq!(body["properties"]["type"]["const"], name);
        let reference = body["properties"]["data"]["$ref"].as_str().unwrap();
        let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
        let event_type = CATALOGUE.iter().find(|known| known.name == name).unwrap();
        // But for how choices are written it is the type's own.
        let own = (event_type.schema)().to_value();
        let said = |schema: &Value| {
            let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            (schema["title"].clone(), schema["required"].clone(), fields)
        };
        assert_eq!(said(schema), said(&own), "{name}: what is published is another type's");
        let required = schema["required"].as_array().unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let mut said: Vec<Field<'_>> = properties
            .iter()
            .map(|(field, property)| Field {
                name: field.as_str(),
                may_be_absent: !required.iter().any(|name| name == field),
                may_be_null: jsonschema::is_valid(property, &Value::Null),
            })
            .collect();
        let mut wanted = fields(name, words);
        said.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(said, wanted, "{name}");
    }
}

/// A checker that finds nothing proves nothing.
#[test]
fn what_is_not_as_the_specification_says_is_found() {
    let id = "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f";
    let event = |data: Value| serde_json::json!({ "id": id, "type": "session.created", "tenant_id": id, "created_at": "2027-03-02T13:00:00.000Z", "data": data });
    let good = serde_json::json!({ "session_id": id, "to_number": "+15002345670", "from_number": "+15001000000", "voice_id": "builtin:tones", "status": "queued" });
    assert_eq!(faults(&event(good.clone())), Vec::<String>::new());
    for (field, value) in [
        ("voice_id", Value::Null),
        ("campaign_id", Value::Null),
        ("status", "completed".into()),
        ("to_number", Value::Null),
        ("session_id", "7".into()),
        ("colour", "red".into()),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!faults(&event(bad)).is_empty(), "{field}");
    }
    let mut without = good;
    without.as_object_mut().unwrap().remove("from_number");
    assert!(!faults(&event(without)).is_empty());
    assert!(!faults(&serde_json::json!({ "type": "session.begun" })).is_empty());
}

/// A field's kind follows from its name.
fn is_of_its_kind(event_type: &str, field: &str, value: &Value) -> bool {
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| field.ends_with(suffix));
    match field {
        // Of a provider, or built in, or of your own.
        "client_reference_id" | "processor_payment_intent_id" => value.is_string(),
        "voice_id" if event_type == "session.created" => value.is_string(),
        "transcript" | "function_invocations" => value.is_array(),
        "answer_rate" => value.as_f64().is_some_and(|rate| (0.0..=1.0).contains(&rate)),
        "currency" => value.as_str().is_some_and(|code| code.len() == 3),
        _ if ends(&["_id"]) => uuid(value),
        _ if ends(&["_at", "_after", "window_start", "window_end"]) => moment(value),
        _ if ends(&[
            "_cents",
            "_seconds",
            "_sessions",
            "total_contacts",
            "samples",
            "_ms",
            "_streak",
            "last_status",
        ]) =>
        {
            value.is_i64() || value.is_u64()
        }
        _ if ends(&["_number"]) => value.as_str().is_some_and(|text| !text.is_empty()),
        _ if ends(&["url"]) => value.as_str().is_some_and(|text| text.starts_with("http")),
        _ => value.is_string(),
    }
}

fn uuid(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<uuid::Uuid>().is_ok())
}

fn moment(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.len() == 24 && text.ends_with('Z') && Moment::parse(text).is_ok())
}
