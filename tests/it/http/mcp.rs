//! The Model Context Protocol over HTTP: what an assistant sees of a workspace, and what it is refused.
use crate::{
    on_both,
    world::{Answer, Api, Receiver, Tenant, World, minutes, seconds},
};
use callboard::mcp::{shown::UNTRUSTED, tools::TOOLS, version::Version};
use entities::values::{Env, Scope, Scopes};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn post(api: &Api, body: &Value) -> Answer {
    let request = api.request(Method::POST, "/mcp");
    let request = request.header("MCP-Protocol-Version", Version::LATEST.as_str());
    let request = request.header("Accept", "application/json, text/event-stream");
    api.send(request.json(body)).await
}

/// The result of a method.
async fn ask(api: &Api, method: &str, params: Value) -> Value {
    let answer = post(api, &message(method, params)).await.ok();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(1)),
        "{answer}"
    );
    answer["result"].clone()
}

/// The structured result of a tool, and whether it is an error.
async fn call(api: &Api, name: &str, given: Value) -> (Value, bool) {
    let result = ask(api, "tools/call", json!({ "name": name, "arguments": given })).await;
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{name}");
    (text, result["isError"].as_bool().unwrap())
}

async fn names(api: &Api) -> Vec<String> {
    let listed = ask(api, "tools/list", json!({})).await;
    let tools = listed["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A workspace in which everything has happened that tools tell of.
struct Lived {
    agent: String,
    campaign: String,
    draft: String,
    contact: String,
    session: String,
    endpoint: String,
}

async fn live(world: &World, tenant: &Tenant) -> Lived {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let receiver = Receiver::start();
    let endpoint = tenant.webhook(&receiver).await;
    let agent = json!({ "name": "Ann", "prompt": "Be kind.", "dispositions": [{ "code": "not_interested" }, { "code": "interested" }],
        "brain": { "mode": "scripted", "replies": [{ "say": "Fine." }, { "say": "Well." }] } });
    let agent = text(&tenant.api.post("/v1/agents", agent).await.ok()["id"]);
    let campaign = json!({ "name": "Spring", "agent_id": agent, "contacts": [{ "phone_number": "+15002345600", "first_name": "Bo" }] });
    let campaign = text(&tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"]);
    let draft = text(
        &tenant
            .api
            .post("/v1/campaigns", json!({ "name": "Summer", "agent_id": agent }))
            .await
            .ok()["id"],
    );
    let added = json!({ "contacts": [{ "phone_number": "+15002340001" }, { "phone_number": "+15002340002" }] });
    tenant
        .api
        .post(&format!("/v1/campaigns/{draft}/contacts"), added)
        .await
        .ok();
    tenant
        .api
        .post(
            "/v1/sms_messages",
            json!({ "to_number": "+15002340000", "body": "Hello by SMS." }),
        )
        .await
        .ok();
    let email = json!({ "to": "ann@example.com", "subject": "Hello", "text": "Hello by mail." });
    tenant.api.post("/v1/email_messages", email).await.ok();
    let consent = json!({ "phone_number": "+15002340000", "seller": "Acme", "channels": ["sms"], "purposes": ["service"],
        "tier": "express", "method": "desk", "given_at": "2027-01-02T13:00:00Z" });
    tenant.api.post("/v1/consents", consent).await.ok();
    world.advance(minutes(5)).await;
    let sessions = tenant
        .api
        .get(&format!("/v1/sessions?campaign_id={campaign}"))
        .await
        .ok();
    Lived {
        contact: text(&sessions["data"][0]["contact_id"]),
        session: text(&sessions["data"][0]["id"]),
        agent,
        campaign,
        draft,
        endpoint,
    }
}

/// Each tool with arguments, and a text that its answer holds. Those with a `{}` in them answer to an id.
fn asked(lived: &Lived) -> Vec<(&'static str, Value, String)> {
    let Lived {
        agent,
        campaign,
        draft,
        contact,
        session,
        endpoint,
    } = lived;
    vec![
        ("get_workspace", json!({}), r#""env":"test""#.into()),
        ("list_agents", json!({ "name": "an" }), agent.clone()),
        ("get_agent", json!({ "id": agent }), r#""prompt":"Be kind.""#.into()),
        (
            "search_calls",
            json!({ "phone_number": "+15002345600", "status": "completed", "kind": "phone", "created_after": "2027-03-02T12:00:00Z" }),
            session.clone(),
        ),
        ("get_call", json!({ "id": session }), campaign.clone()),
        (
            "get_call_transcript",
            json!({ "id": session }),
            "That sounds good to me.".into(),
        ),
        (
            "get_call_evaluation",
            json!({ "id": session }),
            r#""disposition_code":"interested""#.into(),
        ),
        ("get_call_timeline", json!({ "id": session }), r#""entries":[{"#.into()),
        (
            "get_call_timeline",
            json!({ "id": session, "first_entry": 1, "max_entries": 1 }),
            r#""first_entry":1"#.into(),
        ),
        (
            "get_call_statistics",
            json!({ "period": "24h" }),
            r#""started":1"#.into(),
        ),
        ("list_campaigns", json!({ "status": "draft" }), draft.clone()),
        ("get_campaign", json!({ "id": campaign }), r#""completed":1"#.into()),
        ("get_campaign_statistics", json!({ "id": campaign }), campaign.clone()),
        ("get_campaign_report", json!({ "id": campaign }), contact.clone()),
        (
            "list_campaign_contacts",
            json!({ "id": campaign, "status": "completed" }),
            contact.clone(),
        ),
        ("find_contacts", json!({ "name": "bo" }), contact.clone()),
        (
            "explain_contact_eligibility",
            json!({ "id": campaign, "contact_id": contact }),
            r#""eligible":false"#.into(),
        ),
        ("preflight_campaign", json!({ "id": draft }), r#""contacts":2"#.into()),
        (
            "check_do_not_call",
            json!({ "phone_number": "+15002345600" }),
            r#""listed":false"#.into(),
        ),
        (
            "list_consents",
            json!({ "seller": "acme" }),
            r#""seller":"Acme""#.into(),
        ),
        (
            "check_compliance",
            json!({ "region": "FR", "at": "2026-08-11", "purpose": "marketing", "vertical": "energy" }),
            r#""pack_version":""#.into(),
        ),
        (
            "list_events",
            json!({ "event_type": "session.ended", "subject_id": session }),
            session.clone(),
        ),
        ("list_webhook_endpoints", json!({}), endpoint.clone()),
        (
            "list_webhook_deliveries",
            json!({ "id": endpoint, "event_type": "session.ended" }),
            r#""status":"succeeded""#.into(),
        ),
        ("get_webhook_statistics", json!({ "id": endpoint }), endpoint.clone()),
        ("get_credits", json!({}), r#""currency":"USD""#.into()),
        ("get_concurrency", json!({}), r#""in_use":0"#.into()),
        (
            "search_sms",
            json!({ "to_number": "+15002340000" }),
            "Hello by SMS.".into(),
        ),
        (
            "search_emails",
            json!({ "to": "ann@example.com" }),
            r#""subject":"Hello""#.into(),
        ),
    ]
}

on_both! {
    async fn every_tool_tells_what_there_is_to_its_own_workspace_alone(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let lived = live(world, &tenant).await;
        let live_key = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let (mut called, before) = (BTreeSet::new(), tenant.events().await.len());
        for (name, given, holds) in asked(&lived) {
            let (content, is_error) = call(&tenant.api, name, given.clone()).await;
            let said = content.to_string();
            assert!(!is_error && said.contains(&holds), "{name} does not say {holds}: {said}");
            let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
            assert_eq!(content.get("notice").is_some(), tool.is_untrusted, "{name}");
            assert!(content["notice"].is_null() || content["notice"] == UNTRUSTED);
            called.insert(name);
            // The same question of others: what is not theirs is not there.
            for other in [&stranger.api, &live_key] {
                let is_config = std::ptr::eq(other, &live_key) && name == "get_agent";
                if given.get("id").is_some() && !is_config {
                    let (content, is_error) = call(other, name, given.clone()).await;
                    assert!(is_error, "{name}: {content}");
                    assert_eq!(content["error"]["code"], "not_found", "{name}");
                }
            }
            world.advance(seconds(2)).await;
        }
        let all: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(called, all, "every tool is called here");
        let nothing = call(&stranger.api, "search_calls", json!({})).await.0;
        assert_eq!(nothing["answer"]["data"], json!([]));
        assert_eq!(tenant.events().await.len(), before, "nothing has happened by looking");
        assert_eq!(tenant.campaign(&lived.draft).await["status"], "draft");
    }

    async fn a_conversation_goes_as_the_protocol_says(world: &mut World) {
        let tenant = world.tenant().await;
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let result = ask(&tenant.api, "initialize", hello).await;
        assert_eq!(result["protocolVersion"], "2025-06-18");
        assert_eq!(result["serverInfo"]["name"], "callboard");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let answer = post(&tenant.api, &initialized).await;
        assert_eq!((answer.status.as_u16(), &answer.body), (202, &Value::Null));
        assert!(!answer.headers.contains_key("mcp-session-id"));
        assert_eq!(ask(&tenant.api, "ping", json!({})).await, json!({}));
        assert_eq!(names(&tenant.api).await.len(), TOOLS.len());

        for (body, status, code) in [
            (message("resources/list", json!({})), 200, -32601),
            (message("tools/call", json!({ "name": "send_sms" })), 200, -32602),
            (message("tools/call", json!([])), 200, -32602),
            (json!({}), 400, -32600),
            (json!([message("ping", json!({}))]), 400, -32600),
        ] {
            let answer = post(&tenant.api, &body).await;
            assert_eq!((answer.status.as_u16(), &answer.body["error"]["code"]), (status, &json!(code)), "{body}");
        }
        let raw = async |version: Option<&str>, text: &'static str| {
            let request = tenant.api.request(Method::POST, "/mcp").header("content-type", "application/json").body(text);
            tenant.api.send(match version {
                Some(version) => request.header("MCP-Protocol-Version", version),
                None => request,
            }).await
        };
        let broken = raw(None, "{\"jsonrpc\":").await;
        assert_eq!((broken.status.as_u16(), &broken.body["error"]["code"]), (400, &json!(-32700)));
        // A client that names no version is one of 2025-03-26, which has batches, and no structured results.
        const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},
            {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"get_concurrency"}}]"#;
        let batch = raw(None, BATCH).await.ok();
        assert_eq!((batch[0]["id"].clone(), batch[1]["id"].clone(), batch.as_array().unwrap().len()), (json!(1), json!("b"), 2));
        assert_eq!((&batch[1]["result"]["isError"], batch[1]["result"].get("structuredContent")), (&json!(false), None));
        let silent = raw(None, r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
        assert_eq!((silent.status.as_u16(), silent.body), (202, Value::Null));
        assert_eq!(raw(Some("2020-01-01"), "{}").await.error(), (400, "invalid_request", Some("MCP-Protocol-Version")));
    }

    async fn a_key_is_shown_its_own_tools_and_refused_the_others(world: &mut World) {
        let tenant = world.tenant().await;
        let key = async |scopes: Vec<Scope>| world.api(tenant.id, Env::Test, Scopes::new(scopes).unwrap()).await;
        let calls = key(vec![Scope::SessionsRead]).await;
        let seen = names(&calls).await;
        let mine: Vec<String> = TOOLS.iter().filter(|tool| tool.scope.is_none_or(|scope| scope == Scope::SessionsRead)).map(|tool| tool.name.to_owned()).collect();
        assert_eq!(seen, mine);
        for tool in TOOLS.iter().filter(|tool| !seen.iter().any(|name| name == tool.name)) {
            let schema = tool.listed()["inputSchema"].clone();
            let required = schema["required"].as_array().into_iter().flatten();
            let given: serde_json::Map<String, Value> = required.map(|name| (name.as_str().unwrap().to_owned(), json!(NOBODY))).collect();
            let (content, is_error) = call(&calls, tool.name, given.into()).await;
            assert!(is_error, "{}", tool.name);
            assert_eq!((&content["error"]["code"], &content["error"]["status"]), (&json!("forbidden"), &json!(403)), "{}", tool.name);
            world.advance(seconds(1)).await;
        }
        // What a tool's arguments cannot say, the API says.
        let (content, is_error) = call(&tenant.api, "search_calls", json!({ "phone_number": "nobody" })).await;
        assert!(is_error);
        assert_eq!((&content["error"]["code"], &content["error"]["param"]), (&json!("validation_failed"), &json!("phone_number")));
        assert!(content["error"]["request_id"].as_str().unwrap().starts_with("req_"));
    }

    async fn whoever_may_not_ask_is_refused_before_anything_is_read(world: &mut World) {
        let tenant = world.tenant().await;
        let ping = message("ping", json!({}));
        let with = async |api: &Api, headers: &[(&str, &str)]| {
            let request = headers.iter().fold(api.request(Method::POST, "/mcp"), |request, (name, value)| request.header(*name, *value));
            api.send(request.json(&ping)).await
        };
        assert_eq!(with(&tenant.api, &[("Origin", &world.url)]).await.status.as_u16(), 200, "its own page");
        let host = world.url.trim_start_matches("http://");
        for (origin, more) in [
            ("https://evil.example", None),
            ("null", None),
            ("http://localhost:1", None),
            // A name that was made to lead here.
            ("http://evil.example", Some(("Host", "evil.example"))),
            ("https://evil.example", Some(("Host", host))),
        ] {
            let headers: Vec<(&str, &str)> = [("Origin", origin)].into_iter().chain(more).collect();
            assert_eq!(with(&tenant.api, &headers).await.error(), (403, "forbidden", None), "{origin}");
        }
        let nobody = world.anybody();
        let wrong = Api { key: format!("vk_test_{}", "x".repeat(32)), ..tenant.api.clone() };
        for api in [&nobody, &wrong] {
            let answer = with(api, &[]).await;
            assert_eq!(answer.error(), (401, "unauthenticated", None));
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            assert_eq!(answer.headers["x-request-id"].to_str().unwrap(), answer.body["error"]["request_id"].as_str().unwrap());
        }
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            let answer = tenant.api.send(tenant.api.request(method.clone(), "/mcp")).await;
            assert_eq!(answer.error(), (405, "method_not_allowed", None), "{method}");
            assert_eq!(answer.headers["allow"], "POST", "{method}");
        }
        let text = tenant.api.request(Method::POST, "/mcp").header("content-type", "text/plain").body(ping.to_string());
        assert_eq!(tenant.api.send(text).await.error(), (415, "unsupported_media_type", None));
        let large = message("ping", json!({ "padding": "x".repeat(64 * 1024) }));
        assert_eq!(post(&tenant.api, &large).await.error(), (413, "payload_too_large", None));
        assert_eq!(with(&tenant.api, &[]).await.status.as_u16(), 200, "nothing of it is held against the next one");
    }

    /// A message is one request of its key, and a tool one or two more.
    async fn messages_count_as_the_requests_that_they_make(world: &mut World) {
        let tenant = world.tenant().await;
        let key = world.api(tenant.id, Env::Test, Scopes::all()).await;
        for n in 0..50 {
            let (content, is_error) = call(&key, "get_concurrency", json!({})).await;
            assert!(!is_error, "{n}: {content}");
        }
        let answer = post(&key, &message("ping", json!({}))).await;
        assert_eq!(answer.error(), (429, "rate_limited", None));
        assert!(answer.headers.contains_key("retry-after"));
        assert_eq!(key.get("/v1/me").await.error(), (429, "rate_limited", None), "it is the same count");
        world.advance(seconds(1)).await;
        let last = async |requests: usize| for _ in 0..requests {
            key.get("/v1/me").await.ok();
        };
        // One is left: enough to be let in, and not for the tool.
        last(49).await;
        let (content, is_error) = call(&key, "get_concurrency", json!({})).await;
        assert!(is_error);
        assert_eq!(content["error"]["code"], "rate_limited");
        assert!(content["error"]["retry_after_seconds"].as_u64().unwrap() >= 1, "{content}");
    }

    /// A context is small: what does not fit is left out, and said to be.
    async fn a_long_list_is_cut_and_says_so(world: &mut World) {
        let tenant = world.tenant().await;
        for n in 0..6 {
            let agent = json!({ "name": format!("Agent {n}"), "prompt": "Be kind. ".repeat(1_200) });
            tenant.api.post("/v1/agents", agent).await.ok();
        }
        let (content, is_error) = call(&tenant.api, "list_agents", json!({})).await;
        assert!(!is_error && content.to_string().len() <= 40_000, "{}", content.to_string().len());
        let shown = content["answer"]["data"].as_array().unwrap().len();
        assert!((1..6).contains(&shown), "{shown}");
        assert!(content["shortened"].as_str().unwrap().contains("`limit`"));
        // As it says.
        let (first, _) = call(&tenant.api, "list_agents", json!({ "limit": shown })).await;
        assert_eq!((first.get("shortened"), first["answer"]["data"].as_array().unwrap().len()), (None, shown));
        let (rest, _) = call(&tenant.api, "list_agents", json!({ "limit": 6 - shown, "cursor": first["answer"]["next_cursor"] })).await;
        let seen: BTreeSet<String> = [&first, &rest].iter().flat_map(|page| page["answer"]["data"].as_array().unwrap()).map(|agent| agent["id"].to_string()).collect();
        assert!(seen.len() > shown, "it goes on");
    }
}
