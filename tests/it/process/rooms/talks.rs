//! Talks that go as they should: joined, held, left and come back to.
use super::{ANSWER, HEARS_THE_AGENT, HELLO, on_stage, only};
use crate::world::browser::{DESKTOP, PHONE};
use serde_json::{Value, json};

/// The page shows what is said by that side.
fn said(role: &str, text: &str) -> String {
    format!(
        "[...document.querySelectorAll('#captions li[data-role={role}] .words')].some((words) => words.textContent.includes({}))",
        json!(text)
    )
}

#[test]
fn a_person_opens_a_link_and_talks_with_the_agent() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        assert_eq!(room["status"], "created");
        let mut page = stage.visit(&room, PHONE).await;
        page.state("ready").await;
        assert!(
            page.text("main").await.contains("Talk with Ann") && page.text("main").await.contains("may be recorded")
        );
        let viewed = stage.room_is(&room, "viewed").await;
        assert!(viewed["viewed_at"].is_string() && viewed["participant"]["id"].is_null());
        page.click("#join").await;
        page.state("talking").await;
        let joined = stage.room_is(&room, "joined").await;
        assert!(joined["participant"]["id"].is_string() && joined["participant"]["first_name"] == "Zoë");

        // The agent is heard, seen to speak and read.
        page.until(&said("agent", HELLO)).await;
        page.until(HEARS_THE_AGENT).await;
        page.until("Number(document.getElementById('agent-face').style.getPropertyValue('--level')) > 0.2")
            .await;
        // So is the person, whose microphone says a sentence now and then; and the agent answers.
        page.until("Number(document.getElementById('meter').style.getPropertyValue('--level')) > 0.2")
            .await;
        page.until(&said("user", "")).await;
        page.until(&said("agent", ANSWER)).await;
        page.until("/^(?!0:00)\\d+:\\d\\d$/.test(document.getElementById('timer').textContent)")
            .await;
        page.picture("talking").await;

        // Keys, by finger and by keyboard.
        page.click("#keys").await;
        page.click("[data-key='5']").await;
        page.key("7").await;
        page.until("document.getElementById('pressed').textContent === '57'")
            .await;
        page.picture("keypad").await;
        page.key("Escape").await;
        page.until("document.getElementById('keypad').hidden && document.activeElement.id === 'keys'")
            .await;

        let timeline = format!("/v1/sessions/{}/timeline", room["session_id"].as_str().unwrap());
        stage.api.until(&timeline, |timeline| pressed(timeline) == "57").await;

        // Who mutes is not heard, whatever the microphone hears.
        page.click("#mute").await;
        page.until("document.body.dataset.muted === 'true'").await;
        let track = "window.connections.at(-1).getSenders()[0].track.enabled";
        assert_eq!(page.value(track).await, false);
        page.picture("muted").await;
        page.click("#mute").await;
        assert_eq!(page.value(track).await, true);

        page.screen(DESKTOP).await;
        page.picture("talking").await;
        page.screen(PHONE).await;
        page.click("#hang-up").await;
        page.until("document.body.dataset.state === 'ended'").await;
        assert_eq!(page.value("document.body.dataset.reason").await, "you");
        assert!(page.text("main").await.contains("You hung up"));
        page.click("#over-words summary").await;
        page.picture("hung-up").await;
        let kept = page.value("[...Object.values(sessionStorage)].join()").await;
        let participant = joined["participant"]["id"].as_str().unwrap();
        assert!(
            !kept.as_str().unwrap().contains(participant),
            "nobody comes back to a talk that is over: {kept}"
        );
        assert_eq!(page.complaints(), Vec::<String>::new());

        let over = stage.room_is(&room, "completed").await;
        assert!(over["duration_seconds"].as_i64().unwrap() >= 1, "{over}");
        let session = stage.session_of(&room).await;
        assert_eq!(
            (session["status"].as_str(), session["ended_by"].as_str()),
            (Some("completed"), Some("caller"))
        );
        let recordings = format!("/v1/recordings/{}", session["recording_id"].as_str().unwrap());
        let recording = stage
            .api
            .until(&recordings, |recording| recording["status"] == "completed")
            .await;
        both_are_heard(stage, &recording).await;
        // A session counts whole seconds.
        let lasted = session["duration_seconds"].as_f64().unwrap();
        let recorded = recording["duration_seconds"].as_f64().unwrap();
        assert!(
            (lasted - 2.0..lasted + 3.0).contains(&recorded),
            "{recorded} s of {lasted} s"
        );
        let told = stage.told(&room).await;
        assert_eq!(
            only(&told, "room."),
            ["room.created", "room.landing_viewed", "room.joined", "room.completed"]
        );
        let (_, ended) = told.iter().find(|(kind, _)| kind == "session.ended").unwrap();
        assert_eq!(ended["client_reference_id"], "order-7");
        for field in ["from_number", "to_number", "phone_number", "campaign_id", "contact_id"] {
            assert!(ended[field].is_null(), "{field}: {ended}");
        }

        // The link has done its work.
        page.reload().await;
        assert!(page.text("main").await.contains("This link is not valid"));
    });
}

/// The keys that came to the agent, in order.
fn pressed(timeline: &Value) -> String {
    let entries = timeline["entries"].as_array().into_iter().flatten();
    let keys = entries.filter(|entry| entry["kind"] == "keys_pressed");
    keys.filter_map(|entry| entry["detail"].as_str()).collect()
}

/// The recording has two channels with sound on both, and is about as long as the talk.
async fn both_are_heard(stage: &super::Stage, recording: &Value) {
    let request = stage.api.client.get(recording["recording_url"].as_str().unwrap());
    let wav = request
        .bearer_auth(&stage.api.key)
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let mut wav = hound::WavReader::new(&wav[..]).unwrap();
    assert_eq!(wav.spec().channels, 2);
    let samples: Vec<i16> = wav.samples::<i16>().map(Result::unwrap).collect();
    for (channel, who) in ["the person", "the agent"].into_iter().enumerate() {
        let loud = samples
            .iter()
            .skip(channel)
            .step_by(2)
            .filter(|sample| sample.unsigned_abs() > 500)
            .count();
        assert!(loud > 800, "{who} is not heard in the recording: {loud} loud samples");
    }
    let seconds = (samples.len() / 2) as f64 / f64::from(wav.spec().sample_rate);
    let told = recording["duration_seconds"].as_f64().unwrap();
    assert!((seconds - told).abs() < 0.1, "{seconds} {told}");
}

#[test]
fn the_talk_ends_on_the_page_when_it_is_ended_elsewhere() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        let page = stage.visit(&room, DESKTOP).await;
        page.state("ready").await;
        // By the keyboard alone.
        page.key("Tab").await;
        page.key("Enter").await;
        page.state("talking").await;
        page.until(&said("agent", HELLO)).await;
        assert_eq!(page.value("document.activeElement.id").await, "talk-title");
        stage.room_is(&room, "joined").await;
        let path = format!("/v1/rooms/{}/end", room["id"].as_str().unwrap());
        assert!(stage.api.try_post(&path).await);
        page.until("document.body.dataset.state === 'ended'").await;
        assert!(page.text("main").await.contains("The talk has ended"));
        page.picture("ended").await;
        assert_eq!(page.complaints(), Vec::<String>::new());
        stage.room_is(&room, "completed").await;
        let told = stage.told(&room).await;
        assert_eq!(only(&told, "room.").last(), Some(&"room.completed"));
    });
}

#[test]
fn who_reloads_is_back_in_the_talk_and_nobody_else_gets_in() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        let page = stage.visit(&room, PHONE).await;
        page.click("#join").await;
        page.state("talking").await;
        page.until(&said("agent", HELLO)).await;
        let joined = stage.room_is(&room, "joined").await;

        // Somebody else with the same link, and the same person in another tab.
        let link = room["room_url"].as_str().unwrap();
        let other = page.second_tab().await;
        other.go(link).await;
        other.click("#join").await;
        other.state("failed").await;
        assert_eq!(other.value("document.body.dataset.failure").await, "occupied");
        other.picture("second-tab").await;
        other.close().await;

        page.click("#mute").await;
        page.reload().await;
        page.state("talking").await;
        // What was said before is there again, and a microphone that was off stays off.
        page.until(&said("agent", HELLO)).await;
        assert_eq!(page.value("document.body.dataset.muted").await, "true");
        // Who comes back after the agent's words hears it again when it answers, and it answers whom it hears.
        page.click("#mute").await;
        page.until(HEARS_THE_AGENT).await;

        // The same again where the browser has to ask anew: it is offered, and one press away.
        page.microphone(link, "prompt").await;
        page.reload().await;
        page.state("ready").await;
        assert!(page.text("main").await.contains("You are still in this talk"));
        assert!(
            !page.text("main").await.contains("may be recorded"),
            "that was said before"
        );
        page.picture("rejoin").await;
        page.microphone(link, "granted").await;
        page.click("#join").await;
        page.state("talking").await;

        // A tab that was duplicated knows what the first knew: it takes the talk over, and the two do not fight for it.
        let memory = page.value("JSON.stringify({ ...sessionStorage })").await;
        let copy = page.second_tab().await;
        copy.before_each_load(&format!("Object.assign(sessionStorage, {})", memory.as_str().unwrap()))
            .await;
        copy.go(link).await;
        copy.state("talking").await;
        page.until("document.body.dataset.failure === 'elsewhere'").await;
        page.picture("elsewhere").await;
        assert_eq!(page.complaints(), Vec::<String>::new());
        let page = copy;

        let still = stage.room_is(&room, "joined").await;
        assert_eq!(still["participant"]["id"], joined["participant"]["id"]);
        assert_eq!(still["joined_at"], joined["joined_at"]);
        page.click("#hang-up").await;
        page.until("document.body.dataset.state === 'ended'").await;
        stage.room_is(&room, "completed").await;
        let told = stage.told(&room).await;
        assert_eq!(
            only(&told, "room."),
            ["room.created", "room.landing_viewed", "room.joined", "room.completed"]
        );
        assert_eq!(only(&told, "session.ended").len(), 1);
        assert_eq!(page.complaints(), Vec::<String>::new());
    });
}

#[test]
fn who_left_for_another_tab_does_not_end_the_talk_there() {
    on_stage(&[], async |stage| {
        let room = stage.room().await;
        let page = stage.visit(&room, PHONE).await;
        page.click("#join").await;
        page.state("talking").await;
        stage.room_is(&room, "joined").await;
        // The answer to its next offer comes late, and it counts the times that it hangs up.
        let slow = "(() => {
            const real = window.fetch;
            Object.assign(window, { late: [], hungUp: 0 });
            window.fetch = async (url, options) => {
                if (options?.method === 'DELETE') window.hungUp += 1;
                const answer = await real(url, options);
                if (options?.method === 'POST') await new Promise((go) => window.late.push(go));
                return answer;
            };
        })()";
        page.value(slow).await;

        // A duplicate of the tab takes the connection over, and the first, which is not told why, makes a new one.
        let memory = page.value("JSON.stringify({ ...sessionStorage })").await;
        let copy = page.second_tab().await;
        let silent = format!(
            "delete window.BroadcastChannel; Object.assign(sessionStorage, {})",
            memory.as_str().unwrap()
        );
        copy.before_each_load(&silent).await;
        copy.go(room["room_url"].as_str().unwrap()).await;
        page.until("window.late.length > 0").await;
        // Only now it is told.
        page.value("new BroadcastChannel(`callboard ${location.pathname}`).postMessage('here')")
            .await;
        page.until("document.body.dataset.failure === 'elsewhere'").await;
        page.value("window.late.forEach((go) => go())").await;
        // A timer comes after all that follows from the answer.
        page.until("new Promise((go) => setTimeout(() => go(true)))").await;
        assert_eq!(page.value("window.hungUp").await, 0);
        copy.state("talking").await;
        assert_eq!(stage.room_is(&room, "joined").await["ended_at"], Value::Null);
        copy.click("#hang-up").await;
        stage.room_is(&room, "completed").await;
    });
}
