//! The whole catalogue: each event type is emitted by its real cause, and what it says is the specification's.
//!
//! One world plays everything. Every event of it is held against the type's JSON Schema and against the specification's list of
//! fields; a type that nothing has emitted fails the test.
use super::{
    rooms::{self, room},
    the_call::{agent, call},
};
use crate::world::{self, Backend, Receiver, Tenant, World, minutes, seconds};
use actors::{
    event::{CATALOGUE, EventType},
    room::media::{Codec, peer::Peer},
    writer::Commit,
};
use entities::{
    ledger::Movement,
    values::{Cents, Env, Moment},
};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The specification's fields, in its words: `?` may be absent, `~` may be null.
#[rustfmt::skip]
const FIELDS: [(&str, &str); 36] = [
    ("session.created", "session_id to_number~ from_number~ campaign_id? contact_id? voice_id~ status"),
    ("session.started", "session_id started_at"),
    ("session.ended", "session_id client_reference_id~ campaign_id~ contact_id~ from_number~ to_number~ phone_number~ email~ first_name~ last_name~ status end_reason started_at ended_at duration_seconds actual_cost_cents transcript transcript_url~ function_invocations"),
    ("session.failed", "session_id client_reference_id~ campaign_id~ contact_id~ from_number~ to_number~ phone_number~ email~ first_name~ last_name~ status end_reason started_at? ended_at duration_seconds actual_cost_cents transcript transcript_url~ function_invocations"),
    ("session.disposition_set", "session_id campaign_id contact_id disposition_code disposition_note evaluated_at evaluator model?"),
    ("session.recording_completed", "session_id campaign_id? contact_id? from_number~ to_number~ phone_number~ email? first_name? last_name? recording_id status channels started_at? ended_at? duration_seconds? recording_url"),
    ("session.transfer_initiated", "session_id to_number from_number~ transfer_number transferred_at"),
    ("session.opt_out_detected", "session_id phone_number detected_at"),
    ("session.opt_out_recording_pending_purge", "session_id recording_id purge_after"),
    ("session.opt_out_recording_purged", "session_id recording_id purged_at"),
    ("session.consent_refused", "session_id refused_at"),
    ("campaign.created", "campaign_id name channel session_type"),
    ("campaign.started", "campaign_id started_at"),
    ("campaign.paused", "campaign_id paused_at reason"),
    ("campaign.paused_quiet_hours", "campaign_id paused_at next_open_at"),
    ("campaign.completed", "campaign_id completed_at total_contacts completed_sessions failed_sessions"),
    ("campaign.contact_dispatched", "contact_id campaign_id phone_number~ email~ first_name~ last_name~ delivery_row_id"),
    ("campaign.contact_completed", "contact_id campaign_id phone_number~ email~ first_name~ last_name~ session_id~ duration_seconds actual_cost_cents"),
    ("campaign.contact_failed", "contact_id campaign_id phone_number~ email~ first_name~ last_name~ session_id~ duration_seconds actual_cost_cents"),
    ("campaign.contact_skipped", "contact_id campaign_id phone_number~ email~ first_name~ last_name~ skip_reason"),
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

#[test]
fn every_event_type_has_its_cause_and_its_shape() {
    world::run(Backend::Sqlite, async |world| {
        let names: Vec<&str> = CATALOGUE.iter().map(|event_type| event_type.name).collect();
        assert_eq!(
            FIELDS.map(|(name, _)| name).to_vec(),
            names,
            "the catalogue has other types than the specification"
        );
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for tenant in play(world).await {
            for event in tenant.events().await {
                check(&tenant, &event);
                *told.entry(event["type"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        let untold: Vec<&&str> = names.iter().filter(|name| !told.contains_key(**name)).collect();
        assert!(untold.is_empty(), "nothing emits {untold:?}");
    });
}

/// Everything that the service can tell, by its cause; answers who was told.
async fn play(world: &mut World) -> Vec<Tenant> {
    world.change_setting("sms_price_cents_per_segment", json!(10)).await;
    vec![
        calls(world).await,
        quiet(world).await,
        money(world).await,
        voices(world).await,
        number(world).await,
        endpoints(world).await,
        written(world).await,
        rooms(world).await,
    ]
}

/// Calls of a campaign: one for each of the sandbox's outcomes, recorded; a week later what was not wanted is gone.
async fn calls(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let more = json!({
        "recording": { "enabled": true }, "dispositions": [{ "code": "not_interested" }, { "code": "interested" }],
        "brain": { "mode": "scripted", "replies": [{ "say": "Wonderful." }, { "say": "Very well." }] },
    });
    let agent = agent(&tenant, more).await;
    let numbers: Vec<String> = (0..10).map(|digit| format!("+1500234560{digit}")).collect();
    let mut numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    numbers.push("12");
    let id = tenant.run_campaign(&numbers, json!({ "agent_id": agent })).await;
    world.settle().await;
    for action in ["pause", "resume"] {
        tenant
            .api
            .post(&format!("/v1/campaigns/{id}/{action}"), json!({}))
            .await
            .ok();
    }
    // A call of its own has no campaign.
    call(
        &tenant,
        &agent,
        "+15002345700",
        json!({ "contact": { "email": "ann@example.com", "first_name": "Ann" } }),
    )
    .await;
    world.advance(minutes(5)).await;
    assert_eq!(tenant.campaign(&id).await["status"], "completed");
    world.leap(minutes(7 * 24 * 60)).await;
    tenant
}

/// Everybody is in their quiet hours: those end in half a day.
async fn quiet(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let hour: u32 = world.clock.now().to_string()[11..13].parse().unwrap();
    let opens = (hour + 12) % 24;
    let window = json!({ "start": format!("{opens:02}:10"), "end": format!("{opens:02}:50") });
    let schedule = json!({ "timezone_mode": "fixed", "timezone": "UTC", "windows": [window] });
    let id = tenant
        .run_campaign(&["+15002345600"], json!({ "schedule": schedule }))
        .await;
    world.settle().await;
    assert_eq!(tenant.campaign(&id).await["pause_reason"], "quiet_hours");
    tenant
        .api
        .post(&format!("/v1/campaigns/{id}/cancel"), json!({}))
        .await
        .ok();
    world.settle().await;
    tenant
}

/// An SMS costs ten cents: the first passes the threshold, the second takes the last ones; then something is paid in.
async fn money(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let balance = tenant.api.get("/v1/credits").await.ok()["balance_cents"]
        .as_i64()
        .unwrap();
    let mut commit = Commit::default();
    commit.changes.movements.push(Movement::adjust(
        (tenant.id, Env::Test),
        Cents(20 - balance),
        "a correction".into(),
    ));
    world.deps().writer.commit(commit).await.unwrap();
    tenant
        .api
        .patch("/v1/credits", json!({ "warning_threshold_cents": 15 }))
        .await
        .ok();
    for _ in 0..2 {
        let text = json!({ "to_number": "+15002345600", "body": "Hello." });
        tenant.api.post("/v1/sms_messages", text).await.ok();
        world.advance(seconds(5)).await;
    }
    tenant
        .api
        .post("/v1/credits/topups", json!({ "amount_cents": 2_500 }))
        .await
        .ok();
    world.settle().await;
    tenant
}

/// One voice from a good sample, one from a file that is none.
async fn voices(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let samples = |file: Vec<u8>| {
        let form = Form::new().text("name", "Ann").text("consent_attested", "true");
        (0..3).fold(form, |form, n| {
            form.part("samples", Part::bytes(file.clone()).file_name(format!("{n}.wav")))
        })
    };
    for file in [wav(), b"no sound".to_vec()] {
        let request = tenant
            .api
            .request(Method::POST, "/v1/voices/clones")
            .multipart(samples(file));
        tenant.api.send(request).await.ok();
        world.advance(seconds(5)).await;
    }
    tenant
}

/// Half a minute of a tone.
fn wav() -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
    for n in 0..31 * 8_000 {
        let level = 3_000.0 * (n as f32 * 440.0 * std::f32::consts::TAU / 8_000.0).sin();
        writer.write_sample(level as i16).unwrap();
    }
    writer.finalize().unwrap();
    file.into_inner()
}

/// Nobody takes the calls that come in.
async fn number(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant
        .api
        .post("/v1/numbers", json!({ "phone_number": "+12025550123" }))
        .await
        .ok();
    for _ in 0..20 {
        let call = json!({ "to_number": "+12025550123", "from_number": "+15005550001" });
        tenant.api.post("/v1/_sandbox/inbound_calls", call).await.ok();
        world.settle().await;
    }
    tenant
}

/// One receiver is tried, and one is gone.
async fn endpoints(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let (good, gone) = (Receiver::start(), Receiver::start());
    let id = tenant.webhook(&good).await;
    tenant.webhook(&gone).await;
    tenant
        .api
        .post(&format!("/v1/webhook_endpoints/{id}/test"), json!({}))
        .await
        .ok();
    gone.answer_next([410]);
    let draft = json!({ "name": "Something to tell", "agent_id": tenant.agent().await });
    tenant.api.post("/v1/campaigns", draft).await.ok();
    world.advance(seconds(5)).await;
    tenant
}

/// The same campaign events tell of people who are written, not called.
async fn written(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let campaigns = [
        json!({ "name": "Texts", "channel": "sms", "template": { "body": "Hello." }, "contacts": [{ "phone_number": "+15002345600" }, { "phone_number": "+15002345601" }, { "phone_number": "12" }] }),
        json!({ "name": "Mails", "channel": "email", "template": { "subject": "Hello", "text": "Hello." }, "contacts": [{ "email": "ann@example.com" }, { "email": "bounced@example.com" }, { "email": "nobody" }] }),
    ];
    for campaign in campaigns {
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
    }
    world.advance(minutes(1)).await;
    tenant
}

/// One room in which somebody talks, one that nobody joins, and one whose browser never comes.
async fn rooms(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let (talked, link) = room(world, &tenant).await;
    link.view().await;
    let (peer, participant) = link.join(None).await;
    peer.until("the agent says hello", |view| {
        view.notes.iter().any(|note| note["type"] == "caption")
    })
    .await;
    link.leave(&participant).await;
    room(world, &tenant).await;
    let (_, silent) = room(world, &tenant).await;
    let (_nobody, sdp) = Peer::offer(Codec::Pcmu);
    silent.offer(sdp, None).await;
    world.advance(minutes(24 * 60)).await;
    let talked = rooms::get(&tenant, &talked).await;
    assert_eq!(talked["status"], "completed");
    tenant
}

/// Holds one event against the envelope, the type's JSON Schema and the specification's fields.
fn check(tenant: &Tenant, event: &Value) {
    let name = event["type"].as_str().unwrap();
    let data = &event["data"];
    assert!(
        uuid(&event["id"]) && event["tenant_id"] == tenant.id.to_string() && moment(&event["created_at"]),
        "{event}"
    );
    let event_type = CATALOGUE.iter().find(|known| known.name == name);
    let schema = schema(event_type.unwrap_or_else(|| panic!("{name} is in no catalogue")));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(data)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{name} is not as its schema says: {faults:?}\n{data}"
    );
    let (_, fields) = FIELDS.iter().find(|(known, _)| *known == name).unwrap();
    let mut rest = data.as_object().unwrap().clone();
    for field in fields.split(' ') {
        let plain = field.trim_end_matches(['?', '~']);
        match rest.remove(plain) {
            None => assert!(field.ends_with('?'), "{name} lacks {plain}: {data}"),
            Some(Value::Null) => assert!(field.ends_with('~'), "{name}: {plain} is null: {data}"),
            Some(value) => assert!(is_of_its_kind(name, plain, &value), "{name}: {plain} is {value}"),
        }
    }
    assert!(rest.is_empty(), "{name} says more than the specification: {rest:?}");
    for (of, field, words) in WORDS {
        assert!(
            of != name || words.contains(&data[field].as_str().unwrap()),
            "{name}: {field} is {}",
            data[field]
        );
    }
}

/// The schema of a type's `data`, with all that it refers to.
fn schema(event_type: &EventType) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = serde_json::to_value((event_type.schema)(&mut generator)).unwrap();
    schema["$defs"] = Value::Object(generator.take_definitions(true));
    schema
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
        "currency" => value == "USD",
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
        .is_some_and(|text| text.ends_with('Z') && Moment::parse(text).is_ok())
}
