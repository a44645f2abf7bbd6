//! What is said on the phone, and what follows from it.
use super::{
    exchange::{Exchange, PERSON, has},
    scenarios,
    stage::{CALLEE, HELLO, OURS, Stage, end, media_of},
    strangers::phone,
};
use crate::{
    on_the_phone,
    world::{
        phone::{
            PATIENCE,
            byte_peer::BytePeer,
            ear::Ear,
            pause,
            sipp::Scenario,
            sound::{SENTENCE, Sound, YES},
        },
        transcription_server::{Answer, TranscriptionServer},
    },
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A service that understands these words, one after the other, whatever is said.
async fn understanding(stage: &mut Stage, words: &'static [&'static str]) -> TranscriptionServer {
    let server =
        TranscriptionServer::start_with(|_, before| Answer::Words((*words.get(before).unwrap_or(&"")).to_owned()))
            .await;
    stage.restart_with(&[("CALLBOARD_TRANSCRIPTION_URL", &server.url())]);
    server
}

/// A call over a trunk of one call in so many seconds, whose second leg has a channel and waits for its turn.
struct Waiting {
    trunk: String,
    id: String,
    peer: BytePeer,
    _ear: Ear,
}

impl Waiting {
    async fn hand_over(stage: &mut Stage, calls_per_second: f64) -> Self {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone(at, ear.port());
        let rate = json!({ "max_calls_per_second": calls_per_second });
        let trunk = stage.trunk(at.port(), rate).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        ear.breathes(media_of(peer.hears("INVITE", 1).await.body()));
        stage.is(&id, "in_progress").await;
        let wanted = json!({ "transfer_number": PERSON });
        stage.api.post(&format!("/v1/sessions/{id}/transfer"), wanted).await;
        let waiting = Waiting {
            trunk: format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap()),
            id,
            peer,
            _ear: ear,
        };
        waiting.uses(stage, 2).await;
        waiting
    }

    /// Waits until so many of the trunk's channels are taken.
    async fn uses(&self, stage: &Stage, channels: u64) {
        let so = |trunk: &serde_json::Value| trunk["state"]["in_use"] == channels;
        stage.api.until(&self.trunk, so).await;
    }

    /// That nobody but the caller was called.
    fn assert_nobody_else_was_called(&self) {
        let invites = self.peer.heard("INVITE");
        let to = invites.iter().map(|invite| invite.header("To").unwrap_or_default());
        let others: Vec<_> = to.filter(|to| !to.contains(CALLEE)).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

on_the_phone! {
    /// 47. Consent by word: nothing is recorded before the yes.
    async fn consent_is_given(stage: &mut Stage) needs [Pjsip] {
        let _server = understanding(stage, &["Yes."]).await;
        let says = stage.recorded("yes.wav", &Sound::of_mu_law(YES).then(Sound::silence(2_000)));
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "recording": { "enabled": true, "consent": "verbal" } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        // The question is in tones; it is over by then.
        pause(6_000).await;
        assert_eq!(stage.session(&id).await["consent"], "pending");
        telephone.tell(json!({ "do": "play", "file": says }));
        stage.api.until(&format!("/v1/sessions/{id}"), |session| session["consent"] == "granted").await;
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        assert!(ended["recording_id"].is_string(), "{ended}");
    }

    /// 48. An opt-out by voice: the number is on the list before the BYE leaves.
    async fn somebody_wants_no_more_calls(stage: &mut Stage) needs [Pjsip] {
        let _server = understanding(stage, &["Please stop calling me."]).await;
        let says = stage.recorded("says.wav", &Sound::silence(3_000).then(Sound::of_mu_law(SENTENCE)).then(Sound::silence(3_000)));
        let mut telephone = stage.telephone(json!({ "play": says }), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("DISCONNECTED").await;
        let listed = stage.api.get(&format!("/v1/dnc/check?phone_number=%2B{}", &CALLEE[1..])).await;
        assert_eq!((&listed["listed"], &listed["entry"]["source"]), (&json!(true), &json!("opt_out_voice")), "{listed}");
        assert_eq!(end(&stage.ended(&id).await), ("completed", "opt_out"));
        let events = stage.api.all("/v1/events").await;
        let at = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
        assert!(at("session.opt_out_detected") < at("session.ended"));
        let (status, code) = stage.api.call(&agent["id"], CALLEE).await;
        assert_eq!((status, code.as_str()), (409, Some("recipient_on_dnc")));
    }

    /// 50. A machine: the message begins after its beep, and is said to its end.
    async fn a_message_is_left_after_the_beep(stage: &mut Stage) needs [Pjsip] {
        let greeting = Sound::silence(200).then(Sound::greeting()).then(Sound::silence(400));
        let beep = Sound::tone(1_000.0, 500);
        let beeps_at = greeting.ms();
        assert!(beeps_at > 3_500, "a greeting is longer than a person's hello: {beeps_at} ms");
        let says = stage.recorded("says.wav", &greeting.then(beep).then(Sound::silence(30_000)));
        let heard = stage.file("heard.wav");
        let mut telephone = stage.telephone(json!({ "play": says, "record": heard }), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let voicemail = json!({ "detection": "auto", "action": "leave_message", "message": "Ann called about your appointment on Friday." });
        let id = stage.call(&agent, CALLEE, json!({ "voicemail": voicemail })).await;
        telephone.hears("gone", |_| true).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["answered_by"].as_str()), (("voicemail", "voicemail_left"), Some("voicemail")), "{ended}");
        let sound = Sound::read(&heard);
        let loud = sound.loud_ms();
        let first = loud[0];
        // Both began with the call's sound, within a beat or two of each other.
        assert!(first + 100 >= beeps_at + 500, "it spoke at {first} ms, into the greeting that beeps at {beeps_at} ms");
        assert!(first < beeps_at + 500 + 3_000, "{first} ms");
        let spoken = loud.last().unwrap() - first;
        assert!(spoken > 1_500, "the whole message, not {spoken} ms of it");
        let started = stage.api.all("/v1/events").await.iter().filter(|event| event["type"] == "session.started").count();
        assert_eq!(started, 1, "a machine that is left a message was reached");
    }

    /// 53. A bridge that is answered: both are heard by each other, and the session lives until one hangs up.
    async fn a_call_is_handed_over(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let heard = stage.file("heard.wav");
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({ "ring_ms": 500, "record": heard })).await;
        let (id, timeline) = exchange.hand_over(stage, &mut caller).await;
        person.is("CONFIRMED").await;
        stage.api.until(&timeline, has("bridged")).await;
        // From here on the person hears it.
        caller.tell(json!({ "do": "tone", "hz": 440 }));
        pause(2_000).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress", "it lives as long as they talk");
        caller.tell(json!({ "do": "hang_up" }));
        person.hears("gone", |_| true).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "transferred"), "{ended}");
        let sound = Sound::read(&heard);
        let shares: Vec<_> = (0..sound.ms() / 100).map(|n| sound.share_of(440.0, n * 100, 400)).collect();
        assert!(shares.iter().any(|share| *share > 0.8), "the caller's tone did not come through: {shares:?}");
    }

    /// 53. What is said after a call was handed over is recorded if the agent's settings say so, and only then.
    async fn what_is_said_after_a_transfer_is_recorded(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({ "tone_hz": 880 })).await;
        for is_recorded in [true, false] {
            let recording = json!({ "enabled": true, "consent": "notice", "transfers": is_recorded });
            let agent = stage.agent(json!({ "recording": recording })).await;
            let (id, timeline) = exchange.hand_over_from(stage, &mut caller, &agent).await;
            person.is("CONFIRMED").await;
            stage.api.until(&timeline, has("bridged")).await;
            caller.tell(json!({ "do": "tone", "hz": 440 }));
            pause(4_000).await;
            caller.tell(json!({ "do": "hang_up" }));
            person.is("DISCONNECTED").await;
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("completed", "transferred"), "{ended}");
            let [said, heard] = stage.recording(&ended).await;
            for (who, sound, hz) in [("who took over", said, 880.0), ("the caller", heard, 440.0)] {
                let shares: Vec<_> = (0..sound.ms() / 100).map(|n| sound.share_of(hz, n * 100, 100)).collect();
                let loud = shares.iter().filter(|share| **share > 0.8).count();
                assert!(if is_recorded { loud >= 10 } else { loud == 0 }, "{who}, recorded: {is_recorded}: {shares:?}");
            }
        }
    }

    /// L3. Whoever was handed over presses the key while somebody else talks there: the number is on the list, and they talk on.
    async fn who_presses_the_key_in_a_bridge_is_called_no_more(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({})).await;
        let agent = stage.agent(json!({ "opt_out": { "key": "9" } })).await;
        let (id, timeline) = exchange.hand_over_from(stage, &mut caller, &agent).await;
        person.is("CONFIRMED").await;
        stage.api.until(&timeline, has("bridged")).await;
        let of = |number: &str| format!("/v1/dnc/check?phone_number=%2B{}", &number[1..]);
        // Whoever took over wishes nothing, and a key that was not offered means nothing.
        person.tell(json!({ "do": "dtmf", "digits": "9" }));
        caller.hears("dtmf", |_| true).await;
        caller.tell(json!({ "do": "dtmf", "digits": "1" }));
        person.hears("dtmf", |_| true).await;
        for number in [CALLEE, PERSON] {
            assert_eq!(stage.api.get(&of(number)).await["listed"], false, "{number}");
        }
        caller.tell(json!({ "do": "dtmf", "digits": "9" }));
        let listed = stage.api.until(&of(CALLEE), |check| check["listed"] == true).await;
        assert_eq!(listed["entry"]["source"], "opt_out_voice", "{listed}");
        stage.api.until(&timeline, has("opt_out")).await;
        let pressed = stage.timeline(&id).await.into_iter().filter(|entry| entry["kind"] == "keys_pressed");
        assert_eq!(pressed.map(|entry| entry["detail"].clone()).collect::<Vec<_>>(), ["9"]);
        assert_eq!(stage.session(&id).await["status"], "in_progress", "they talk on");
        caller.tell(json!({ "do": "hang_up" }));
        person.hears("gone", |_| true).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "transferred"));
    }

    /// 53. Nobody takes over: busy, and then nobody at all for 45 s. The agent has the caller back.
    async fn nobody_takes_over(stage: &mut Stage) needs [Kamailio, Pjsip] {
        for (behaviour, seconds) in [(json!({ "code": 486 }), 0..15), (json!({ "code": null }), 43..60)] {
            let exchange = Exchange::open(stage).await;
            let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
            let mut person = exchange.telephone(stage, PERSON, behaviour).await;
            let (id, timeline) = exchange.hand_over(stage, &mut caller).await;
            let began = Instant::now();
            stage.api.until(&timeline, has("transfer_failed")).await;
            assert!(seconds.contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
            assert_eq!(stage.session(&id).await["status"], "in_progress");
            person.is("DISCONNECTED").await;
            caller.tell(json!({ "do": "hang_up" }));
            assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        }
    }

    /// 53. Both legs count: a trunk that takes one call has no channel for whoever is to take over.
    async fn no_channel_is_left(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open_with(stage, json!({ "max_concurrency": 1 })).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let (id, timeline) = exchange.hand_over(stage, &mut caller).await;
        stage.api.until(&timeline, has("transfer_failed")).await;
        let entries = stage.timeline(&id).await;
        let failed = entries.iter().find(|entry| entry["kind"] == "transfer_failed").unwrap();
        assert!(failed.to_string().contains("all channels of the trunk are taken"), "{failed}");
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        caller.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 53. Whoever is to take over is called at once, whatever the agent is saying; of that, what was heard stands.
    async fn a_transfer_waits_for_no_words(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({})).await;
        // Half a minute.
        let words = [HELLO; 8].join(" ");
        let agent = stage.agent(json!({ "first_message": words })).await;
        let id = exchange.call(stage, &mut caller, &agent).await;
        // Some of it is heard.
        pause(1_500).await;
        let timeline = exchange.transfer(stage, &id).await;
        person.is("CONFIRMED").await;
        stage.api.until(&timeline, has("bridged")).await;
        caller.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "transferred"));
        let transcript = stage.api.get(&format!("/v1/sessions/{id}/transcript.json")).await;
        let turns = transcript["turns"].as_array().unwrap().iter().filter(|turn| turn["role"] == "agent");
        let heard: usize = turns.map(|turn| turn["content"].as_str().unwrap_or_default().len()).sum();
        assert!((1..words.len() / 2).contains(&heard), "{heard} of {}: {transcript}", words.len());
    }

    /// 53. A second leg takes its turn like any call: over a trunk that takes one in four seconds it leaves four seconds after the first.
    async fn a_second_leg_keeps_to_the_rate_of_its_trunk(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open_with(stage, json!({ "max_calls_per_second": 0.25 })).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({})).await;
        let began = Instant::now();
        let (id, timeline) = exchange.hand_over(stage, &mut caller).await;
        person.is("CONFIRMED").await;
        assert!(began.elapsed().as_millis() > 3_900, "both legs within {:?}", began.elapsed());
        stage.api.until(&timeline, has("bridged")).await;
        caller.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "transferred"));
    }

    /// 53. A trunk that is paused while a second leg waits for its turn: nobody is called over it any more, and the talk goes on.
    async fn a_trunk_is_paused_before_the_turn_comes(stage: &mut Stage) needs [] {
        let waiting = Waiting::hand_over(stage, 0.125).await;
        let patch = stage.api.client.patch(format!("{}{}", stage.api.url, waiting.trunk)).bearer_auth(&stage.api.key);
        let paused = patch.json(&json!({ "paused": true })).send().await.unwrap();
        assert_eq!(paused.status().as_u16(), 200);
        stage.api.until(&format!("/v1/sessions/{}/timeline", waiting.id), has("transfer_failed")).await;
        let entries = stage.timeline(&waiting.id).await;
        let failed = entries.iter().find(|entry| entry["kind"] == "transfer_failed").unwrap();
        assert!(failed.to_string().contains("the trunk is paused"), "{failed}");
        waiting.assert_nobody_else_was_called();
        assert_eq!(stage.session(&waiting.id).await["status"], "in_progress");
        stage.hang_up(&waiting.id).await;
        assert_eq!(end(&stage.ended(&waiting.id).await), ("completed", "completed"));
        waiting.uses(stage, 0).await;
    }

    /// 53. A turn that leaves no time to ring is not waited for: of four at once over a trunk of one call in ten seconds, the third would ring
    /// for 25 seconds and the last for 15.
    async fn a_turn_that_comes_too_late_is_not_waited_for(stage: &mut Stage) needs [Sipp] {
        let (at, from, ear) = (stage.address(), stage.address(), stage.ear());
        let _person = phone(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({ "max_calls_per_second": 0.1 })).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let callers = Scenario::new(scenarios::CALLS, from.port()).with("talk", 60_000).with("rtp", ear.port()).times(4);
        // All at once: when somebody has talked for a second, a machine whose sound is late refuses whoever comes.
        let callers = callers.and(&["-r", "100"]);
        let mut sipp = callers.calling(stage.sip, OURS).start().await;
        let talks = |list: &Value| list["data"].as_array().unwrap().iter().filter(|call| call["status"] == "in_progress").count();
        let calls = stage.api.until("/v1/sessions?direction=inbound", |list| talks(list) == 4).await;
        sipp.got("200").iter().for_each(|picked_up| ear.breathes(media_of(&picked_up.text)));
        let calls = calls["data"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap());
        let calls: Vec<&str> = calls.collect();
        for id in &calls {
            stage.api.post(&format!("/v1/sessions/{id}/transfer"), json!({ "transfer_number": PERSON })).await;
        }
        let began = Instant::now();
        let mut failed = String::new();
        while !failed.contains("its rate leaves no room for one more call in time") {
            assert!(began.elapsed() < PATIENCE, "each is waited for: {failed}");
            failed.clear();
            for id in &calls {
                let entries = stage.timeline(id).await;
                let its = entries.iter().filter(|entry| entry["kind"] == "transfer_failed");
                its.for_each(|entry| failed += &entry.to_string());
            }
            pause(50).await;
        }
        for id in &calls {
            stage.hang_up(id).await;
            stage.ended(id).await;
        }
        sipp.ends().await;
    }

    /// 53. A caller who goes before the second leg has its turn: its channel is free at once.
    async fn a_caller_goes_before_the_turn_comes(stage: &mut Stage) needs [] {
        let waiting = Waiting::hand_over(stage, 0.1).await;
        let began = Instant::now();
        stage.hang_up(&waiting.id).await;
        waiting.uses(stage, 0).await;
        assert!(began.elapsed() < Duration::from_secs(8), "its turn is after ten: {:?}", began.elapsed());
        assert_eq!(end(&stage.ended(&waiting.id).await), ("completed", "completed"));
        waiting.assert_nobody_else_was_called();
    }

    /// 53. The caller is gone before anybody takes over: the second telephone stops ringing.
    async fn the_caller_goes_meanwhile(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({ "code": null })).await;
        let (id, _) = exchange.hand_over(stage, &mut caller).await;
        person.is("EARLY").await;
        caller.tell(json!({ "do": "hang_up" }));
        let gone = person.is("DISCONNECTED").await;
        assert_eq!(gone["code"], 487, "{gone}");
        stage.ended(&id).await;
    }

    /// 53. The person who took over hangs up first.
    async fn who_took_over_hangs_up(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let exchange = Exchange::open(stage).await;
        let mut caller = exchange.telephone(stage, CALLEE, json!({})).await;
        let mut person = exchange.telephone(stage, PERSON, json!({ "hang_up_ms": 4_000 })).await;
        let (id, _) = exchange.hand_over(stage, &mut caller).await;
        person.is("DISCONNECTED").await;
        caller.is("DISCONNECTED").await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "transferred"));
    }
}
