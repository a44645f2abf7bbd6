//! `serve --paused`, `callboard dispatch` and `callboard clock` beside a running `serve`.
use super::{Calls, Place, json_of, on, stderr, terminate};
use crate::world::Backend;
use serde_json::{Value, json};

fn paused_and_resumed(backend: Backend) {
    on(backend, async |place: Place| {
        let key = place.workspace();
        let run = |arguments: &[&str]| {
            let arguments: Vec<&str> = ["--json"].iter().chain(arguments).copied().collect();
            let output = place.run(&arguments);
            assert!(output.status.success(), "{}", stderr(&output));
            json_of(&output)
        };
        let none = place.run(&["clock", "show"]);
        assert!(!none.status.success() && stderr(&none).contains("noted its clock"));
        let mut serving = place.serve(&[("CALLBOARD_SANDBOX_SPEED", "40"), ("CALLBOARD_START_PAUSED", "true")]);
        let api = Calls::to(&place, key);
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let call = async |number: &str| api.call(&agent["id"], number).await;
        assert_eq!(api.get("/readyz").await["dispatch"], "paused");
        assert_eq!(call("+15002340001").await, (503, json!("unavailable")));
        let paused = run(&["dispatch", "show"]);
        assert_eq!(paused["paused"], true);
        assert_eq!(run(&["dispatch", "pause"]), paused, "a second time changes nothing");

        let resumed = json!({ "paused": false, "paused_since": null });
        assert_eq!(run(&["dispatch", "resume"]), resumed);
        assert_eq!(run(&["dispatch", "show"]), resumed);
        assert_eq!(call("+15002340011").await.0, 201);
        run(&["dispatch", "pause"]);
        assert_eq!(
            call("+15002340021").await,
            (503, json!("unavailable")),
            "from the next call on"
        );
        let words = place.run(&["dispatch", "resume"]);
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(words.contains("resumes"), "{words}");

        let clock = run(&["clock", "show"]);
        assert_eq!((&clock["doubt"], clock["gap_ms"].as_i64()), (&Value::Null, Some(0)));
        assert_eq!(
            run(&["clock", "accept"])["accepted"],
            false,
            "there is nothing to accept"
        );
        terminate(&mut serving);
    });
}

#[test]
fn dispatch_is_paused_and_resumed_on_sqlite() {
    paused_and_resumed(Backend::Sqlite);
}
#[test]
fn dispatch_is_paused_and_resumed_on_postgres() {
    paused_and_resumed(Backend::Postgres);
}
