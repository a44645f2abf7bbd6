//! Functions during a talk: real HTTP, signed, checked, and never waited for longer than they may take.
use super::{agent, call, said, session, told};
use crate::{
    on_both,
    world::{
        Tenant, World,
        functions::{FunctionServer, Reply},
        minutes,
    },
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn schema() -> Value {
    json!({ "type": "object", "required": ["day"], "additionalProperties": false, "properties": { "day": { "enum": ["monday", "tuesday"] } } })
}

async fn function(tenant: &Tenant, url: &str, more: Value) -> Value {
    let mut function = json!({ "name": "book", "description": "Books a day.", "parameters": schema(), "url": url, "headers": { "X-Team": "blue" } });
    function
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/functions", function).await.ok()
}

/// An agent that calls the function when it hears "book".
async fn booking_agent(tenant: &Tenant, function: &Value, arguments: Value) -> String {
    let replies = json!([
        { "hear": ["book"], "say": "I will book it.", "call": { "name": function["name"], "arguments": arguments } },
        { "say": "Anything else?" },
    ]);
    agent(
        tenant,
        json!({ "function_ids": [function["id"]], "brain": { "mode": "scripted", "replies": replies } }),
    )
    .await
}

fn script() -> Value {
    json!({ "sandbox": { "script": [{ "say": "Please book a day." }, { "say": "No, thanks." }] } })
}

on_both! {
    async fn an_agent_calls_its_function_and_the_talk_goes_on(world: &mut World) {
        let tenant = world.tenant().await;
        let server = FunctionServer::start(|_| Reply::Json(json!({ "booked": true })));
        let function = function(&tenant, &server.url, json!({})).await;
        let agent = booking_agent(&tenant, &function, json!({ "day": "monday" })).await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        world.advance(minutes(2)).await;

        let calls = server.calls();
        assert_eq!(calls.len(), 1, "one call, no retries");
        let made = &calls[0];
        assert!(made.signed_by(function["secret"].as_str().unwrap()));
        assert_eq!((made.method.as_str(), made.headers["x-team"].as_str()), ("POST", "blue"));
        assert_eq!(made.body["arguments"], json!({ "day": "monday" }));
        assert_eq!((made.body["function"].as_str(), made.body["session"]["id"].as_str()), (Some("book"), Some(&*id)));
        let ended = &told(&tenant, "session.ended").await[0];
        let invocation = &ended["function_invocations"][0];
        assert_eq!((invocation["name"].as_str(), invocation["status"].as_str()), (Some("book"), Some("succeeded")));
        assert_eq!(invocation.as_object().unwrap().keys().collect::<Vec<_>>(), ["name", "status", "duration_ms"]);
        let turns = ended["transcript"].as_array().unwrap();
        let called = turns.iter().find(|turn| turn["tool_calls"].is_array()).unwrap();
        assert_eq!((called["role"].as_str(), called.get("content")), (Some("agent"), None), "purely a tool call");
        assert_eq!(called["tool_calls"][0]["arguments"], json!({ "day": "monday" }));
        let answered = turns.iter().find(|turn| turn["role"] == "tool").unwrap();
        assert_eq!(answered["content"], r#"{"booked":true}"#);
        assert_eq!(answered["tool_call_id"], called["tool_calls"][0]["id"]);
        assert_eq!(session(&tenant, &id).await["end_reason"], "completed");
    }

    async fn one_that_takes_too_long_is_not_waited_for(world: &mut World) {
        let tenant = world.tenant().await;
        let server = FunctionServer::start(|_| Reply::Hang);
        let function = function(&tenant, &server.url, json!({ "timeout_ms": 2_000 })).await;
        let agent = booking_agent(&tenant, &function, json!({ "day": "monday" })).await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        world.advance(minutes(2)).await;
        let timeouts = told(&tenant, "function.timeout").await;
        assert_eq!(timeouts, [json!({ "session_id": id, "function_id": function["id"], "name": "book", "timeout_ms": 2_000 })]);
        let ended = &told(&tenant, "session.ended").await[0];
        assert_eq!(ended["function_invocations"][0]["status"], "timed_out");
        let words = said(&ended["transcript"]);
        let at = words.iter().position(|line| line.contains("still working")).unwrap();
        assert!(words[at + 1..].iter().any(|line| line.starts_with("user: No")), "the talk goes on: {words:?}");
        assert_eq!(server.calls().len(), 1, "no second try");
    }

    /// By the API: at once, and not when the function has answered.
    async fn somebody_takes_over_while_a_function_runs(world: &mut World) {
        let tenant = world.tenant().await;
        let (begins, mut begun) = mpsc::unbounded_channel();
        let server = FunctionServer::start(move |_| {
            begins.send(()).unwrap();
            Reply::Hang
        });
        let function = function(&tenant, &server.url, json!({ "timeout_ms": 120_000 })).await;
        let agent = booking_agent(&tenant, &function, json!({ "day": "monday" })).await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        let transfer = async {
            begun.recv().await.unwrap();
            let to = json!({ "transfer_number": "+15002000010" });
            assert_eq!(tenant.api.post(&format!("/v1/sessions/{id}/transfer"), to).await.status, 202);
        };
        tokio::join!(world.advance(minutes(1)), transfer);
        let row = session(&tenant, &id).await;
        assert_eq!((&row["phase"], &row["end_reason"]), (&json!("ended"), &json!("transferred")));
    }

    /// The line of whoever was to take over is busy; meanwhile the function was waited for.
    async fn a_function_goes_on_while_nobody_takes_over(world: &mut World) {
        let tenant = world.tenant().await;
        let (begins, mut begun) = mpsc::unbounded_channel();
        let (answer, answers) = std::sync::mpsc::channel();
        let answers = std::sync::Mutex::new(answers);
        let server = FunctionServer::start(move |_| {
            begins.send(()).unwrap();
            Reply::Json(answers.lock().unwrap().recv().unwrap())
        });
        let function = function(&tenant, &server.url, json!({ "timeout_ms": 120_000 })).await;
        let agent = booking_agent(&tenant, &function, json!({ "day": "monday" })).await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        let transfer = async {
            begun.recv().await.unwrap();
            let to = json!({ "transfer_number": "+15002000011" });
            assert_eq!(tenant.api.post(&format!("/v1/sessions/{id}/transfer"), to).await.status, 202);
            while session(&tenant, &id).await["phase"] == "transferring" {
                tokio::task::yield_now().await;
            }
            answer.send(json!({ "booked": true })).unwrap();
        };
        tokio::join!(world.advance(minutes(2)), transfer);
        let ended = &told(&tenant, "session.ended").await[0];
        assert_eq!(ended["function_invocations"][0]["status"], "succeeded");
        let words = said(&ended["transcript"]);
        let at = |text: &str| words.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {words:?}"));
        assert!(at("nobody is available") < at("Anything else?"), "{words:?}");
    }

    async fn what_a_function_answers_is_limited_and_its_failures_are_told(world: &mut World) {
        let tenant = world.tenant().await;
        for (reply, status) in [(500, "failed"), (302, "failed"), (204, "succeeded"), (200, "failed")] {
            let server = FunctionServer::start(move |_| match reply {
                200 => Reply::Raw(200, vec![b'x'; 70_000]),
                status => Reply::Raw(status, Vec::new()),
            });
            let function = function(&tenant, &server.url, json!({ "name": format!("f{reply}") })).await;
            let tested = tenant.api.post(&format!("/v1/functions/{}/test", function["id"].as_str().unwrap()), json!({ "arguments": { "day": "tuesday" } })).await.ok();
            assert_eq!((tested["status"].as_str(), tested["http_status"].as_u64()), (Some(status), Some(reply.into())), "{tested}");
            assert_eq!(server.calls().len(), 1);
        }
        let nobody = function(&tenant, "http://127.0.0.1:9/", json!({ "name": "nobody" })).await;
        let tested = tenant.api.post(&format!("/v1/functions/{}/test", nobody["id"].as_str().unwrap()), json!({ "arguments": { "day": "tuesday" } })).await.ok();
        assert_eq!((tested["status"].as_str(), tested["output"]["message"].as_str()), (Some("failed"), Some("connect_failed")));
    }

    async fn arguments_that_do_not_fit_are_refused_before_anything_is_sent(world: &mut World) {
        let tenant = world.tenant().await;
        let server = FunctionServer::start(|_| Reply::Json(json!({})));
        let function = function(&tenant, &server.url, json!({})).await;
        let agent = booking_agent(&tenant, &function, json!({ "day": "sunday" })).await;
        let id = call(&tenant, &agent, "+15002345600", script()).await;
        world.advance(minutes(2)).await;
        assert_eq!(server.calls().len(), 0);
        let timeline = tenant.api.get(&format!("/v1/sessions/{id}/timeline")).await.ok();
        let refused = timeline["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == "refused").unwrap();
        assert!(refused["detail"].as_str().unwrap().starts_with("book: "), "{refused}");
        assert_eq!(told(&tenant, "session.ended").await[0]["function_invocations"], json!([]));
        let bad = tenant.api.post(&format!("/v1/functions/{}/test", function["id"].as_str().unwrap()), json!({ "arguments": { "day": "sunday" } })).await;
        assert_eq!(bad.error(), (422, "validation_failed", Some("arguments")));
    }

    /// The sandbox's 8: the agent's own function is called for real, and its answer is held back.
    async fn the_sandbox_lets_a_function_take_too_long(world: &mut World) {
        let tenant = world.tenant().await;
        let server = FunctionServer::start(|_| Reply::Json(json!({ "quick": true })));
        let function = function(&tenant, &server.url, json!({})).await;
        let with = booking_agent(&tenant, &function, json!({ "day": "monday" })).await;
        let without = agent(&tenant, json!({})).await;
        call(&tenant, &with, "+15002345608", json!({})).await;
        call(&tenant, &without, "+15002345618", json!({})).await;
        world.advance(minutes(2)).await;
        let mut names: Vec<_> = told(&tenant, "function.timeout").await.into_iter().map(|data| (data["name"].as_str().unwrap().to_owned(), data["timeout_ms"].as_i64().unwrap())).collect();
        names.sort();
        assert_eq!(names, [("book".to_owned(), 10_000), ("sandbox_lookup".to_owned(), 10_000)]);
        assert_eq!(server.calls().len(), 1);
    }

    async fn functions_are_made_changed_rotated_and_deleted(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let made = function(&tenant, "http://127.0.0.1:9/", json!({})).await;
        let path = format!("/v1/functions/{}", made["id"].as_str().unwrap());
        assert!(made["secret"].as_str().unwrap().starts_with("fnsec_"));
        let shown = api.get(&path).await.ok();
        assert_eq!((shown.get("secret"), &shown["header_names"], shown["timeout_ms"].as_i64()), (None, &json!(["X-Team"]), Some(10_000)));
        let again = api.post("/v1/functions", json!({ "name": "book", "description": "x", "parameters": schema(), "url": "http://127.0.0.1:9/" })).await;
        assert_eq!(again.error(), (409, "already_exists", Some("name")));
        let base = json!({ "name": "other", "description": "x", "parameters": schema(), "url": "http://127.0.0.1:9/" });
        for (field, value, param) in [
            ("name", json!("end_call"), "name"),
            ("name", json!("white space"), "name"),
            ("parameters", json!([]), "parameters"),
            ("parameters", json!({ "type": "object", "properties": { "x": { "$ref": "http://example.com/" } } }), "parameters"),
            ("url", json!("ftp://example.com"), "url"),
            ("url", json!("http://169.254.169.254/"), "url"),
            ("method", json!("GET"), "method"),
            ("timeout_ms", json!(10), "timeout_ms"),
            ("headers", json!({ "X-Function-Signature": "x" }), "headers.X-Function-Signature"),
            ("typo", json!(1), "typo"),
        ] {
            let mut body = base.clone();
            body[field] = value;
            assert_eq!(api.post("/v1/functions", body).await.error(), (422, "validation_failed", Some(param)), "{field}");
        }
        let changed = api.patch(&path, json!({ "timeout_ms": 500, "parameters": { "type": "object" } })).await.ok();
        assert_eq!((changed["version"].as_i64(), &changed["parameters"]), (Some(2), &json!({ "type": "object" })));
        let rotated = api.post(&format!("{path}/rotate_secret"), json!({})).await.ok();
        assert_ne!(rotated["secret"], made["secret"]);
        let agent = booking_agent(&tenant, &made, json!({})).await;
        assert_eq!(api.delete(&path).await.error(), (409, "in_use", None));
        api.delete(&format!("/v1/agents/{agent}")).await.ok();
        assert_eq!(api.delete(&path).await.status, 204);
        assert_eq!(api.get(&path).await.error(), (404, "not_found", None));
        assert_eq!(function(&tenant, "http://127.0.0.1:9/", json!({})).await["name"], "book", "its name is free again");
    }
}
