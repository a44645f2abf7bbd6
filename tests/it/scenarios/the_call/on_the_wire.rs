//! What is stored of a live call: the legs that another process would end, and what its carrier has said.
use super::{agent, call, session, timeline};
use crate::{
    on_both,
    world::{World, minutes},
};
use actors::leases::Of;
use entities::{
    ids::{SessionId, SipLegId, TenantScoped, TrunkId},
    session::Quality,
    sip_leg::{self, Phase, RouteSet},
    sip_trunk::Transport,
    transcript::{self, Entry},
    values::Env,
};
use rules::commit::Commit;
use serde_json::json;

on_both! {
    /// A leg stands before its INVITE leaves, follows its dialog, and goes when nothing of it is on the wire.
    async fn a_leg_is_kept_as_long_as_it_is_on_the_wire(world: &mut World) {
        let tenant = world.tenant().await;
        let deps = world.deps();
        let (session, trunk): (SessionId, TrunkId) = (deps.ids.next(), deps.ids.next());
        let leg = |number: i32| sip_leg::Model {
            id: deps.ids.next(),
            tenant_id: tenant.id,
            env: Env::Live,
            session_id: session,
            leg: number,
            trunk_id: trunk,
            call_id: format!("{session}.{number}.mac@192.0.2.1"),
            target: "192.0.2.9:5060".into(),
            transport: Transport::Tls,
            phase: Phase::Inviting,
            local_uri: "sip:+12025550100@192.0.2.1".into(),
            remote_uri: "sip:+12025550171@carrier.example".into(),
            remote_tag: None,
            remote_target: "sip:+12025550171@carrier.example".into(),
            route_set: RouteSet::default(),
            cseq: 1,
            created_at: world.clock.now(),
        };
        let (first, second) = (leg(1), leg(2));
        let mut commit = Commit::default();
        commit.changes.sip_legs.extend([second.clone(), first.clone()]);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        let db = &deps.db.read;
        assert_eq!(sip_leg::of_session(db, session).await.unwrap(), [first.clone(), second.clone()]);

        let confirmed = sip_leg::Model {
            phase: Phase::Confirmed,
            remote_tag: Some("as7d2".into()),
            remote_target: "sip:gw7@198.51.100.7:5080;transport=tls".into(),
            route_set: RouteSet(vec!["<sip:edge.carrier.example;lr>".into()]),
            cseq: 2_147_483_647,
            ..first.clone()
        };
        let mut commit = Commit::default();
        commit.changes.sip_legs.push(confirmed.clone());
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        assert_eq!(sip_leg::of_call_id(db, &first.call_id).await.unwrap(), Some(confirmed.clone()));
        assert_eq!(sip_leg::of_call_id(db, "somebody@else").await.unwrap(), None);

        // A process that starts reads them a page at a time.
        let (mut all, mut after) = (Vec::new(), None::<SipLegId>);
        loop {
            let page = sip_leg::all_open(db, None, after, 1).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            all.extend(page);
        }
        assert_eq!(all, [confirmed, second.clone()]);

        let mut commit = Commit::default();
        commit.changes.sip_legs_gone.push(first.id);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        assert_eq!(sip_leg::of_session(db, session).await.unwrap(), [second]);
    }

    /// What becomes known after a call's end stands behind the rest. Of a session that was deleted nothing is kept any more.
    async fn a_timeline_grows_after_the_end_until_it_is_forgotten(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({})).await;
        // In the one much is said, in the other nothing.
        let talked = call(&tenant, &agent, "+15002345600", json!({})).await;
        let busy = call(&tenant, &agent, "+15002345671", json!({})).await;
        world.advance(minutes(5)).await;
        let deps = world.deps();
        let at = world.clock.now();
        let (one, other): (SessionId, SessionId) = (talked.parse().unwrap(), busy.parse().unwrap());
        let add = async |sessions: &[SessionId]| {
            let mut commit = Commit::default();
            for session in sessions {
                let (kind, detail) = ("sip_ladder".to_owned(), Some("0 ms -> INVITE".to_owned()));
                commit.changes.timeline_entries.push((*session, Entry { at, kind, detail }));
            }
            deps.writer.commit(Of::Anybody, commit).await.unwrap();
        };
        let before = transcript::load(&deps.db.read, one).await.unwrap();
        add(&[one, other, one]).await;
        let after = transcript::load(&deps.db.read, one).await.unwrap();
        assert_eq!((&after.turns, after.timeline.0.len()), (&before.turns, before.timeline.0.len() + 2));
        let ladder = ("sip_ladder".to_owned(), "0 ms -> INVITE".to_owned());
        for (id, times) in [(&talked, 2), (&busy, 1)] {
            let told = timeline(&tenant, id).await;
            assert_eq!(told.iter().filter(|entry| **entry == ladder).count(), times, "{told:?}");
        }
        assert_eq!(tenant.api.delete(&format!("/v1/sessions/{talked}")).await.status, 204);
        world.settle().await;
        add(&[one]).await;
        assert_eq!(transcript::load(&deps.db.read, one).await.unwrap(), transcript::Model::empty(one));
    }

    async fn what_the_carrier_has_said_is_read_with_the_session(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({})).await;
        let id = call(&tenant, &agent, "+15002345674", json!({})).await;
        world.advance(minutes(1)).await;
        let before = session(&tenant, &id).await;
        assert_eq!((&before["error"]["sip_code"], &before["trunk_id"], &before["quality"]), (&json!(null), &json!(null), &json!(null)));
        // The sandbox has no carrier: its row is written as a live call's would be.
        let deps = world.deps();
        let key = TenantScoped::new(tenant.id, Env::Test, id.parse().unwrap());
        let mut row = entities::session::load(&deps.db.read, key).await.unwrap();
        row.version += 1;
        (row.sip_code, row.q850) = (Some(403), Some(21));
        row.trunk_id = Some(deps.ids.next());
        row.quality = Some(Quality::of((1, 3), 12, None));
        let trunk = row.trunk_id.unwrap().to_string();
        let mut commit = Commit::default();
        commit.changes.sessions.push(row);
        deps.writer.commit(Of::Anybody, commit).await.unwrap();
        let after = session(&tenant, &id).await;
        assert_eq!((&after["error"]["code"], &after["error"]["sip_code"]), (&json!("carrier_rejected"), &json!(403)));
        assert_eq!(after["trunk_id"], json!(trunk));
        assert_eq!(after["quality"], json!({ "loss_percent": 33.33, "jitter_ms": 12, "round_trip_ms": null }));
    }

    /// The outcomes of a call that no last digit has.
    async fn a_fax_is_hung_up_on_and_a_menu_is_talked_to(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "silence": { "hangup_after_seconds": 10 } })).await;
        let with = |outcome: &str, detection: &str| json!({ "sandbox": { "outcome": outcome }, "voicemail": { "action": "continue", "detection": detection } });
        let fax = call(&tenant, &agent, "+15002345610", with("fax", "auto")).await;
        let unnoticed = call(&tenant, &agent, "+15002345620", with("fax", "off")).await;
        let menu = call(&tenant, &agent, "+15002345630", with("ivr", "auto")).await;
        world.advance(minutes(5)).await;
        for (id, status, reason, by) in [
            (&fax, "voicemail", "voicemail", "fax"),
            (&unnoticed, "completed", "silence_timeout", "human"),
            (&menu, "completed", "completed", "ivr"),
        ] {
            let row = session(&tenant, id).await;
            let end = ["status", "end_reason", "answered_by"].map(|name| row[name].as_str());
            assert_eq!(end, [Some(status), Some(reason), Some(by)], "{row}");
            assert!(row["picked_up_at"].is_string(), "{row}");
            assert_eq!(row["started_at"].is_string(), by != "fax", "{row}");
        }
        // Nothing was said to the fax, but somebody had picked up.
        let kinds: Vec<String> = timeline(&tenant, &fax).await.into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["created", "dialed", "picked_up", "ended"]);
        let heard = tenant.api.get(&format!("/v1/sessions/{menu}/transcript.json")).await.ok();
        let said = crate::scenarios::the_call::said(&heard["turns"]);
        assert!(said.iter().any(|line| line.contains("press one")), "{said:?}");
        let incoming = tenant.api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123", "outcome": "fax" })).await;
        assert_eq!(incoming.error(), (422, "validation_failed", Some("outcome")));
    }
}
