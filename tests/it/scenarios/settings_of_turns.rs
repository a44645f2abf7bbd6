//! When a turn is over and what interrupts are settings of an agent, kept in its versions.
use crate::{on_both, world::World};
use serde_json::{Value, json};

fn turns(agent: &Value) -> Value {
    json!([agent["turn_detection"], agent["interruption"]])
}

on_both! {
    async fn they_have_defaults_take_a_part_and_are_kept(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await.ok();
        let detection = json!({ "mode": "vad", "silence_ms": 500, "unfinished_silence_ms": 1400, "eager": true });
        let interruption = json!({ "min_duration_ms": 200, "min_words": 0, "sensitivity": "medium", "resume": true });
        assert_eq!(turns(&agent), json!([detection, interruption]));
        let path = format!("/v1/agents/{}", agent["id"].as_str().unwrap());
        let patch = json!({ "turn_detection": { "mode": "provider", "silence_ms": 800 }, "interruption": { "sensitivity": "low" } });
        let changed = api.patch(&path, patch).await.ok();
        let expected = json!([
            { "mode": "provider", "silence_ms": 800, "unfinished_silence_ms": 1400, "eager": true },
            { "min_duration_ms": 200, "min_words": 0, "sensitivity": "low", "resume": true },
        ]);
        assert_eq!((turns(&changed), &changed["version"]), (expected.clone(), &json!(2)));
        world.restart().await;
        assert_eq!(turns(&tenant.api.get(&path).await.ok()), expected);
        let versions = tenant.api.get(&format!("{path}/versions")).await.ok();
        assert_eq!(turns(&versions["data"][1]), json!([detection, interruption]));
        let back = tenant.api.patch(&path, json!({ "turn_detection": null, "interruption": null })).await.ok();
        assert_eq!(turns(&back), json!([detection, interruption]), "null puts the defaults back");
    }
}
