//! Making rooms, and what stands behind a link that is good and one that is not.
use super::*;
use crate::{
    on_both,
    world::{Receiver, minutes, seconds},
};
use entities::values::{Env, Scopes};

on_both! {
    async fn a_room_is_made_with_its_session_and_its_link(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "max_duration_seconds": 300, "recording": { "enabled": true } })).await;
        let asked = json!({
            "client_reference_id": "order 7", "participant": { "first_name": "Bo", "email": "bo@example.com" },
            "variables": { "order": "7" }, "metadata": { "crm": "42" }, "expires_in_seconds": 60, "max_duration_seconds": 600,
        });
        let room = create(&tenant, &agent, asked).await;
        assert_eq!((&room["status"], &room["agent_id"], &room["max_duration_seconds"]), (&json!("created"), &json!(agent), &json!(300)));
        assert_eq!(room["participant"], json!({ "id": null, "email": "bo@example.com", "first_name": "Bo", "last_name": null }));
        assert_eq!((&room["variables"], &room["metadata"], &room["client_reference_id"]), (&json!({ "order": "7" }), &json!({ "crm": "42" }), &json!("order 7")));
        assert_eq!(moment(&room["expires_at"]), moment(&room["created_at"]).plus_seconds(60));
        assert!(room["room_url"].as_str().unwrap().starts_with(&format!("{}/r/{}?sig=", world.url, room["id"].as_str().unwrap())));
        let call = session(&tenant, &room).await;
        assert_eq!((&call["type"], &call["room_id"], &call["status"]), (&json!("webrtc"), &room["id"], &json!("queued")));
        assert_eq!((&call["to_number"], &call["from_number"], &call["phone_number"]), (&Value::Null, &Value::Null, &Value::Null));
        assert_eq!(story(&tenant).await, ["session.created", "room.created"]);
        let told = &the_call::told(&tenant, "room.created").await[0];
        assert_eq!((&told["room_id"], &told["room_url"], &told["expires_at"]), (&room["id"], &room["room_url"], &room["expires_at"]));
        assert_eq!(get(&tenant, &room).await, room);
        let listed = tenant.api.get("/v1/rooms?status=created").await.ok();
        assert_eq!(listed["data"], json!([room]));
        assert_eq!(tenant.api.get("/v1/rooms?status=joined").await.ok()["data"], json!([]));
        let by_room = format!("/v1/sessions?room_id={}", room["id"].as_str().unwrap());
        assert_eq!(tenant.api.get(&by_room).await.ok()["data"][0]["id"], room["session_id"]);
        // It takes no slot and sets nothing aside until somebody joins.
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
        assert_eq!(tenant.api.get("/v1/credits").await.ok()["held_cents"], 0);
    }

    async fn what_is_wrong_with_a_room_is_named_and_changes_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for (body, param) in [
            (json!({}), "agent_id"),
            (json!({ "agent_id": "00000000-0000-7000-8000-000000000000" }), "agent_id"),
            (json!({ "agent_id": agent, "expires_in_seconds": 59 }), "expires_in_seconds"),
            (json!({ "agent_id": agent, "expires_in_seconds": 604_801 }), "expires_in_seconds"),
            (json!({ "agent_id": agent, "max_duration_seconds": 29 }), "max_duration_seconds"),
            (json!({ "agent_id": agent, "participant": { "name": "Bo" } }), "participant.name"),
            (json!({ "agent_id": agent, "participant": { "email": "Bo" } }), "participant.email"),
            (json!({ "agent_id": agent, "voice_id": "" }), "voice_id"),
            (json!({ "agent_id": agent, "recording": { "enabled": true, "transfers": true } }), "recording.transfers"),
            (json!({ "agent_id": agent, "to_number": "+15002340000" }), "to_number"),
        ] {
            let answer = tenant.api.post("/v1/rooms", body.clone()).await;
            assert_eq!((answer.status.as_u16(), answer.error().2), (422, Some(param)), "{body}: {}", answer.body);
        }
        assert_eq!(world.rows("rooms").await, 0);
        assert_eq!(tenant.event_types().await, Vec::<String>::new());
        let status = tenant.api.get("/v1/rooms?status=full").await;
        assert_eq!(status.error(), (422, "validation_failed", Some("status")));
    }

    async fn a_page_that_is_opened_is_told_once_and_by_its_script_alone(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let page = link.page().await;
        assert_eq!(page.status, 200);
        assert!(page.body.as_str().unwrap().contains("Ann"));
        for (name, value) in [("cache-control", "no-store"), ("referrer-policy", "no-referrer"), ("x-frame-options", "DENY")] {
            assert_eq!(page.headers[name], value);
        }
        assert_eq!(get(&tenant, &room).await["status"], "created", "a link preview is no view");
        world.advance(seconds(5)).await;
        for _ in 0..2 {
            assert_eq!(link.view().await.status, 204);
        }
        let viewed = get(&tenant, &room).await;
        assert_eq!((&viewed["status"], moment(&viewed["viewed_at"])), (&json!("viewed"), world.clock.now()));
        assert_eq!(story(&tenant).await, ["session.created", "room.created", "room.landing_viewed"]);
    }

    async fn nobody_joins_in_time(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let room = create(&tenant, &agent, json!({ "expires_in_seconds": 600, "client_reference_id": "r" })).await;
        let link = Link::of(world, &tenant, &room);
        world.advance(seconds(599)).await;
        assert_eq!(link.page().await.status, 200);
        // Its time survives a crash.
        world.restart().await;
        world.advance(seconds(1)).await;
        let over = get(&tenant, &room).await;
        assert_eq!((&over["status"], &over["ended_at"], &over["duration_seconds"]), (&json!("expired"), &over["expires_at"], &json!(0)));
        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"], &call["ended_by"]), (&json!("no_answer"), &json!("room_expired"), &json!("system")));
        assert_eq!(story(&tenant).await, ["session.created", "room.created", "room.expired", "session.failed"]);
        let told = &the_call::told(&tenant, "session.failed").await[0];
        assert_eq!((&told["client_reference_id"], &told["to_number"], &told["actual_cost_cents"]), (&json!("r"), &Value::Null, &json!(0)));
        assert_eq!(link.page().await.status, 404);
        assert_eq!(link.view().await.status, 404);
    }

    async fn every_link_that_is_not_good_meets_the_same_page(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (other, _) = super::room(world, &tenant).await;
        let mut bytes = link.sig.clone().into_bytes();
        bytes[40] = if bytes[40] == b'A' { b'B' } else { b'A' };
        let forged = [
            (link.room.clone(), String::from_utf8(bytes).unwrap()),
            (link.room.clone(), link.sig[..link.sig.len() - 1].to_owned()),
            (link.room.clone(), String::new()),
            (other["id"].as_str().unwrap().to_owned(), link.sig.clone()),
            ("00000000-0000-7000-8000-000000000000".to_owned(), link.sig.clone()),
            ("nonsense".to_owned(), link.sig.clone()),
            (link.room.clone(), format!("{}&sig=", link.sig)),
        ];
        let mut pages = Vec::new();
        let (_, sdp) = Peer::offer(Codec::Pcmu);
        for (room, sig) in forged {
            let bad = Link { client: link.client.clone(), world: world.url.clone(), room, sig };
            let page = bad.page().await;
            assert_eq!(page.status, 404);
            let mut headers: Vec<_> = page.headers.iter().filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str())).map(|(name, value)| format!("{name}: {value:?}")).collect();
            headers.sort();
            pages.push((page.body, headers));
            assert_eq!(bad.view().await.error(), (404, "not_found", None));
            assert_eq!(bad.offer(sdp.clone(), None).await.error(), (404, "not_found", None));
            assert_eq!(bad.leave("00000000-0000-7000-8000-000000000000").await.error(), (404, "not_found", None));
            world.advance(seconds(10)).await;
        }
        // As one that was good once.
        tenant.api.post(&format!("/v1/rooms/{}/end", link.room), json!({})).await.ok();
        let over = link.page().await;
        pages.push((over.body, pages[0].1.clone()));
        assert!(pages.iter().all(|page| *page == pages[0]));
        assert_eq!(get(&tenant, &room).await["status"], "expired");
        assert_eq!(get(&tenant, &other).await["status"], "created");
    }

    async fn whoever_guesses_is_slowed_down(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let mut met = [0, 0];
        for n in 0..100 {
            let guess = Link { client: link.client.clone(), world: world.url.clone(), room: link.room.clone(), sig: format!("{n:075}") };
            match guess.page().await.status.as_u16() {
                404 => met[0] += 1,
                429 => met[1] += 1,
                other => panic!("{other}"),
            }
        }
        assert!(met[0] >= 60 && met[1] > 0, "{met:?}");
        // Who has the link is not kept out.
        assert_eq!(link.page().await.status, 200);
        assert_eq!(get(&tenant, &room).await["status"], "created");
    }

    async fn offers_to_join_are_limited_by_room(world: &mut World) {
        let tenant = world.tenant().await;
        let (_, link) = room(world, &tenant).await;
        let (_, other) = room(world, &tenant).await;
        let mut met = [0, 0];
        for _ in 0..40 {
            match link.offer("nonsense".into(), None).await.status.as_u16() {
                422 => met[0] += 1,
                429 => met[1] += 1,
                status => panic!("{status}"),
            }
        }
        assert!(met[0] >= 30 && met[1] > 0, "{met:?}");
        assert_eq!(other.offer("nonsense".into(), None).await.status, 422, "another room's are its own");
        world.advance(seconds(2)).await;
        assert_eq!(link.offer("nonsense".into(), None).await.status, 422);
    }

    async fn what_no_browser_sends_joins_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (_, sdp) = Peer::offer(Codec::Pcmu);
        let plain = link.request(Method::POST, "/whip").header("content-type", "text/plain").body(sdp.clone());
        assert_eq!(link.send(plain).await.error(), (415, "unsupported_media_type", None));
        assert_eq!(link.offer("x".repeat(65 * 1024), None).await.error(), (413, "payload_too_large", None));
        assert_eq!(link.offer("nonsense".into(), None).await.error(), (422, "validation_failed", Some("sdp")));
        let without_sound: String = sdp.lines().take_while(|line| !line.starts_with("m=")).map(|line| format!("{line}\r\n")).collect();
        assert_eq!(link.offer(without_sound, None).await.error(), (422, "validation_failed", Some("sdp")));
        let unsealed: String = sdp.lines().filter(|line| !line.contains("fingerprint")).map(|line| format!("{line}\r\n")).collect();
        assert_eq!(link.offer(unsealed, None).await.error(), (422, "validation_failed", Some("sdp")));
        assert_eq!(get(&tenant, &room).await["status"], "created");
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
    }

    /// Whoever reads the database joins nothing; receivers and the API see the link, the same bytes each time.
    async fn a_link_stands_nowhere_in_the_database(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let agent = tenant.agent().await;
        let ask = tenant.api.request(Method::POST, "/v1/rooms").header("idempotency-key", "r1").json(&json!({ "agent_id": agent }));
        let room = tenant.api.send(ask).await.ok();
        let link = Link::of(world, &tenant, &room);
        link.view().await;
        world.settle().await;
        let stored = entities::event::all_after(&world.deps().db.read, None, 1_000).await.unwrap();
        assert!(stored.iter().any(|event| event.event_type == "room.created"));
        assert!(stored.iter().all(|event| !event.body.contains(&link.sig)));
        let listed = tenant.api.get("/v1/events?type=room.created").await.ok()["data"][0].clone();
        let one = tenant.api.get(&format!("/v1/events/{}", listed["id"].as_str().unwrap())).await.ok();
        assert_eq!((&listed["data"]["room_url"], &one), (&room["room_url"], &listed));
        // Again, from the database.
        tenant.api.post(&format!("/v1/events/{}/replay", listed["id"].as_str().unwrap()), json!({})).await.ok();
        world.settle().await;
        let told: Vec<_> = receiver.requests().into_iter().filter(|told| told.event_type() == "room.created").collect();
        assert_eq!((told.len(), &told[0].raw), (2, &told[1].raw));
        assert_eq!(serde_json::from_slice::<Value>(&told[1].raw).unwrap(), listed);
        tenant.api.post(&format!("/v1/rooms/{}/end", link.room), json!({})).await.ok();
    }

    async fn a_room_belongs_to_its_env(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, _) = room(world, &tenant).await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let path = format!("/v1/rooms/{}", room["id"].as_str().unwrap());
        assert_eq!(live.get(&path).await.error(), (404, "not_found", None));
        assert_eq!(live.get("/v1/rooms").await.ok()["data"], json!([]));
        assert_eq!(live.post(&format!("{path}/end"), json!({})).await.error(), (404, "not_found", None));
    }

    async fn a_request_that_is_repeated_makes_one_room(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let ask = || tenant.api.request(Method::POST, "/v1/rooms").header("idempotency-key", "r1").json(&json!({ "agent_id": agent }));
        let first = tenant.api.send(ask()).await.ok();
        let second = tenant.api.send(ask()).await;
        assert_eq!(second.headers["idempotent-replayed"], "true");
        assert_eq!((second.ok(), world.rows("rooms").await), (first, 1));
        world.advance(minutes(1)).await;
    }
}
