//! `callboard sip check --call`, beside the service that runs; and what of a call's signalling stands in its session's timeline.
use super::{
    scenarios,
    stage::{CALLEE, OURS, Stage},
};
use crate::{
    on_the_phone,
    process::{json_of, stderr},
    world::phone::{
        byte_peer::{BytePeer, response, rings},
        signal,
        sipp::Scenario,
        sound::Sound,
    },
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    process::{Child, Output},
};

/// `callboard sip check` of that trunk, with these options too.
fn check(stage: &Stage, trunk: &Value, options: &str) -> Output {
    begin_check(stage, trunk, options).wait_with_output().unwrap()
}

/// The same, while it runs.
fn begin_check(stage: &Stage, trunk: &Value, options: &str) -> Child {
    let mut arguments = vec!["--json", "sip", "check", "--trunk", trunk["id"].as_str().unwrap()];
    arguments.extend(options.split_whitespace());
    stage.start_operator(&arguments)
}

/// Tells it to end, and gives what was found out by the call, with all that was said.
fn stopped(check: Child, by: &str) -> (String, Value) {
    signal(check.id(), by);
    let tried = check.wait_with_output().unwrap();
    assert!(!tried.status.success(), "{tried:?}");
    assert!(stderr(&tried).contains("the call was stopped"), "{tried:?}");
    let report = json_of(&tried);
    (call_of(&report).0["said"].as_str().unwrap().to_owned(), report)
}

/// What was found out by the call, and what was said, the questions before it among that.
fn call_of(report: &Value) -> (&Value, Vec<&str>) {
    let said = report["ladder"].as_array().unwrap().iter();
    let call = report["asked"].as_array().unwrap().last().unwrap();
    assert_eq!(call["what"], "call", "{report}");
    (call, said.filter_map(|step| step["what"].as_str()).collect())
}

/// One after the other, whatever came between: messages may come twice.
fn has_in_order(said: &[&str], expected: &str) -> bool {
    let mut rest = said.iter();
    expected.split(", ").all(|wanted| rest.any(|what| *what == wanted))
}

/// There, it rings, and everybody is busy.
fn everybody_is_busy(at: SocketAddr) -> BytePeer {
    BytePeer::start(at, move |heard, _| match heard.what() {
        "OPTIONS" => vec![response(&heard.text, "200 OK", "", "")],
        "INVITE" => vec![rings(&heard.text, at), response(&heard.text, "486 Busy Here", "", "")],
        _ => Vec::new(),
    })
}

/// Of the only leg: what was said, without its times.
async fn ladder(stage: &Stage, id: &str) -> Vec<String> {
    let is_ladder = |entry: &&Value| entry["kind"] == "sip_ladder";
    let has = |timeline: &Value| {
        let entries = timeline["entries"].as_array();
        entries.is_some_and(|all| all.iter().any(|entry| is_ladder(&entry)))
    };
    let timeline = stage.api.until(&format!("/v1/sessions/{id}/timeline"), has).await;
    let entries: Vec<&Value> = timeline["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_ladder)
        .collect();
    assert_eq!(entries.len(), 1, "{timeline}");
    let detail = entries[0]["detail"].as_str().unwrap();
    let steps = detail.split(", ").map(|step| {
        let (after, what) = step.split_once(" ms ").unwrap();
        assert!(after.parse::<u64>().is_ok(), "{detail}");
        what.to_owned()
    });
    steps.collect()
}

on_the_phone! {
    /// A telephone is rung, hears a sentence, and is hung up on. No session is made of it, and the service goes on beside it.
    async fn a_trial_call_is_picked_up(stage: &mut Stage) needs [Pjsip] {
        let heard = stage.file("heard.wav");
        let mut telephone = stage.telephone(json!({ "ring_ms": 200, "tone_hz": 440, "record": heard }), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let tried = check(stage, &trunk, &format!("--call {CALLEE}"));
        assert!(tried.status.success(), "{tried:?}");
        let report = json_of(&tried);
        let (call, said) = call_of(&report);
        let words = call["said"].as_str().unwrap();
        assert!(words.starts_with("picked up after ") && words.contains("; their sound came ("), "{call}");
        assert!(call["advice"].is_null(), "{call}");
        let expected = "OPTIONS, 200 OPTIONS, INVITE, 180 INVITE, 200 INVITE, ACK, BYE, 200 BYE";
        assert!(has_in_order(&said, expected), "{said:?}");
        telephone.hears("gone", |_| true).await;
        let loud = Sound::read(&heard).loud_ms();
        assert!(loud.len() > 50, "a second of the sentence is heard: {loud:?}");
        assert_eq!(telephone.all("incoming").len(), 1);
        assert!(stage.api.all("/v1/sessions").await.is_empty());
    }

    async fn a_trial_call_is_told_that_the_number_is_busy(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = everybody_is_busy(at);
        let trunk = stage.trunk(at.port(), json!({})).await;
        for number in ["+12025551002", OURS] {
            stage.number(number, &trunk, json!({})).await;
        }
        let tried = check(stage, &trunk, &format!("--call {CALLEE}"));
        assert!(tried.status.success(), "the trunk works: {tried:?}");
        let report = json_of(&tried);
        let (call, said) = call_of(&report);
        assert_eq!(call["said"], "rang, then 486 Busy Here");
        assert!(call["advice"].as_str().unwrap().contains("busy"), "{call}");
        assert!(has_in_order(&said, "INVITE, 180 INVITE, 486 INVITE, ACK"), "{said:?}");
        let first = peer.hears("INVITE", 1).await;
        assert!(first.header("From").unwrap().contains(OURS), "the first of the trunk's numbers: {}", first.text);
        let whole = format!("{report}{}", stderr(&tried));
        assert!(!whole.contains(&CALLEE[1..]) && !whole.contains(&OURS[1..]), "{whole}");

        let other = check(stage, &trunk, &format!("--call {CALLEE} --from +12025551002"));
        assert!(other.status.success(), "{other:?}");
        let is_other = |from: &str| from.contains("+12025551002");
        assert!(peer.heard("INVITE").iter().any(|heard| heard.header("From").is_some_and(is_other)));
    }

    /// Ctrl-C while it rings, and while somebody talks: no telephone is left alone with the call. One that is late confirms that
    /// when the check has ended.
    async fn a_trial_call_that_is_stopped_is_hung_up(stage: &mut Stage) needs [Pjsip] {
        let mut rings = stage.telephone(json!({ "ring_ms": 60_000 }), json!({})).await;
        let mut talks = stage.telephone(json!({ "ring_ms": 100 }), json!({})).await;
        let ringing = stage.trunk(rings.port, json!({})).await;
        let talking = stage.trunk(talks.port, json!({})).await;
        stage.number(OURS, &ringing, json!({})).await;
        stage.number("+12025551002", &talking, json!({})).await;
        let call = format!("--call {CALLEE}");

        let check = begin_check(stage, &ringing, &call);
        rings.is("EARLY").await;
        let (words, report) = stopped(check, "-INT");
        assert!(words.starts_with("stopped before anybody picked up: cancelled"), "{words}");
        let (_, said) = call_of(&report);
        assert!(has_in_order(&said, "INVITE, CANCEL"), "{said:?}");
        rings.is("DISCONNECTED").await;

        let check = begin_check(stage, &talking, &call);
        talks.is("CONFIRMED").await;
        let (words, report) = stopped(check, "-TERM");
        assert!(words.starts_with("stopped after the pick-up: hung up"), "{words}");
        let (_, said) = call_of(&report);
        assert!(has_in_order(&said, "INVITE, 200 INVITE, ACK, BYE"), "{said:?}");
        talks.is("DISCONNECTED").await;
    }

    /// It does not wait for long for a peer that heeds no CANCEL, and says so.
    async fn a_stopped_trial_call_is_not_confirmed(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "OPTIONS" => vec![response(&heard.text, "200 OK", "", "")],
            "INVITE" => vec![rings(&heard.text, at)],
            _ => Vec::new(),
        });
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let check = begin_check(stage, &trunk, &format!("--call {CALLEE}"));
        // The 180 has left with it, and whoever has not read it yet cancels when it has.
        peer.hears("INVITE", 1).await;
        let (words, _) = stopped(check, "-INT");
        assert!(words.contains("did not confirm within 2 s: the phone may ring on"), "{words}");
        peer.hears("CANCEL", 1).await;
    }

    /// The law of the workspace's calls holds, and is asked before anything is said to the peer.
    async fn a_trial_call_obeys_the_law(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = everybody_is_busy(at);
        let trunk = stage.trunk(at.port(), json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let barred = "+12025550133";
        stage.api.post("/v1/dnc", json!({ "phone_number": barred })).await;
        let paused = stage.trunk(at.port(), json!({ "paused": true })).await;
        let ours = format!("--call {CALLEE}");
        stage.operator(&["tenant", "suspend", "--workspace", "acme"]);
        for (trunk, options, why) in [
            (&trunk, "--call +33612345678", "--call: is in FR"),
            (&trunk, &*ours, "the workspace is suspended"),
            (&paused, &*ours, "--trunk: is paused"),
        ] {
            let refused = check(stage, trunk, options);
            assert!(!refused.status.success() && stderr(&refused).contains(why), "{why}: {refused:?}");
        }
        stage.operator(&["tenant", "resume", "--workspace", "acme"]);
        for (options, why) in [
            (format!("--call {barred}"), "do-not-call"),
            (format!("{ours} --from +12025551009"), "--from: is not a claimed number"),
        ] {
            let refused = check(stage, &trunk, &options);
            assert!(!refused.status.success() && stderr(&refused).contains(why), "{why}: {refused:?}");
        }
        assert!(peer.all().is_empty(), "nobody has heard of it");
    }

    /// Method, code and time of each step, no number and no address: of a call that we hang up after its session has ended, of one that
    /// nobody picks up, and of one that they hang up.
    async fn what_was_said_stands_in_the_timeline(stage: &mut Stage) needs [Sipp] {
        let (at, busy, leaves) = (stage.address(), stage.address(), stage.address());
        let agent = stage.line(at.port()).await;
        for (number, port) in [("+12025551001", busy.port()), ("+12025551002", leaves.port())] {
            let trunk = stage.trunk(port, json!({})).await;
            stage.number(number, &trunk, json!({})).await;
        }
        let mut answers = Scenario::new(scenarios::ANSWERS, at.port()).start().await;
        let mut refuses = Scenario::new(scenarios::BY_NUMBER, busy.port()).each([486]).start().await;
        let mut hangs_up = Scenario::new(scenarios::HANGS_UP, leaves.port()).with("talk", 300).start().await;
        let refused = stage.call(&agent, "+12026000486", json!({ "from_number": "+12025551001" })).await;
        let left = stage.call(&agent, CALLEE, json!({ "from_number": "+12025551002" })).await;
        let talked = stage.call(&agent, CALLEE, json!({ "from_number": OURS })).await;
        stage.is(&talked, "in_progress").await;
        stage.hang_up(&talked).await;
        for (id, expected) in [
            (&refused, "-> INVITE, <- 180 INVITE, <- 486 INVITE, -> ACK"),
            (&left, "-> INVITE, <- 200 INVITE, -> ACK, <- BYE, -> 200 BYE"),
            (&talked, "-> INVITE, <- 180 INVITE, <- 200 INVITE, -> ACK, -> BYE, <- 200 BYE"),
        ] {
            let said = ladder(stage, id).await;
            let said: Vec<&str> = said.iter().map(String::as_str).collect();
            assert!(has_in_order(&said, expected), "{said:?}");
            assert!(!said.iter().any(|step| step.contains("sip:") || step.contains('@')), "{said:?}");
        }
        for sipp in [&mut answers, &mut refuses, &mut hangs_up] {
            sipp.succeeds().await;
        }
    }
}
