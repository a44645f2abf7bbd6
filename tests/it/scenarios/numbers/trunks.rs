//! SIP trunks: what is kept of them, and what a test of one finds.
use super::peer::{Manner, Peer};
use crate::{
    on_both,
    world::{
        Tenant, World, minutes,
        zoo::{TlsFault, authority},
    },
};
use actors::trunk::board::{Refused, Target, TrunkState};
use entities::{
    sip_trunk::Transport,
    values::{Env, Scopes},
};
use serde_json::{Value, json};

async fn trunk(tenant: &Tenant, more: Value) -> Value {
    let mut trunk = json!({ "name": "Carrier", "host": "sip.example.com" });
    trunk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/sip_trunks", trunk).await.ok()
}

/// Makes a trunk to that host and tests it.
async fn test(tenant: &Tenant, transport: &str, host: impl ToString) -> Value {
    let made = trunk(tenant, json!({ "host": host.to_string(), "transport": transport })).await;
    let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
    let found = tenant.api.post(&format!("{path}/test"), json!({})).await.ok();
    let after = tenant.api.get(&path).await.ok();
    let status = if found["reachable"] == true {
        "reachable"
    } else {
        "unreachable"
    };
    assert_eq!(
        (after["status"].as_str(), after["tested_at"].is_string()),
        (Some(status), true)
    );
    found
}

fn code(found: &Value) -> (bool, &str) {
    (
        found["reachable"].as_bool().unwrap(),
        found["error"]["code"].as_str().unwrap_or("none"),
    )
}

on_both! {
    async fn a_trunk_is_kept_without_showing_its_password(world: &mut World) {
        let tenant = world.tenant().await;
        let asked = json!({
            "host": "SIP.Example.com:5080", "transport": "tls", "username": "acme", "password": "canary-4711",
            "from_domain": "acme.example", "max_calls_per_second": 2.5, "max_concurrency": 30,
        });
        let made = trunk(&tenant, asked).await;
        let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
        for (field, value) in [
            ("host", json!("sip.example.com:5080")), ("transport", json!("tls")), ("username", json!("acme")), ("password_set", json!(true)),
            ("from_domain", json!("acme.example")), ("max_calls_per_second", json!(2.5)), ("max_concurrency", json!(30)), ("status", json!("untested")),
        ] {
            assert_eq!(made[field], value, "{field}");
        }
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        assert_eq!(live.get(&path).await.ok(), made, "a workspace's two envs share it");
        let patched = tenant.api.patch(&path, json!({ "name": "Other", "max_concurrency": null })).await.ok();
        assert_eq!((patched["name"].as_str(), &patched["max_concurrency"], &patched["password_set"]), (Some("Other"), &Value::Null, &json!(true)));
        let stored = entities::sip_trunk::load(&world.deps().db.read, tenant.id, made["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
        let sealed = stored.sealed_password.unwrap();
        assert!(!sealed.contains("canary"));
        let opened = world.deps().keyring.open(runtime::keyring::purpose::TRUNK_PASSWORD, &sealed).unwrap();
        assert_eq!(opened.as_str(), "canary-4711");
        let shown = tenant.api.get("/v1/sip_trunks").await.ok().to_string();
        assert!(!shown.contains("canary") && !shown.contains(&sealed));
        let refused = tenant.api.patch(&path, json!({ "username": null })).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("username")));
        let without = tenant.api.patch(&path, json!({ "username": null, "password": null })).await.ok();
        assert_eq!((&without["password_set"], &without["username"]), (&json!(false), &Value::Null));
        let plain = trunk(&tenant, json!({})).await;
        assert_eq!((plain["transport"].as_str(), plain["max_calls_per_second"].as_f64(), &plain["password_set"]), (Some("udp"), Some(1.0), &json!(false)));
        let list = tenant.api.get("/v1/sip_trunks?order=asc&limit=1").await.ok();
        assert_eq!((list["data"][0]["id"].clone(), list["has_more"].clone()), (made["id"].clone(), json!(true)));
    }

    async fn bad_trunks_are_refused_and_change_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        for (more, param) in [
            (json!({ "host": "a b" }), "host"),
            (json!({ "host": "sip:a.example" }), "host"),
            (json!({ "host": "a.example:25" }), "host"),
            (json!({ "host": "10.0.0.1" }), "host"),
            (json!({ "host": "169.254.169.254:5060" }), "host"),
            (json!({ "host": "[fe80::1]:5060" }), "host"),
            (json!({ "host": "0xa9fea9fe" }), "host"),
            (json!({ "transport": "sctp" }), "transport"),
            (json!({ "name": "" }), "name"),
            (json!({ "password": "x" }), "username"),
            (json!({ "username": "a\r\nVia: x" }), "username"),
            (json!({ "username": "a", "password": "a\nb" }), "password"),
            (json!({ "from_domain": "a.example>;x" }), "from_domain"),
            (json!({ "max_calls_per_second": 0.05 }), "max_calls_per_second"),
            (json!({ "max_concurrency": 0 }), "max_concurrency"),
            (json!({ "passwrod": "x" }), "passwrod"),
            (json!({ "status": "reachable" }), "status"),
            (json!({ "state": { "up": true } }), "state"),
            (json!({ "auth_username": "a" }), "auth_username"),
            (json!({ "auth_username": "a\tb", "username": "a", "password": "x" }), "auth_username"),
            (json!({ "outbound_proxy": "10.0.0.1" }), "outbound_proxy"),
            (json!({ "outbound_proxy": "a.example:25" }), "outbound_proxy"),
            (json!({ "register": true }), "register"),
            (json!({ "register": { "enabled": true } }), "username"),
            (json!({ "register": { "expires_seconds": 59 } }), "register.expires_seconds"),
            (json!({ "register": { "contact_user": "a;b" } }), "register.contact_user"),
            (json!({ "register": { "realm": "x" } }), "register.realm"),
            (json!({ "inbound_addresses": ["0.0.0.0/0"] }), "inbound_addresses[0]"),
            (json!({ "inbound_addresses": vec!["192.0.2.1"; 65] }), "inbound_addresses"),
            (json!({ "media_addresses": ["sip.example.com"] }), "media_addresses[0]"),
            (json!({ "inbound_auth": { "username": "peer" } }), "inbound_auth.password"),
            (json!({ "inbound_auth": { "password": "x" } }), "inbound_auth.username"),
            (json!({ "inbound_auth": { "username": "a\nb", "password": "x" } }), "inbound_auth.username"),
            (json!({ "inbound_auth": { "username": "a", "password": "a\nb" } }), "inbound_auth.password"),
            (json!({ "codecs": [] }), "codecs"),
            (json!({ "codecs": ["pcmu", "g729"] }), "codecs[1]"),
            (json!({ "codecs": ["pcmu", "pcmu"] }), "codecs"),
            (json!({ "dtmf": "loud" }), "dtmf"),
            (json!({ "srtp": "optional" }), "srtp"),
            (json!({ "number_format": "e123" }), "number_format"),
            (json!({ "caller_id": "rpid" }), "caller_id"),
            (json!({ "transfer": "attended" }), "transfer"),
            (json!({ "options_interval_seconds": 9 }), "options_interval_seconds"),
            (json!({ "session_expires_seconds": 89 }), "session_expires_seconds"),
            (json!({ "paused": "yes" }), "paused"),
        ] {
            let mut body = json!({ "name": "x", "host": "sip.example.com" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(tenant.api.post("/v1/sip_trunks", body).await.error(), (422, "validation_failed", Some(param)), "{more}");
        }
        assert_eq!(tenant.api.post("/v1/sip_trunks", json!({ "name": "x" })).await.error(), (422, "validation_failed", Some("host")));
        assert_eq!(tenant.api.get("/v1/sip_trunks").await.ok()["data"], json!([]));
    }

    /// What the peer proves itself with is kept like the trunk's own password.
    async fn what_a_peer_proves_itself_with_is_not_shown(world: &mut World) {
        let tenant = world.tenant().await;
        let asked = json!({
            "register": { "enabled": true }, "username": "acme", "password": "canary-1", "auth_username": "4711",
            "inbound_addresses": ["198.51.100.0/24", "2001:db8::1"], "codecs": ["g722", "pcma"], "transfer": "refer",
            "inbound_auth": { "username": "peer", "password": "canary-2" },
        });
        let made = trunk(&tenant, asked).await;
        let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
        for (field, value) in [
            ("register", json!({ "enabled": true, "expires_seconds": 300, "contact_user": null })),
            ("inbound_addresses", json!(["198.51.100.0/24", "2001:db8::1"])), ("inbound_auth", json!({ "username": "peer" })),
            ("codecs", json!(["g722", "pcma"])), ("inbound_password_set", json!(true)), ("password_set", json!(true)), ("paused", json!(false)),
        ] {
            assert_eq!(made[field], value, "{field}");
        }
        let state = json!({
            "up": null, "registered_until": null, "refused": null, "paused_until": null, "targets": [], "in_use": 0, "calls_per_second": 1.0,
        });
        assert_eq!(made["state"], state, "nobody has heard of it yet");
        assert!(!tenant.api.get("/v1/sip_trunks").await.ok().to_string().contains("canary"));
        let id = made["id"].as_str().unwrap().parse().unwrap();
        let sealed = async || entities::sip_trunk::load(&world.deps().db.read, tenant.id, id).await.unwrap().sealed_inbound_password;
        let purpose = runtime::keyring::purpose::TRUNK_INBOUND_PASSWORD;
        let first = sealed().await.unwrap();
        assert_eq!(world.deps().keyring.open(purpose, &first).unwrap().as_str(), "canary-2");
        // Another name keeps the password; null takes it away, which a name alone does not allow.
        let renamed = tenant.api.patch(&path, json!({ "inbound_auth": { "username": "other" } })).await.ok();
        assert_eq!((&renamed["inbound_auth"]["username"], &renamed["inbound_password_set"]), (&json!("other"), &json!(true)));
        assert_eq!(sealed().await.unwrap(), first);
        let refused = tenant.api.patch(&path, json!({ "inbound_auth": { "password": null } })).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("inbound_auth.password")));
        assert_eq!(tenant.api.patch(&path, json!({ "password": null })).await.error().2, Some("auth_username"));
        let without = tenant.api.patch(&path, json!({ "inbound_auth": null })).await.ok();
        assert_eq!((&without["inbound_auth"], &without["inbound_password_set"]), (&Value::Null, &json!(false)));
        assert_eq!(sealed().await, None);
        // Its own password was named by none of them.
        assert_eq!(without["password_set"], json!(true));
    }

    /// The keys of the sound travel with the signalling.
    async fn sound_is_encrypted_over_tls_only(world: &mut World) {
        let tenant = world.tenant().await;
        let asked = |transport: &str| json!({ "name": "x", "host": "sip.example.com", "srtp": "required", "transport": transport });
        tenant.api.post("/v1/sip_trunks", asked("udp")).await.ok();
        world.change_setting("dev", false.into()).await;
        for transport in ["udp", "tcp"] {
            assert_eq!(tenant.api.post("/v1/sip_trunks", asked(transport)).await.error(), (422, "validation_failed", Some("srtp")));
        }
        tenant.api.post("/v1/sip_trunks", asked("tls")).await.ok();
    }

    /// What those who speak with the peer have noted is what is shown.
    async fn a_trunk_shows_how_it_stands(world: &mut World) {
        let tenant = world.tenant().await;
        let made = trunk(&tenant, json!({ "max_calls_per_second": 8.0 })).await;
        let id = made["id"].as_str().unwrap();
        // Whoever dials has looked at it, and notes nothing of it meanwhile.
        world.settle().await;
        let (board, now) = (&world.deps().trunks, world.clock.now());
        let state = TrunkState {
            up: false,
            paused_until: Some(now.plus_seconds(30)),
            registered: None,
            refused: Some(Refused { sip_code: 403, reason: "Forbidden".into() }),
            targets: vec![Target { address: "192.0.2.1:5060".parse().unwrap(), transport: Transport::Udp, up: true }],
        };
        assert!(board.set(id.parse().unwrap(), state));
        let second_leg = board.second_leg(id.parse().unwrap());
        // Whoever has looked at it has nothing to dial, and takes its pace along when it goes.
        while tenant.api.get("/readyz").await.ok()["actors"]["dispatcher"].as_u64().is_some_and(|count| count > 0) {
            world.settle().await;
        }
        world.deps().trunks.paced(id.parse().unwrap(), 4.0);
        let shown = tenant.api.get(&format!("/v1/sip_trunks/{id}")).await.ok()["state"].clone();
        let expected = json!({
            "up": false, "registered_until": null, "refused": { "sip_code": 403, "reason": "Forbidden" },
            "paused_until": now.plus_seconds(30), "targets": [{ "address": "192.0.2.1:5060", "transport": "udp", "up": true }],
            "in_use": 1, "calls_per_second": 4.0,
        });
        assert_eq!(shown, expected);
        drop(second_leg);
        world.advance(minutes(1)).await;
        let shown = tenant.api.get("/v1/sip_trunks").await.ok()["data"][0]["state"].clone();
        assert_eq!((&shown["paused_until"], &shown["in_use"]), (&Value::Null, &json!(0)));
    }

    async fn a_trunk_that_numbers_use_is_not_deleted(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let api = &tenant.api;
        let (made, foreign) = (trunk(&tenant, json!({})).await, trunk(&other, json!({})).await);
        let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
        for id in [foreign["id"].clone(), json!("00000000-0000-7000-8000-000000000000")] {
            let body = json!({ "phone_number": "+12025550123", "trunk_id": id });
            assert_eq!(api.post("/v1/numbers", body).await.error(), (422, "validation_failed", Some("trunk_id")));
        }
        let number = api.post("/v1/numbers", json!({ "phone_number": "+12025550123", "trunk_id": made["id"] })).await.ok();
        assert_eq!(number["trunk_id"], made["id"]);
        let number = format!("/v1/numbers/{}", number["id"].as_str().unwrap());
        assert_eq!(api.patch(&number, json!({ "trunk_id": foreign["id"] })).await.error(), (422, "validation_failed", Some("trunk_id")));
        assert_eq!(api.patch(&number, json!({ "label": "Desk" })).await.ok()["trunk_id"], made["id"], "what is not named stays");
        let refused = api.delete(&path).await;
        assert_eq!(refused.error(), (409, "in_use", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("+12025550123"), "{}", refused.body);
        assert_eq!(api.patch(&number, json!({ "trunk_id": null })).await.ok()["trunk_id"], Value::Null);
        assert_eq!(api.delete(&path).await.status, 204);
        assert_eq!(api.get(&path).await.error(), (404, "not_found", None));
        assert_eq!(api.patch(&number, json!({ "trunk_id": made["id"] })).await.error().2, Some("trunk_id"), "it is gone");
        // A number that is deleted uses nothing.
        let again = trunk(&tenant, json!({})).await;
        api.patch(&number, json!({ "trunk_id": again["id"] })).await.ok();
        assert_eq!(api.delete(&number).await.status, 204);
        assert_eq!(api.delete(&format!("/v1/sip_trunks/{}", again["id"].as_str().unwrap())).await.status, 204);
    }

    /// Over each transport, from a real peer; whatever it says in SIP, it is there.
    async fn a_peer_that_answers_is_reachable(world: &mut World) {
        let ca = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), &authority().pem).unwrap();
        world.change_setting("webhook_ca_file", ca.path().to_str().unwrap().into()).await;
        let tenant = world.tenant().await;
        for (status, reason) in [(200, "OK"), (401, "Unauthorized"), (404, "Not Found"), (405, "Method Not Allowed"), (503, "Service Unavailable")] {
            let peer = Peer::udp(Manner::Says(status, reason)).await;
            let found = test(&tenant, "udp", peer.address).await;
            assert_eq!((code(&found), found["status_code"].as_u64(), found["reason"].as_str()), ((true, "none"), Some(status.into()), Some(reason)));
            assert!(found["rtt_ms"].is_u64(), "{found}");
            let heard = peer.heard();
            assert_eq!(heard.len(), 1);
            assert!(heard[0].starts_with(&format!("OPTIONS sip:{} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:", peer.address)), "{}", heard[0]);
            world.advance(minutes(1)).await;
        }
        let peer = Peer::tcp(Manner::Says(200, "OK")).await;
        assert_eq!(code(&test(&tenant, "tcp", peer.address).await), (true, "none"));
        assert!(peer.heard()[0].contains("\r\nVia: SIP/2.0/TCP 127.0.0.1:"));
        let peer = Peer::tls(Manner::Says(200, "OK"), TlsFault::Good).await;
        assert_eq!(code(&test(&tenant, "tls", format!("localhost:{}", peer.address.port())).await), (true, "none"));
        assert!(peer.heard()[0].contains("\r\nVia: SIP/2.0/TLS 127.0.0.1:"));
        for manner in [Manner::BesideOthers, Manner::InPieces] {
            let peer = Peer::tcp(manner).await;
            let found = test(&tenant, "tcp", peer.address).await;
            assert_eq!((code(&found), found["status_code"].as_u64()), ((true, "none"), Some(200)), "{manner:?}");
        }
        let peer = Peer::udp(Manner::BesideOthers).await;
        assert_eq!(test(&tenant, "udp", peer.address).await["status_code"], 200);
        let peer = Peer::udp(Manner::AfterTwoLosses).await;
        assert_eq!(test(&tenant, "udp", peer.address).await["status_code"], 200);
        let heard = peer.heard();
        assert!(heard.len() == 3 && heard.iter().all(|request| *request == heard[0]), "the same request, three times");
        // By way of a proxy the host is not looked up.
        world.advance(minutes(1)).await;
        let peer = Peer::udp(Manner::Says(200, "OK")).await;
        let made = trunk(&tenant, json!({ "host": "sip.example.com", "outbound_proxy": peer.address.to_string() })).await;
        let found = tenant.api.post(&format!("/v1/sip_trunks/{}/test", made["id"].as_str().unwrap()), json!({})).await.ok();
        assert_eq!(code(&found), (true, "none"));
        let heard = peer.heard();
        assert!(heard[0].starts_with("OPTIONS sip:sip.example.com SIP/2.0\r\n"), "{}", heard[0]);
        assert!(heard[0].contains(&format!("\r\nRoute: <sip:{};lr>\r\n", peer.address)), "{}", heard[0]);
    }

    async fn a_peer_that_does_not_answer_is_told_of_with_the_cause(world: &mut World) {
        let ca = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), &authority().pem).unwrap();
        world.change_setting("webhook_ca_file", ca.path().to_str().unwrap().into()).await;
        let tenant = world.tenant().await;
        // A port that nobody has any more.
        let gone = Peer::tcp(Manner::Silent).await.address;
        assert_eq!(code(&test(&tenant, "tcp", gone).await), (false, "connect_failed"));
        let gone = Peer::udp(Manner::Silent).await.address;
        assert_eq!(code(&test(&tenant, "udp", gone).await), (false, "connect_failed"));
        for (manner, expected) in [(Manner::HangsUp, "bad_answer"), (Manner::Http, "bad_answer"), (Manner::Floods, "bad_answer")] {
            let peer = Peer::tcp(manner).await;
            let found = test(&tenant, "tcp", peer.address).await;
            assert_eq!(code(&found), (false, expected), "{manner:?} {found}");
            assert!(found["status_code"].is_null() && found["rtt_ms"].is_null() && found["error"]["message"].is_string());
        }
        let peer = Peer::udp(Manner::Floods).await;
        assert_eq!(code(&test(&tenant, "udp", peer.address).await), (false, "bad_answer"));
        for fault in [TlsFault::WrongName, TlsFault::Expired, TlsFault::SelfSigned] {
            let peer = Peer::tls(Manner::Says(200, "OK"), fault).await;
            let found = test(&tenant, "tls", format!("localhost:{}", peer.address.port())).await;
            assert_eq!(code(&found), (false, "tls_failed"), "{fault:?} {found}");
            assert_eq!(peer.heard().len(), 0, "nothing is said to somebody else");
        }
        // A name that no name system has. (RFC 6761: never resolves.)
        assert_eq!(code(&test(&tenant, "udp", "sip.invalid").await), (false, "dns_failed"));
    }

    /// Five seconds of silence; a peer that only tries is there.
    async fn silence_ends_in_time(world: &mut World) {
        let tenant = world.tenant().await;
        let (silent, tries) = (Peer::udp(Manner::Silent).await, Peer::tcp(Manner::OnlyTries).await);
        let (silence, trying) = tokio::join!(test(&tenant, "udp", silent.address), test(&tenant, "tcp", tries.address));
        assert_eq!(code(&silence), (false, "timeout"));
        // At 0, 0.5, 1.5 and 3.5 seconds, if the machine is not too busy.
        assert!((2..=4).contains(&silent.heard().len()), "{}", silent.heard().len());
        assert_eq!((code(&trying), trying["status_code"].as_u64()), ((true, "none"), Some(100)));
    }

    /// Addresses that are not public are closed, also behind a name and also when they were stored before.
    async fn a_test_reaches_public_peers_only(world: &mut World) {
        let tenant = world.tenant().await;
        let peer = Peer::udp(Manner::Says(200, "OK")).await;
        let made = trunk(&tenant, json!({ "host": peer.address.to_string() })).await;
        let named = trunk(&tenant, json!({ "host": format!("localhost:{}", peer.address.port()) })).await;
        world.change_setting("dev", false.into()).await;
        for made in [&made, &named] {
            let path = format!("/v1/sip_trunks/{}/test", made["id"].as_str().unwrap());
            let found = tenant.api.post(&path, json!({})).await.ok();
            assert_eq!(code(&found), (false, "blocked_target"), "{found}");
        }
        assert_eq!(peer.heard().len(), 0);
        assert_eq!(tenant.api.post("/v1/sip_trunks", json!({ "name": "x", "host": "127.0.0.1:5060" })).await.error().2, Some("host"));
        // The operator opens one.
        world.change_setting("webhook_allow_targets", json!(format!("localhost:{}", peer.address.port()))).await;
        let found = tenant.api.post(&format!("/v1/sip_trunks/{}/test", named["id"].as_str().unwrap()), json!({})).await.ok();
        // The name may have an IPv6 address, too, where nobody listens.
        assert_eq!(code(&found), (true, "none"), "{found}");
        assert_eq!(peer.heard().len(), 1);
    }

    async fn tests_are_limited_and_a_new_peer_is_untested(world: &mut World) {
        let tenant = world.tenant().await;
        let peer = Peer::udp(Manner::Says(200, "OK")).await;
        let made = trunk(&tenant, json!({ "host": peer.address.to_string() })).await;
        let path = format!("/v1/sip_trunks/{}", made["id"].as_str().unwrap());
        for _ in 0..20 {
            tenant.api.post(&format!("{path}/test"), json!({})).await.ok();
        }
        let refused = tenant.api.post(&format!("{path}/test"), json!({})).await;
        assert_eq!((refused.error(), refused.headers.contains_key("retry-after")), ((429, "rate_limited", None), true));
        assert_eq!(peer.heard().len(), 20);
        world.advance(minutes(1)).await;
        tenant.api.post(&format!("{path}/test"), json!({})).await.ok();
        assert_eq!(tenant.api.patch(&path, json!({ "name": "Same peer" })).await.ok()["status"], "reachable");
        let moved = tenant.api.patch(&path, json!({ "transport": "tcp" })).await.ok();
        assert_eq!((moved["status"].as_str(), &moved["tested_at"]), (Some("untested"), &Value::Null));
    }
}
