//! Server-sent events.
use crate::{
    on_both,
    world::{Tenant, World},
};
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

on_both! {
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
