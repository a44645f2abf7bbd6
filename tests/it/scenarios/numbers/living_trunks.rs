//! Trunks that speak with their peers: real registrars and a real name server, in real time.
use crate::{
    on_both,
    world::{
        Tenant, World, minutes,
        name_server::{Data, NameServer},
        registrar::Registrar,
    },
};
use entities::values::Moment;
use serde_json::{Value, json};
use std::time::Duration;

async fn state(tenant: &Tenant, trunk: &str) -> Value {
    tenant.api.get(&format!("/v1/sip_trunks/{trunk}")).await.ok()["state"].clone()
}

/// What the peer shows comes when it comes.
async fn until(tenant: &Tenant, trunk: &str, so: impl Fn(&Value) -> bool) -> Value {
    let wall = runtime::clock::Clock::wall();
    let mut last = Value::Null;
    for _ in 0..800 {
        last = state(tenant, trunk).await;
        if so(&last) {
            return last;
        }
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
    panic!("the trunk did not become what was waited for: {last}");
}

async fn until_heard(registrar: &Registrar, what: &str, times: usize) {
    let wall = runtime::clock::Clock::wall();
    for _ in 0..800 {
        if registrar.count(what) >= times {
            return;
        }
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} was not heard {times} times: {:?}", registrar.heard());
}

async fn live(world: &mut World, more: &[(&str, Value)]) {
    let mut settings = vec![("sip_bind", json!("127.0.0.1:0")), ("rtp_ports", json!("39000-39099"))];
    settings.extend(more.iter().cloned());
    world.change_settings(&settings).await;
}

async fn registering(tenant: &Tenant, host: impl ToString, password: &str) -> String {
    let asked = json!({
        "name": "Carrier", "host": host.to_string(), "username": "acme", "password": password, "register": { "enabled": true },
    });
    let made = tenant.api.post("/v1/sip_trunks", asked).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

on_both! {
    /// It is up once it is registered; another password begins anew, and the end of the service ends the binding.
    async fn a_trunk_registers_as_long_as_it_is_wanted(world: &mut World) {
        live(world, &[]).await;
        let tenant = world.tenant().await;
        let registrar = Registrar::start("acme", "right").await;
        let trunk = registering(&tenant, registrar.address, "right").await;
        let stands = until(&tenant, &trunk, |state| state["up"] == true).await;
        assert!(stands["registered_until"].is_string() && stands["refused"].is_null(), "{stands}");
        assert_eq!(stands["targets"], json!([{ "address": registrar.address.to_string(), "transport": "udp", "up": true }]));
        assert_eq!(registrar.heard().iter().filter(|heard| heard.starts_with("REGISTER")).collect::<Vec<_>>(), ["REGISTER Missing", "REGISTER binds"]);
        until_heard(&registrar, "OPTIONS", 1).await;
        // What the peer has nothing to do with leaves the binding alone.
        let path = format!("/v1/sip_trunks/{trunk}");
        tenant.api.patch(&path, json!({ "name": "Other", "paused": true })).await.ok();
        assert_eq!(state(&tenant, &trunk).await["up"], true);
        tenant.api.patch(&path, json!({ "password": "wrong" })).await.ok();
        let refused = until(&tenant, &trunk, |state| !state["refused"].is_null()).await;
        assert_eq!((&refused["up"], &refused["refused"]["sip_code"], &refused["registered_until"]), (&json!(false), &json!(401), &Value::Null));
        assert_eq!((registrar.count("REGISTER ends"), registrar.count("REGISTER binds")), (1, 1), "{:?}", registrar.heard());
        tenant.api.patch(&path, json!({ "password": "right" })).await.ok();
        until(&tenant, &trunk, |state| state["up"] == true).await;
        assert_eq!(registrar.count("REGISTER binds"), 2);
        world.restart_in_order().await;
        until_heard(&registrar, "REGISTER ends", 2).await;
        // The next process registers by itself.
        until_heard(&registrar, "REGISTER binds", 3).await;
        tenant.api.delete(&path).await;
        until_heard(&registrar, "REGISTER ends", 3).await;
    }

    /// 40 days ahead, believed, and back: what was agreed with the registrar counts by clocks that nobody sets.
    async fn a_trunk_stays_registered_under_a_wrong_clock(world: &mut World) {
        const FORTY_DAYS_MS: i64 = 40 * 24 * 3_600_000;
        live(world, &[]).await;
        let tenant = world.tenant().await;
        let registrar = Registrar::start("acme", "right").await;
        let trunk = registering(&tenant, registrar.address, "right").await;
        until(&tenant, &trunk, |state| state["up"] == true).await;
        for (step, minutes_on) in [(0, 1), (FORTY_DAYS_MS, 2), (0, 10), (-FORTY_DAYS_MS, 2), (0, 10)] {
            world.clock.step_wall(step);
            world.advance(minutes(minutes_on)).await;
            let stands = state(&tenant, &trunk).await;
            let ends_at = Moment::parse(stands["registered_until"].as_str().unwrap()).unwrap();
            let left = ends_at.since(world.clock.now());
            assert!(left > Duration::ZERO && left <= Duration::from_secs(3_610), "{step}: {left:?} of {stands}");
            assert_eq!((&stands["up"], &stands["targets"][0]["up"]), (&json!(true), &json!(true)), "{stands}");
        }
        assert_eq!((registrar.count("REGISTER binds"), registrar.count("REGISTER ends")), (1, 0), "{:?}", registrar.heard());
    }

    /// Whoever has no number and does not register is nobody's to speak with.
    async fn a_trunk_that_a_number_uses_is_looked_up_and_asked(world: &mut World) {
        let registrar = Registrar::start("acme", "right").await;
        let port = registrar.address.port();
        let zone = [
            ("carrier.test", Data::Naptr { order: 10, service: "SIP+D2T", replacement: "_sip._tcp.other.test" }),
            ("carrier.test", Data::Naptr { order: 20, service: "SIP+D2U", replacement: "_sip._udp.edge.test" }),
            ("_sip._udp.edge.test", Data::Srv { priority: 10, port, target: "localhost" }),
            ("_sip._udp.edge.test", Data::Srv { priority: 20, port: 65_000, target: "localhost" }),
            ("_sip._udp.low.test", Data::Srv { priority: 10, port: 25, target: "localhost" }),
            ("_sip._udp.none.test", Data::Srv { priority: 0, port: 0, target: "." }),
        ];
        let names = NameServer::start(&zone).await;
        live(world, &[("sip_dns", json!(names.address.to_string()))]).await;
        let tenant = world.tenant().await;
        let made = async |host: &str| tenant.api.post("/v1/sip_trunks", json!({ "name": "x", "host": host })).await.ok()["id"].as_str().unwrap().to_owned();
        let trunk = made("carrier.test").await;
        assert_eq!(state(&tenant, &trunk).await["up"], Value::Null, "nobody uses it");
        let number = tenant.api.post("/v1/numbers", json!({ "phone_number": "+12025550123", "trunk_id": trunk })).await.ok();
        let stands = until(&tenant, &trunk, |state| state["up"] == true).await;
        let addresses: Vec<&str> = stands["targets"].as_array().unwrap().iter().map(|target| target["address"].as_str().unwrap()).collect();
        assert!(addresses.contains(&format!("127.0.0.1:{port}").as_str()), "{addresses:?}");
        assert!(addresses.last().unwrap().ends_with(":65000"), "the second priority comes last: {addresses:?}");
        until_heard(&registrar, "OPTIONS", 1).await;
        let found = tenant.api.post(&format!("/v1/sip_trunks/{trunk}/test"), json!({})).await.ok();
        assert_eq!((&found["reachable"], &found["register"]), (&json!(true), &Value::Null), "{found}");
        // Nobody uses it any more.
        tenant.api.patch(&format!("/v1/numbers/{}", number["id"].as_str().unwrap()), json!({ "trunk_id": null })).await.ok();
        until(&tenant, &trunk, |state| state["up"].is_null()).await;
        // A zone is a user's word: it leads to no port that is not SIP's, and may say that there is nothing.
        for (host, code) in [("low.test", "blocked_target"), ("none.test", "dns_failed")] {
            let trunk = made(host).await;
            let found = tenant.api.post(&format!("/v1/sip_trunks/{trunk}/test"), json!({})).await.ok();
            assert_eq!(found["error"]["code"], code, "{host}: {found}");
        }
    }

    /// The test proves the password, and changes no binding; also where no live calls are set up.
    async fn a_test_tells_whether_the_password_is_right(world: &mut World) {
        let tenant = world.tenant().await;
        let registrar = Registrar::start("acme", "right").await;
        for (password, accepted, code) in [("right", true, 200), ("wrong", false, 401)] {
            let trunk = registering(&tenant, registrar.address, password).await;
            let found = tenant.api.post(&format!("/v1/sip_trunks/{trunk}/test"), json!({})).await.ok();
            let register = &found["register"];
            assert_eq!((&found["reachable"], &register["accepted"], &register["status_code"]), (&json!(true), &json!(accepted), &json!(code)), "{found}");
            assert_eq!(register["advice"].is_null(), accepted, "{found}");
        }
        assert_eq!((registrar.count("REGISTER asks"), registrar.count("REGISTER binds")), (1, 0), "{:?}", registrar.heard());
    }
}
