//! Traces: from a request to the last webhook of its call, as a collector sees them.
use crate::{
    on_both,
    world::{
        Answer, Receiver, Tenant, World,
        collector::{Collector, Reply, Span},
        functions::{FunctionServer, Reply as FunctionReply},
        minutes, seconds,
    },
};
use entities::values::Moment;
use reqwest::Method;
use runtime::tracer::Place;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDER: &str = "00f067aa0ba902b7";
const LONG: Duration = Duration::from_secs(60);

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SENDER}-{flags}")
}

async fn traced(world: &mut World, more: &[(&str, Value)]) -> Collector {
    let collector = Collector::start();
    let mut settings = vec![("otlp_endpoint", Value::from(collector.url.clone()))];
    settings.extend(more.iter().cloned());
    world.change_settings(&settings).await;
    collector
}

/// All that was made so far.
async fn flush(world: &World) {
    world.deps().traces.tracer.flush(LONG).await;
}

async fn post(tenant: &Tenant, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut request = tenant.api.request(Method::POST, path).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    tenant.api.send(request).await
}

/// An agent that calls a function when it hears "book", and asks a question.
async fn booking_agent(tenant: &Tenant, server: &FunctionServer) -> String {
    let function = json!({ "name": "book", "description": "Books.", "parameters": { "type": "object", "properties": {} }, "url": server.url });
    let function = tenant.api.post("/v1/functions", function).await.ok();
    let replies = json!([
        { "hear": ["book"], "say": "I will book it.", "call": { "name": "book", "arguments": {} } },
        { "say": "Anything else?" },
    ]);
    let agent = json!({
        "name": "Ann",
        "prompt": "Be kind.",
        "function_ids": [function["id"]],
        "questions": [{ "key": "day", "text": "Which day?", "type": "text" }],
        "brain": { "mode": "scripted", "replies": replies },
    });
    tenant.api.post("/v1/agents", agent).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn call_to(agent: &str) -> Value {
    json!({
        "to_number": "+15002345600",
        "agent_id": agent,
        "contact": { "first_name": "Grace", "email": "grace@example.com" },
        "sandbox": { "script": [{ "say": "Please book a day." }, { "say": "No, thanks." }] },
    })
}

/// The one of that name.
#[track_caller]
fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

fn of_trace(collector: &Collector, trace: &str) -> Vec<Span> {
    let mut spans = collector.spans();
    spans.retain(|span| span.trace_id == trace);
    spans
}

/// Each hangs below another of them, or below `root`, and lies within the call.
#[track_caller]
fn assert_tree(spans: &[Span], root: &str) {
    let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "each has its own id: {spans:#?}");
    for span in spans {
        assert!(
            span.parent == root || ids.contains(&*span.parent),
            "{span:?} hangs below nothing"
        );
        assert!(span.start_ns <= span.end_ns, "{span:?}");
    }
    assert_eq!(spans.iter().filter(|span| span.parent == root).count(), 1, "{spans:#?}");
}

/// The sum of all spans that were dropped for that reason.
fn dropped(world: &World, reason: &str) -> f64 {
    let metrics = world.app.as_ref().unwrap().state.metrics.render();
    let line = format!("callboard_trace_spans_dropped_total{{reason=\"{reason}\"}} ");
    let counted = metrics.lines().find_map(|one| one.strip_prefix(&line));
    counted.map_or(0.0, |count| count.parse().unwrap())
}

on_both! {
    async fn a_call_is_one_trace_from_its_request_to_its_last_webhook(world: &mut World) {
        let collector = traced(world, &[("otlp_headers", "x-team=hunter%20two".into())]).await;
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let endpoint = tenant.webhook(&receiver).await;
        let server = FunctionServer::start(|_| FunctionReply::Json(json!({ "booked": true })));
        let agent = booking_agent(&tenant, &server).await;
        receiver.answer_next([500]);
        let parent = traceparent("01");
        let headers = [("traceparent", &*parent), ("tracestate", "rojo=00f067aa0ba902b7"), ("baggage", "user=grace")];
        let id = post(&tenant, "/v1/sessions", &headers, &call_to(&agent)).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(minutes(20)).await;
        flush(world).await;

        let spans = of_trace(&collector, TRACE);
        assert_tree(&spans, SENDER);
        let request = one(&spans, "POST /v1/sessions");
        assert_eq!((&*request.parent, request.kind), (SENDER, 2));
        assert_eq!(request.attributes["http.request.method"], "POST");
        assert_eq!(request.attributes["http.route"], "/v1/sessions");
        assert_eq!(request.attributes["http.response.status_code"], "201");
        assert_eq!(request.attributes["callboard.tenant_id"], tenant.id.to_string());
        let call = one(&spans, "call");
        assert_eq!((&call.parent, &call.error), (&request.span_id, &None));
        assert_eq!((&*call.attributes["callboard.session_id"], &*call.attributes["callboard.end_reason"]), (&*id, "completed"));
        for name in ["queue", "dial", "talk", "evaluation"] {
            assert_eq!(one(&spans, name).parent, call.span_id, "{name}");
        }
        let [queue, dial, talk] = ["queue", "dial", "talk"].map(|name| one(&spans, name));
        assert!(queue.end_ns <= dial.start_ns && dial.end_ns <= talk.start_ns && talk.end_ns == call.end_ns, "{spans:#?}");
        assert!(talk.start_ns < talk.end_ns);
        let function = one(&spans, "function");
        assert_eq!((&function.parent, function.kind, &*function.attributes["callboard.function_name"]), (&talk.span_id, 3, "book"));

        // One span for each attempt, and each request says which it is.
        let attempts: BTreeMap<&str, &Span> = spans.iter().filter(|span| span.name == "webhook").map(|span| (&*span.span_id, span)).collect();
        let received = receiver.requests();
        assert_eq!(received.len(), attempts.len(), "{received:#?}");
        for request in &received {
            let parts: Vec<&str> = request.headers["traceparent"].split('-').collect();
            let attempt = attempts[parts[2]];
            assert_eq!((parts[0], parts[1], parts[3]), ("00", TRACE, "01"));
            assert_eq!((&attempt.parent, &*attempt.attributes["callboard.event_id"]), (&call.span_id, request.id()));
            assert_eq!((&attempt.attributes["callboard.endpoint_id"], &*attempt.attributes["callboard.event_type"]), (&endpoint, request.event_type()));
            assert!(!request.headers.contains_key("tracestate") && !request.headers.contains_key("baggage"));
        }
        let of = |at: usize| {
            let span = attempts[received[at].headers["traceparent"].split('-').nth(2).unwrap()];
            (span.attributes["callboard.delivery_attempt"].clone(), span.attributes["http.response.status_code"].clone(), span.error.clone())
        };
        assert_eq!(of(0), ("1".into(), "500".into(), Some("http_status".into())));
        let again = (1..received.len()).find(|at| received[*at].id() == received[0].id()).unwrap();
        assert_eq!(of(again), ("2".into(), "200".into(), None));
        let called = &server.calls()[0].headers;
        assert_eq!(called["traceparent"], format!("00-{TRACE}-{}-01", function.span_id));
        assert!(!called.contains_key("tracestate") && !called.contains_key("baggage"));

        assert_eq!((&*call.resource["service.name"], &*call.resource["service.version"]), ("callboard", env!("CARGO_PKG_VERSION")));
        assert!(call.resource.contains_key("service.instance.id"));
        assert_eq!(call.headers["x-team"], "hunter two");
        let all = format!("{:?}", collector.spans()).to_lowercase();
        for person in ["+1500", "grace", "please book", &*receiver.url, &*server.url] {
            assert!(!all.contains(person), "{person}: {all}");
        }
    }

    /// Without a sender's, a call's trace is the session's, so whoever has its id finds it; also of calls that nobody asked for one by one.
    async fn without_a_senders_the_trace_is_the_calls_own(world: &mut World) {
        let collector = traced(world, &[]).await;
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let agent = tenant.agent().await;
        let id = post(&tenant, "/v1/sessions", &[], &call_to(&agent)).await.ok()["id"].as_str().unwrap().to_owned();
        let campaign = tenant.run_campaign(&["+15002345600"], json!({})).await;
        let room = post(&tenant, "/v1/rooms", &[], &json!({ "agent_id": agent })).await.ok();
        world.advance(minutes(3)).await;
        let ended = post(&tenant, &format!("/v1/rooms/{}/end", room["id"].as_str().unwrap()), &[], &json!({})).await;
        assert!(ended.status.is_success(), "{ended:?}");
        world.advance(minutes(3)).await;
        flush(world).await;

        let trace = id.replace('-', "");
        let spans = of_trace(&collector, &trace);
        assert_tree(&spans, "");
        assert_eq!(one(&spans, "call").parent, one(&spans, "POST /v1/sessions").span_id);
        assert!(spans.iter().any(|span| span.name == "webhook"));
        let session = tenant.api.get(&format!("/v1/sessions?campaign_id={campaign}")).await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        let spans = of_trace(&collector, &session.replace('-', ""));
        assert_tree(&spans, "");
        let call = one(&spans, "call");
        assert_eq!((&*call.parent, &*call.attributes["callboard.campaign_id"]), ("", &*campaign));
        for event in ["campaign.contact_dispatched", "campaign.contact_completed", "session.ended"] {
            let of = |span: &&Span| span.attributes.get("callboard.event_type").is_some_and(|told| told == event);
            assert_eq!(spans.iter().find(of).unwrap().parent, call.span_id, "{event}");
        }
        // What is told of the campaign itself belongs to the request that has started it.
        let spans = of_trace(&collector, &campaign.replace('-', ""));
        let request = one(&spans, "POST /v1/campaigns/run");
        let of = |span: &&Span| span.attributes.get("callboard.event_type").is_some_and(|told| told == "campaign.started");
        assert_eq!(spans.iter().find(of).unwrap().parent, request.span_id);
        let spans = of_trace(&collector, &room["session_id"].as_str().unwrap().replace('-', ""));
        assert_tree(&spans, "");
        let call = one(&spans, "call");
        assert_eq!((&call.parent, &*call.attributes["callboard.session_type"]), (&one(&spans, "POST /v1/rooms").span_id, "webrtc"));
    }

    async fn messages_belong_to_their_requests(world: &mut World) {
        let collector = traced(world, &[]).await;
        let tenant = world.tenant().await;
        let (parent, sms) = (traceparent("01"), json!({ "to_number": "+15002340000", "body": "Hello, Grace." }));
        post(&tenant, "/v1/sms_messages", &[("traceparent", &parent)], &sms).await.ok();
        let email = json!({ "to": "grace@example.com", "subject": "Hello", "text": "Hello, Grace." });
        let email = post(&tenant, "/v1/email_messages", &[], &email).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(minutes(2)).await;
        flush(world).await;
        let spans = of_trace(&collector, TRACE);
        assert_tree(&spans, SENDER);
        assert_eq!(one(&spans, "sms").parent, one(&spans, "POST /v1/sms_messages").span_id);
        let spans = of_trace(&collector, &email.replace('-', ""));
        assert_tree(&spans, "");
        assert_eq!(one(&spans, "email").parent, one(&spans, "POST /v1/email_messages").span_id);
        let all = format!("{:?}", collector.spans()).to_lowercase();
        assert!(!all.contains("grace") && !all.contains("+1500"), "{all}");
    }

    async fn a_restart_in_the_middle_keeps_the_trace(world: &mut World) {
        let collector = traced(world, &[]).await;
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let agent = tenant.agent().await;
        let mut call = call_to(&agent);
        call["sandbox"] = json!({ "script": [{ "say": "Hello." }, { "silence_seconds": 20 }, { "say": "Bye." }] });
        let parent = traceparent("01");
        let id = post(&tenant, "/v1/sessions", &[("traceparent", &parent)], &call).await.ok()["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{id}");
        while tenant.api.get(&path).await.ok()["status"] != "in_progress" {
            world.advance(seconds(1)).await;
        }
        flush(world).await;
        assert!(!of_trace(&collector, TRACE).iter().any(|span| span.name == "call"), "it is not over");
        let before = receiver.requests().len();
        world.restart().await;
        world.advance(minutes(3)).await;
        flush(world).await;
        let spans = of_trace(&collector, TRACE);
        assert_tree(&spans, SENDER);
        let call = one(&spans, "call");
        assert_eq!((&call.parent, call.error.as_deref()), (&one(&spans, "POST /v1/sessions").span_id, Some("node_lost")));
        let told = receiver.requests();
        assert!(told.len() > before, "{told:?}");
        for request in &told[before..] {
            assert!(request.headers["traceparent"].starts_with(&format!("00-{TRACE}-")), "{request:?}");
        }
    }

    async fn what_is_no_traceparent_is_ignored(world: &mut World) {
        let collector = traced(world, &[]).await;
        let tenant = world.tenant().await;
        let good = traceparent("01");
        let zeros = format!("00-{}-{SENDER}-01", "0".repeat(32));
        let upper = good.to_uppercase();
        let long = format!("{good}-more");
        let bad = ["", "00", "garbage", &*zeros, &*upper, &*long];
        for value in bad {
            let answer = tenant.api.send(tenant.api.request(Method::GET, "/v1/me").header("traceparent", value)).await;
            assert_eq!(answer.status, 200, "{value}");
        }
        let twice = tenant.api.request(Method::GET, "/v1/me").header("traceparent", &good).header("traceparent", &good);
        assert_eq!(tenant.api.send(twice).await.status, 200);
        // Strangers take no room.
        let stranger = world.anybody();
        assert_eq!(stranger.send(stranger.request(Method::GET, "/v1/me").header("traceparent", &good)).await.status, 401);
        flush(world).await;
        let spans = collector.spans();
        assert_eq!(spans.len(), bad.len() + 1, "{spans:#?}");
        assert!(spans.iter().all(|span| span.parent.is_empty() && span.trace_id != TRACE && span.name == "GET /v1/me"), "{spans:#?}");
        assert_eq!(spans.iter().map(|span| &span.trace_id).collect::<BTreeSet<_>>().len(), spans.len());
    }

    /// The sender's flag can only say no; and the operator's ratio counts for whoever says yes.
    async fn what_is_not_sampled_is_not_sent_and_says_so_to_others(world: &mut World) {
        let collector = traced(world, &[]).await;
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let agent = tenant.agent().await;
        flush(world).await;
        let asked = of_trace(&collector, TRACE).len();
        for (ratio, flags) in [(1.0, "00"), (0.0, "01")] {
            world.change_settings(&[("otlp_sample_ratio", ratio.into())]).await;
            let before = receiver.requests().len();
            let parent = traceparent(flags);
            post(&tenant, "/v1/sessions", &[("traceparent", &parent)], &call_to(&agent)).await.ok();
            world.advance(minutes(3)).await;
            flush(world).await;
            assert_eq!(of_trace(&collector, TRACE).len(), asked, "{ratio} {flags}");
            let told = receiver.requests();
            assert!(told.len() > before);
            for request in &told[before..] {
                let header = &request.headers["traceparent"];
                assert!(header.starts_with(&format!("00-{TRACE}-")) && header.ends_with("-00"), "{header}");
            }
        }
    }

    async fn without_a_collector_nothing_is_said_to_anybody(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let server = FunctionServer::start(|_| FunctionReply::Json(json!({})));
        let agent = booking_agent(&tenant, &server).await;
        let parent = traceparent("01");
        let answer = post(&tenant, "/v1/sessions", &[("traceparent", &parent)], &call_to(&agent)).await;
        assert!(!answer.headers.contains_key("traceparent") && !answer.headers.contains_key("traceresponse"));
        answer.ok();
        world.advance(minutes(3)).await;
        let told = receiver.requests();
        assert!(told.len() > 2 && server.calls().len() == 1);
        assert!(told.iter().all(|request| !request.headers.contains_key("traceparent")));
        assert!(!server.calls()[0].headers.contains_key("traceparent"));
    }

    async fn a_collector_that_hangs_holds_nobody_up(world: &mut World) {
        let collector = traced(world, &[]).await;
        collector.reply(Reply::Hang);
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        // One request is under way, and stays so.
        collector.until_asked(1).await;
        let id = post(&tenant, "/v1/sessions", &[], &call_to(&agent)).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(minutes(3)).await;
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{id}")).await.ok()["end_reason"], "completed");
        let before = dropped(world, "queue_full");
        let place = Place { trace_id: 1, parent: None, sampled: true };
        let begun = Instant::now();
        for id in 1..=20_000 {
            world.deps().traces.tracer.record(place.span(id, "x", Moment::from_millis(0), Duration::ZERO));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits: {:?}", begun.elapsed());
        let lost = dropped(world, "queue_full") - before;
        assert!(lost >= 10_000.0, "{lost}");
        // In order, as at SIGTERM: it waits for three seconds, and not for the collector.
        world.restart_in_order().await;
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{id}")).await.ok()["end_reason"], "completed");
    }

    async fn what_a_collector_does_not_take_is_counted_and_forgotten(world: &mut World) {
        let collector = traced(world, &[]).await;
        collector.reply(Reply::Status(500));
        let tenant = world.tenant().await;
        let before = dropped(world, "not_exported");
        tenant.api.get("/v1/me").await.ok();
        flush(world).await;
        assert!(dropped(world, "not_exported") > before, "a 500 is not tried again");
        // 503 is, when it may have passed.
        collector.reply(Reply::Status(503));
        let asked = collector.asked();
        tenant.api.get("/v1/agents").await.ok();
        collector.until_asked(asked + 1).await;
        collector.reply(Reply::Status(200));
        collector.until(|spans| spans.iter().any(|span| span.name == "GET /v1/agents")).await;
        assert!(!collector.spans().iter().any(|span| span.name == "GET /v1/me"), "it was forgotten");
    }
}
