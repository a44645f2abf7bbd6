//! The API for the console's pages: the same routes, by the cookie of a member.
use super::dashboard::{Browser, PASSWORD, set_up};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::{membership, user, values::Role};
use futures_util::StreamExt;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A member of the tenant's workspace, signed in.
pub async fn member(world: &World, tenant: &Tenant, role: Role) -> Browser {
    let deps = world.deps();
    let person = user::Model {
        id: deps.ids.next(),
        email: format!("{}@{}.example.com", role.as_str(), tenant.slug),
        password_hash: "-".into(),
        created_at: deps.clock.now(),
    };
    let mut commit = rules::commit::Commit::default();
    commit.changes.users.push(person.clone());
    commit.changes.memberships.push(membership::Model {
        user_id: person.id,
        tenant_id: tenant.id,
        role,
    });
    deps.writer.commit(Of::Anybody, commit).await.unwrap();
    let token = callboard::access::sign_in(deps, &person, None).await.unwrap().unwrap();
    let mut browser = Browser::new(world);
    browser.cookie = Some(format!("callboard={token}"));
    browser
}

/// In the tests' environment.
fn at(tenant: &Tenant, path: &str) -> String {
    format!("/v1/_internal/t/{}/test{path}", tenant.slug)
}

/// With other headers than a browser's own.
fn with(
    browser: &Browser,
    request: RequestBuilder,
    headers: &[(&'static str, Option<&'static str>)],
) -> RequestBuilder {
    let mut request = request.build().unwrap();
    for (name, value) in headers {
        request.headers_mut().remove(*name);
        if let Some(value) = value {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
    }
    RequestBuilder::from_parts(browser.api.client.clone(), request)
}

/// What was asked for in the console: what, by whom, and what it was answered; newest first.
async fn asked(owner: &mut Browser, tenant: &Tenant) -> Vec<(String, String, Value)> {
    let path = format!("/v1/_internal/t/{}/audit-log", tenant.slug);
    let rows = owner.get(&path).await.ok()["data"].as_array().unwrap().clone();
    let asked = rows.into_iter().filter(|row| row["action"] == "requested");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    asked
        .map(|row| {
            (
                text(&row, "subject"),
                text(&row, "user_email"),
                row["details"]["status"].clone(),
            )
        })
        .collect()
}

on_both! {
    async fn viewers_read_admins_change_and_all_of_it_is_noted(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let mut viewer = member(world, &tenant, Role::Viewer).await;
        let mut admin = member(world, &tenant, Role::Admin).await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        let agent = json!({ "name": "Ann", "prompt": "You are Ann.", "brain": { "mode": "scripted", "replies": [] } });
        let agents = at(&tenant, "/agents");

        assert_eq!(viewer.get(&agents).await.ok()["data"], json!([]));
        assert_eq!(viewer.post(&agents, agent.clone()).await.error(), (403, "forbidden", None));
        let made = admin.post(&agents, agent.clone()).await.ok();
        assert_eq!(tenant.api.get(&format!("/v1/agents/{}", made["id"].as_str().unwrap())).await.ok(), made);
        assert_eq!(viewer.get(&agents).await.ok()["data"][0], made);
        let refused = admin.post(&agents, json!({ "name": "" })).await;
        assert_eq!(refused.error().0, 422);
        assert_eq!(refused.error(), tenant.api.post("/v1/agents", json!({ "name": "" })).await.error(), "errors are the API's own");

        // What it was answered is added behind.
        world.settle().await;
        let email = |role: &str| format!("{role}@{}.example.com", tenant.slug);
        let log = asked(&mut owner, &tenant).await;
        assert_eq!(log, [
            ("POST /v1/agents".into(), email("admin"), json!(422)),
            ("POST /v1/agents".into(), email("admin"), json!(201)),
        ]);
        assert_eq!(asked(&mut member(world, &other, Role::Owner).await, &other).await, []);
    }

    async fn nobody_reaches_further_than_its_place(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let mut admin = member(world, &tenant, Role::Admin).await;
        admin.post(&at(&tenant, "/campaigns"), json!({ "name": "x" })).await.ok();
        for (path, status) in [
            (at(&tenant, "/campaigns"), 200),
            // Another environment, workspace, or none of them.
            (format!("/v1/_internal/t/{}/live/campaigns", tenant.slug), 200),
            (at(&other, "/campaigns"), 404),
            ("/v1/_internal/t/nobody/test/campaigns".into(), 404),
            (format!("/v1/_internal/t/{}/prod/campaigns", tenant.slug), 404),
            // What is there for keys, for strangers, and for the dashboard itself.
            (at(&tenant, "/me"), 404),
            (at(&tenant, "/_internal/me"), 404),
            (at(&tenant, "/_internal/t/x/test/campaigns"), 404),
            (at(&tenant, "/nothing"), 404),
            (at(&tenant, "/"), 404),
        ] {
            let answer = admin.get(&path).await;
            assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.body);
            if status == 200 {
                let names = answer.body["data"].as_array().unwrap().len();
                assert_eq!(names, usize::from(path.contains("/test/")), "{path}");
            }
        }
        // A key is of no use there, nor is a cookie elsewhere.
        assert_eq!(tenant.api.get(&at(&tenant, "/campaigns")).await.error().0, 401);
        assert_eq!(admin.get("/v1/campaigns").await.error().0, 401);
        admin.cookie = None;
        assert_eq!(admin.get(&at(&tenant, "/campaigns")).await.error(), (401, "unauthenticated", None));
        assert_eq!(admin.send(admin.request(Method::PUT, &at(&tenant, "/campaigns"))).await.error().0, 405);
    }

    /// A form of another site can send text and files without being asked, but not say that it is ours.
    async fn other_sites_change_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let mut admin = member(world, &tenant, Role::Admin).await;
        let path = at(&tenant, "/dnc/import");
        let list = |admin: &Browser| admin.request(Method::POST, &path).header("Content-Type", "text/csv").body("phone_number\n+15002340000\n");
        for headers in [
            &[("sec-fetch-site", Some("cross-site"))][..],
            &[("sec-fetch-site", Some("same-site"))],
            &[("sec-fetch-site", None)],
            &[("sec-fetch-site", None), ("origin", Some("https://evil.example"))],
            &[("sec-fetch-site", None), ("origin", Some("null"))],
        ] {
            let refused = admin.send(with(&admin, list(&admin), headers)).await;
            assert_eq!(refused.error(), (403, "forbidden", None), "{headers:?}");
        }
        assert_eq!(tenant.api.get("/v1/dnc").await.ok()["data"], json!([]));
        assert_eq!(admin.send(list(&admin)).await.status, 202);
    }

    async fn a_new_secret_asks_for_the_password(world: &mut World) {
        let (mut owner, _) = set_up(world).await;
        let endpoints = "/v1/_internal/t/acme/test/webhook_endpoints";
        let endpoint = owner.post(endpoints, json!({ "url": "https://example.com/hook", "event_types": ["*"] })).await.ok();
        let rotate = format!("{endpoints}/{}/rotate_secret", endpoint["id"].as_str().unwrap());
        world.advance(minutes(11)).await;
        // What shows one, too.
        for (route, body) in [
            ("webhook_endpoints", json!({ "url": "https://example.com/hook", "event_types": ["*"] })),
            ("functions", json!({ "name": "f", "url": "https://example.com/f" })),
            ("sip_trunks", json!({ "name": "t", "host": "sip.example.com" })),
        ] {
            let path = format!("/v1/_internal/t/acme/test/{route}");
            assert_eq!(owner.post(&path, body).await.error(), (403, "forbidden", Some("password")), "{route}");
        }
        let trunk = format!("/v1/_internal/t/acme/test/sip_trunks/{}", uuid::Uuid::nil());
        assert_eq!(owner.send(owner.request(Method::PATCH, &trunk).json(&json!({ "password": "another" }))).await.error(), (403, "forbidden", Some("password")));
        // However it is spelled.
        for path in [rotate.clone(), rotate.replace("rotate_", "rotate%5F"), rotate.replace("rotate_secret", "revoke%5fprevious_secret")] {
            assert_eq!(owner.post(&path, json!({})).await.error(), (403, "forbidden", Some("password")), "{path}");
        }
        owner.post("/v1/_internal/reauthenticate", json!({ "password": PASSWORD })).await.ok();
        let rotated = owner.post(&rotate, json!({})).await.ok();
        assert_ne!(rotated["secret"], endpoint["secret"]);
    }

    async fn it_is_noted_who_hears_a_recording(world: &mut World) {
        let tenant = world.tenant().await;
        let (mut viewer, mut owner) = (member(world, &tenant, Role::Viewer).await, member(world, &tenant, Role::Owner).await);
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": "Hello.", "recording": { "enabled": true },
            "brain": { "mode": "scripted", "replies": [] } });
        let agent = tenant.api.post("/v1/agents", agent).await.ok();
        tenant.api.post("/v1/sessions", json!({ "to_number": "+15002345600", "agent_id": agent["id"] })).await.ok();
        world.advance(minutes(3)).await;
        let recording = viewer.get(&at(&tenant, "/recordings")).await.ok()["data"][0].clone();
        let path = format!("/recordings/{}", recording["id"].as_str().unwrap());
        let seen = viewer.get(&at(&tenant, &path)).await.ok();
        assert_eq!(seen.get("download_url"), None, "a link would tell nobody who follows it");
        for end in ["/audio", "/%61udio"] {
            let heard = viewer.request(Method::GET, &at(&tenant, &format!("{path}{end}"))).send().await.unwrap();
            assert_eq!((heard.status().as_u16(), &heard.headers()["content-type"]), (200, &"audio/wav".parse().unwrap()));
        }
        let log = asked(&mut owner, &tenant).await;
        let heard = |end: &str| (format!("GET /v1{path}{end}"), format!("viewer@{}.example.com", tenant.slug), json!(200));
        assert_eq!(log, [heard("/%61udio"), heard("/audio")]);
    }

    async fn a_repeat_is_answered_as_the_first_was(world: &mut World) {
        let tenant = world.tenant().await;
        let mut admin = member(world, &tenant, Role::Admin).await;
        let campaign = |admin: &Browser| admin.request(Method::POST, &at(&tenant, "/campaigns")).header("Idempotency-Key", "one").json(&json!({ "name": "x" }));
        let first = admin.send(campaign(&admin)).await.ok();
        assert_eq!(admin.send(campaign(&admin)).await.ok(), first);
        let twice = campaign(&admin).header("Idempotency-Key", "two");
        assert_eq!(admin.send(twice).await.error(), (422, "validation_failed", Some("Idempotency-Key")));
        assert_eq!(tenant.api.get("/v1/campaigns").await.ok()["data"].as_array().unwrap().len(), 1);
    }

    async fn events_flow_until_the_member_is_out(world: &mut World) {
        let tenant = world.tenant().await;
        let admin = member(world, &tenant, Role::Admin).await;
        let mut viewer = member(world, &tenant, Role::Viewer).await;
        let path = at(&tenant, "/events/stream");
        let mut streams = Vec::new();
        for browser in [&admin, &viewer] {
            let response = browser.request(Method::GET, &path).send().await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            let mut body = response.bytes_stream();
            assert!(body.next().await.unwrap().unwrap().starts_with(b": connected"));
            streams.push(body);
        }
        tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok();
        for stream in &mut streams {
            let event = stream.next().await.unwrap().unwrap();
            assert!(std::str::from_utf8(&event).unwrap().contains("campaign.created"));
        }
        assert_eq!(viewer.post("/v1/_internal/logout", json!({})).await.status, 204);
        world.advance(seconds(3)).await;
        assert!(streams[1].next().await.is_none_or(|chunk| chunk.is_err()), "it ends with the sign-in");
        tenant.api.post("/v1/campaigns", json!({ "name": "y" })).await.ok();
        let event = streams[0].next().await.unwrap().unwrap();
        assert!(std::str::from_utf8(&event).unwrap().contains("campaign.created"), "the others go on");
        let deps = world.deps();
        let address = format!("admin@{}.example.com", tenant.slug);
        let (tenant, user) = (tenant.id, user::by_email(&deps.db.read, &address).await.unwrap().unwrap().id);
        deps.writer.run(Of::Anybody, move |db| Box::pin(async move {
            membership::remove(db, tenant, user).await?;
            Ok(((), rules::commit::Commit::default()))
        })).await.unwrap();
        world.advance(seconds(3)).await;
        assert!(streams[0].next().await.is_none_or(|chunk| chunk.is_err()), "it ends with the membership");
    }
}
