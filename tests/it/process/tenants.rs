//! `callboard tenant`, and whose a number is, beside a running `serve`.
use super::{Calls, Place, json_of, on, stderr, terminate};
use crate::world::Backend;
use serde_json::{Value, json};

fn suspended_and_resumed(backend: Backend) {
    on(backend, async |place: Place| {
        let key = place.workspace();
        let tenant = |arguments: &[&str]| {
            let arguments: Vec<&str> = ["--json", "tenant"].iter().chain(arguments).copied().collect();
            let output = place.run(&arguments);
            assert!(output.status.success(), "{}", stderr(&output));
            json_of(&output)
        };
        let mut serving = place.serve(&[("CALLBOARD_SANDBOX_SPEED", "40")]);
        let api = Calls::to(&place, key);
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let call = async |number: &str| api.call(&agent["id"], number).await;
        assert_eq!(call("+15002340001").await.0, 201);
        let shown = tenant(&["show", "--workspace", "acme"]);
        assert_eq!(
            (&shown["suspended"], &shown["suspended_since"]),
            (&json!(false), &Value::Null)
        );

        let suspended = tenant(&["suspend", "--workspace", "acme", "--reason", "unpaid"]);
        assert_eq!(
            (&suspended["suspended"], &suspended["suspended_reason"]),
            (&json!(true), &json!("unpaid"))
        );
        assert_eq!(
            call("+15002340011").await,
            (403, json!("plan_limit")),
            "from the next call on"
        );
        let again = tenant(&["suspend", "--workspace", "acme"]);
        assert_eq!(again, suspended, "a second time changes nothing");
        let listed = tenant(&["list"]);
        assert_eq!(listed, json!([suspended]));
        assert_eq!(tenant(&["show", "--workspace", "acme"]), suspended);
        let words = place.run(&["tenant", "list"]);
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(
            words.contains("acme") && words.contains("suspended since") && words.contains("(unpaid)"),
            "{words}"
        );

        assert_eq!(tenant(&["resume", "--workspace", "acme"])["suspended"], false);
        assert_eq!(call("+15002340021").await.0, 201);
        let words = place.run(&["tenant", "show", "--workspace", "acme"]);
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(words.contains("active"), "{words}");
        let unknown = place.run(&["tenant", "suspend", "--workspace", "nobody"]);
        assert!(!unknown.status.success() && stderr(&unknown).contains("no such workspace"));
        terminate(&mut serving);
    });
}

#[test]
fn a_workspace_is_suspended_and_resumed_on_sqlite() {
    suspended_and_resumed(Backend::Sqlite);
}
#[test]
fn a_workspace_is_suspended_and_resumed_on_postgres() {
    suspended_and_resumed(Backend::Postgres);
}

/// What the operator's command decides, the running service does; there is no other way to this refusal.
fn a_plan_without_clones(backend: Backend) {
    on(backend, async |place: Place| {
        let key = place.workspace();
        let set = |arguments: &[&str]| {
            let arguments: Vec<&str> = ["--json", "tenant", "set", "--workspace", "acme"]
                .iter()
                .chain(arguments)
                .copied()
                .collect();
            place.run(&arguments)
        };
        let mut serving = place.serve(&[]);
        let api = Calls::to(&place, key);
        let off = set(&["--voice-clones", "off"]);
        assert_eq!(json_of(&off)["voice_clones"], false, "{}", stderr(&off));
        let form = reqwest::multipart::Form::new()
            .text("name", "Ann")
            .text("consent_attested", "true");
        let clone = api
            .client
            .post(format!("{}/v1/voices/clones", api.url))
            .bearer_auth(&api.key);
        let clone: Value = clone.multipart(form).send().await.unwrap().json().await.unwrap();
        let voice = format!("/v1/voices/{}", clone["id"].as_str().unwrap());
        let refused = api.until(&voice, |voice| voice["status"] == "failed").await;
        assert_eq!(refused["error_code"], "voice_clone_disabled_on_plan", "{refused}");
        let on = set(&["--voice-clones", "on"]);
        assert_eq!(json_of(&on)["voice_clones"], true, "{}", stderr(&on));
        api.post(&format!("{voice}/train"), json!({})).await;
        api.until(&voice, |voice| voice["error_code"] == "insufficient_samples")
            .await;

        // Where it is: from then on, in the running service too.
        let add = async || {
            let number = json!({ "phone_number": "030 901820" });
            let request = api.client.post(format!("{}/v1/dnc", api.url)).bearer_auth(&api.key);
            request.json(&number).send().await.unwrap().status().as_u16()
        };
        assert_eq!(add().await, 422, "no number of the United States");
        let moved = json_of(&set(&["--country", "DE", "--timezone", "Europe/Berlin"]));
        assert_eq!(
            (
                &moved["workspace"]["country"],
                &moved["workspace"]["timezone"],
                &moved["voice_clones"]
            ),
            (&json!("DE"), &json!("Europe/Berlin"), &json!(true))
        );
        assert_eq!(add().await, 201);

        // Where its live calls may ring: in its own country, until the operator says more.
        assert_eq!(moved["countries"], json!(["DE"]));
        for (asked, expected) in [("DE, AT", json!(["AT", "DE"])), ("own", json!(["DE"]))] {
            assert_eq!(json_of(&set(&["--countries", asked]))["countries"], expected, "{asked}");
        }
        let nowhere = set(&["--countries", "Germany"]);
        assert!(
            !nowhere.status.success() && stderr(&nowhere).contains("ISO 3166-1"),
            "{}",
            stderr(&nowhere)
        );
        let unknown = set(&["--country", "Germany"]);
        assert!(
            !unknown.status.success() && stderr(&unknown).contains("ISO 3166-1"),
            "{}",
            stderr(&unknown)
        );
        terminate(&mut serving);
    });
}

#[test]
fn a_plan_without_clones_on_sqlite() {
    a_plan_without_clones(Backend::Sqlite);
}
#[test]
fn a_plan_without_clones_on_postgres() {
    a_plan_without_clones(Backend::Postgres);
}

fn claimed_and_released(backend: Backend) {
    on(backend, async |place: Place| {
        let key = place.workspace();
        place.create_workspace("rival", "Rival", "c@d.co");
        let mut serving = place.serve(&[]);
        let api = Calls::to(&place, key);
        let number = api.post("/v1/numbers", json!({ "phone_number": "+12025550177" })).await;
        let path = format!("/v1/numbers/{}", number["id"].as_str().unwrap());
        let status = async || api.get(&path).await["status"].clone();
        let run = |arguments: &[&str]| {
            let arguments: Vec<&str> = ["--json", "workspace"].iter().chain(arguments).copied().collect();
            let output = place.run(&arguments);
            assert!(output.status.success(), "{}", stderr(&output));
            json_of(&output)
        };
        let claim = |workspace: &str| run(&["claim-number", "--workspace", workspace, "--number", "(202) 555-0177"]);
        let release = |workspace: &str| run(&["release-number", "--workspace", workspace, "--number", "+12025550177"]);
        assert_eq!(
            claim("rival"),
            json!({ "phone_number": "+12025550177", "workspace": "rival", "taken_from": null })
        );
        assert_eq!(status().await, "unverified");
        assert_eq!(claim("acme")["taken_from"], "rival");
        assert_eq!(
            claim("acme")["taken_from"],
            Value::Null,
            "a second time changes nothing"
        );
        assert_eq!(status().await, "active");
        assert_eq!(release("rival")["released"], false);
        assert_eq!(status().await, "active");
        assert_eq!(release("acme")["released"], true);
        assert_eq!(status().await, "unverified");
        for (workspace, number, words) in [
            ("nobody", "+12025550177", "no such workspace"),
            ("acme", "+15002340000", "sandbox"),
            ("acme", "12", "number"),
        ] {
            let output = place.run(&[
                "workspace",
                "claim-number",
                "--workspace",
                workspace,
                "--number",
                number,
            ]);
            assert!(
                !output.status.success() && stderr(&output).contains(words),
                "{output:?}"
            );
        }
        terminate(&mut serving);
    });
}

#[test]
fn a_number_is_claimed_and_released_on_sqlite() {
    claimed_and_released(Backend::Sqlite);
}
#[test]
fn a_number_is_claimed_and_released_on_postgres() {
    claimed_and_released(Backend::Postgres);
}
