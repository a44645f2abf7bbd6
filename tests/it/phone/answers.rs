//! Who picks up, and how soon the agent speaks.
use super::{
    media::phone_without_keys,
    stage::{CALLEE, OURS, Stage, end, media_of},
    strangers::TRIES,
};
use crate::{
    on_the_phone,
    world::{
        chat_server::ChatServer,
        phone::{
            byte_peer::BytePeer,
            ear::Packet,
            sound::{Sound, YES},
            until,
        },
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

/// What the timeline says of our first sound, as soon as it does.
async fn first_sound(stage: &Stage, id: &str) -> String {
    let of = |timeline: &Value| {
        let entries = timeline["entries"].as_array()?;
        let entry = entries.iter().find(|entry| entry["kind"] == "first_sound")?;
        entry["detail"].as_str().map(str::to_owned)
    };
    let path = format!("/v1/sessions/{id}/timeline");
    of(&stage.api.until(&path, |timeline| of(timeline).is_some()).await).unwrap()
}

/// Waits until so many calls were picked up there; answers where the sound of the last one goes.
async fn picked_up(peer: &BytePeer, calls: usize) -> SocketAddr {
    let is_so = || {
        let acks = peer.heard("ACK");
        let ids: BTreeSet<_> = acks.iter().map(|ack| ack.header("Call-ID")).collect();
        ids.len() >= calls
    };
    until("it is picked up", is_so).await;
    media_of(peer.heard("INVITE").last().unwrap().body())
}

on_the_phone! {
    /// 51. A fax calls (1100 Hz) or answers (2100 Hz): it is known for one, hears nothing and is hung up on, whatever a machine would.
    async fn a_fax_is_hung_up_on(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let voicemail = json!({ "voicemail": { "detection": "auto", "action": "leave_message", "message": "Ann called." } });
        for (n, hz) in [1_100.0, 2_100.0].into_iter().enumerate() {
            let id = stage.call(&agent, CALLEE, voicemail.clone()).await;
            let to = picked_up(&peer, n + 1).await;
            let (ended, ()) = tokio::join!(stage.ended(&id), ear.says(Sound::tone(hz, 4_000), to, |packets| packets));
            assert_eq!((end(&ended), ended["answered_by"].as_str()), (("voicemail", "voicemail"), Some("fax")), "{hz}: {ended}");
        }
        assert!(!ear.packets().iter().any(Packet::is_loud), "nobody talks to a fax");
    }

    /// How soon our first sound follows the greeting is measured, and it is what the phone has heard. (16 CFR 310.4(b)(4)(iii).)
    async fn our_first_sound_is_measured(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let mut seen = Vec::new();
        for n in 0..TRIES {
            let id = stage.call(&agent, CALLEE, json!({ "voicemail": { "detection": "auto" } })).await;
            let to = picked_up(&peer, n + 1).await;
            let before = ear.passed().len();
            let greeting = Sound::silence(400).then(Sound::of_mu_law(YES)).then(Sound::silence(2_500));
            let (told, ()) = tokio::join!(first_sound(stage, &id), ear.says(greeting, to, |packets| packets));
            let loud_from = |port: u16| {
                let mut passed = ear.passed().split_off(before);
                passed.retain(|(packet, _)| packet.is_loud() && packet.from.port() == port);
                passed
            };
            until("the agent is heard", || !loud_from(to.port()).is_empty()).await;
            let (ours, theirs) = (loud_from(to.port()), loud_from(ear.port()));
            let waited = ours[0].0.at.duration_since(theirs.last().unwrap().0.at);
            let measured = told.strip_suffix(" ms after the greeting").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
            // By the sound of the greeting, and by its packets: what is still a word is a matter of judgement.
            let is_right = measured.is_some_and(|measured| measured.abs_diff(waited) < Duration::from_millis(500));
            seen.push(((told, waited), is_right));
            stage.hang_up(&id).await;
            assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
            if is_right {
                break;
            }
        }
        assert!(seen.iter().any(|(_, is_right)| *is_right), "what was told, and how long it was: {seen:?}");
    }

    /// 50. What is left to a machine needs nobody who thinks: the model dies in the middle of the greeting, and was never asked.
    async fn a_message_is_left_though_the_model_has_died(stage: &mut Stage) needs [] {
        let server = ChatServer::start().await;
        stage.restart_with(&[("CALLBOARD_CHAT_URL", &server.url())]);
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "brain": { "mode": "chat", "model": "local" } })).await;
        let voicemail = json!({ "detection": "auto", "action": "leave_message", "message": "Ann called about Friday." });
        let id = stage.call(&agent, CALLEE, json!({ "voicemail": voicemail })).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        peer.hears("ACK", 1).await;
        let greeting = Sound::silence(200).then(Sound::greeting()).then(Sound::silence(200));
        let beep = Sound::tone(1_000.0, 400).then(Sound::silence(600));
        let dies = async {
            until("much of the greeting is said", || ear.passed().iter().filter(|(_, whom)| *whom == to).count() > 125).await;
            assert_eq!(server.requests(), Vec::<Value>::new());
            drop(server);
        };
        tokio::join!(ear.says(greeting.then(beep), to, |packets| packets), dies);
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["answered_by"].as_str()), (("voicemail", "voicemail_left"), Some("voicemail")), "{ended}");
        let loud = ear.packets().iter().filter(|packet| packet.is_loud()).count();
        assert!(loud > 25, "the message was heard: {loud} packets of it");
    }

    /// Somebody picks up before it is known that the model cannot be reached: they are told, and not left in silence.
    async fn who_has_picked_up_hears_that_the_model_cannot_be_reached(stage: &mut Stage) needs [] {
        // Nobody listens there.
        let nobody = format!("http://{}/v1", stage.address());
        stage.restart_with(&[("CALLBOARD_CHAT_URL", &nobody)]);
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "brain": { "mode": "chat", "model": "local" } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        ear.breathes(media_of(peer.hears("INVITE", 1).await.body()));
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "provider_error"), "{ended}");
        assert!(ended["abandoned"].is_string(), "an apology is no agent: {ended}");
        let why = ended["error"]["message"].as_str().unwrap();
        assert!(why.starts_with("the provider failed: ") && why.contains("cannot be reached"), "{why}");
        assert!(!ended["started_at"].is_null(), "{ended}");
        peer.hears("BYE", 1).await;
        let loud = ear.packets().iter().filter(|packet| packet.is_loud()).count();
        assert!(loud > 25, "the apology was heard: {loud} packets of it");
        let transcript = stage.api.get(&format!("/v1/sessions/{id}/transcript.json")).await;
        let said: Vec<_> = transcript["turns"].as_array().unwrap().iter().map(|turn| turn["content"].as_str().unwrap()).collect();
        assert_eq!(said, ["I am sorry, there is a technical problem. Goodbye."]);
        let timeline = stage.timeline(&id).await;
        assert!(timeline.iter().any(|entry| entry["kind"] == "ended" && entry["detail"] == "provider_error"), "{timeline:?}");
    }

    /// Where nobody greets, it is measured from the pick-up; also of a call that is over at once.
    async fn our_first_sound_to_one_who_says_nothing(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        ear.breathes(media_of(peer.hears("INVITE", 1).await.body()));
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        let told = first_sound(stage, &id).await;
        assert!(told.ends_with(" ms after the pick-up"), "{told}");
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// A message that stands is heard though no model, no voice and no ears of a provider can be reached.
    async fn a_message_needs_no_provider(stage: &mut Stage) needs [Pjsip] {
        const NOBODY: &str = "http://127.0.0.1:9/v1";
        stage.restart_with(&[
            ("CALLBOARD_CHAT_URL", NOBODY),
            ("CALLBOARD_TRANSCRIPTION_URL", NOBODY),
            ("CALLBOARD_SPEECH_PROVIDER", "openai"),
            ("CALLBOARD_SPEECH_URL", NOBODY),
            ("CALLBOARD_SPEECH_MODEL", "x"),
            ("CALLBOARD_SPEECH_VOICES", "af_bella"),
        ]);
        let heard = stage.file("heard.wav");
        let mut telephone = stage.telephone(json!({}), json!({ "user": "+12025550111" })).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        let inbound = json!({ "without_agent": "play_message", "message": "We call you back as soon as we can." });
        stage.number(OURS, &trunk, json!({ "inbound": inbound })).await;
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS), "behaviour": { "record": heard } }));
        telephone.hears("gone", |_| true).await;
        assert!(Sound::read(&heard).loud_ms().len() > 50, "a second of it is heard");
    }
}
