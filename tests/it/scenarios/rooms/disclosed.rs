//! Who speaks is said by the service in a live room, too: over whoever talks over it, proved from the recording by a recogniser that is
//! neither ours nor told what comes.
use super::{outside::until_silent, talks::recorded, *};
use crate::{
    on_both,
    world::{
        real_speech::{RealSpeech, SELLER, SELLER_HEARD},
        transcription_server::{Answer as Heard, TranscriptionServer},
    },
};
use adapters::sound::Pcm;
use entities::values::{Env, Scopes};

const FIRST: &str = "Wednesday at ten is free.";

/// The same workspace as its programs see it with a live key.
async fn live(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let api = world.api(tenant.id, Env::Live, Scopes::all()).await;
    Tenant { api, ..tenant }
}

on_both! {
    /// L4, and AI Act, art. 50(1).
    async fn who_talks_over_it_in_a_room_hears_again_who_speaks(world: &mut World) {
        let Some(real) = RealSpeech::find() else { return };
        let ears = TranscriptionServer::start_with(|_, _| Heard::Words("Hello? Can you hear me?".into())).await;
        world.change_settings(&[("law_file", json!("")), ("voice", json!("espeak-ng")), ("transcription_url", json!(ears.url()))]).await;
        let tenant = live(world).await;
        tenant.api.patch("/v1/compliance/identity", json!({ "registered_name": SELLER })).await.ok();
        let more = json!({ "language": "en-US", "first_message": FIRST, "recording": { "enabled": true, "consent": "notice" },
            "brain": { "mode": "scripted", "replies": [{ "say": "I see." }] } });
        let agent = the_call::agent(&tenant, more).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, participant) = link.join(None).await;
        peer.until("it begins to say who speaks", |view| view.heard_at.is_some()).await;
        // Its name is not said yet.
        let _busy = runtime::clock::Clock::wall().sleep(Duration::from_millis(1_300)).await;
        peer.say(speech());
        peer.until("it comes to its own words", |view| view.notes.iter().any(|note| note["text"] == FIRST)).await;
        until_silent(&peer).await;
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;

        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"]), (&json!("completed"), &json!("completed")), "{call}");
        let [ours, _] = recorded(&tenant, &call).await;
        let heard = real.transcribe(&Pcm::new(16_000, ours));
        assert!(heard[0].starts_with("you are speaking") && !heard[0].contains("services"), "it was cut off: {heard:?}");
        let all = heard.join(" ");
        let again = format!("you are speaking with the a. i. assistant of {SELLER_HEARD} this call is recorded wednesday at ten is free");
        assert!(all.ends_with(&again), "{heard:?}");
        for words in ["real person", "silver river", "monday", "say stop", "technical problem"] {
            assert!(!all.contains(words), "{words}: {heard:?}");
        }

        let timeline = the_call::timeline(&tenant, room["session_id"].as_str().unwrap()).await;
        let told = timeline.iter().filter(|(kind, _)| kind == "disclosed");
        let told: Vec<&str> = told.map(|(_, detail)| detail.as_str()).collect();
        let (cut, whole) = told.split_at(told.len() - 2);
        assert_eq!(whole, ["ai, name (en-US): heard whole", "recording (en-US): heard whole"]);
        assert!(!cut.is_empty() && cut.iter().all(|detail| *detail == "ai, name (en-US): cut off"), "{told:?}");
        let transcript = tenant.api.get(&format!("/v1/sessions/{}/transcript.json", call["id"].as_str().unwrap())).await.ok();
        let said = the_call::said(&transcript["turns"]);
        let at = |turn: &str| said.iter().position(|said| said == turn).unwrap_or_else(|| panic!("{turn}: {said:?}"));
        let who = format!("agent: You are speaking with the AI assistant of {SELLER}.");
        assert!(at("user: Hello? Can you hear me?") < at(&who) && at(&who) < at(&format!("agent: {FIRST}")), "{said:?}");
    }
}
