//! How soon the agent answers: measured in the talk, told while it lasts, and kept.
use super::*;
use crate::{
    on_both,
    world::{
        chat_server::ChatServer,
        minutes,
        speech_server::{self, SpeechServer},
        transcription_server::TranscriptionServer,
    },
};

/// Half a second of a tone, as a provider speaks.
async fn voice() -> SpeechServer {
    let angle = |n: u32| std::f64::consts::TAU * 440.0 * f64::from(n) / 24_000.0;
    let tone: Vec<i16> = (0..12_000).map(|n| (8_000.0 * angle(n).sin()) as i16).collect();
    SpeechServer::start_with(move |asked, _| match asked.line.starts_with("POST") {
        true => speech_server::Answer::samples(&tone, 960),
        false => speech_server::Answer::status(200, "{}"),
    })
    .await
}

/// What stands in the timeline of each turn: stage and milliseconds.
async fn turns(tenant: &Tenant, room: &Value) -> Vec<Vec<(String, u64)>> {
    let timeline = the_call::timeline(tenant, room["session_id"].as_str().unwrap()).await;
    let timed = timeline.into_iter().filter(|(kind, _)| kind == "turn_latency");
    let stages = |detail: String| -> Vec<(String, u64)> {
        let marks = detail.split(", ").map(|mark| mark.split_once(' ').unwrap());
        marks
            .map(|(stage, ms)| (stage.to_owned(), ms.strip_suffix(" ms").unwrap().parse().unwrap()))
            .collect()
    };
    timed.map(|(_, detail)| stages(detail)).collect()
}

/// The session, once so many turns were answered.
async fn answered(tenant: &Tenant, room: &Value, turns: u64) -> Value {
    let wall = runtime::clock::Clock::wall();
    for _ in 0..1_000 {
        let seen = session(tenant, room).await;
        if seen["latency"]["turns"].as_u64() >= Some(turns) {
            return seen;
        }
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
    panic!("not so many turns were answered: {}", session(tenant, room).await)
}

on_both! {
    /// By this clock no time passes but the pause after which somebody has ended.
    async fn how_soon_the_agent_answers_is_told_and_kept(world: &mut World) {
        let ears = TranscriptionServer::understanding(&["Is Friday free?", "And Monday?"]).await;
        let (chat, voice) = (ChatServer::start().await, voice().await);
        world.change_settings(&[
            ("transcription_url", json!(ears.url())),
            ("chat_url", json!(chat.url())),
            ("speech_provider", json!("openai")),
            ("speech_url", json!(format!("{}/v1", voice.url()))),
        ]).await;
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "first_message": "Hello.", "brain": { "mode": "chat" } })).await;
        let room = create(&tenant, &agent, json!({})).await;
        assert_eq!(session(&tenant, &room).await["latency"], Value::Null);
        let (peer, _) = Link::of(world, &tenant, &room).join(None).await;
        peer.until("the agent says hello", |view| view.heard_at.is_some()).await;
        assert_eq!(session(&tenant, &room).await["latency"], Value::Null, "a greeting answers nobody");
        for nth in 1..=2 {
            peer.say(speech());
            peer.until("the agent answers", |view| {
                let heard = view.notes.iter().filter(|note| note["role"] == "user").count();
                heard == nth && view.answered_at.is_some()
            }).await;
            answered(&tenant, &room, nth as u64).await;
        }
        let live = answered(&tenant, &room, 2).await["latency"].clone();
        let (p50, p95) = (live["p50_ms"].as_u64().unwrap(), live["p95_ms"].as_u64().unwrap());
        assert!((100..=p95).contains(&p50) && p95 < 15_000, "{live}");
        let told = turns(&tenant, &room).await;
        assert_eq!(told.len(), 2);
        for turn in &told {
            let stages: Vec<&str> = turn.iter().map(|(stage, _)| stage.as_str()).collect();
            assert_eq!(stages, ["endpoint", "text", "token", "clause", "sound", "packet"]);
            assert!(turn.is_sorted_by_key(|(_, ms)| *ms), "{turn:?}");
            assert!((p50..=p95).contains(&turn[5].1), "{turn:?} of {live}");
        }
        // Nobody else's.
        let stranger = world.tenant().await;
        let id = room["session_id"].as_str().unwrap();
        for path in [format!("/v1/sessions/{id}"), format!("/v1/sessions/{id}/timeline")] {
            assert_eq!(stranger.api.get(&path).await.error(), (404, "not_found", None), "{path}");
        }
        // A stop ends the talk, and a crash after it changes nothing.
        world.restart_in_order().await;
        for _ in 0..2 {
            assert_eq!(session(&tenant, &room).await["latency"], live);
            let path = format!("/v1/sessions?room_id={}", room["id"].as_str().unwrap());
            assert_eq!(tenant.api.get(&path).await.ok()["data"][0]["latency"], live);
            assert_eq!(turns(&tenant, &room).await, told);
            world.restart().await;
        }
    }

    /// The sandbox carries no sound: nobody waits for any.
    async fn a_call_by_telephone_has_no_such_figure(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({})).await;
        let script = json!({ "sandbox": { "script": [{ "say": "Hello?" }] } });
        let id = the_call::call(&tenant, &agent, "+15002345600", script).await;
        world.advance(minutes(2)).await;
        let ended = the_call::session(&tenant, &id).await;
        assert_eq!((&ended["status"], &ended["latency"]), (&json!("completed"), &Value::Null));
        let timeline = the_call::timeline(&tenant, &id).await;
        assert!(!timeline.iter().any(|(kind, _)| kind == "turn_latency"), "{timeline:?}");
    }
}
