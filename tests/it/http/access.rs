//! API keys and scopes. Source: specification, "Authentication".
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use actors::leases::Of;
use entities::values::{Env, Moment, Scope, Scopes};
use reqwest::Method;
use serde_json::json;

on_both! {
    async fn a_key_is_matched_with_bearer_in_any_case_and_with_nothing_else(world: &mut World) {
        let tenant = world.tenant().await;
        let me = async |header: &str| {
            let request = tenant.api.client.get(format!("{}/v1/me", world.url)).header("Authorization", header);
            tenant.api.send(request).await
        };
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let answer = me(&format!("{scheme} {}", tenant.api.key)).await.ok();
            assert_eq!((answer["tenant"]["slug"].as_str(), answer["env"].as_str()), (Some(&*tenant.slug), Some("test")));
            assert_eq!(answer["scopes"].as_array().unwrap().len(), 21);
            assert_eq!(answer["key"]["prefix"], tenant.api.key[..12]);
            assert!(answer["key"].get("plaintext").is_none());
        }
        let unknown = format!("Bearer vk_test_{}", "x".repeat(43));
        let almost = format!("Bearer {}x", &tenant.api.key[..tenant.api.key.len() - 1]);
        for header in ["", "Bearer", "Bearer ", &unknown, &almost, &tenant.api.key, &format!("Basic {}", tenant.api.key)] {
            let refused = me(header).await;
            assert_eq!(refused.error(), (401, "unauthenticated", None), "{header}");
            assert_eq!(refused.headers["www-authenticate"], "Bearer");
            assert_eq!(refused.headers["x-request-id"].to_str().unwrap(), refused.body["error"]["request_id"]);
        }
    }

    async fn two_authorization_headers_are_refused_in_any_order(world: &mut World) {
        let tenant = world.tenant().await;
        let good = format!("Bearer {}", tenant.api.key);
        for (first, second) in [(&*good, "Bearer x"), ("Bearer x", &*good), (&*good, &*good)] {
            let request = tenant.api.client.get(format!("{}/v1/me", world.url));
            let answer = tenant.api.send(request.header("Authorization", first).header("Authorization", second)).await;
            assert_eq!(answer.error(), (400, "invalid_request", None), "{first} {second}");
        }
    }

    async fn a_revoked_or_expired_key_is_refused_at_its_next_request(world: &mut World) {
        let tenant = world.tenant().await;
        let deps = world.deps();
        let now = deps.clock.now();
        let key = entities::api_key::by_hash(&deps.db.read, &runtime::keyring::sha256_hex(tenant.api.key.as_bytes())).await.unwrap().unwrap();
        tenant.api.get("/v1/me").await.ok();
        deps.writer.run(Of::Anybody, move |db| Box::pin(async move {
            entities::api_key::revoke(db, key.tenant_id, key.id, now).await?;
            Ok(((), rules::commit::Commit::default()))
        })).await.unwrap();
        assert_eq!(tenant.api.get("/v1/me").await.error(), (401, "unauthenticated", None));

        let mut commit = rules::commit::Commit::default();
        let asked = callboard::access::NewKey { name: entities::values::Text::parse("x").unwrap(), env: Env::Test, scopes: Scopes::all(), limits: Default::default(), expires_at: Some(now.plus_seconds(60)) };
        let (row, plaintext) = callboard::access::new_key(deps.ids.next(), tenant.id, asked, now);
        commit.changes.api_keys.push(row);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        let expiring = crate::world::Api { key: plaintext.to_string(), ..tenant.api.clone() };
        expiring.get("/v1/me").await.ok();
        world.advance(seconds(60)).await;
        assert_eq!(expiring.get("/v1/me").await.error(), (401, "unauthenticated", None));
    }

    async fn last_used_at_is_visible_within_five_seconds(world: &mut World) {
        let tenant = world.tenant().await;
        assert_eq!(tenant.api.get("/v1/me").await.ok()["last_used_at"], json!(null));
        world.advance(seconds(5)).await;
        let used = tenant.api.get("/v1/me").await.ok()["last_used_at"].clone();
        assert_eq!(Moment::parse(used.as_str().unwrap()).unwrap(), Moment::parse("2027-03-02T13:00:00Z").unwrap());
    }

    async fn scopes_narrow_a_key(world: &mut World) {
        let tenant = world.tenant().await;
        let reader = world.api(tenant.id, Env::Test, Scopes::new(vec![Scope::AgentsRead]).unwrap()).await;
        reader.get("/v1/agents").await.ok();
        reader.get("/v1/me").await.ok();
        let refused = reader.post("/v1/agents", json!({ "name": "x", "prompt": "x" })).await;
        assert_eq!(refused.error(), (403, "forbidden", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("agents:write"));
        assert_eq!(tenant.api.get("/v1/agents").await.ok()["data"], json!([]));
    }

    /// 50 a second, bursts of 100; the limit is the key's, not the tenant's.
    async fn too_many_requests_are_refused_with_the_time_to_wait(world: &mut World) {
        let tenant = world.tenant().await;
        for remaining in (0..100).rev() {
            let answer = tenant.api.get("/v1/me").await;
            assert_eq!(answer.headers["ratelimit-remaining"], remaining.to_string());
            assert_eq!(answer.headers["ratelimit-limit"], "100");
        }
        let refused = tenant.api.get("/v1/me").await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert_eq!(refused.headers["retry-after"], "1");
        world.api(tenant.id, Env::Test, Scopes::all()).await.get("/v1/me").await.ok();
        world.advance(seconds(1)).await;
        for _ in 0..50 {
            tenant.api.get("/v1/me").await.ok();
        }
        assert_eq!(tenant.api.get("/v1/me").await.status.as_u16(), 429);
    }

    async fn guessing_keys_is_slowed_down(world: &mut World) {
        let tenant = world.tenant().await;
        let guess = async || {
            let request = tenant.api.client.request(Method::GET, format!("{}/v1/me", world.url)).bearer_auth(format!("vk_test_{}", "g".repeat(43)));
            tenant.api.send(request).await.status.as_u16()
        };
        for _ in 0..60 {
            assert_eq!(guess().await, 401);
        }
        assert_eq!(guess().await, 429);
        tenant.api.get("/v1/me").await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(guess().await, 401);
    }
}
