//! Sound and keys, in both directions.
use super::{
    scenarios,
    stage::{CALLEE, OURS, Stage, end, local, media_of},
};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, polite_phone},
        ear::{Ear, Packet},
        pause,
        sipp::Scenario,
        sound::{SENTENCE, Sound},
        until,
    },
};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};

/// Somebody who picks up at once, with sound there, and says goodbye politely. Keys cannot be told apart from sound.
pub fn phone_without_keys(at: SocketAddr, rtp: u16) -> BytePeer {
    polite_phone(at, move |_| format!("m=audio {rtp} RTP/AVP 0"))
}

/// What was pressed at the other end, put together.
fn pressed(timeline: &[Value]) -> String {
    let keys = timeline.iter().filter(|entry| entry["kind"] == "keys_pressed");
    keys.filter_map(|entry| entry["detail"].as_str()).collect()
}

async fn are_pressed(stage: &Stage, id: &str, keys: &str) {
    let path = format!("/v1/sessions/{id}/timeline");
    let so = |timeline: &Value| {
        timeline["entries"]
            .as_array()
            .is_some_and(|entries| pressed(entries) == keys)
    };
    stage.api.until(&path, so).await;
}

fn has_user_turn(transcript: &Value) -> bool {
    transcript["turns"]
        .as_array()
        .is_some_and(|turns| turns.iter().any(|turn| turn["role"] == "user"))
}

on_the_phone! {
    /// 38. A tone arrives as it was sent, and nothing of the agent's is lost.
    async fn a_tone_is_recorded_as_it_came(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({ "tone_hz": 440 }), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "recording": { "enabled": true, "channels": "dual" } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        pause(6_000).await;
        telephone.tell(json!({ "do": "stats" }));
        let stats = telephone.hears("stats", |_| true).await;
        let [lost, discarded, received] = ["lost", "discarded", "received"].map(|name| stats[name].as_u64().unwrap());
        // A telephone that is late has no room for what comes all at once.
        assert!(lost == 0 && discarded * 10 <= received, "{stats}");
        assert!(received > 150, "silence is sent too: {stats}");
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        assert!(ended["quality"]["loss_percent"].is_number(), "{ended}");
        let [_, theirs] = stage.recording(&ended).await;
        // Four seconds from the middle: that alone, but for the holes of a telephone that is late.
        assert!(theirs.ms() > 4_000, "{} ms of {}/s of {ended}", theirs.ms(), theirs.rate);
        let middle = theirs.ms() / 2 - 2_000;
        let shares: Vec<_> = (0..40).map(|n| theirs.share_of(440.0, middle + n * 100, 100)).collect();
        assert!(shares.iter().filter(|share| **share > 0.9).count() >= 30, "{shares:?}");
    }

    /// 41. Keys in both directions: as events (RFC 4733), in INFO, and each once.
    async fn keys_are_pressed(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        stage.is(&id, "in_progress").await;
        telephone.tell(json!({ "do": "dtmf", "digits": "1223#" }));
        are_pressed(stage, &id, "1223#").await;
        telephone.tell(json!({ "do": "info_digits", "digits": "7*" }));
        are_pressed(stage, &id, "1223#7*").await;
        stage.api.post(&format!("/v1/sessions/{id}/dtmf"), json!({ "digits": "40*9" })).await;
        telephone.hears("dtmf", |event| event["digit"] == "9").await;
        assert_eq!(telephone.digits(), "40*9");
        telephone.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 41. A telephone that knows no events: its keys are two tones in the sound, and so are ours.
    async fn keys_are_heard(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        stage.is(&id, "in_progress").await;
        let mut keys = Sound::silence(500);
        // 5 and #. (ITU-T Q.23.)
        for (low, high) in [(770.0, 1_336.0), (941.0, 1_477.0)] {
            keys = keys.then(Sound::tone(low, 300).with(&Sound::tone(high, 300))).then(Sound::silence(200));
        }
        ear.says(keys, to, |packets| packets).await;
        // A sender that is late cuts a key in two.
        let are_heard = |timeline: &Value| {
            let keys = timeline["entries"].as_array().map(|entries| pressed(entries)).unwrap_or_default();
            let mut keys: Vec<char> = keys.chars().collect();
            keys.dedup();
            keys == ['5', '#']
        };
        stage.api.until(&format!("/v1/sessions/{id}/timeline"), are_heard).await;
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 42. Somebody picks up, and no sound ever comes.
    async fn nothing_is_ever_heard(stage: &mut Stage) needs [Sipp] {
        let (at, ear) = (stage.address(), stage.ear());
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::ANSWERS, at.port()).with("rtp", ear.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "media_timeout"), "{ended}");
        sipp.succeeds().await;
        let waited = sipp.got("BYE")[0].at_ms - sipp.got("ACK")[0].at_ms;
        assert!((9_000..25_000).contains(&waited), "{waited} ms");
    }

    /// 42. Somebody's telephone dies in the middle of a talk: after 30 s without a sound the call is over.
    async fn a_telephone_dies(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        // It would wait for words for longer.
        let agent = stage.agent(json!({ "silence": { "hangup_after_seconds": 300 } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        ear.breathes(media_of(peer.hears("INVITE", 1).await.body()));
        stage.is(&id, "in_progress").await;
        // Past the ten seconds in which something must have come.
        pause(12_000).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        drop(ear);
        let died = std::time::Instant::now();
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "media_timeout"), "{ended}");
        assert!((28..50).contains(&died.elapsed().as_secs()), "{:?}", died.elapsed());
        peer.hears("BYE", 1).await;
    }

    /// 43. Sound from a stranger is not heard, and does not draw ours to him.
    async fn a_stranger_sends_sound(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        stage.is(&id, "in_progress").await;
        ear.says(Sound::silence(500), to, |packets| packets).await;
        let stranger = Ear::at(([127, 0, 0, 2], *stage.ports.range(2).start()));
        let speech = || Sound::silence(200).then(Sound::of_mu_law(SENTENCE)).then(Sound::silence(1_500));
        tokio::join!(
            stranger.says(speech(), to, |packets| packets),
            ear.says(Sound::silence(speech().ms() as usize), to, |packets| packets),
        );
        let transcript = format!("/v1/sessions/{id}/transcript.json");
        assert!(!has_user_turn(&stage.api.get(&transcript).await));
        assert!(stranger.packets().is_empty(), "{} packets for a stranger", stranger.packets().len());
        // Whom it belongs to is heard still, and hears.
        let before = ear.packets().len();
        ear.says(speech(), to, |packets| packets).await;
        stage.api.until(&transcript, has_user_turn).await;
        assert!(ear.packets().len() > before + 50);
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 45. Who cuts in silences the agent within 300 ms, and what was under way.
    async fn a_person_cuts_in(stage: &mut Stage) needs [Pjsip] {
        let speech = Sound::of_mu_law(SENTENCE).then(Sound::silence(2_000));
        // How long it is quiet before the voice begins.
        let lead = speech.loud_ms()[0];
        let (says, heard) = (stage.recorded("says.wav", &speech), stage.file("heard.wav"));
        let mut telephone = stage.telephone(json!({ "record": heard }), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let long = "Let me tell you about our new offer, which is better than anything that you have seen before. ".repeat(8);
        let agent = stage.agent(json!({ "first_message": long })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let began = telephone.hears("recording", |_| true).await["at_ms"].as_u64().unwrap();
        pause(3_000).await;
        telephone.tell(json!({ "do": "play", "file": says }));
        let cut_in = telephone.hears("playing", |_| true).await["at_ms"].as_u64().unwrap() + lead - began;
        stage.api.until(&format!("/v1/sessions/{id}/transcript.json"), has_user_turn).await;
        telephone.tell(json!({ "do": "hang_up" }));
        telephone.hears("gone", |_| true).await;
        let loud = Sound::read(&heard).loud_ms();
        assert!(loud.iter().any(|at| (cut_in.saturating_sub(1_000)..cut_in).contains(at)), "it spoke when it was cut off");
        // The first pause that no pause between two words is as long as.
        let after: Vec<_> = loud.iter().copied().filter(|at| *at >= cut_in).collect();
        let is_followed_by_silence = |at: &u64| !loud.iter().any(|other| (*at + 20..*at + 500).contains(other));
        let fell_silent = after.iter().copied().find(is_followed_by_silence).unwrap_or(cut_in) - cut_in;
        // PJSIP's own clock and buffers add up to 100 ms, and a machine that is busy much more.
        assert!(fell_silent <= 1_500, "{fell_silent} ms: {loud:?}");
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 39, a part of it. What a bad network does to packets takes no words away: twice, late, and every twentieth lost.
    async fn packets_come_as_they_like(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        stage.is(&id, "in_progress").await;
        // The agent's hello is over by then.
        ear.says(Sound::silence(4_000), to, |packets| packets).await;
        let speech = Sound::of_mu_law(SENTENCE).then(Sound::silence(2_000));
        let bad = |packets: Vec<Packet>| {
            let mut all: Vec<Packet> = packets.into_iter().enumerate().filter(|(n, _)| n % 20 != 7).map(|(_, packet)| packet).collect();
            let twice: Vec<Packet> = all.iter().step_by(9).cloned().collect();
            all.chunks_mut(3).step_by(4).for_each(<[Packet]>::reverse);
            all.extend(twice);
            all
        };
        let before = ear.packets().len();
        ear.says(speech, to, bad).await;
        let transcript = format!("/v1/sessions/{id}/transcript.json");
        let turns = stage.api.until(&transcript, has_user_turn).await;
        let users = turns["turns"].as_array().unwrap().iter().filter(|turn| turn["role"] == "user").count();
        assert!((1..=2).contains(&users), "one sentence, which a sender that is late cuts in two: {turns}");
        until("the agent answers", || ear.packets()[before..].iter().any(Packet::is_loud)).await;
        // To where it was told, all the time.
        assert!(ear.packets().iter().all(|packet| packet.from == local(to.port())));
        let spacing: Vec<_> = ear.packets().windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        let late = spacing.iter().filter(|gap| **gap > Duration::from_millis(60)).count();
        // On a machine that runs other tests at once nothing finer can be told; the load run measures it.
        assert!(late * 5 <= spacing.len(), "{late} of {} gaps over 60 ms", spacing.len());
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        stage.ended(&id).await;
    }
}
