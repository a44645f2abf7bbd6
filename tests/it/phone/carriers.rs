//! Carriers that have no room just now, and how many calls each takes.
use super::stage::{OURS, Stage, end};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, Heard, response, rings},
        pause,
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// A carrier that answers its first INVITEs so, and that everybody is busy afterwards.
fn full_at_first(at: std::net::SocketAddr, times: usize, status: &'static str, more: &'static str) -> BytePeer {
    let mut refused = BTreeSet::new();
    BytePeer::start(at, move |heard, _| {
        if heard.what() != "INVITE" {
            return Vec::new();
        }
        if refused.len() < times {
            refused.insert(heard.branch().to_owned());
        }
        // One that is sent again is answered as before.
        match refused.contains(heard.branch()) {
            true => vec![response(&heard.text, status, more, "")],
            false => vec![response(&heard.text, "486 Busy Here", "", "")],
        }
    })
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("+1202555012{n}")).collect()
}

async fn nothing_is_lost(stage: &Stage, campaign: &str, contacts: usize) {
    stage
        .api
        .until(campaign, |campaign| campaign["status"] == "completed")
        .await;
    let sessions = stage.api.all("/v1/sessions").await;
    assert_eq!(sessions.len(), contacts, "one session for each: {sessions:#?}");
    for session in &sessions {
        assert_eq!(
            (end(session), session["attempt"].as_i64()),
            (("busy", "busy"), Some(1)),
            "{session}"
        );
    }
    let called = stage.api.all(&format!("{campaign}/contacts")).await;
    assert!(called.iter().all(|contact| contact["attempts"] == 1), "{called:#?}");
}

on_the_phone! {
    /// 35. Too many calls a second for a carrier: its rate is halved, it is left in peace for as long as it says, and no attempt is lost.
    async fn a_carrier_is_called_too_fast(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = full_at_first(at, 3, "503 Trunk CPS limit exceeded", "Retry-After: 2\r\n");
        let trunk = stage.trunk(at.port(), json!({ "max_calls_per_second": 20 })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let campaign = stage.campaign(&agent, &numbers(8), json!({})).await;
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        let slower = |trunk: &Value| trunk["state"]["calls_per_second"].as_f64().is_some_and(|rate| rate <= 10.0);
        stage.api.until(&path, slower).await;
        nothing_is_lost(stage, &campaign, 8).await;
        let invites = peer.different("INVITE");
        assert_eq!(invites.len(), 8 + 3);
        // At the first 503 others may be on their way; after that there is a pause.
        let first = invites[0].at;
        let early = invites.iter().filter(|invite| invite.at < first + Duration::from_millis(1_900)).count();
        assert!(early < invites.len(), "nobody waited");
        let pauses: Vec<_> = invites.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect();
        assert!(pauses.iter().any(|pause| *pause > Duration::from_millis(800)), "{pauses:?}");
    }

    /// 36. All its channels are taken, in the words of a carrier.
    async fn a_carrier_has_no_channel(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = full_at_first(at, 1, "403 User channel limit exceeded D1", "");
        let agent = stage.line(at.port()).await;
        let campaign = stage.campaign(&agent, &numbers(2), json!({})).await;
        nothing_is_lost(stage, &campaign, 2).await;
        let invites = peer.heard("INVITE");
        // The second try is another call to the carrier, which remembers the first for half a minute; and it does not wait for that.
        let calls: BTreeSet<_> = invites.iter().map(|invite| (invite.header("Call-ID"), invite.branch())).collect();
        assert_eq!(calls.len(), 3, "{calls:?}");
        let last = invites.iter().map(|invite| invite.at).max().unwrap();
        assert!(last.duration_since(invites[0].at) < Duration::from_secs(20), "{invites:#?}");
    }

    /// 37. Two trunks at once: neither has more calls than it takes, and both are used.
    async fn each_trunk_has_its_own_room(stage: &mut Stage) needs [] {
        let mut peers = Vec::new();
        for (n, most) in [1_usize, 2].into_iter().enumerate() {
            let at = stage.address();
            let peer = BytePeer::start(at, move |heard, _| match heard.what() {
                "INVITE" => vec![rings(&heard.text, at)],
                _ => Vec::new(),
            });
            let trunk = stage.trunk(at.port(), json!({ "max_concurrency": most })).await;
            stage.number(&format!("+1202555100{n}"), &trunk, json!({})).await;
            peers.push((peer, most));
        }
        let agent = stage.agent(json!({})).await;
        let from = json!({ "from_numbers": ["+12025551000", "+12025551001"] });
        let campaign = stage.campaign(&agent, &numbers(9), from).await;
        let mut done = BTreeSet::new();
        let (mut seen, began) = (vec![0; peers.len()], Instant::now());
        while done.len() < 9 {
            assert!(began.elapsed() < Duration::from_secs(60), "{} of 9 calls were placed", done.len());
            for ((peer, most), seen) in peers.iter().zip(&mut seen) {
                let ringing: Vec<Heard> = peer.heard("INVITE").into_iter().filter(|invite| !done.contains(invite.branch())).collect();
                let calls: BTreeSet<_> = ringing.iter().map(Heard::branch).collect();
                assert!(calls.len() <= *most, "{} calls on a trunk that takes {most}", calls.len());
                *seen = calls.len().max(*seen);
                for invite in &ringing {
                    if invite.at.elapsed() > Duration::from_millis(600) {
                        peer.send(&response(&invite.text, "486 Busy Here", "", ""), invite.from);
                        done.insert(invite.branch().to_owned());
                    }
                }
            }
            pause(20).await;
        }
        assert_eq!(seen, [1, 2], "each is used as far as it goes");
        nothing_is_lost(stage, &campaign, 9).await;
    }
}
