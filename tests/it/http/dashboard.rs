//! Signing up, in and out; keys managed by members.
use crate::{
    on_both,
    world::{Answer, Api, World, client, minutes},
};
use actors::leases::Of;
use entities::values::{Env, Role, Scopes};
use reqwest::{Method, header::SET_COOKIE};
use serde_json::{Value, json};

/// A browser: keeps its cookie, and says where its requests come from.
pub(super) struct Browser {
    pub(super) api: Api,
    pub(super) cookie: Option<String>,
}

impl Browser {
    pub(super) fn new(world: &World) -> Self {
        Browser {
            api: Api {
                client: client(),
                url: world.url.clone(),
                key: String::new(),
            },
            cookie: None,
        }
    }
    pub(super) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self
            .api
            .client
            .request(method, format!("{}{path}", self.api.url))
            .header("Sec-Fetch-Site", "same-origin");
        if let Some(cookie) = &self.cookie {
            request = request.header("Cookie", cookie);
        }
        request
    }
    pub(super) async fn send(&mut self, request: reqwest::RequestBuilder) -> Answer {
        let answer = self.api.send(request).await;
        if let Some(cookie) = answer.headers.get(SET_COOKIE) {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        answer
    }
    pub(super) async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }
    pub(super) async fn get(&mut self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }
}

pub(super) const PASSWORD: &str = "correct horse battery";

pub(super) async fn set_up(world: &World) -> (Browser, Answer) {
    let token = callboard::access::set_up_token(&world.deps().db)
        .await
        .unwrap()
        .unwrap();
    let mut browser = Browser::new(world);
    let body =
        json!({ "token": token, "slug": "acme", "name": "Acme", "email": "Ann@Example.com", "password": PASSWORD });
    let answer = browser.post("/v1/_internal/signup", body).await;
    (browser, answer)
}

on_both! {
    async fn the_set_up_link_makes_the_first_user_once(world: &mut World) {
        let old = callboard::access::set_up_token(&world.deps().db).await.unwrap().unwrap();
        let mut browser = Browser::new(world);
        let body = |token: Value, password: &str, slug: &str| json!({ "token": token, "slug": slug, "name": "Acme", "email": "ann@example.com", "password": password });
        assert_eq!(browser.post("/v1/_internal/signup", body(json!(null), PASSWORD, "acme")).await.error(), (403, "forbidden", None));
        assert_eq!(browser.post("/v1/_internal/signup", body(json!("guess"), PASSWORD, "acme")).await.error(), (403, "forbidden", None));
        assert_eq!(browser.post("/v1/_internal/signup", body(json!(old), "short", "acme")).await.error(), (422, "validation_failed", Some("password")));
        assert_eq!(browser.post("/v1/_internal/signup", body(json!(old), PASSWORD, "A c")).await.error(), (422, "validation_failed", Some("slug")));
        let (mut browser, answer) = set_up(world).await;
        assert_eq!(browser.post("/v1/_internal/signup", body(json!(old), PASSWORD, "acme")).await.error(), (403, "forbidden", None), "a newer link voids the older");
        let cookie = answer.headers[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/"), "{cookie}");
        let me = answer.ok();
        assert_eq!(me["user"]["email"], "ann@example.com");
        assert_eq!(me["workspaces"], json!([{ "slug": "acme", "name": "Acme", "role": "owner" }]));
        assert_eq!(browser.get("/v1/_internal/me").await.ok(), me);
        assert!(callboard::access::set_up_token(&world.deps().db).await.unwrap().is_none());
    }

    async fn signing_in_and_out(world: &mut World) {
        let (mut first, _) = set_up(world).await;
        let mut browser = Browser::new(world);
        for (email, password) in [("ann@example.com", "wrong password!"), ("bob@example.com", PASSWORD)] {
            let refused = browser.post("/v1/_internal/login", json!({ "email": email, "password": password })).await;
            assert_eq!(refused.error(), (401, "unauthenticated", None));
            assert_eq!(refused.body["error"]["message"], "e-mail or password is wrong", "tells nobody which users exist");
        }
        browser.post("/v1/_internal/login", json!({ "email": " ANN@example.com", "password": PASSWORD })).await.ok();
        browser.get("/v1/_internal/me").await.ok();
        let cookie = browser.cookie.clone();
        assert_eq!(browser.post("/v1/_internal/logout", json!({})).await.status.as_u16(), 204);
        browser.cookie = cookie;
        assert_eq!(browser.get("/v1/_internal/me").await.error().0, 401, "the session is gone, not only the cookie");
        // Idle for 12 hours, or 7 days old: over.
        browser.post("/v1/_internal/login", json!({ "email": "ann@example.com", "password": PASSWORD })).await.ok();
        for _ in 0..15 {
            world.clock.set(world.clock.now().plus_seconds(11 * 3600));
            browser.get("/v1/_internal/me").await.ok();
        }
        assert_eq!(first.get("/v1/_internal/me").await.error().0, 401, "idle");
        world.clock.set(world.clock.now().plus_seconds(11 * 3600));
        assert_eq!(browser.get("/v1/_internal/me").await.error().0, 401, "too old");
    }

    async fn another_sites_requests_are_refused(world: &mut World) {
        let (mut browser, _) = set_up(world).await;
        let keys = "/v1/_internal/t/acme/api-keys";
        let forged = browser.request(Method::POST, keys).header("Sec-Fetch-Site", "cross-site").json(&json!({ "name": "x" }));
        // reqwest sends both values: any other than same-origin counts.
        let forged = forged.build().map(|mut request| {
            request.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
            reqwest::RequestBuilder::from_parts(browser.api.client.clone(), request)
        }).unwrap();
        assert_eq!(browser.send(forged).await.error(), (403, "forbidden", None));
        let mut by_origin = browser.request(Method::POST, keys).json(&json!({ "name": "x" })).build().unwrap();
        by_origin.headers_mut().remove("sec-fetch-site");
        by_origin.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
        let by_origin = reqwest::RequestBuilder::from_parts(browser.api.client.clone(), by_origin);
        assert_eq!(browser.send(by_origin).await.error(), (403, "forbidden", None));
        let form = browser.request(Method::POST, keys).header("Content-Type", "text/plain").body(r#"{"name":"x"}"#);
        assert_eq!(browser.send(form).await.error(), (415, "unsupported_media_type", None));
        assert_eq!(browser.get(keys).await.ok()["data"], json!([]));
    }

    async fn keys_are_made_listed_and_revoked(world: &mut World) {
        let (mut browser, _) = set_up(world).await;
        let keys = "/v1/_internal/t/acme/api-keys";
        let key = browser.post(keys, json!({ "name": "first" })).await.ok();
        let plaintext = key["plaintext"].as_str().unwrap();
        assert!(plaintext.starts_with("vk_live_") && plaintext.len() == 51, "default env live, 256 bits");
        assert_eq!(key["prefix"], plaintext[..12]);
        assert_eq!((key["scopes"].as_array().unwrap().len(), key["expires_at"].is_null()), (21, true));
        let narrow = browser.post(keys, json!({ "name": "second", "env": "test", "scopes": ["sessions:write"], "expires_at": "2027-03-03T00:00:00+01:00" })).await.ok();
        assert_eq!((narrow["scopes"].clone(), narrow["expires_at"].as_str()), (json!(["sessions:write"]), Some("2027-03-02T23:00:00.000Z")));
        for (body, param) in [
            (json!({}), "name"), (json!({ "name": "x", "env": "prod" }), "env"), (json!({ "name": "x", "scopes": ["calls:write"] }), "scopes[0]"),
            (json!({ "name": "x", "scopes": [] }), "scopes"), (json!({ "name": "x", "expires_at": "2020-01-01T00:00:00Z" }), "expires_at"),
        ] {
            assert_eq!(browser.post(keys, body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        let listed = browser.get(keys).await.ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 2);
        assert!(!listed.to_string().contains(plaintext), "shown once");
        let api = Api { key: plaintext.to_owned(), ..browser.api.clone() };
        api.get("/v1/me").await.ok();
        let one = format!("{keys}/{}", key["id"].as_str().unwrap());
        assert_eq!(browser.get(&one).await.ok()["name"], "first");
        assert_eq!(browser.send(browser.request(Method::DELETE, &one)).await.status.as_u16(), 204);
        assert_eq!(api.get("/v1/me").await.error().0, 401);
        assert!(browser.get(&one).await.ok()["revoked_at"].is_string());
        assert_eq!(browser.get("/v1/_internal/t/other/api-keys").await.error(), (404, "not_found", None));
        // A key opens no dashboard.
        let with_key = api.get(keys).await;
        assert_eq!(with_key.error().0, 401);
    }

    async fn viewers_read_and_change_nothing(world: &mut World) {
        let (_, owner) = set_up(world).await;
        drop(owner);
        let deps = world.deps();
        let tenant = entities::tenant::by_slug(&deps.db.read, "acme").await.unwrap();
        let viewer = entities::user::Model {
            id: deps.ids.next(),
            email: "viewer@example.com".into(),
            password_hash: callboard::access::hash_password(PASSWORD).unwrap(),
            created_at: deps.clock.now(),
        };
        let mut commit = rules::commit::Commit::default();
        commit.changes.memberships.push(entities::membership::Model { user_id: viewer.id, tenant_id: tenant.id, role: Role::Viewer });
        commit.changes.users.push(viewer);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        let mut browser = Browser::new(world);
        browser.post("/v1/_internal/login", json!({ "email": "viewer@example.com", "password": PASSWORD })).await.ok();
        browser.get("/v1/_internal/t/acme/api-keys").await.ok();
        assert_eq!(browser.post("/v1/_internal/t/acme/api-keys", json!({ "name": "x" })).await.error(), (403, "forbidden", None));
        let api = world.api(tenant.id, Env::Test, Scopes::all()).await;
        world.advance(minutes(1)).await;
        api.get("/v1/me").await.ok();
    }

    async fn pages_are_served_with_a_strict_policy(world: &mut World) {
        let mut browser = Browser::new(world);
        for page in ["/", "/login", "/setup", "/docs"] {
            let answer = browser.get(page).await;
            assert_eq!(answer.status.as_u16(), 200);
            let policy = answer.headers["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
            let html = answer.body.as_str().unwrap().to_owned();
            assert!(!html.contains(" style=") && !html.contains("<script>") && !html.contains(" onclick="), "{page} has inline parts");
            // What a script of the page asks for.
            assert_eq!(browser.get("/assets/account.js").await.status.as_u16(), 200);
            for asset in html.split("\"/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                assert_eq!(browser.get(&format!("/assets/{asset}")).await.status.as_u16(), 200, "{asset}");
            }
        }
        for (path, kind) in [("/healthz", "ok"), ("/readyz", "ready")] {
            assert_eq!(browser.get(path).await.ok()["status"], kind);
        }
        assert!(browser.get("/metrics").await.body.as_str().unwrap().contains("callboard_deliveries_waiting"));
        assert_eq!(browser.get("/openapi.json").await.ok()["openapi"], "3.1.0");
    }
}
