//! A service that was stopped first, and one of which a copy goes no further than some moment.
use super::{assert_refused, elsewhere, refused_to_resume};
use crate::{
    process::{Calls, Place, on_disk, stderr, terminate},
    world::Backend,
};
use serde_json::json;
use std::path::Path;

/// Who moves to another machine stops the service first: then everything goes on where it was.
#[test]
fn where_nothing_has_run_since_everything_goes_on() {
    on_disk(Backend::Sqlite, async |place: Place| {
        let key = place.workspace();
        let mut serving = place.serve(&[("CALLBOARD_START_PAUSED", "true")]);
        let api = Calls::to(&place, key.clone());
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let campaign =
            json!({ "name": "All", "agent_id": agent["id"], "contacts": [{ "phone_number": "+15002990000" }] });
        let campaign = api.post("/v1/campaigns/run", campaign).await;
        terminate(&mut serving);
        let file = place.folder.path().join("backup");
        let file = file.to_str().unwrap();
        let made = place.run(&["backup", file, "--without-recordings"]);
        assert!(made.status.success(), "{}", stderr(&made));
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(said.contains("verified") && said.contains("no recordings"), "{said}");
        assert_is_private(file.as_ref());

        let Some(other) = elsewhere(&place, Backend::Sqlite).await else {
            return;
        };
        let restored = other.run(&["restore", file, "--nothing-has-run"]);
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert!(other.run(&["dispatch", "resume"]).status.success());
        let mut serving = other.serve(&[("CALLBOARD_SANDBOX_SPEED", "40")]);
        let api = Calls::to(&other, key);
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        let done = api.until(&path, |campaign| campaign["status"] == "completed").await;
        assert_eq!(done["counts"]["completed"], 1, "{done}");
        terminate(&mut serving);
    });
}

/// It is copied after its recovery, and knows nothing of what came between.
#[test]
fn a_recovered_database_knows_nothing_from_its_moment_on() {
    on_disk(Backend::Sqlite, async |place: Place| {
        place.workspace();
        let mut serving = place.serve(&[]);
        terminate(&mut serving);
        let file = place.folder.path().join("backup");
        let file = file.to_str().unwrap();
        let backup = |moment: &str| place.run(&["backup", file, "--without-recordings", "--recovered-to", moment]);
        for (moment, words) in [
            ("9000-01-01T00:00:00Z", "is in the future"),
            ("yesterday", "is not a time"),
        ] {
            let refused = stderr(&backup(moment));
            assert!(refused.contains(words), "{refused}");
            assert!(!Path::new(file).exists());
        }
        let moment = runtime::clock::Clock::wall().now().plus_seconds(-60);
        let made = backup(&moment.to_string());
        assert!(made.status.success(), "{}", stderr(&made));

        let Some(other) = elsewhere(&place, Backend::Sqlite).await else {
            return;
        };
        let before = moment.plus_seconds(-1).to_string();
        assert_refused(&other, file, &["--as-of", &before], "before the backup was made");
        // When the service was lost: later than the moment, and earlier than the copy.
        let lost_at = moment.plus_seconds(1).to_string();
        let restored = other.run(&["restore", file, "--as-of", &lost_at]);
        assert!(restored.status.success(), "{}", stderr(&restored));
        let mut serving = other.serve(&[]);
        let refused = refused_to_resume(&other).await;
        assert!(refused.contains(&format!("a backup of {moment}, ")), "{refused}");
        terminate(&mut serving);
    });
}

fn assert_is_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
