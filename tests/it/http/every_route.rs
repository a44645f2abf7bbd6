//! Every route of the list: without a key, with a key that lacks its scope, and with another tenant's id.
use crate::{on_both, world::World};
use callboard::http::{
    caller::Access,
    routes::{self, Route},
};
use entities::values::{Env, Scope, Scopes};
use serde_json::json;
use std::collections::BTreeSet;

/// The route's path with ids in it.
fn path(route: &Route, id: &str, contact: &str) -> String {
    route
        .path
        .replace("{contact_id}", contact)
        .replace("{id}", id)
        .replace("{slug}", "tenant-0")
        .replace("{name}", "style.css")
}

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

on_both! {
    async fn without_a_key_nothing_but_what_is_public_opens(world: &mut World) {
        let tenant = world.tenant().await;
        for route in routes::all() {
            let request = tenant.api.client.request(route.method.as_str().parse().unwrap(), format!("{}{}", world.url, path(&route, NOBODY, NOBODY)));
            let answer = tenant.api.send(request.json(&json!({}))).await;
            let expected_closed = route.access != Access::Public;
            assert_eq!(answer.status.as_u16() == 401, expected_closed, "{} {} {}", route.method, route.path, answer.body);
            if expected_closed {
                assert_eq!(answer.error(), (401, "unauthenticated", None), "{}", route.path);
            }
            world.advance(std::time::Duration::from_secs(2)).await;
        }
    }

    /// Streams too: they would go on for nobody.
    async fn head_answers_as_get_does_without_a_body(world: &mut World) {
        let tenant = world.tenant().await;
        let told = |route: &Route, response: &reqwest::Response| {
            // These differ from one answer to the next.
            let changes = |name: &str| matches!(name, "date" | "x-request-id" | "ratelimit-remaining" | "ratelimit-reset")
                || name == "content-length" && matches!(route.path, "/metrics" | "/readyz");
            let headers = response.headers().iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            let mut headers: Vec<_> = headers.filter(|(name, _)| !changes(name)).collect();
            headers.sort();
            (response.status(), headers)
        };
        for route in routes::all().iter().filter(|route| route.method == "GET") {
            let ask = async |method| tenant.api.request(method, &path(route, NOBODY, NOBODY)).send().await.unwrap();
            let get = ask(reqwest::Method::GET).await;
            let head = ask(reqwest::Method::HEAD).await;
            assert_eq!(told(route, &head), told(route, &get), "{}", route.path);
            assert_eq!(head.bytes().await.unwrap().len(), 0, "{}", route.path);
            drop(get);
            world.advance(std::time::Duration::from_secs(2)).await;
        }
    }

    /// Refused before anything is looked up: an id that does not exist makes no difference.
    async fn without_the_scope_a_route_is_forbidden(world: &mut World) {
        let tenant = world.tenant().await;
        for route in routes::all() {
            let (Access::Needs(scope) | Access::NeedsFresh(scope) | Access::NeedsOrLink(scope)) = route.access else { continue };
            let others: Vec<Scope> = Scope::ALL.iter().copied().filter(|other| *other != scope).collect();
            let api = world.api(tenant.id, Env::Test, Scopes::new(others).unwrap()).await;
            let request = api.request(route.method.as_str().parse().unwrap(), &path(&route, NOBODY, NOBODY)).json(&json!({}));
            assert_eq!(api.send(request).await.error(), (403, "forbidden", None), "{} {}", route.method, route.path);
        }
    }

    async fn another_tenants_or_envs_objects_do_not_exist(world: &mut World) {
        let (owner, stranger) = (world.tenant().await, world.tenant().await);
        let agent = owner.agent().await;
        let campaign = owner.run_campaign(&["+15002340001"], json!({})).await;
        let contact = owner.api.get(&format!("/v1/campaigns/{campaign}/contacts")).await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        let session = owner.api.post("/v1/sessions", json!({ "to_number": "+15002340001", "agent_id": agent })).await.ok();
        let receiver = crate::world::Receiver::start();
        let endpoint = owner.webhook(&receiver).await;
        let event = owner.events().await[0]["id"].as_str().unwrap().to_owned();
        let entry = owner.api.post("/v1/dnc", json!({ "phone_number": "+15002349999" })).await.ok()["id"].as_str().unwrap().to_owned();
        let agreed = json!({ "phone_number": "+15002340001", "seller": "Acme", "channels": ["phone"], "purposes": ["service"], "tier": "express", "method": "desk", "given_at": "2027-01-02T13:00:00Z" });
        let consent = owner.api.post("/v1/consents", agreed).await.ok()["id"].as_str().unwrap().to_owned();
        let import = owner.api.upload("/v1/dnc/import", "phone_number\n+15002349998\n").await.ok()["id"].as_str().unwrap().to_owned();
        let export = owner.api.post("/v1/compliance/exports", json!({})).await.ok()["id"].as_str().unwrap().to_owned();
        let schema = json!({ "type": "object" });
        let function = json!({ "name": "look_up", "description": "Looks up.", "parameters": schema, "url": "http://127.0.0.1:9/" });
        let function = owner.api.post("/v1/functions", function).await.ok()["id"].as_str().unwrap().to_owned();
        let number = owner.api.post("/v1/numbers", json!({ "phone_number": "+12025550123" })).await.ok()["id"].as_str().unwrap().to_owned();
        let trunk = owner.api.post("/v1/sip_trunks", json!({ "name": "x", "host": "sip.example.com" })).await.ok()["id"].as_str().unwrap().to_owned();
        let verified = owner.api.post("/v1/verified_numbers", json!({ "phone_number": "+12025550140" })).await.ok()["id"].as_str().unwrap().to_owned();
        let recorded = json!({ "to_number": "+15002340000", "agent_id": agent, "recording": { "enabled": true } });
        owner.api.post("/v1/sessions", recorded).await.ok();
        world.advance(crate::world::minutes(1)).await;
        let recording = owner.api.get("/v1/recordings").await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        let sms = json!({ "to_number": "+15002340000", "body": "Hello.", "scheduled_at": "2027-03-03T13:00:00Z" });
        let sms = owner.api.post("/v1/sms_messages", sms).await.ok()["id"].as_str().unwrap().to_owned();
        let email = json!({ "to": "ann@example.com", "subject": "Hello", "text": "Hello.", "scheduled_at": "2027-03-03T13:00:00Z" });
        let email = owner.api.post("/v1/email_messages", email).await.ok()["id"].as_str().unwrap().to_owned();
        let room = owner.api.post("/v1/rooms", json!({ "agent_id": agent })).await.ok()["id"].as_str().unwrap().to_owned();
        let topup = owner.api.post("/v1/credits/topups", json!({ "amount_cents": 500 })).await.ok()["id"].as_str().unwrap().to_owned();
        let clone = reqwest::multipart::Form::new().text("name", "Ann").text("consent_attested", "true");
        let clone = owner.api.send(owner.api.request(reqwest::Method::POST, "/v1/voices/clones").multipart(clone)).await.ok()["id"].as_str().unwrap().to_owned();
        let erasure = owner.api.delete("/v1/people?email=nobody@example.com").await.ok()["id"].as_str().unwrap().to_owned();
        world.settle().await;
        let live = world.api(owner.id, Env::Live, Scopes::all()).await;
        let mut walked = BTreeSet::new();
        for route in routes::all().iter().filter(|route| matches!(route.access, Access::Needs(_) | Access::NeedsFresh(_) | Access::NeedsOrLink(_)) && route.path.contains("{id}")) {
            let kind = route.path.split('/').nth(2).unwrap();
            let id = match kind {
                "agents" => &agent,
                "contacts" => &contact,
                "campaigns" => &campaign,
                "sessions" => session["id"].as_str().unwrap(),
                "webhook_endpoints" => &endpoint,
                "events" => &event,
                "dnc" => &entry,
                "consents" => &consent,
                "imports" => &import,
                "functions" => &function,
                "numbers" => &number,
                "sip_trunks" => &trunk,
                "verified_numbers" => &verified,
                "recordings" => &recording,
                "sms_messages" => &sms,
                "email_messages" => &email,
                "credits" => &topup,
                "voices" => &clone,
                "rooms" => &room,
                "people" => &erasure,
                // Of attempts the call's.
                "compliance" if route.path.contains("/exports/") => &export,
                "compliance" => session["id"].as_str().unwrap(),
                other => panic!("what is the id of {other}?"),
            };
            walked.insert(kind);
            // Within the limit of each key.
            world.advance(std::time::Duration::from_secs(2)).await;
            let body = match route.path.rsplit('/').next().unwrap() {
                "contacts" => json!({ "contacts": [{ "phone_number": "1" }] }),
                "recover" => json!({ "since": "2020-01-01T00:00:00Z" }),
                "{contact_id}" if route.method == "PATCH" => json!({ "first_name": "Mallory" }),
                "confirm" => json!({ "code": "000000" }),
                "say" => json!({ "text": "Hello." }),
                "dtmf" => json!({ "digits": "1" }),
                "transfer" => json!({ "transfer_number": "+15002000000" }),
                "preview" => json!({ "text": "Hello." }),
                "simulate" => json!({ "turns": ["Hello."] }),
                _ => json!({}),
            };
            for api in [&stranger.api, &live] {
                // Configuration belongs to both envs of its tenant.
                if ["agents", "functions", "numbers", "sip_trunks", "verified_numbers", "voices"].contains(&kind) && std::ptr::eq(api, &live) {
                    continue;
                }
                let method = || route.method.as_str().parse().unwrap();
                let ask = |path: &str| {
                    let request = api.request(method(), path);
                    if path.ends_with("/import") {
                        request.header("content-type", "text/csv").body("phone_number\n+15002340000\n")
                    } else {
                        request.json(&body)
                    }
                };
                let mine = api.send(ask(&path(route, id, &contact))).await;
                let nobodys = api.send(ask(&path(route, NOBODY, NOBODY))).await;
                assert_eq!(mine.error(), (404, "not_found", None), "{} {}", route.method, route.path);
                assert_eq!(mine.body["error"]["message"], nobodys.body["error"]["message"], "no difference from an id that does not exist");
            }
        }
        assert_eq!(walked.len(), 21);
        world.advance(crate::world::minutes(1)).await;
        assert_eq!(owner.campaign(&campaign).await["status"], "completed", "nothing of it was touched");
        assert_eq!(stranger.events().await.len(), 0);
    }
}

/// The list is the specification's and CONTRACT's: scopes are used, no path twice with one method.
#[test]
fn the_list_of_routes_is_consistent() {
    let mut seen = BTreeSet::new();
    for route in routes::all() {
        assert!(
            seen.insert((route.path, route.method.to_string())),
            "{} {} is listed twice",
            route.method,
            route.path
        );
        let writes = route.method != "GET";
        if let Access::Needs(scope) | Access::NeedsFresh(scope) = route.access {
            let action = scope.as_str().split_once(':').unwrap().1;
            // The messages' scopes have one action for both.
            assert!(
                action == "send" || writes == (action != "read"),
                "{} {} needs {scope}",
                route.method,
                route.path
            );
        }
    }
    let document = callboard::http::openapi::document();
    assert_eq!(document["webhooks"].as_object().unwrap().len(), 36);
    // Types of one name in several files stay apart.
    for (path, field) in [
        ("/v1/agents/{id}", "prompt"),
        ("/v1/functions/{id}", "parameters"),
        ("/v1/numbers/{id}", "inbound"),
        ("/v1/sip_trunks/{id}", "transport"),
        ("/v1/webhook_endpoints/{id}", "event_types"),
        ("/v1/concurrency", "inbound_reserve"),
        ("/v1/sessions/{id}", "disposition_code"),
    ] {
        let name = schema_name(&document["paths"][path]["patch"]);
        let properties = &document["components"]["schemas"][name]["properties"];
        assert!(properties.get(field).is_some(), "{path} has no {field}: {properties}");
    }
    // Clients are made from it: what they call things is theirs for ever.
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|item| item.as_object().unwrap().values());
    let ids: Vec<&str> = operations.map(|it| it["operationId"].as_str().unwrap()).collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for name in [
        "createAgent",
        "listCampaignContacts",
        "rotateWebhookEndpointSecret",
        "getTopup",
    ] {
        assert!(unique.contains(name), "{name}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in [
        "Agent",
        "AgentCreate",
        "AgentUpdate",
        "AgentList",
        "CampaignList",
        "SessionStatus",
        "Recording",
    ] {
        assert_eq!(schemas[name]["title"], name);
    }
    let counted = |name: &&String| name.ends_with(|letter: char| letter.is_ascii_digit()) && *name != "E164";
    assert_eq!(
        schemas.keys().filter(counted).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
    let of_constants = schemas
        .values()
        .filter(|schema| schema["oneOf"][0].get("const").is_some());
    assert_eq!(of_constants.count(), 0);
    assert_eq!(schemas["SessionStatus"]["type"], "string");
    let label = &schemas["NumberUpdate"]["properties"]["label"];
    assert_eq!(label["type"], serde_json::json!(["string", "null"]));
    // What stands behind links that are their own proof.
    let paths = &document["paths"];
    let kind = |of: &serde_json::Value| of["content"].as_object().unwrap().keys().next().unwrap().clone();
    for (path, method, status, is) in [
        ("/r/{id}", "get", "200", "text/html"),
        ("/r/{id}", "get", "404", "text/html"),
        ("/r/{id}/whip", "post", "201", "application/sdp"),
        ("/u/{token}", "get", "200", "text/html"),
        ("/u/{token}", "post", "200", "text/html"),
    ] {
        assert_eq!(kind(&paths[path][method]["responses"][status]), is, "{method} {path}");
    }
    let join = &paths["/r/{id}/whip"]["post"];
    assert_eq!(kind(&join["requestBody"]), "application/sdp");
    let sig = join["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "sig");
    assert_eq!(sig.unwrap()["required"], true);
    assert!(paths["/r/{id}/whip/{participant_id}"]["delete"]["responses"]["204"].is_object());
    let threshold = &document["components"]["schemas"][schema_name(&paths["/v1/credits"]["patch"])];
    assert_eq!(threshold["required"], serde_json::json!(["warning_threshold_cents"]));
    assert_eq!(
        threshold["properties"]["warning_threshold_cents"]["type"],
        serde_json::json!(["integer", "null"])
    );
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"].get(name).is_some(),
            "{name} is referred to and not there"
        );
    }
}

/// The name of what an operation takes.
fn schema_name(operation: &serde_json::Value) -> &str {
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    body["$ref"].as_str().unwrap().rsplit('/').next().unwrap()
}
