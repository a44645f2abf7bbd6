//! Server-sent events.
use crate::{
    on_both,
    world::{Api, Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::values::{Env, Scopes, Text};
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};

/// Reads the stream until it has brought `count` events; answers (id, event).
async fn read(
    tenant: &Tenant,
    after: Option<&str>,
    count: usize,
    meanwhile: impl AsyncFnOnce(),
) -> Vec<(String, Value)> {
    let mut request = tenant.api.request(Method::GET, "/v1/events/stream");
    if let Some(after) = after {
        request = request.header("Last-Event-ID", after);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.bytes_stream();
    let mut text = String::from_utf8(body.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(text.starts_with(": connected"));
    meanwhile().await;
    while text.matches("\ndata: ").count() < count || !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    let part = |event: &str, name: &str| {
        event
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::to_owned)
    };
    text.split("\n\n")
        .filter_map(|event| {
            Some((
                part(event, "id: ")?,
                serde_json::from_str(&part(event, "data: ")?).unwrap(),
            ))
        })
        .collect()
}

/// Reads on to the end of a stream that has begun.
async fn ends(response: reqwest::Response) -> bool {
    let mut body = response.bytes_stream();
    let whole = async { while body.next().await.is_some_and(|chunk| chunk.is_ok()) {} };
    // Well below what its heartbeat takes.
    tokio::time::timeout(std::time::Duration::from_secs(10), whole)
        .await
        .is_ok()
}

on_both! {
    async fn a_stream_ends_with_its_key(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let call = json!({ "to_number": "+15002340000", "agent_id": agent });
        let session = tenant.api.post("/v1/sessions", call).await.ok()["id"].as_str().unwrap().to_owned();
        let deps = world.deps();
        let now = deps.clock.now();
        let key = async |expires_at| {
            let asked = callboard::access::NewKey { name: Text::parse("x").unwrap(), env: Env::Test, scopes: Scopes::all(), limits: Default::default(), expires_at };
            let (row, plaintext) = callboard::access::new_key(deps.ids.next(), tenant.id, asked, now);
            let mut commit = rules::commit::Commit::default();
            commit.changes.api_keys.push(row.clone());
            deps.writer.commit(Of::Anybody, commit).await.unwrap();
            (row.id, Api { key: plaintext.to_string(), ..tenant.api.clone() })
        };
        let (revoked, first) = key(None).await;
        let (_, second) = key(Some(now.plus_seconds(1))).await;
        let open = async |api: &Api, path: &str| api.request(Method::GET, path).send().await.unwrap();
        let of_a_call = format!("/v1/sessions/{session}/stream");
        let streams = [open(&first, "/v1/events/stream").await, open(&first, &of_a_call).await, open(&second, "/v1/events/stream").await];
        let kept = open(&tenant.api, "/v1/events/stream").await;
        deps.writer.run(Of::Anybody, move |db| Box::pin(async move {
            entities::api_key::revoke(db, tenant.id, revoked, now).await?;
            Ok(((), rules::commit::Commit::default()))
        })).await.unwrap();
        world.advance(seconds(3)).await;
        for stream in streams {
            assert!(ends(stream).await);
        }
        let mut body = kept.bytes_stream();
        assert!(body.next().await.unwrap().unwrap().starts_with(b": connected"));
        tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok();
        assert!(body.next().await.unwrap().is_ok(), "the others go on");
        drop(body);
        world.advance(minutes(2)).await;
    }

    async fn events_are_streamed_live_and_from_where_a_client_left_off(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let create = async |tenant: &Tenant, name: &str| {
            tenant.api.post("/v1/campaigns", json!({ "name": name })).await.ok();
        };
        create(&tenant, "before").await;
        let live = read(&tenant, None, 2, async || {
            create(&other, "somebody else's").await;
            create(&tenant, "one").await;
            create(&tenant, "two").await;
        }).await;
        let names = |events: &[(String, Value)]| events.iter().map(|(_, event)| event["data"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&live), ["one", "two"]);
        assert_eq!(live[0].0, live[0].1["id"]);
        create(&tenant, "three").await;
        let resumed = read(&tenant, Some(&live[0].0), 3, async || create(&tenant, "four").await).await;
        assert_eq!(names(&resumed), ["two", "three", "four"]);
        let refused = tenant.api.get("/v1/events/stream?after=x").await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("after")));
    }
}
