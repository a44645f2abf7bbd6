//! Traces of real processes: over two nodes, and to the last span before the end.
use super::{Calls, Place, on, own_address, terminate};
use crate::world::{Backend, client, collector::Collector};
use serde_json::json;
use std::process::Child;

const TRACES: [&str; 2] = ["4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"];
const SENDER: &str = "00f067aa0ba902b7";

/// A node; answers its address, too.
fn node(place: &Place, name: &str, collector: &Collector) -> (Child, String) {
    let (bind, between, spool) = (own_address(), own_address(), format!("spool-{name}"));
    let serving = place.serve(&[
        ("CALLBOARD_BIND", &bind),
        ("CALLBOARD_NODE_BIND", &between),
        ("CALLBOARD_NODE_NAME", name),
        ("CALLBOARD_RECORDINGS_SPOOL", &spool),
        ("CALLBOARD_OTLP_ENDPOINT", &collector.url),
    ]);
    (serving, format!("http://{bind}"))
}

/// A request that another node answers is one trace with what that one does.
#[test]
fn a_request_that_is_handed_on_keeps_its_trace() {
    on(Backend::Postgres, async |place: Place| {
        let collector = Collector::start();
        let key = place.workspace();
        let mut nodes = ["a", "b"].map(|name| node(&place, name, &collector));
        let mut api = Calls::to(&place, key.clone());
        api.url = nodes[0].1.clone();
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        for ((_, url), trace) in nodes.iter().zip(TRACES) {
            let call =
                json!({ "to_number": "+15002340001", "agent_id": agent["id"], "scheduled_at": "2099-01-01T00:00:00Z" });
            let asked = client()
                .post(format!("{url}/v1/sessions"))
                .bearer_auth(&key)
                .json(&call);
            let parent = format!("00-{trace}-{SENDER}-01");
            let refused = asked.header("traceparent", parent).send().await.unwrap();
            // It is too far ahead: what counts is who has answered.
            assert_eq!(refused.status().as_u16(), 422);
        }
        let of = |trace: &str| {
            let mut spans = collector.spans();
            spans.retain(|span| span.trace_id == trace && span.name == "POST /v1/sessions");
            spans
        };
        // One of the two was asked of the node that has the workspace, the other one of the one that has not.
        collector
            .until(|_| TRACES.iter().map(|trace| of(trace).len()).sum::<usize>() == 3)
            .await;
        for trace in TRACES {
            let spans = of(trace);
            let first = spans.iter().find(|span| span.parent == SENDER).unwrap();
            if let Some(second) = spans.iter().find(|span| span.parent != SENDER) {
                assert_eq!(second.parent, first.span_id);
                assert_ne!(
                    second.resource["service.instance.id"],
                    first.resource["service.instance.id"]
                );
            }
        }
        nodes.iter_mut().for_each(|(serving, _)| terminate(serving));
    });
}

/// Nothing of what was answered before SIGTERM is missing after the end.
#[test]
fn the_last_spans_are_sent_before_the_end() {
    on(Backend::Sqlite, async |place: Place| {
        let collector = Collector::start();
        let key = place.workspace();
        let mut serving = place.serve(&[("CALLBOARD_OTLP_ENDPOINT", &collector.url)]);
        let api = Calls::to(&place, key);
        api.get("/v1/me").await;
        // The collector answers on this thread, which must not wait for the process meanwhile.
        let ended = tokio::task::spawn_blocking(move || terminate(&mut serving));
        ended.await.unwrap();
        let spans = collector.spans();
        assert!(spans.iter().any(|span| span.name == "GET /v1/me"), "{spans:#?}");
    });
}
