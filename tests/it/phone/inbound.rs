//! Calls that come in.
use super::{
    scenarios,
    stage::{OURS, Stage, end, media_of},
};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, Heard, request, response, sdp},
        ear::Packet,
        pause,
        sipp::Scenario,
        sound::{SENTENCE, Sound},
        until,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

/// So often a caller tries: a machine whose sound is late refuses calls (503) before it looks whose they are.
const TRIES: usize = 5;

on_the_phone! {
    /// 22. A number of ours is called, and its agent talks.
    async fn an_agent_answers(stage: &mut Stage) needs [Pjsip] {
        let speech = Sound::silence(3_500).then(Sound::of_mu_law(SENTENCE)).then(Sound::silence(2_000));
        let (says, heard) = (stage.recorded("says.wav", &speech), stage.file("heard.wav"));
        let mut telephone = stage.telephone(json!({}), json!({ "user": "+12025550111" })).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let number = stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS), "behaviour": { "play": says, "record": heard } }));
        telephone.is("EARLY").await;
        telephone.is("CONFIRMED").await;
        let id = stage.has_come_in().await;
        let live = stage.is(&id, "in_progress").await;
        assert_eq!((live["phone_number"].as_str(), live["to_number"].as_str()), (Some("+12025550111"), Some(OURS)), "{live}");
        assert_eq!((live["answered_by"].as_str(), &live["trunk_id"]), (Some("human"), &trunk["id"]), "{live}");
        let spoken = |turns: &Value| turns["turns"].as_array().is_some_and(|turns| turns.iter().any(|turn| turn["role"] == "user"));
        stage.api.until(&format!("/v1/sessions/{id}/transcript.json"), spoken).await;
        telephone.tell(json!({ "do": "hang_up" }));
        telephone.hears("gone", |_| true).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
        assert!(Sound::read(&heard).loud_ms().len() > 50, "a second of the agent is heard");
        let stats = stage.api.get(&format!("/v1/numbers/{}/stats", number["id"].as_str().unwrap())).await;
        assert_eq!((stats["calls"].as_i64(), stats["answered"].as_i64()), (Some(1), Some(1)), "{stats}");
    }

    /// 23. A number that nobody has, from a carrier that we know.
    async fn an_unknown_number_is_not_found(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let scenario = Scenario::new(scenarios::IS_REFUSED, at.port()).with("code", 404);
        let mut sipp = scenario.calling(stage.sip, "+12025559999").start().await;
        sipp.succeeds().await;
        assert!(stage.api.all("/v1/sessions").await.is_empty());
    }

    /// 24. Nobody is there for a number; its callers meet what it says.
    async fn numbers_without_an_agent(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        for (number, instead, code) in [("+12025551002", "busy", 486), ("+12025551003", "reject", 603)] {
            stage.number(number, &trunk, json!({ "inbound": { "without_agent": instead } })).await;
            let scenario = Scenario::new(scenarios::IS_REFUSED, at.port()).with("code", code);
            let mut sipp = scenario.calling(stage.sip, number).start().await;
            sipp.succeeds().await;
        }
        assert!(stage.api.all("/v1/sessions").await.is_empty());
    }

    /// 24. A message, and then the service hangs up.
    async fn a_message_is_played(stage: &mut Stage) needs [Pjsip] {
        let heard = stage.file("heard.wav");
        let mut telephone = stage.telephone(json!({}), json!({ "user": "+12025550111" })).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        let inbound = json!({ "without_agent": "play_message", "message": "We call you back as soon as we can." });
        stage.number(OURS, &trunk, json!({ "inbound": inbound })).await;
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS), "behaviour": { "record": heard } }));
        telephone.is("CONFIRMED").await;
        telephone.hears("gone", |_| true).await;
        assert!(Sound::read(&heard).loud_ms().len() > 25, "half a second is heard");
    }

    /// 24. All slots are taken, then the workspace is suspended.
    async fn no_room_for_a_call(stage: &mut Stage) needs [Sipp, Pjsip] {
        let at = stage.address();
        let mut telephone = stage.telephone(json!({}), json!({ "user": "+12025550111" })).await;
        let agent = stage.agent(json!({})).await;
        let inbound = json!({ "agent_id": agent["id"], "inbound": { "without_slot": "busy" } });
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, inbound.clone()).await;
        let other = stage.trunk(at.port(), json!({})).await;
        stage.number("+12025551002", &other, inbound).await;
        stage.api.limit_concurrency(1).await;
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS) }));
        telephone.is("CONFIRMED").await;
        let mut is_busy = false;
        for _ in 0..TRIES {
            let scenario = Scenario::new(scenarios::IS_REFUSED, at.port()).with("code", 486);
            let mut sipp = scenario.calling(stage.sip, "+12025551002").start().await;
            sipp.ends().await;
            is_busy = !sipp.got("486").is_empty();
            if is_busy {
                break;
            }
            assert!(!sipp.got("503").is_empty(), "{:#?}", sipp.messages());
            pause(2_000).await;
        }
        assert!(is_busy, "its caller is never told that the slot is taken");
        telephone.tell(json!({ "do": "hang_up" }));
        telephone.is("DISCONNECTED").await;
        stage.operator(&["tenant", "suspend", "--workspace", "acme", "--reason", "x"]);
        let scenario = Scenario::new(scenarios::IS_REFUSED, at.port()).with("code", 503);
        let mut sipp = scenario.calling(stage.sip, "+12025551002").start().await;
        sipp.succeeds().await;
        assert!(sipp.got("503")[0].header("Retry-After").is_some(), "{:?}", sipp.messages());
        stage.operator(&["tenant", "resume", "--workspace", "acme"]);
        assert_eq!(stage.api.all("/v1/sessions").await.len(), 1);
    }

    /// 25. The caller gives up while it rings.
    async fn a_caller_gives_up(stage: &mut Stage) needs [Sipp] {
        // A model that never says a word: the agent is waited for, and so it rings.
        let model = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("ws://{}/v1/realtime", model.local_addr().unwrap());
        stage.restart_with(&[("CALLBOARD_REALTIME_URL", &url)]);
        let at = stage.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({ "brain": { "mode": "realtime" } })).await;
        let number = stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let mut sipp = Scenario::new(scenarios::CANCELS, at.port()).calling(stage.sip, OURS).start().await;
        sipp.succeeds().await;
        let id = stage.has_come_in().await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("failed", "canceled"), Some("caller")), "{ended}");
        let stats = stage.api.get(&format!("/v1/numbers/{}/stats", number["id"].as_str().unwrap())).await;
        assert_eq!((stats["calls"].as_i64(), stats["abandoned"].as_i64()), (Some(1), Some(1)), "{stats}");
    }

    /// 26. A caller without an offer gets ours.
    async fn a_caller_without_an_offer(stage: &mut Stage) needs [Sipp] {
        let (at, ear) = (stage.address(), stage.ear());
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let scenario = Scenario::new(scenarios::OFFERLESS, at.port()).with("rtp", ear.port()).with("talk", 2_500);
        let mut sipp = scenario.calling(stage.sip, OURS).start().await;
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        sipp.succeeds().await;
        let id = stage.has_come_in().await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 26. One who brings no offer and wants provisional answers that arrive gets ours in the first of them, and answers it in its PRACK.
    async fn a_caller_without_an_offer_who_wants_reliable_answers(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let (uri, rtp) = (stage.uri(OURS), ear.port());
        let inside = move |heard: &Heard, method: &str, number: u32, more: &str, body: &str| {
            let named = |name: &str| heard.header(name).unwrap().to_owned();
            format!(
                "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bK-in{method}{number};rport\r\nMax-Forwards: 70\r\n\
                 From: {}\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {number} {method}\r\n{more}Content-Length: {}\r\n\r\n{body}",
                named("From"), named("To"), named("Call-ID"), body.len(),
            )
            .into_bytes()
        };
        let says = inside.clone();
        let peer = BytePeer::start(at, move |heard, before| match heard.what() {
            "183" if before == 0 => {
                let rack = format!("RAck: {} 1 INVITE\r\nContent-Type: application/sdp\r\n", heard.header("RSeq").unwrap());
                vec![says(heard, "PRACK", 2, &rack, &sdp(rtp))]
            }
            "200" if heard.header("CSeq").unwrap().ends_with("INVITE") => vec![says(heard, "ACK", 1, "", "")],
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        peer.send(&request("INVITE", &stage.uri(OURS), at, "Require: 100rel\r\n", ""), stage.sip);
        let first = peer.hears("183", 1).await;
        ear.breathes(media_of(first.body()));
        assert!(first.body().contains("m=audio") && first.header("Require") == Some("100rel"), "{}", first.text);
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        let answers = |method: &str| {
            let mut all = peer.heard("200");
            all.retain(|answer| answer.header("CSeq").unwrap().ends_with(method));
            all
        };
        // It may be read later than the sound.
        until("the call is accepted", || !answers("INVITE").is_empty()).await;
        assert_eq!((answers("PRACK")[0].body(), answers("INVITE")[0].body()), ("", ""), "what was agreed on is not offered again");
        let id = stage.has_come_in().await;
        stage.is(&id, "in_progress").await;
        peer.send(&inside(&first, "BYE", 3, "", ""), stage.sip);
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// A caller who gives up while our 200 waits for his PRACK has hung up.
    async fn a_caller_gives_up_before_he_has_acknowledged(stage: &mut Stage) needs [] {
        let (peer, ear) = (stage.silent_peer(), stage.ear());
        let at = peer.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let more = "Require: 100rel\r\nContent-Type: application/sdp\r\n";
        let invite = String::from_utf8(request("INVITE", &stage.uri(OURS), at, more, &sdp(ear.port()))).unwrap();
        peer.send(invite.as_bytes(), stage.sip);
        peer.hears("180", 1).await;
        let id = stage.has_come_in().await;
        stage.is(&id, "in_progress").await;
        assert!(peer.heard("200").is_empty(), "it waits");
        peer.send(invite.replace("INVITE", "CANCEL").as_bytes(), stage.sip);
        peer.hears("487", 1).await;
        peer.send(invite.replace("INVITE", "ACK").as_bytes(), stage.sip);
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
    }

    /// What brings nothing that we read is refused with what we do, and what comes by two ways is one call.
    async fn a_body_that_nobody_reads_and_a_call_that_comes_twice(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let peer = BytePeer::start(at, |heard, _| match heard.what() {
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        peer.send(&request("INVITE", &stage.uri(OURS), at, "Content-Type: text/plain\r\n", "hello"), stage.sip);
        let refused = peer.hears("415", 1).await;
        assert_eq!(refused.header("Accept"), Some("application/sdp"), "{}", refused.text);
        assert!(stage.api.all("/v1/sessions").await.is_empty());
        let invite = request("INVITE", &stage.uri(OURS), at, "Content-Type: application/sdp\r\n", &sdp(ear.port()));
        let invite = String::from_utf8(invite).unwrap();
        peer.send(invite.as_bytes(), stage.sip);
        peer.send(invite.replace("z9hG4bK-bytes", "z9hG4bK-other").as_bytes(), stage.sip);
        let looped = peer.hears("482", 1).await;
        assert!(looped.branch().starts_with("z9hG4bK-other"), "{}", looped.text);
        let ack = invite.replace("INVITE", "ACK");
        peer.send(ack.replace("z9hG4bK-bytes", "z9hG4bK-other").as_bytes(), stage.sip);
        let picked_up = peer.hears("200", 1).await;
        assert!(picked_up.branch().starts_with("z9hG4bK-bytes"), "{}", picked_up.text);
        peer.send(ack.as_bytes(), stage.sip);
        ear.breathes(media_of(picked_up.body()));
        let id = stage.has_come_in().await;
        stage.is(&id, "in_progress").await;
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 28. Who calls: what the carrier vouches for counts more than what the telephone says; who hides stays hidden.
    async fn who_calls(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let vouched = "P-Asserted-Identity: <sip:+12025550133;verstat=TN-Validation-Passed@carrier.example;user=phone>\r\n\
            Diversion: <sip:+12025550144@carrier.example>;reason=user-busy\r\n";
        for (headers, caller) in [
            ("", json!("+12025550111")),
            (vouched, json!("+12025550133")),
            ("Privacy: id\r\n", Value::Null),
        ] {
            // Lines of a scenario end as those of its file do.
            let headers = headers.replace("\r\n", "\n");
            let scenario = Scenario::new(scenarios::CALLS, at.port()).with("headers", headers).with("talk", 300);
            let mut sipp = scenario.calling(stage.sip, OURS).start().await;
            sipp.succeeds().await;
            let newest = stage.api.get("/v1/sessions?limit=1").await["data"][0].clone();
            assert_eq!(newest["from_number"], caller, "{newest}");
            let id = newest["id"].as_str().unwrap();
            stage.ended(id).await;
            if caller == "+12025550133" {
                let timeline = Value::from(stage.timeline(id).await).to_string();
                assert!(timeline.contains("passed") && timeline.contains("+12025550144"), "{timeline}");
            }
        }
    }

    /// 30. While it drains nobody new is let in, and who talks may finish.
    async fn nobody_is_let_in_at_the_end(stage: &mut Stage) needs [Sipp, Pjsip] {
        stage.restart_with(&[("CALLBOARD_DRAIN_SECONDS", "60")]);
        let at = stage.address();
        let mut telephone = stage.telephone(json!({}), json!({ "user": "+12025550111" })).await;
        let agent = stage.agent(json!({})).await;
        let with_agent = json!({ "agent_id": agent["id"] });
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, with_agent.clone()).await;
        let other = stage.trunk(at.port(), json!({})).await;
        stage.number("+12025551002", &other, with_agent).await;
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS) }));
        telephone.is("CONFIRMED").await;
        stage.ask_to_stop();
        let asks = stage.silent_peer();
        let options = request("OPTIONS", &stage.uri(OURS), asks.address(), "", "");
        until("it drains", || {
            asks.send(&options, stage.sip);
            !asks.heard("503").is_empty()
        })
        .await;
        let scenario = Scenario::new(scenarios::IS_REFUSED, at.port()).with("code", 503);
        let mut sipp = scenario.calling(stage.sip, "+12025551002").start().await;
        sipp.succeeds().await;
        assert!(sipp.got("503")[0].header("Retry-After").is_some(), "{:?}", sipp.messages());
        assert_eq!(telephone.open_calls().await.len(), 1, "who talks may finish");
        telephone.tell(json!({ "do": "hang_up" }));
        telephone.is("DISCONNECTED").await;
        stage.has_stopped();
        stage.serve_again();
        let id = stage.has_come_in().await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 31. A caller who never acknowledges: our 200 is repeated for 32 s, and then we hang up. (RFC 3261, section 13.3.1.4.)
    async fn a_caller_never_acknowledges(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let peer = BytePeer::start(at, |heard, _| match heard.what() {
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        let invite = request("INVITE", &stage.uri(OURS), at, "Content-Type: application/sdp\r\n", &sdp(ear.port()));
        peer.send(&invite, stage.sip);
        let answer = peer.hears("200", 1).await;
        // It is not for want of sound.
        let talking = ear.says(Sound::tone(300.0, 34_000), media_of(answer.body()), |packets| packets);
        let (bye, ()) = tokio::join!(peer.hears("BYE", 1), talking);
        let waited = bye.at.duration_since(answer.at);
        assert!((Duration::from_secs(29)..Duration::from_secs(45)).contains(&waited), "{waited:?}");
        let answers = peer.heard("200");
        assert!((9..=12).contains(&answers.len()), "at 0, 0.5, 1.5, 3.5 s, then every 4 s: {}", answers.len());
        assert!(answers.iter().all(|other| other.text == answer.text));
        let id = stage.has_come_in().await;
        stage.ended(&id).await;
    }
}
