//! What happens when a call ends: `session::machine::end`, seen from outside.
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use serde_json::json;

on_both! {
    /// One transaction: transcript, session.ended, the contact's end, in this order; then the slot is free.
    async fn a_talk_ends_completed_with_its_transcript(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340000"], json!({})).await;
        world.advance(minutes(2)).await;
        let types = tenant.event_types().await;
        assert_eq!(types, [
            "campaign.created", "campaign.started", "session.created", "campaign.contact_dispatched", "session.started",
            "session.ended", "campaign.contact_completed", "campaign.completed",
        ]);
        let events = tenant.events().await;
        let (started, ended, completed) = (&events[4]["data"], &events[5]["data"], &events[6]["data"]);
        assert_eq!((ended["status"].as_str(), ended["end_reason"].as_str()), (Some("completed"), Some("completed")));
        assert_eq!(ended["started_at"], started["started_at"]);
        assert_eq!(ended["campaign_id"], id);
        assert_eq!(ended["client_reference_id"], json!(null));
        assert_eq!(ended["phone_number"], "+15002340000");
        assert!(ended["duration_seconds"].as_u64().unwrap() > 0);
        assert_eq!(completed["duration_seconds"], ended["duration_seconds"]);
        assert_eq!(completed["session_id"], ended["session_id"]);
        let turns = ended["transcript"].as_array().unwrap();
        assert_eq!((turns[0]["role"].as_str(), turns[0]["content"].as_str(), turns[0]["t"].as_f64()), (Some("agent"), Some("Hello! How can I help you?"), Some(0.0)));
        assert_eq!(turns[0]["end_t"], turns[1]["t"], "one after the other");
        assert_eq!(turns[1]["role"], "user");

        let url = ended["transcript_url"].as_str().unwrap();
        let transcript = tenant.api.get(url.strip_prefix(&tenant.api.url).unwrap()).await.ok();
        assert_eq!(transcript["state"], "final");
        assert_eq!(transcript["turns"], ended["transcript"]);
        let session = tenant.api.get(&format!("/v1/sessions/{}", ended["session_id"].as_str().unwrap())).await.ok();
        assert_eq!((session["status"].as_str(), session["phase"].as_str(), session["ended_by"].as_str()), (Some("completed"), Some("ended"), Some("agent")));
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
    }

    async fn a_live_call_shows_what_was_said_so_far_and_can_be_ended(world: &mut World) {
        let tenant = world.tenant().await;
        let session = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await, "client_reference_id": "order-7" })).await.ok();
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        world.advance(seconds(5)).await;
        let transcript = tenant.api.get(&format!("{path}/transcript.json")).await.ok();
        assert_eq!(transcript["state"], "partial");
        assert!(!transcript["turns"].as_array().unwrap().is_empty());
        let ended = tenant.api.post(&format!("{path}/end"), json!({})).await.ok();
        assert_eq!((ended["status"].as_str(), ended["ended_by"].as_str()), (Some("completed"), Some("api")));
        let again = tenant.api.post(&format!("{path}/end"), json!({})).await;
        assert_eq!(again.error(), (409, "invalid_state", None));
        world.advance(minutes(5)).await;
        let events = tenant.events().await;
        assert_eq!(events.len(), 3, "created, started, ended: once each");
        assert_eq!(events[2]["data"]["client_reference_id"], "order-7");
        assert_eq!(events[2]["data"]["campaign_id"], json!(null));
    }

    async fn a_call_that_lasts_too_long_is_ended(world: &mut World) {
        let tenant = world.tenant().await;
        let words = "word ".repeat(390);
        let replies: Vec<_> = (0..3).map(|_| json!({ "say": words })).collect();
        let agent = tenant.api.post("/v1/agents", json!({ "name": "Long", "prompt": "Talk.", "max_duration_seconds": 60, "brain": { "mode": "scripted", "replies": replies } })).await.ok();
        tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent["id"] })).await.ok();
        world.advance(minutes(10)).await;
        let ended = tenant.events().await.pop().unwrap();
        assert_eq!((ended["type"].as_str(), ended["data"]["end_reason"].as_str()), (Some("session.ended"), Some("max_duration")));
        assert_eq!(ended["data"]["duration_seconds"], 60);
    }
}
