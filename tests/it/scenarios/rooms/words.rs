//! Real words: a synthesiser says them into a room, and a recogniser that is neither ours nor told what comes understands them.
use super::{outside::until_silent, *};
use crate::world::{
    Backend,
    real_speech::{Piper, RealSpeech},
    run,
};

/// As the captions have it.
fn understood(view: &View) -> Vec<&str> {
    let captions = view.notes.iter().filter(|note| note["role"] == "user");
    captions.filter_map(|note| note["text"].as_str()).collect()
}

#[test]
fn the_words_that_are_said_are_the_words_that_are_understood() {
    let Some(speech) = RealSpeech::find() else { return };
    let said = ["wednesday at four", "yes", "friday at eleven", "no", "tuesday at three"];
    run(Backend::Sqlite, async |world: &mut World| {
        let ears = speech.listen().await;
        world.change_setting("transcription_url", json!(ears.url())).await;
        let tenant = world.tenant().await;
        let replies = vec![json!({ "say": "I see." }); 10];
        let more = json!({ "first_message": "Hello.", "brain": { "mode": "scripted", "replies": replies } });
        let agent = the_call::agent(&tenant, more).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, participant) = link.join(None).await;
        for (before, text) in said.iter().enumerate() {
            until_silent(&peer).await;
            peer.speak(speech.say(text));
            let seen = peer.until("it is answered", |view| {
                understood(view).len() > before && view.answered_at.is_some()
            });
            assert_eq!(understood(&seen.await), said[..=before]);
        }
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;
        let path = format!("/v1/sessions/{}/transcript.json", room["session_id"].as_str().unwrap());
        let transcript = tenant.api.get(&path).await.ok();
        let turns = transcript["turns"].as_array().unwrap().iter();
        let users = turns.filter(|turn| turn["role"] == "user");
        let kept: Vec<_> = users.filter_map(|turn| turn["content"].as_str()).collect();
        assert_eq!(kept, said);
    });
}

/// A neural voice on this machine, through the room to somebody who understands it.
#[test]
fn the_words_of_a_neural_voice_are_heard() {
    let (Some(speech), Some(piper)) = (RealSpeech::find(), Piper::start()) else {
        return;
    };
    run(Backend::Sqlite, async |world: &mut World| {
        let settings = [("speech_provider", json!("piper")), ("speech_url", json!(piper.url))];
        world.change_settings(&settings).await;
        let tenant = world.tenant().await;
        let replies = json!([{ "say": "Friday at eleven." }]);
        let more =
            json!({ "first_message": "Wednesday at four.", "brain": { "mode": "scripted", "replies": replies } });
        let agent = the_call::agent(&tenant, more).await;
        let room = create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &room);
        let (peer, participant) = link.join(None).await;
        until_silent(&peer).await;
        let hello = peer.heard();
        assert_eq!(speech.understand(&hello), "wednesday at four");
        peer.speak(speech.say("yes"));
        peer.until("it is answered", |view| {
            view.spoke_at.is_some() && view.answered_at.is_some()
        })
        .await;
        until_silent(&peer).await;
        assert_eq!(speech.understand(&peer.heard()[hello.len()..]), "friday at eleven");
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;
    });
}
