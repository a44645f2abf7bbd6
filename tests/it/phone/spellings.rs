//! Messages as they are seldom written, but may be. (RFC 3261, sections 7.3.1, 7.3.3 and 18.3.)
use super::stage::{OURS, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        PATIENCE,
        byte_peer::{BytePeer, Heard, response, sdp},
        pause,
    },
};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Instant};

/// Heads of an INVITE: to `@uri@`, from `@at@`, the `@n@`th call, with a body of `@length@` bytes.
const HEADS: [&str; 4] = [
    // No Content-Length: over UDP the body reaches to the datagram's end.
    "INVITE @uri@ SIP/2.0\r\nVia: SIP/2.0/UDP @at@;branch=z9hG4bK-spelling-@n@;rport\r\nMax-Forwards: 70\r\n\
     From: <sip:+1202555013@n@@@at@>;tag=s@n@\r\nTo: <@uri@>\r\nCall-ID: spelling-@n@\r\nCSeq: 1 INVITE\r\n\
     Contact: <sip:bytes@@at@>\r\nContent-Type: application/sdp\r\n\r\n",
    "INVITE @uri@ SIP/2.0\r\nv: SIP/2.0/UDP @at@;branch=z9hG4bK-spelling-@n@;rport\r\nMax-Forwards: 70\r\n\
     f: <sip:+1202555013@n@@@at@>;tag=s@n@\r\nt: <@uri@>\r\ni: spelling-@n@\r\nCSeq: 1 INVITE\r\n\
     m: <sip:bytes@@at@>\r\nk: timer\r\ns: compact\r\nc: application/sdp\r\nl: @length@\r\n\r\n",
    // Written in Latin-1, not in UTF-8.
    "INVITE @uri@ SIP/2.0\r\nVia: SIP/2.0/UDP @at@;branch=z9hG4bK-spelling-@n@;rport\r\nMax-Forwards: 70\r\n\
     From: \"José Müller\" <sip:+1202555013@n@@@at@>;tag=s@n@\r\nTo: <@uri@>\r\nCall-ID: spelling-@n@\r\nCSeq: 1 INVITE\r\n\
     Contact: \"José\" <sip:bytes@@at@>\r\nContent-Type: application/sdp\r\nContent-Length: @length@\r\n\r\n",
    "INVITE @uri@ SIP/2.0\r\nVia: SIP/2.0/UDP @at@\r\n ;branch=z9hG4bK-spelling-@n@\r\n\t;rport\r\nMAX-FORWARDS : 70\r\n\
     from:\r\n  \"Folded\r\n\tName\"\r\n <sip:+1202555013@n@@@at@>\r\n ;tag=s@n@\r\nTO:<@uri@>\r\nCall-Id:\tspelling-@n@\r\nCSeq: 1\r\n INVITE\r\n\
     Subject: one\r\n two\r\n\tthree\r\nContact:\r\n <sip:bytes@@at@>\r\nContent-Type:\r\n application/sdp\r\nContent-Length:\r\n @length@\r\n\r\n",
];

fn invite(n: usize, uri: &str, at: SocketAddr, body: &str) -> Vec<u8> {
    let named = [
        ("@n@", n.to_string()),
        ("@uri@", uri.to_owned()),
        ("@at@", at.to_string()),
        ("@length@", body.len().to_string()),
    ];
    let head = named
        .iter()
        .fold(HEADS[n].to_owned(), |head, (name, value)| head.replace(name, value));
    let text = head + body;
    text.chars()
        .map(|letter| u8::try_from(u32::from(letter)).unwrap())
        .collect()
}

/// A request inside the call that this 200 began.
fn inside(answer: &Heard, method: &str, number: u32, at: SocketAddr) -> Vec<u8> {
    let named = |name: &str| answer.header(name).unwrap_or_default();
    let target = named("Contact").split(['<', '>']).nth(1).unwrap_or_default();
    format!(
        "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bK-{method}-{};rport\r\nMax-Forwards: 70\r\n\
         From: {}\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {number} {method}\r\n\r\n",
        named("Call-ID"),
        named("From"),
        named("To"),
        named("Call-ID"),
    )
    .into_bytes()
}

/// Waits for the 200 to that request of that call.
async fn accepted(peer: &BytePeer, n: usize, cseq: &str) -> Heard {
    let call = format!("spelling-{n}");
    let began = Instant::now();
    loop {
        let mut all = peer.heard("200").into_iter();
        if let Some(answer) =
            all.find(|heard| heard.header("Call-ID") == Some(&*call) && heard.header("CSeq") == Some(cseq))
        {
            return answer;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{}\nis met with {:#?}",
            HEADS[n],
            peer.all()
        );
        pause(5).await;
    }
}

on_the_phone! {
    /// 27. Whatever a message looks like that may look so: the call comes in, with its caller, and ends.
    async fn messages_may_look_odd(stage: &mut Stage) needs [] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let peer = BytePeer::start(at, |heard, _| match heard.what() {
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        for n in 0..HEADS.len() {
            let ear = stage.ear();
            peer.send(&invite(n, &stage.uri(OURS), at, &sdp(ear.port())), stage.sip);
            let answer = accepted(&peer, n, "1 INVITE").await;
            peer.send(&inside(&answer, "ACK", 1, at), stage.sip);
            ear.breathes(media_of(answer.body()));
            let caller = json!(format!("+1202555013{n}"));
            let talks = |session: &&Value| session["from_number"] == caller && session["status"] == "in_progress";
            let so = |list: &Value| list["data"].as_array().is_some_and(|all| all.iter().any(|session| talks(&session)));
            let list = stage.api.until("/v1/sessions?direction=inbound", so).await;
            let id = list["data"].as_array().unwrap().iter().find(talks).unwrap()["id"].as_str().unwrap();
            peer.send(&inside(&answer, "BYE", 2, at), stage.sip);
            accepted(&peer, n, "2 BYE").await;
            let ended = stage.ended(id).await;
            assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
        }
        assert_eq!(stage.api.all("/v1/sessions").await.len(), HEADS.len(), "each is one call");
    }
}
