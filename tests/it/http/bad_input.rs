//! Every bad input gets a clear error, with the field's name, and changes nothing.
use crate::{on_both, world::World};
use reqwest::Method;
use serde_json::{Value, json};

on_both! {
    async fn bad_bodies_name_the_field_and_change_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let long = "x".repeat(201);
        let good_contact = json!([{ "phone_number": "+15002340000" }]);
        let table: Vec<(&str, Value, &str)> = vec![
            ("/v1/agents", json!({ "prompt": "x" }), "name"),
            ("/v1/agents", json!({ "name": "", "prompt": "x" }), "name"),
            ("/v1/agents", json!({ "name": long, "prompt": "x" }), "name"),
            ("/v1/agents", json!({ "name": "x", "prompt": 1 }), "prompt"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "nmae": "x" }), "nmae"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "max_duration_seconds": 29 }), "max_duration_seconds"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "brain": { "mode": "telepathy" } }), "brain.mode"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "brain": { "mode": "chat", "model": 5 } }), "brain.model"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "brain": { "tempo": 1, "mode": "chat" } }), "brain.tempo"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "brain": { "mode": "scripted", "replies": [{}] } }), "brain.replies[0].say"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "turn_detection": { "mode": "semantic" } }), "turn_detection.mode"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "turn_detection": { "silence_ms": 199 } }), "turn_detection.silence_ms"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "turn_detection": { "unfinished_silence_ms": 3001 } }), "turn_detection.unfinished_silence_ms"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "turn_detection": { "eager": "no" } }), "turn_detection.eager"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "interruption": { "min_duration_ms": -1 } }), "interruption.min_duration_ms"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "interruption": { "min_words": 11 } }), "interruption.min_words"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "interruption": { "sensitivity": "deaf" } }), "interruption.sensitivity"),
            ("/v1/agents", json!({ "name": "x", "prompt": "x", "interruption": { "resumes": true } }), "interruption.resumes"),
            ("/v1/campaigns", json!({ "name": "x", "pacing": { "calls_per_second": 0 } }), "pacing.calls_per_second"),
            ("/v1/campaigns", json!({ "name": "x", "pacing": { "calls_per_second": 501 } }), "pacing.calls_per_second"),
            ("/v1/campaigns", json!({ "name": "x", "pacing": { "weight": 101 } }), "pacing.weight"),
            ("/v1/campaigns", json!({ "name": "x", "retry": { "max_attempts": 11 } }), "retry.max_attempts"),
            ("/v1/campaigns", json!({ "name": "x", "agent_id": "00000000-0000-7000-8000-000000000000" }), "agent_id"),
            ("/v1/campaigns", json!({ "name": "x", "agent_id": "ann" }), "agent_id"),
            ("/v1/campaigns", json!({ "name": "x", "channel": "fax" }), "channel"),
            ("/v1/campaigns", json!({ "name": "x", "from_numbers": ["12"] }), "from_numbers[0]"),
            ("/v1/campaigns/run", json!({ "name": "x", "agent_id": agent }), "contacts"),
            ("/v1/campaigns/run", json!({ "name": "x", "agent_id": agent, "contacts": [] }), "contacts"),
            ("/v1/campaigns/run", json!({ "name": "x", "agent_id": agent, "contacts": [{}] }), "contacts"),
            ("/v1/campaigns/run", json!({ "name": "x", "agent_id": agent, "contacts": good_contact, "speed": 1 }), "speed"),
            ("/v1/sessions", json!({ "agent_id": agent }), "to_number"),
            ("/v1/sessions", json!({ "to_number": "5002340000", "agent_id": agent }), "to_number"),
            ("/v1/sessions", json!({ "to_number": "+12", "agent_id": agent }), "to_number"),
            ("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent, "ring_timeout_seconds": 61 }), "ring_timeout_seconds"),
            ("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent, "variables": { "x": [1] } }), "variables"),
            ("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent, "metadata": { "x": "y".repeat(501) } }), "metadata"),
            ("/v1/webhook_endpoints", json!({ "event_types": ["*"] }), "url"),
            ("/v1/webhook_endpoints", json!({ "url": "hooks", "event_types": ["*"] }), "url"),
            ("/v1/webhook_endpoints", json!({ "url": "http://10.0.0.1/", "event_types": ["*"] }), "url"),
            ("/v1/webhook_endpoints", json!({ "url": "https://169.254.169.254/", "event_types": ["*"] }), "url"),
            ("/v1/webhook_endpoints", json!({ "url": "https://a.example/", "event_types": ["session.end"] }), "event_types[0]"),
            ("/v1/webhook_endpoints", json!({ "url": "https://a.example/", "event_types": [] }), "event_types"),
            ("/v1/webhook_endpoints", json!({ "url": "https://a.example/", "event_types": ["*"], "timeout_ms": 999 }), "timeout_ms"),
            ("/v1/webhook_endpoints", json!({ "url": "https://a.example/", "event_types": ["*"], "headers": { "Host": "x" } }), "headers.Host"),
            ("/v1/webhook_endpoints", json!({ "url": "https://a.example/", "event_types": ["*"], "headers": { "X Y": "x" } }), "headers.X Y"),
        ];
        for (path, body, param) in table {
            let refused = tenant.api.post(path, body.clone()).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(param)), "{path} {body}");
            world.advance(std::time::Duration::from_millis(20)).await;
        }
        for list in ["campaigns", "sessions", "webhook_endpoints", "events"] {
            assert_eq!(tenant.api.get(&format!("/v1/{list}")).await.ok()["data"], json!([]), "{list}");
        }
        assert_eq!(tenant.api.get("/v1/agents").await.ok()["data"].as_array().unwrap().len(), 1);
        assert_eq!(tenant.api.patch("/v1/concurrency", json!({ "limit": 0 })).await.error(), (422, "validation_failed", Some("limit")));
        let patched = tenant.api.patch(&format!("/v1/agents/{agent}"), json!({ "prompt": null })).await;
        assert_eq!(patched.error(), (422, "validation_failed", Some("prompt")));
        let patched = tenant.api.patch(&format!("/v1/agents/{agent}"), json!({ "brain": { "mode": "chat", "model": 5 } })).await;
        assert_eq!(patched.error(), (422, "validation_failed", Some("brain.model")));
        assert_eq!(tenant.api.get(&format!("/v1/agents/{agent}")).await.ok()["version"], 1);
    }

    async fn an_address_that_could_never_be_reached_is_not_registered(world: &mut World) {
        world.change_setting("dev", json!(false)).await;
        let tenant = world.tenant().await;
        let addresses = [
            "https://localhost/", "https://a.internal/", "https://a.example/", "https://a.onion/", "https://intranet/", "https://nas.home.arpa/",
            "https://hooks.example.com:25/", "https:///hooks.example.com/", "https://hooks.example.com\\x/", "https://hooks.example.com/\n", "https://u@hooks.example.com/",
        ];
        let function = |url: &str| json!({ "name": "look_up", "description": "Looks up.", "parameters": { "type": "object" }, "url": url });
        let endpoint = |url: &str| json!({ "url": url, "event_types": ["*"] });
        for url in addresses {
            for (path, body) in [("/v1/webhook_endpoints", endpoint(url)), ("/v1/functions", function(url))] {
                assert_eq!(tenant.api.post(path, body).await.error(), (422, "validation_failed", Some("url")), "{path} {url}");
            }
            world.advance(std::time::Duration::from_secs(1)).await;
        }
        tenant.api.post("/v1/webhook_endpoints", endpoint("https://hooks.example.com:8443/x")).await.ok();
        tenant.api.post("/v1/functions", function("https://hooks.example.com/x")).await.ok();
        world.change_setting("webhook_allow_ports", json!("25")).await;
        tenant.api.post("/v1/webhook_endpoints", endpoint("https://hooks.example.com:25/")).await.ok();
    }

    async fn what_is_no_json_too_large_or_of_another_type_is_told_apart(world: &mut World) {
        let tenant = world.tenant().await;
        let post = async |content_type: &str, body: String| {
            let request = tenant.api.request(Method::POST, "/v1/agents").header("Content-Type", content_type).body(body);
            tenant.api.send(request).await
        };
        for body in ["", "{", "nonsense", "{\"name\":}", "{} {}", "{\"name\": \"x\",}", "\u{feff}{}"] {
            assert_eq!(post("application/json", body.into()).await.error(), (400, "invalid_json", None), "{body}");
        }
        assert_eq!(post("application/json", "[".repeat(200)).await.error(), (400, "invalid_json", None), "too deep");
        assert_eq!(post("application/json", "[]".into()).await.error().0, 422);
        assert_eq!(post("application/json", "{\"name\":\"a\\u0000b\"}".into()).await.error().0, 422);
        assert_eq!(post("text/plain", "{}".into()).await.error(), (415, "unsupported_media_type", None));
        assert_eq!(post("application/json", format!("\"{}\"", "x".repeat(1024 * 1024))).await.error(), (413, "payload_too_large", None));
        let contacts = format!("/v1/campaigns/{}/contacts", tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok()["id"].as_str().unwrap());
        let many: Vec<_> = (0..1001).map(|n| json!({ "phone_number": format!("{n}") })).collect();
        assert_eq!(tenant.api.post(&contacts, json!({ "contacts": many })).await.error(), (422, "validation_failed", Some("contacts")));
    }

    async fn bad_paths_and_queries_are_told_apart(world: &mut World) {
        let tenant = world.tenant().await;
        let table = [
            ("/v1/agents?limit=0", (422, "validation_failed", Some("limit"))),
            ("/v1/agents?limit=101", (422, "validation_failed", Some("limit"))),
            ("/v1/agents?limit=x", (422, "validation_failed", Some("limit"))),
            ("/v1/agents?order=up", (422, "validation_failed", Some("order"))),
            ("/v1/agents?cursor=xyz", (422, "validation_failed", Some("cursor"))),
            ("/v1/agents?created_after=yesterday", (422, "validation_failed", Some("created_after"))),
            ("/v1/agents?lmit=1", (422, "validation_failed", Some("lmit"))),
            ("/v1/agents?limit=1&limit=2", (422, "validation_failed", Some("limit"))),
            ("/v1/sessions?status=sleeping", (422, "validation_failed", Some("status"))),
            ("/v1/sessions?campaign_id=x", (422, "validation_failed", Some("campaign_id"))),
            ("/v1/events?type=session.end", (422, "validation_failed", Some("type"))),
            ("/v1/agents/ann", (404, "not_found", None)),
            ("/v1/agents/00000000-0000-7000-8000-000000000000", (404, "not_found", None)),
            ("/v1/nothing", (404, "not_found", None)),
            ("/v1/agents/", (404, "not_found", None)),
            ("/nothing", (404, "not_found", None)),
        ];
        for (path, expected) in table {
            let refused = tenant.api.get(path).await;
            assert_eq!(refused.error(), expected, "{path}");
            assert!(refused.headers.contains_key("x-request-id"), "{path}");
        }
        let wrong_method = tenant.api.send(tenant.api.request(Method::PUT, "/v1/agents")).await;
        assert_eq!(wrong_method.error(), (405, "method_not_allowed", None));
        assert_eq!(wrong_method.headers["allow"], "POST, GET");
    }

    async fn lists_are_read_in_pages(world: &mut World) {
        let tenant = world.tenant().await;
        for n in 0..7 {
            tenant.api.post("/v1/campaigns", json!({ "name": format!("{n}") })).await.ok();
        }
        let read = async |order: &str| {
            let (mut names, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = tenant.api.get(&format!("/v1/campaigns?limit=3&order={order}{cursor}")).await.ok();
                names.extend(page["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()));
                assert_eq!(page["has_more"].as_bool().unwrap(), page["next_cursor"].is_string());
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return names.concat(),
                }
            }
        };
        assert_eq!(read("asc").await, "0123456");
        assert_eq!(read("desc").await, "6543210");
    }

    async fn a_command_in_the_wrong_state_says_what_to_do(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let draft = tenant.api.post("/v1/campaigns", json!({ "name": "x", "agent_id": agent })).await.ok();
        let path = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        for (action, hint) in [("start", "no contacts"), ("pause", "not been started"), ("resume", "use start")] {
            let refused = tenant.api.post(&format!("{path}/{action}"), json!({})).await;
            assert_eq!(refused.error(), (409, "invalid_state", None), "{action}");
            assert!(refused.body["error"]["message"].as_str().unwrap().contains(hint), "{}", refused.body);
        }
        let without_agent = tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok();
        let other = format!("/v1/campaigns/{}", without_agent["id"].as_str().unwrap());
        tenant.api.post(&format!("{other}/contacts"), json!({ "contacts": [{ "phone_number": "+15002340000" }] })).await.ok();
        assert_eq!(tenant.api.post(&format!("{other}/start"), json!({})).await.error(), (409, "invalid_state", None));
        tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
        world.settle().await;
        assert_eq!(tenant.campaign(draft["id"].as_str().unwrap()).await["status"], "completed");
        assert_eq!(tenant.api.post(&format!("{path}/cancel"), json!({})).await.error().0, 409);
        let late = tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": [{ "phone_number": "+15002340000" }] })).await;
        assert_eq!(late.error(), (409, "invalid_state", None));
        assert_eq!(tenant.api.post(&format!("{path}/start"), json!({ "now": true })).await.error(), (422, "validation_failed", Some("now")));
    }
}
