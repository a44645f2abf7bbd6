//! An agent that hears by itself: its answer does not wait for the words, and nothing is done before they are known.
use super::*;
use crate::world::realtime_server::{self, RealtimeServer, Turn};
use tokio::sync::watch;

/// In a room whose agent hears by itself: the yes is given, and the next thing is said.
async fn asked_and_answered(world: &mut World, tenant: &Tenant) -> Page {
    let agent = hearer(tenant).await;
    let mut page = Page::join(world, tenant, &agent).await;
    page.play_until(1).await;
    page.speak().await;
    page.play_until(3).await;
    page.speak().await;
    page
}

/// Understands these, the second one only when it is let.
async fn understand_late(world: &mut World, words: [&'static str; 3]) -> (TranscriptionServer, watch::Sender<bool>) {
    let (open, gate) = watch::channel(false);
    let server = TranscriptionServer::start_with(move |_, before| match before {
        1 => Answer::Gated(gate.clone(), words[1].into()),
        nth => Answer::Words(words[nth.min(2)].into()),
    })
    .await;
    world.change_setting("transcription_url", json!(server.url())).await;
    (server, open)
}

/// Agents that hear and speak by themselves: they greet, and then each does what the number of the turn says.
async fn hear_itself(world: &mut World, does: fn(usize) -> realtime_server::Answer) -> RealtimeServer {
    let server = RealtimeServer::start_with(move |_: &Turn, nth| match nth {
        0 => realtime_server::Answer::Say("Good day!".into()),
        nth => does(nth),
    });
    world.change_setting("realtime_url", json!(server.url)).await;
    server
}

async fn hearer(tenant: &Tenant) -> String {
    let settings = json!({ "recording": { "enabled": true, "consent": "verbal" }, "brain": { "mode": "realtime" } });
    agent(tenant, settings).await
}

fn says_good_bye() -> realtime_server::Answer {
    realtime_server::Answer::SayAndCalls("Goodbye.".into(), vec![("end_call".into(), "{}".into())])
}

on_both! {
    /// Its question is answered before anybody else has understood it; what was said stands where it was said.
    async fn a_model_that_hears_does_not_wait_for_the_words_and_they_follow(world: &mut World) {
        let (ears, open) = understand_late(world, ["Yes, sure.", "What time is it?", "Thank you."]).await;
        let server = hear_itself(world, |nth| match nth {
            1 => realtime_server::Answer::Say("It is noon.".into()),
            _ => says_good_bye(),
        })
        .await;
        let tenant = world.tenant().await;
        let agent = hearer(&tenant).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_until(1).await;
        world.advance(seconds(1)).await;
        page.speak().await;
        assert_eq!(page.play_until(3).await, "agent: Good day!");
        assert_eq!(page.captions[1], "user: Yes, sure.", "a yes must be understood");
        assert_eq!(server.events_of("input_audio_buffer.commit").len(), 0, "it is no question to the model");
        world.advance(seconds(1)).await;
        let path = format!("/v1/sessions/{}/stream", page.id);
        let mut stream = tenant.api.request(reqwest::Method::GET, &path).send().await.unwrap();
        page.speak().await;
        assert_eq!(page.play_until(5).await, "agent: It is noon.");
        assert_eq!(page.captions[3], "user: [speech]");
        open.send(true).unwrap();
        page.look_for("user: What time is it?").await;
        let told = "event: words\ndata: {\"content\":\"What time is it?\",\"place\":3}\n\n";
        let mut streamed = String::new();
        while !streamed.contains(told) {
            streamed.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        world.advance(seconds(1)).await;
        page.speak().await;
        let id = page.id.clone();
        let shown = page.end().await;
        assert_eq!(shown, [
            QUESTION, "user: Yes, sure.", "agent: Good day!", "user: What time is it?", "agent: It is noon.", "user: Thank you.",
            "agent: Goodbye.",
        ]);
        world.settle().await;
        let turns = transcript(&tenant, &id).await;
        assert_eq!(said(&json!(turns)), shown);
        assert!(turns.windows(2).all(|pair| pair[0]["t"].as_f64() <= pair[1]["t"].as_f64()), "{turns:?}");
        assert_eq!(session(&tenant, &id).await["end_reason"], "completed");
        assert_eq!((ears.asked().len(), server.errors()), (3, Vec::new()));
        world.advance(seconds(10)).await;
        let [_, theirs] = recorded(&tenant).await;
        let loud = theirs.iter().filter(|sample| sample.abs() > 32_000).count();
        assert_eq!(loud, 16_000, "both of theirs since the yes, and not the yes");
        let made = tenant.api.get(&format!("/v1/sessions/{id}/recordings")).await.ok()["data"][0]["synthetic"].clone();
        assert_eq!((&made["voice"]["provider"], &made["voice"]["model"]), (&json!("realtime"), &json!("gpt-realtime")), "{made}");
        assert_eq!(made["service_voice"]["kind"], "builtin", "which has asked: {made}");
    }

    /// The answer that it has begun meanwhile is cut, and the wish is obeyed as ever.
    async fn a_wish_in_words_that_follow_ends_the_answer_that_was_begun(world: &mut World) {
        for (wish, reason, farewell) in [
            ("Please stop calling me.", "opt_out", "agent: I understand. You will not be called again. Goodbye."),
            ("Stop recording.", "consent_refused", "agent: I understand. Then this call ends here. Goodbye."),
        ] {
            let (_ears, open) = understand_late(world, ["Yes, sure.", wish, "Hm."]).await;
            let long = |_: usize| realtime_server::Answer::Say("It takes exactly four weeks, and then some more days.".into());
            let _server = hear_itself(world, long).await;
            let tenant = world.tenant().await;
            let mut page = asked_and_answered(world, &tenant).await;
            page.look_until(5).await;
            page.play(20).await;
            open.send(true).unwrap();
            // Its words are the last but one; nothing of the long answer is played meanwhile.
            page.look_until(6).await;
            let id = page.id.clone();
            let shown = page.end().await;
            assert_eq!((shown[3].as_str(), shown[5].as_str(), shown.len()), (format!("user: {wish}").as_str(), farewell, 6));
            world.settle().await;
            let row = session(&tenant, &id).await;
            assert_eq!((&row["status"], &row["end_reason"]), (&json!("completed"), &json!(reason)));
            assert_eq!(told(&tenant, "session.opt_out_detected").await.len(), usize::from(reason == "opt_out"));
            let cut = transcript(&tenant, &id).await[4]["content"].as_str().unwrap().to_owned();
            assert!("It takes exactly four weeks".starts_with(&cut), "what was heard of it: {cut}");
            assert!(world.spooled_files().is_empty(), "{reason}: {:?}", world.spooled_files());
            if reason == "consent_refused" {
                assert_eq!(told(&tenant, "session.recording_completed").await.len(), 0);
            }
        }
    }

    /// It may speak on sound that nobody else has understood, but nothing is done: it might have been the wish to be left alone.
    async fn what_a_model_wants_done_waits_for_the_words(world: &mut World) {
        let (_ears, open) = understand_late(world, ["Yes, sure.", "Please stop calling me.", "Hm."]).await;
        let _server = hear_itself(world, |_| says_good_bye()).await;
        let tenant = world.tenant().await;
        let mut page = asked_and_answered(world, &tenant).await;
        assert_eq!(page.play_until(5).await, "agent: Goodbye.");
        for _ in 0..50 {
            page.next_moment().await;
        }
        assert!(!page.talk.is_finished(), "it has not hung up");
        open.send(true).unwrap();
        let id = page.id.clone();
        let shown = page.end().await;
        assert_eq!(shown[5..], ["agent: I understand. You will not be called again. Goodbye."]);
        world.settle().await;
        assert_eq!(session(&tenant, &id).await["end_reason"], "opt_out");
    }

    /// Its provider writes down what it hears: the words need no second one.
    async fn a_model_that_hears_may_tell_the_words_itself(world: &mut World) {
        let kind = "conversation.item.input_audio_transcription.completed";
        let server = hear_itself(world, |_| realtime_server::Answer::Say("It is noon.".into()))
            .await
            .understand(move |_, item| vec![json!({ "type": kind, "item_id": item, "transcript": "Please stop calling me." })]);
        let model = json!("gpt-live-transcribe");
        world.change_setting("realtime_transcription_model", model.clone()).await;
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "brain": { "mode": "realtime" } })).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_until(1).await;
        world.advance(seconds(1)).await;
        page.speak().await;
        let id = page.id.clone();
        let shown = page.end().await;
        assert_eq!(shown[..2], ["agent: Good day!", "user: Please stop calling me."]);
        assert_eq!(shown.last().unwrap(), "agent: I understand. You will not be called again. Goodbye.");
        world.settle().await;
        assert_eq!(session(&tenant, &id).await["end_reason"], "opt_out");
        assert_eq!(transcript(&tenant, &id).await[1]["content"], "Please stop calling me.");
        let session = server.events_of("session.update").remove(0);
        assert_eq!(session["session"]["audio"]["input"]["transcription"], json!({ "model": model, "language": "en" }));
        // The answer that the wish cut may have been whole by then.
        assert!(server.errors().iter().all(|error| error["error"]["code"] == "response_cancel_not_active"), "{:?}", server.errors());
    }
}
