//! Whatever comes, in whatever order: no panic, and what must hold holds.
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Input {
    Command(u8),
    /// Code, method, and how far behind our last number; whose tag.
    Response(u16, u8, u8, u8),
    Request(u8, u8, u8, bool),
    Pass(u32),
    Fail,
}

const METHODS: [&str; 12] = [
    "INVITE", "ACK", "BYE", "CANCEL", "UPDATE", "PRACK", "INFO", "OPTIONS", "NOTIFY", "REFER", "MESSAGE", "DANCE",
];

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let code = prop_oneof![
        Just(100_u16),
        Just(180),
        Just(183),
        Just(200),
        Just(202),
        Just(302),
        Just(401),
        Just(407),
        Just(408),
        Just(422),
        Just(481),
        Just(486),
        Just(487),
        Just(488),
        Just(491),
        Just(503),
        Just(603)
    ];
    let input = prop_oneof![
        4 => (0_u8..13).prop_map(Input::Command),
        6 => (code, 0_u8..12, 0_u8..3, 0_u8..4).prop_map(|(code, method, back, tag)| Input::Response(code, method, back, tag)),
        4 => (0_u8..12, 0_u8..60, 0_u8..3, any::<bool>())
            .prop_map(|(method, number, tag, body)| Input::Request(method, number, tag, body)),
        3 => prop_oneof![0_u32..2000, 0_u32..40_000, 0_u32..2_000_000].prop_map(Input::Pass),
        1 => Just(Input::Fail),
    ];
    proptest::collection::vec(input, 0..60)
}

fn command(script: &mut Script, number: u8) -> Option<Command> {
    let challenged = script.challenged.is_some();
    let texts = [
        "Ring",
        "EarlyMedia 2",
        "Accept 3",
        "Refuse 486",
        "Cancel",
        "HangUp 16",
        "Offer 4",
        "AnswerOffer 5",
        "RefuseOffer",
        "Info",
        "Refer",
        "Authorized",
        "Unauthorized",
    ];
    let text = texts[usize::from(number)];
    (challenged || number < 11).then(|| script.command(text))
}

fn enter(script: &mut Script, input: Input) {
    let tags = ["b", "c", "d", "e"];
    let now = script.now;
    match input {
        Input::Command(number) => {
            if let Some(command) = command(script, number) {
                script.call.as_mut().unwrap().command(command, now);
            }
        }
        Input::Response(code, method, back, tag) => {
            let method = Method::from(METHODS[usize::from(method)]);
            let of = script
                .sent
                .iter()
                .rev()
                .filter(|request| request.method == method)
                .nth(usize::from(back));
            let Some(number) = of.map(|request| request.cseq().0) else {
                return;
            };
            let tag = tags[usize::from(tag)];
            let text = format!("{code} {method} {number} tag={tag} sdp={code} Require:100rel RSeq:{number} Min-SE:120");
            let message = script.message(&text);
            script.call.as_mut().unwrap().receive(message, now);
        }
        Input::Request(method, number, tag, body) => {
            let (method, tag) = (METHODS[usize::from(method)], tags[usize::from(tag)]);
            let body = if body { "sdp=7" } else { "Event:refer" };
            let message = script.message(&format!("{method} {number} tag={tag} {body} RAck:1_1_INVITE"));
            script.call.as_mut().unwrap().receive(message, now);
        }
        Input::Pass(ms) => {
            let until = now + Duration::from_millis(ms.into());
            tick_to(script.call.as_mut().unwrap(), &mut script.now, until);
        }
        Input::Fail => script.call.as_mut().unwrap().transport_failed(now),
    }
}

fn hold(mut script: Script, inputs: Vec<Input>) -> Result<(), TestCaseError> {
    script.collect();
    for input in inputs {
        enter(&mut script, input);
        script.collect();
        let call = script.call.as_ref().unwrap();
        prop_assert!(call.servers.len() <= MOST_SERVERS + MOST_ENDS);
        prop_assert!(call.clients.len() <= MOST_CLIENTS + crate::orphan::MOST_FORKS + 8);
        prop_assert!(call.acks.len() <= MOST_ACKS);
        prop_assert_eq!(call.is_over(), call.phase == Phase::Over);
    }
    // Whoever hangs up is rid of the leg, whatever the peer has left open: CANCEL, ACK and BYE wait half a minute each.
    let now = script.now;
    script.call.as_mut().unwrap().command(Command::HangUp { q850: 16 }, now);
    tick_to(
        script.call.as_mut().unwrap(),
        &mut script.now,
        now + Duration::from_secs(180),
    );
    script.collect();
    prop_assert!(script.call.as_ref().unwrap().is_over());
    let names: Vec<String> = script
        .seen
        .iter()
        .filter_map(|seen| match seen {
            Seen::Happened(happening) => Some(named(happening)),
            Seen::Sent(_) => None,
        })
        .collect();
    let count = |words: &[&str]| {
        names
            .iter()
            .filter(|name| words.iter().any(|word| name.split(' ').next() == Some(word)))
            .count()
    };
    prop_assert!(count(&["PickedUp"]) <= 1);
    prop_assert!(
        count(&["Refused", "PickedUp", "NoAnswer", "TransportFailed", "Cancelled"]) <= 1,
        "{:?}",
        names
    );
    prop_assert!(
        count(&["RemoteHungUp", "SessionExpired", "Refused"]) <= 1,
        "{:?}",
        names
    );
    prop_assert!(
        count(&["Gone"]) == 0 || names.last().is_some_and(|name| name == "Gone"),
        "{:?}",
        names
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn at_a_caller(inputs in inputs(), is_udp in any::<bool>()) {
        hold(Script::caller("chance", if is_udp { Transport::Udp } else { Transport::Tcp }), inputs)?;
    }

    #[test]
    fn at_a_callee(inputs in inputs(), is_udp in any::<bool>(), is_reliable in any::<bool>()) {
        let mut script = Script::callee("chance", if is_udp { Transport::Udp } else { Transport::Tcp });
        script.enter("<", if is_reliable { "INVITE 1 sdp=9 Require:100rel" } else { "INVITE 1 sdp=9" });
        hold(script, inputs)?;
    }
}
