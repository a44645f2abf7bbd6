//! Peers that mean harm, or were never tested: what they cost is bounded, and the leg ends when we want it to.
use super::*;

/// Everything that the call said to one message.
fn say(script: &mut Script, text: &str) -> Vec<String> {
    let message = script.message(text);
    script.call.as_mut().unwrap().receive(message, script.now);
    script.collect();
    script.seen.drain(..).map(|seen| seen.text()).collect()
}

fn ends(mut script: Script) {
    let now = script.now;
    let call = script.call.as_mut().unwrap();
    call.command(Command::HangUp { q850: 16 }, now);
    tick_to(call, &mut script.now, now + Duration::from_secs(120));
    assert!(script.call.unwrap().is_over());
}

#[test]
fn thousands_of_forks() {
    let mut script = Script::caller("forks", Transport::Udp).run("> INVITE 1");
    let mut pracks = 0;
    for fork in 0..3000 {
        let said = say(
            &mut script,
            &format!("183 INVITE 1 tag=f{fork} Require:100rel RSeq:1 sdp=8"),
        );
        pracks += said.iter().filter(|line| line.starts_with("> PRACK")).count();
    }
    assert_eq!(pracks, crate::orphan::MOST_FORKS);
    let mut byes = 0;
    for fork in 0..3000 {
        let said = say(&mut script, &format!("200 INVITE 1 tag=p{fork} sdp=9"));
        byes += said.iter().filter(|line| line.starts_with("> BYE")).count();
    }
    let call = script.call.as_ref().unwrap();
    assert!(
        byes <= crate::orphan::MOST_FORKS && call.acks.len() <= MOST_ACKS,
        "{byes}"
    );
    assert!(call.clients.len() <= MOST_CLIENTS);
    ends(script);
}

#[test]
fn numbers_that_jump() {
    let script = Script::caller("jumps", Transport::Tcp).run(
        "> INVITE 1
         < 200 INVITE 1 sdp=9
         * PickedUp 9
         > ACK 1
         < INFO 2147483647 body=x
         > 200 INFO 2147483647
         * Info x
         < INFO 51 body=y
         > 500 INFO 51
         < BYE 52
         > 500 BYE 52",
    );
    ends(script);
}

#[test]
fn a_storm_of_notifies() {
    for is_referring in [false, true] {
        let mut script =
            Script::caller("storm", Transport::Udp).run("> INVITE 1\n< 200 INVITE 1 sdp=9\n* PickedUp 9\n> ACK 1");
        if is_referring {
            script = script.run("! Refer\n> REFER 2\n< 202 REFER 2");
        }
        for number in 50..2000 {
            let said = say(
                &mut script,
                &format!("NOTIFY {number} Event:refer body=SIP/2.0_100_Trying"),
            );
            let expected = if is_referring {
                vec![format!("> 200 NOTIFY {number}"), "* ReferProgress 100".to_owned()]
            } else {
                vec![format!("> 481 NOTIFY {number}")]
            };
            assert_eq!(said, expected);
        }
        assert_eq!(script.call.as_ref().unwrap().servers.len(), MOST_SERVERS);
        ends(script);
    }
}

/// A 200 of another branch, by a tag that nobody has seen, while a CANCEL waits for the first answer.
#[test]
fn answers_of_a_branch_that_is_not_ours() {
    let mut script = Script::caller("branch", Transport::Udp).run("> INVITE 1\n! Cancel");
    let Message::Response(mut response) = script.message("200 INVITE 1 tag=z sdp=9") else {
        panic!("no response")
    };
    let via = response
        .header_text(Name::VIA)
        .unwrap()
        .replace("branch=z9hG4bK", "branch=z9hG4bKx");
    response.headers.remove(&Name::VIA);
    response.headers.insert_front(Name::VIA, via);
    script
        .call
        .as_mut()
        .unwrap()
        .receive(Message::Response(response), script.now);
    script.collect();
    let script = script.run(
        "> ACK 1
         > BYE 1001
         < 200 BYE 1001
         < 180 INVITE 1
         > CANCEL 1
         < 200 CANCEL 1
         @ 32000
         * Refused 487 - true
         * Gone",
    );
    assert!(script.call.unwrap().is_over());
}

#[test]
fn pauses_that_are_none() {
    for (text, expected) in [
        ("soon", None),
        ("", None),
        ("-5", None),
        ("99999999999999999999", None),
        ("7.5", Some(7)),
        ("7(maintenance);duration=3600", Some(7)),
        ("4294967296", Some(86_400)),
    ] {
        let mut script = Script::caller("pause", Transport::Tcp).run("> INVITE 1");
        let message = script.message(&format!("503 INVITE 1 Retry-After:{text}"));
        let call = script.call.as_mut().unwrap();
        call.receive(message, script.now);
        let pause = std::iter::from_fn(|| call.poll()).find_map(|output| match output {
            Output::Happening(Happening::Refused { retry_after, .. }) => Some(retry_after),
            _ => None,
        });
        assert_eq!(pause, Some(expected.map(Duration::from_secs)), "{text}");
    }
}

/// What a network that blocks calls says beside its 603, and how the call is signed, whichever answer tells it.
#[test]
fn a_refusal_says_why_and_an_answer_how_the_call_is_signed() {
    let mut script = Script::caller("blocked", Transport::Tcp).run(
        "> INVITE 1
         < 100 INVITE 1
         * Trying",
    );
    assert_eq!(script.call.as_ref().unwrap().attested(), None);
    say(&mut script, "180 INVITE 1 P-Attestation-Indicator:B");
    assert_eq!(script.call.as_ref().unwrap().attested(), Some('B'));
    say(&mut script, "183 INVITE 1 P-Attestation-Indicator:none");
    assert_eq!(script.call.as_ref().unwrap().attested(), Some('B'));
    let message = script.message(
        "603 INVITE 1 P-Attestation-Indicator:A Reason:SIP;cause=603;text=\"Network_Blocked\" \
         Call-Info:<https://block.example/c>;purpose=jwscard",
    );
    let call = script.call.as_mut().unwrap();
    call.receive(message, script.now);
    let why = std::iter::from_fn(|| call.poll()).find_map(|output| match output {
        Output::Happening(Happening::Refused { why, .. }) => Some(why),
        _ => None,
    });
    let why = why.expect("it is refused");
    assert_eq!(why.reasons[0].text.as_deref(), Some("Network Blocked"));
    assert_eq!(why.jcard_url.as_deref(), Some("https://block.example/c"));
    assert_eq!(call.attested(), Some('A'));
}

#[test]
fn a_hundred_hops_are_answered_through_all_of_them() {
    let hops: Vec<String> = (0..100)
        .map(|hop| format!("SIP/2.0/UDP 198.51.100.{hop};branch=z9hG4bK{hop}"))
        .collect();
    let text = format!(
        "INVITE sip:us@192.0.2.1 SIP/2.0\r\nVia: {}\r\nFrom: <sip:b@h>;tag=b\r\nTo: <sip:us@192.0.2.1>\r\nCall-ID: c\r\n\
         CSeq: 1 INVITE\r\nContact: <sip:b@h>\r\n\r\n",
        hops.join(",")
    );
    let Message::Request(request) = read_datagram(text.as_bytes()).unwrap() else {
        panic!("no request")
    };
    let mut call = Call::incoming(request, local(1, Transport::Udp), Instant::now());
    let Some(Seen::Sent(trying)) = outputs(&mut call).into_iter().next() else {
        panic!("nothing was sent")
    };
    assert_eq!(trying.list(Name::VIA), hops);
}
