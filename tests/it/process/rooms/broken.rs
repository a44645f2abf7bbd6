//! Talks that do not come about, or break.
use super::{HEARS_THE_AGENT, Stage, on_stage, only};
use crate::world::browser::PHONE;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn links_that_are_not_good_show_one_page_and_open_nothing() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        let link = room["room_url"].as_str().unwrap().to_owned();
        let (address, signature) = link.split_once("sig=").unwrap();
        let other = stage.room().await["room_url"].as_str().unwrap().to_owned();
        let other = other.split_once("sig=").unwrap().1;
        let changed = |at: usize| {
            let mut signature = signature.as_bytes().to_vec();
            signature[at] = if signature[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(signature).unwrap()
        };
        let mut pages = Vec::new();
        for forged in [
            format!("{address}sig={}", changed(0)),
            format!("{address}sig={}", changed(signature.len() / 2)),
            format!("{address}sig={other}"),
            format!("{address}sig="),
            address.trim_end_matches(['?', '&']).to_owned(),
        ] {
            let page = stage.browser.open(PHONE).await;
            page.go(&forged).await;
            assert!(page.text("main").await.contains("This link is not valid"), "{forged}");
            pages.push(page.value("document.documentElement.outerHTML").await);
            let (path, query) = forged.split_once('?').unwrap_or((&forged, ""));
            let request = stage.api.client.post(format!("{path}/whip?{query}")).body("v=0");
            let refused = request.header("Content-Type", "application/sdp").send().await.unwrap();
            assert_eq!(refused.status().as_u16(), 404);
            page.close().await;
        }
        // A room that was ended is no other than one that never was.
        let end = format!("/v1/rooms/{}/end", room["id"].as_str().unwrap());
        let page = stage.visit(&room, PHONE).await;
        page.state("ready").await;
        assert!(stage.api.try_post(&end).await);
        page.click("#join").await;
        page.state("failed").await;
        assert_eq!(page.value("document.body.dataset.failure").await, "gone");
        page.picture("over-before-join").await;
        page.go(&link).await;
        pages.push(page.value("document.documentElement.outerHTML").await);
        pages.dedup();
        assert_eq!(pages.len(), 1, "they differ");
        let session = format!("/v1/sessions/{}", room["session_id"].as_str().unwrap());
        stage
            .api
            .until(&session, |session| session["status"] == "no_answer")
            .await;
    });
}

#[test]
fn a_person_who_finds_all_lines_busy_is_told_so() {
    on_stage(&[], async |stage| {
        let limit = stage.api.client.patch(format!("{}/v1/concurrency", stage.api.url));
        let limit = limit.bearer_auth(&stage.api.key).json(&json!({ "limit": 1 }));
        assert!(limit.send().await.unwrap().status().is_success());
        let (first, second) = (stage.room().await, stage.room().await);
        let page = stage.visit(&first, PHONE).await;
        page.click("#join").await;
        page.state("talking").await;
        let waits = stage.visit(&second, PHONE).await;
        waits.click("#join").await;
        waits.state("failed").await;
        assert_eq!(waits.value("document.body.dataset.failure").await, "full");
        assert_eq!(
            stage.room_is(&second, "failed").await["error"]["code"],
            "concurrency_full"
        );
        stage.room_is(&first, "joined").await;
    });
}

#[test]
fn an_agent_that_is_not_there_is_not_joined() {
    on_stage(&[("CALLBOARD_CHAT_URL", "http://127.0.0.1:9/v1")], async |stage| {
        let agent = json!({ "name": "Ann", "prompt": "x", "brain": { "mode": "chat" } });
        stage.agent = stage.api.post("/v1/agents", agent).await;
        let room = stage.room().await;
        let page = stage.visit(&room, PHONE).await;
        page.click("#join").await;
        page.state("failed").await;
        assert_eq!(page.value("document.body.dataset.failure").await, "absent");
        page.picture("absent").await;
        assert_eq!(
            stage.room_is(&room, "failed").await["error"]["code"],
            "agent_unreachable"
        );
        let told = stage.told(&room).await;
        assert_eq!(
            only(&told, "room."),
            ["room.created", "room.landing_viewed", "room.failed"]
        );
    });
}

/// The service names an address to which nothing gets through.
#[test]
fn sound_that_gets_nowhere_ends_in_plain_words() {
    on_stage(&[("CALLBOARD_MEDIA_ADDRESSES", "192.0.2.1")], async |stage| {
        let room = stage.room().await;
        let page = stage.visit(&room, PHONE).await;
        page.click("#join").await;
        page.state("connecting").await;
        page.picture("connecting").await;
        page.until("document.body.dataset.state === 'failed'").await;
        assert_eq!(page.value("document.body.dataset.failure").await, "no_path");
        page.picture("no-path").await;
        assert_eq!(stage.room_is(&room, "failed").await["error"]["code"], "ice_failed");
    });
}

/// Until something of the room's sound is on the disk.
async fn spooled(stage: &Stage, room: &Value) {
    let file = format!("{}.spool", room["session_id"].as_str().unwrap());
    let clock = runtime::clock::Clock::wall();
    for _ in 0..1_000 {
        let tenants = std::fs::read_dir(stage.place.folder.path().join("callboard-spool"));
        let mut spools = tenants.unwrap().map(|tenant| tenant.unwrap().path().join(&file));
        if spools.any(|spool| std::fs::metadata(spool).is_ok_and(|known| known.len() > 20_000)) {
            return;
        }
        let _busy = clock.sleep(Duration::from_millis(25)).await;
    }
    panic!("nothing was spooled");
}

/// kill -9 in the middle of a talk, and a service that comes back without it.
#[test]
fn a_service_that_dies_is_waited_for() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        let page = stage.visit(&room, PHONE).await;
        page.click("#join").await;
        page.state("talking").await;
        page.until(HEARS_THE_AGENT).await;
        spooled(stage, &room).await;
        stage.serving.kill().unwrap();
        stage.serving.wait().unwrap();
        page.until("!document.getElementById('trouble').hidden").await;
        page.picture("trouble").await;
        stage.serving = stage.place.serve(&[]);
        // Its words went with it.
        page.until("document.body.dataset.failure === 'over'").await;
        page.picture("after-a-crash").await;
        assert_eq!(page.complaints(), Vec::<String>::new());
        // What was heard until then did not.
        let recordings = format!("/v1/sessions/{}/recordings", room["session_id"].as_str().unwrap());
        let is_made = |list: &Value| list["data"][0]["status"] == "completed";
        let list = stage.api.until(&recordings, is_made).await;
        let seconds = list["data"][0]["duration_seconds"].as_f64().unwrap();
        assert!((0.1..60.0).contains(&seconds), "{list}");
    });
}
