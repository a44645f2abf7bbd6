//! 58. A part of the service panics while people telephone: it is begun anew, or its call ends with a reason, and nobody else notices.
//!
//! From inside, unlike the other scenarios of phones: no caller can make a part of it panic.
use super::{stage::media_of, strangers::phone};
use crate::{
    on_both,
    world::{
        Api, Tenant, World,
        phone::{PATIENCE, byte_peer::BytePeer, ear::Ear, pause, ports::Ports, until},
        seconds,
    },
};
use actors::switchboard::faults::Part;
use entities::values::{Env, Scopes};
use serde_json::{Value, json};
use std::{collections::BTreeSet, net::SocketAddr, time::Instant};

/// A workspace with a live key, and a carrier to call over, where somebody always picks up.
struct Line {
    api: Api,
    tenant: Tenant,
    agent: Value,
    ports: Ports,
    carrier: BytePeer,
    ear: Ear,
    trunk: String,
}

impl Line {
    async fn open(world: &mut World) -> Self {
        let mut ports = Ports::new();
        let (rtp, at, ear) = (ports.range(24), address(&mut ports), Ear::at(address(&mut ports)));
        let rtp = json!(format!("{}-{}", rtp.start(), rtp.end()));
        world
            .change_settings(&[("sip_bind", json!("127.0.0.1:0")), ("rtp_ports", rtp)])
            .await;
        let tenant = world.tenant().await;
        let api = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let replies = vec![json!({ "say": "I write that down." }); 20];
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": "Hello.", "recording": { "enabled": false },
            "silence": { "hangup_after_seconds": 600 },
            "brain": { "mode": "scripted", "replies": replies } });
        let agent = api.post("/v1/agents", agent).await.ok()["id"].clone();
        let mut line = Line {
            carrier: phone(at, ear.port()),
            api,
            tenant,
            agent,
            ports,
            ear,
            trunk: String::new(),
        };
        line.trunk = line.trunk(world, at, "+12025551000").await;
        line
    }

    /// With a number of ours, once it is known where its peer is; answers its path.
    async fn trunk(&self, world: &World, at: SocketAddr, number: &str) -> String {
        let trunk = json!({ "name": number, "host": at.to_string(), "max_calls_per_second": 50, "options_interval_seconds": 0 });
        let trunk = self.api.post("/v1/sip_trunks", trunk).await.ok();
        world.claim_number(self.tenant.id, number).await;
        let number = json!({ "phone_number": number, "trunk_id": trunk["id"] });
        self.api.post("/v1/numbers", number).await.ok();
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        self.until(&path, |trunk| trunk["state"]["up"] == true).await;
        path
    }

    /// Calls somebody; answers the session's path and the Call-ID, once they talk.
    async fn talk(&self, world: &World, to: &str) -> (String, String) {
        let before = self.call_ids("INVITE");
        let call = json!({ "to_number": to, "from_number": "+12025551000", "agent_id": self.agent,
            "contact": { "timezone": "Etc/GMT" }, "voicemail": { "detection": "off" } });
        let session = self.api.post("/v1/sessions", call).await.ok();
        // A call is planned a moment ahead, and maybe only after the clock was moved.
        let (mut calls, began) = (before.clone(), Instant::now());
        while calls.len() == before.len() {
            assert!(began.elapsed() < PATIENCE, "no INVITE comes");
            world.advance(seconds(1)).await;
            pause(200).await;
            calls = self.call_ids("INVITE");
        }
        let call_id = calls.difference(&before).next().unwrap().clone();
        let invites = self.carrier.heard("INVITE");
        let invite = invites
            .iter()
            .find(|invite| invite.header("Call-ID") == Some(&*call_id));
        self.ear.breathes(media_of(invite.unwrap().body()));
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        self.until(&path, |session| session["status"] == "in_progress").await;
        (path, call_id)
    }

    fn call_ids(&self, what: &str) -> BTreeSet<String> {
        let heard = self.carrier.heard(what);
        heard
            .iter()
            .filter_map(|heard| heard.header("Call-ID").map(str::to_owned))
            .collect()
    }

    /// What happens on the wire happens in real time.
    async fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let shown = self.api.get(path).await.ok();
            if so(&shown) {
                return shown;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "it did not become what was waited for: {shown}"
            );
            // A key has a hundred requests while the service's clock stands still.
            pause(200).await;
        }
    }

    /// Of two calls, whichever looks first; answers the one that goes on.
    async fn one_of_two_fails(&self, world: &World, part: Part) -> (String, String) {
        let mut calls = vec![
            self.talk(world, "+12025550101").await,
            self.talk(world, "+12025550102").await,
        ];
        world.deps().carriers.phones.as_ref().unwrap().fail_next(part);
        until("whoever was called is hung up", || !self.call_ids("BYE").is_empty()).await;
        let hung_up = self.call_ids("BYE");
        let failed = calls.iter().position(|(_, call_id)| hung_up.contains(call_id)).unwrap();
        let (path, _) = calls.remove(failed);
        let ended = self.until(&path, |session| session["phase"] == "ended").await;
        assert_eq!(
            (&ended["status"], &ended["end_reason"]),
            (&json!("failed"), &json!("agent_error")),
            "{ended}"
        );
        let other = calls.remove(0);
        assert_eq!(
            self.api.get(&other.0).await.ok()["status"],
            "in_progress",
            "the other talks on"
        );
        assert!(!self.call_ids("BYE").contains(&other.1));
        other
    }

    async fn hang_up(&self, (path, call_id): &(String, String)) {
        self.api.post(&format!("{path}/end"), json!({})).await.ok();
        let ended = self.until(path, |session| session["phase"] == "ended").await;
        assert_eq!(
            (&ended["status"], &ended["end_reason"]),
            (&json!("completed"), &json!("completed")),
            "{ended}"
        );
        until("it is hung up", || self.call_ids("BYE").contains(call_id)).await;
    }
}

fn address(ports: &mut Ports) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], *ports.range(2).start()))
}

on_both! {
    /// 58. The task of a call.
    async fn the_task_of_a_call_panics(world: &mut World) {
        let line = Line::open(world).await;
        let other = line.one_of_two_fails(world, Part::Call).await;
        line.hang_up(&other).await;
    }

    /// 58. What a media thread does for a call: without sound it is none, and the thread goes on with the others.
    async fn a_media_thread_panics(world: &mut World) {
        let line = Line::open(world).await;
        let other = line.one_of_two_fails(world, Part::Sound).await;
        let before = line.ear.packets().len();
        until("the other is still spoken to", || line.ear.packets().len() > before + 50).await;
        line.hang_up(&other).await;
    }

    /// 58. The task that speaks with a trunk's peer: nothing is dialled over that trunk until it has begun anew. The calls of another
    /// trunk go on.
    async fn a_trunk_panics(world: &mut World) {
        let mut line = Line::open(world).await;
        let talking = line.talk(world, "+12025550101").await;
        let elsewhere = BytePeer::silent(address(&mut line.ports));
        let trunk = line.trunk(world, elsewhere.address(), "+12025551001").await;
        let phones = world.deps().carriers.phones.clone().unwrap();
        phones.fail_next(Part::Trunk);
        // With another name the peer is spoken with anew.
        line.api.patch(&trunk, json!({ "from_domain": "acme.example" })).await.ok();
        line.until(&trunk, |trunk| trunk["state"]["up"] == false).await;
        assert_eq!(line.api.get(&talking.0).await.ok()["status"], "in_progress");
        assert_eq!(line.api.get(&line.trunk).await.ok()["state"]["up"], true);
        // Its pause follows the service's clock, and may begin after the trunk is seen to be down: it has yet to panic.
        let began = Instant::now();
        while line.api.get(&trunk).await.ok()["state"]["up"] != true {
            assert!(began.elapsed() < PATIENCE, "it is not begun anew");
            world.advance(seconds(1)).await;
            pause(200).await;
        }
        assert!(!phones.is_to_fail(Part::Trunk), "it has panicked");
        line.hang_up(&talking).await;
    }
}
