//! What each answer of a carrier makes of a call.
use super::{
    scenarios,
    stage::{Stage, end},
};
use crate::{
    on_the_phone,
    world::phone::{byte_peer::BytePeer, sipp::Scenario},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Codes with the same end, whatever else stands in the answer. Source: RFC 3261, section 21, and those that extend it.
const CODES: [(&[u16], (&str, &str)); 6] = [
    (&[486, 600], ("busy", "busy")),
    (&[408, 480, 487], ("no_answer", "no_answer")),
    (&[603, 607, 608], ("no_answer", "declined")),
    (&[404, 410, 484, 485, 604], ("failed", "invalid_number")),
    (&[300, 301, 302, 305, 380], ("failed", "carrier_rejected")),
    (
        &[
            400, 401, 402, 403, 405, 406, 407, 413, 414, 415, 416, 420, 421, 422, 423, 428, 433, 436, 437, 438, 481,
            482, 483, 488, 489, 491, 493, 494, 500, 501, 502, 504, 505, 513, 580, 606,
        ],
        ("failed", "carrier_rejected"),
    ),
];

/// Code, cause in a Reason header (Q.850) or 0, whether it rang before, and the end.
const WITH_MORE: [(u16, u16, bool, (&str, &str)); 9] = [
    (503, 17, false, ("busy", "busy")),
    (480, 17, true, ("busy", "busy")),
    (500, 1, false, ("failed", "invalid_number")),
    (502, 28, false, ("failed", "invalid_number")),
    (500, 18, true, ("no_answer", "no_answer")),
    (480, 19, true, ("no_answer", "no_answer")),
    (480, 21, true, ("failed", "carrier_rejected")),
    // Congestion, but it may have rung: nobody is called again for the same attempt.
    (503, 0, true, ("failed", "carrier_rejected")),
    (429, 0, true, ("failed", "carrier_rejected")),
];

fn number(code: u16, cause: u16, rings: bool) -> String {
    format!("+1202{}{cause:03}{code}", if rings { 6 } else { 5 })
}

/// All codes that a scenario must be able to send.
fn all_codes() -> Vec<u16> {
    let plain = CODES.iter().flat_map(|(codes, _)| codes.iter().copied());
    let all: BTreeSet<u16> = plain.chain(WITH_MORE.iter().map(|row| row.0)).collect();
    all.into_iter().collect()
}

on_the_phone! {
    /// 4 and 21. Each code once: its outcome, its `sip_code`, one INVITE, and nobody goes where a 3xx points.
    async fn every_answer_has_its_end(stage: &mut Stage) needs [Sipp] {
        let (at, elsewhere) = (stage.address(), stage.address());
        let agent = stage.line(at.port()).await;
        let lured = BytePeer::silent(elsewhere);
        let plain = CODES.iter().flat_map(|(codes, end)| codes.iter().map(|code| (*code, 0, false, *end)));
        let rows: Vec<_> = plain.chain(WITH_MORE).collect();
        let scenario = Scenario::new(scenarios::BY_NUMBER, at.port()).each(all_codes());
        let mut sipp = scenario.with("elsewhere", elsewhere.port()).times(rows.len()).start().await;
        let mut asked = Vec::new();
        for (code, cause, rings, end) in rows {
            asked.push((stage.call(&agent, &number(code, cause, rings), json!({})).await, code, cause, end));
        }
        let mut wrong = Vec::new();
        for (id, code, cause, expected) in &asked {
            let ended = stage.ended(id).await;
            let got = (end(&ended), ended["error"]["sip_code"].as_u64(), ended["attempt"].clone());
            if got.0 != *expected || got.1 != Some((*code).into()) {
                wrong.push(format!("{code} {cause}: {got:?} instead of {expected:?}, {}", ended["error"]));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        sipp.succeeds().await;
        let calls: BTreeSet<_> = sipp.got("INVITE").iter().map(|invite| invite.header("Via").unwrap_or_default().to_owned()).collect();
        assert_eq!(calls.len(), asked.len(), "one INVITE for each");
        assert!(lured.all().is_empty(), "{:?}", lured.all());
        let blocked = stage.api.all("/v1/sessions").await;
        let burnt = blocked.iter().find(|session| session["error"]["sip_code"] == 608).unwrap();
        assert!(burnt["error"]["message"].as_str().is_some_and(|message| message.contains("block")), "{burnt}");
    }

    /// 4. Which of them a campaign tries again.
    async fn some_ends_are_tried_again(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let attempts = [(486, 2), (480, 2), (403, 2), (404, 1), (603, 1), (608, 1)];
        let calls: usize = attempts.iter().map(|(_, times)| times).sum();
        let mut sipp = Scenario::new(scenarios::BY_NUMBER, at.port()).each(all_codes()).times(calls).start().await;
        let numbers: Vec<_> = attempts.iter().map(|(code, _)| number(*code, 0, false)).collect();
        let path = stage.campaign(&agent, &numbers, json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 0 } })).await;
        stage.api.until(&path, |campaign| campaign["status"] == "completed").await;
        let contacts = stage.api.all(&format!("{path}/contacts")).await;
        for (code, times) in attempts {
            let of_it = |contact: &&Value| contact["phone_number"] == number(code, 0, false);
            let contact = contacts.iter().find(of_it).unwrap();
            assert_eq!(contact["attempts"].as_u64(), u64::try_from(times).ok(), "{code}: {contact}");
        }
        sipp.succeeds().await;
    }
}
