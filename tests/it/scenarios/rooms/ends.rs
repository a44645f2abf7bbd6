//! Every way in which a room ends.
use super::*;
use crate::{
    on_both,
    world::{
        chat_server::{Answer as Reply, ChatServer},
        realtime_server::{self, RealtimeServer},
        seconds,
    },
};
use actors::leases::Of;

async fn end(tenant: &Tenant, room: &Value) -> Answer {
    let path = format!("/v1/rooms/{}/end", room["id"].as_str().unwrap());
    tenant.api.post(&path, json!({})).await
}

fn outcome(room: &Value) -> (&str, &str) {
    (
        room["status"].as_str().unwrap(),
        room["error"]["code"].as_str().unwrap_or(""),
    )
}

fn how(session: &Value) -> (&str, &str) {
    (
        session["status"].as_str().unwrap(),
        session["end_reason"].as_str().unwrap(),
    )
}

on_both! {
    async fn the_api_ends_one_that_nobody_has_joined(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let ended = end(&tenant, &room).await.ok();
        assert_eq!(outcome(&ended), ("expired", ""));
        world.settle().await;
        let call = session(&tenant, &room).await;
        assert_eq!((how(&call), &call["ended_by"]), (("no_answer", "room_expired"), &json!("api")));
        assert_eq!(story(&tenant).await, ["session.created", "room.created", "room.expired", "session.failed"]);
        assert_eq!(end(&tenant, &room).await.error(), (409, "invalid_state", None));
        assert_eq!(link.page().await.status, 404);
        // The same by its session.
        let (room, _) = super::room(world, &tenant).await;
        tenant.api.post(&format!("/v1/sessions/{}/end", room["session_id"].as_str().unwrap()), json!({})).await.ok();
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("expired", ""));
        let call = session(&tenant, &room).await;
        assert_eq!((how(&call), &call["ended_by"]), (("no_answer", "room_expired"), &json!("api")));
    }

    async fn a_browser_that_does_not_come_fails_it_after_15_seconds(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        // It has the answer, and never sends anything.
        assert_eq!(link.offer(sdp, None).await.status, 201);
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["by_source"]["room"], 1);
        world.advance(seconds(14)).await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("created", ""));
        world.advance(seconds(1)).await;
        let failed = get(&tenant, &room).await;
        assert_eq!(outcome(&failed), ("failed", "ice_failed"));
        assert_eq!(how(&session(&tenant, &room).await), ("failed", "unreachable"));
        assert_eq!(story(&tenant).await, ["session.created", "room.created", "room.failed", "session.failed"]);
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
        assert_eq!(tenant.api.get("/v1/credits").await.ok()["held_cents"], 0);
        assert_eq!(link.page().await.status, 404);
    }

    async fn whoever_leaves_before_being_connected_has_not_joined(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        let answer = link.offer(sdp, None).await;
        let participant = answer.headers["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(link.leave("00000000-0000-7000-8000-000000000000").await.status, 404, "somebody else");
        assert_eq!(link.leave(&participant).await.status, 204);
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("failed", "ice_failed"));
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
    }

    async fn without_a_slot_it_fails_and_says_so(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        let (first, one) = room(world, &tenant).await;
        let (second, other) = room(world, &tenant).await;
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        assert_eq!(one.offer(sdp.clone(), None).await.status, 201);
        let full = other.offer(sdp, None).await;
        assert_eq!((full.error(), full.headers.contains_key("retry-after")), ((429, "concurrency_full", None), true));
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &second).await), ("failed", "concurrency_full"));
        assert_eq!(how(&session(&tenant, &second).await), ("failed", "canceled"));
        assert_eq!(outcome(&get(&tenant, &first).await), ("created", ""));
        let told = &the_call::told(&tenant, "room.failed").await[0];
        assert_eq!((&told["room_id"], &told["error_code"]), (&second["id"], &json!("concurrency_full")));
        end(&tenant, &first).await.ok();
    }

    async fn without_credits_it_fails_and_says_so(world: &mut World) {
        let changes = [("call_price_cents_per_minute", json!(10)), ("test_credits_cents", json!(50)), ("credit_hold_seconds", json!(0))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        // Ten minutes at ten cents are set aside.
        assert_eq!(link.offer(sdp, None).await.error(), (402, "insufficient_credits", None));
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("failed", "insufficient_credits"));
        assert_eq!(how(&session(&tenant, &room).await), ("failed", "credits_depleted"));
        assert_eq!(tenant.api.get("/v1/credits").await.ok()["balance_cents"], 50);
        assert_eq!(the_call::told(&tenant, "credits.depleted").await.len(), 1);
    }

    /// A link is for a week; a service that is updated, or whose database is away for a moment, costs nobody theirs.
    async fn what_passes_by_itself_ends_no_room(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        world.fail_next_commits(1);
        assert_eq!(link.offer(sdp.clone(), None).await.status, 503);
        assert_eq!(outcome(&get(&tenant, &room).await), ("created", ""));
        world.deps().drain();
        for _ in 0..2 {
            assert_eq!(link.offer(sdp.clone(), None).await.error(), (503, "unavailable", None));
        }
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("created", ""));
        world.restart().await;
        world.advance(seconds(60)).await;
        let link = Link::of(world, &tenant, &room);
        let (_peer, participant) = link.join(None).await;
        until(&tenant, &room, |room| room["status"] == "joined").await;
        assert_eq!(link.leave(&participant).await.status, 204);
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("completed", ""));
    }

    /// The browser is connected at a moment at which the database does not answer.
    async fn who_was_connected_while_a_commit_failed_talks_all_the_same(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (peer, sdp) = Peer::offer(Codec::Opus);
        let answer = link.offer(sdp, None).await;
        let participant = answer.headers["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
        world.settle().await;
        world.fail_next_commits(3);
        peer.connect(answer.body.as_str().unwrap());
        peer.until("the agent says hello", |view| view.notes.iter().any(|note| note["type"] == "caption")).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        link.leave(&participant).await;
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("completed", ""));
    }

    async fn an_agent_without_its_provider_is_not_reached(world: &mut World) {
        world.change_setting("chat_url", json!("http://127.0.0.1:9/v1")).await;
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, entities::values::Env::Live, entities::values::Scopes::all()).await;
        let agent = the_call::agent(&tenant, json!({ "brain": { "mode": "chat" } })).await;
        world.change_setting("call_price_cents_per_minute", json!(0)).await;
        let made = live.post("/v1/rooms", json!({ "agent_id": agent })).await.ok();
        let link = Link::of(world, &tenant, &made);
        // The operator takes the provider away.
        world.change_setting("chat_url", json!("")).await;
        assert_eq!(live.post("/v1/rooms", json!({ "agent_id": agent })).await.error(), (501, "not_configured", None));
        let (_peer, sdp) = Peer::offer(Codec::Pcmu);
        assert_eq!(link.offer(sdp, None).await.error(), (501, "not_configured", None));
        world.settle().await;
        let failed = live.get(&format!("/v1/rooms/{}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(outcome(&failed), ("failed", "agent_unreachable"));
    }

    /// The specification's joined is: the agent is connected. One that cannot be is found out before anybody has joined.
    async fn nobody_joins_an_agent_that_cannot_be_reached(world: &mut World) {
        let thinks = ChatServer::start().await;
        let speaks = RealtimeServer::start_with(|_, _| realtime_server::Answer::Say("Good day!".into())).only_for_key("another");
        world.change_settings(&[
            ("chat_url", json!(thinks.url())),
            ("realtime_url", json!(speaks.url)),
            ("realtime_api_key", json!("rt-key")),
        ]).await;
        let tenant = world.tenant().await;
        thinks.answer_models(Reply::Status(401, "Incorrect API key provided.".into()));
        for (mode, expected) in [("chat", "check the API key"), ("realtime", "is the key right?")] {
            let agent = the_call::agent(&tenant, json!({ "brain": { "mode": mode } })).await;
            let made = super::create(&tenant, &agent, json!({})).await;
            let (peer, sdp) = Peer::offer(Codec::Opus);
            let answer = Link::of(world, &tenant, &made).offer(sdp, None).await;
            peer.connect(answer.body.as_str().unwrap());
            let failed = until(&tenant, &made, |room| room["status"] == "failed").await;
            assert_eq!(outcome(&failed), ("failed", "agent_unreachable"));
            assert!(failed["error"]["message"].as_str().unwrap().contains(expected), "{failed}");
            world.settle().await;
            assert_eq!(how(&session(&tenant, &made).await), ("failed", "provider_error"));
        }
        let events = tenant.event_types().await;
        assert!(!events.iter().any(|name| name == "room.joined" || name == "session.started"), "{events:?}");
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
        // When it is there again, so is the agent; a list of models is not needed for that.
        thinks.answer_models(Reply::Status(404, "Not found".into()));
        let agent = the_call::agent(&tenant, json!({ "brain": { "mode": "chat" } })).await;
        let made = super::create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &made);
        let (_peer, participant) = link.join(None).await;
        until(&tenant, &made, |room| room["status"] == "joined").await;
        link.leave(&participant).await;
    }

    /// Who is connected first waits; keys that are pressed meanwhile answer nothing, and the page may be reloaded.
    async fn an_agent_that_comes_late_finds_a_fresh_talk(world: &mut World) {
        let thinks = ChatServer::start().await;
        world.change_setting("chat_url", json!(thinks.url())).await;
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "brain": { "mode": "chat" }, "first_message": "Good day." })).await;
        let made = super::create(&tenant, &agent, json!({})).await;
        let link = Link::of(world, &tenant, &made);
        let come = thinks.hold_models();
        let (first, participant) = link.join(None).await;
        first.press("1");
        let (second, again) = link.join(Some(&participant)).await;
        assert_eq!(again, participant);
        second.press("1");
        second.until("its key is there", |view| view.open && view.sent > 20).await;
        assert_eq!(outcome(&get(&tenant, &made).await), ("created", ""));
        come.send(()).unwrap();
        let says = |view: &View, text: &str| view.notes.iter().any(|note| note["text"] == text);
        let seen = second.until("the agent greets", |view| says(view, "Good day.") && view.packets > 25).await;
        assert_eq!(seen.notes[0], json!({ "type": "joined" }));
        assert_eq!(get(&tenant, &made).await["status"], "joined");
        second.press("2");
        let seen = second.until("it answers", |view| says(view, "You said: [pressed 2]")).await;
        assert!(!seen.notes.iter().any(|note| note["text"].as_str().is_some_and(|text| text.contains('1'))), "{:?}", seen.notes);
        assert_eq!(link.leave(&participant).await.status, 204);
        second.closed().await;
        world.settle().await;
        assert_eq!(story(&tenant).await.iter().filter(|name| *name == "room.joined").count(), 1);
    }

    /// Whoever hangs up, or the API, while the agent is being fetched.
    async fn one_may_end_while_the_agent_is_fetched(world: &mut World) {
        let thinks = ChatServer::start().await;
        world.change_setting("chat_url", json!(thinks.url())).await;
        let tenant = world.tenant().await;
        let agent = the_call::agent(&tenant, json!({ "brain": { "mode": "chat" } })).await;
        for by_the_page in [true, false] {
            let made = super::create(&tenant, &agent, json!({})).await;
            let link = Link::of(world, &tenant, &made);
            let come = thinks.hold_models();
            let (peer, participant) = link.join(None).await;
            if by_the_page {
                assert_eq!(link.leave(&participant).await.status, 204);
            } else {
                end(&tenant, &made).await.ok();
            }
            peer.closed().await;
            world.settle().await;
            // Too late, if anybody waits for it still.
            let _ = come.send(());
            world.settle().await;
            let expected = if by_the_page { ("failed", "ice_failed") } else { ("expired", "") };
            assert_eq!(outcome(&get(&tenant, &made).await), expected);
        }
        let events = tenant.event_types().await;
        assert!(!events.iter().any(|name| name == "room.joined" || name == "session.started"), "{events:?}");
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
    }

    async fn one_that_has_ended_can_be_deleted_with_its_talk(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, _) = room(world, &tenant).await;
        let path = format!("/v1/rooms/{}", room["id"].as_str().unwrap());
        assert_eq!(tenant.api.delete(&path).await.error(), (409, "invalid_state", None));
        end(&tenant, &room).await.ok();
        world.settle().await;
        assert_eq!(tenant.api.delete(&path).await.status, 204);
        assert_eq!(tenant.api.get(&path).await.error(), (404, "not_found", None));
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{}", room["session_id"].as_str().unwrap())).await.status, 404);
        assert_eq!(tenant.api.get("/v1/rooms").await.ok()["data"], json!([]));
        assert_eq!(tenant.api.delete(&path).await.status, 404);
    }

    /// The page is connected, and then the service dies.
    async fn a_crash_ends_who_was_in_it(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link) = room(world, &tenant).await;
        let (waiting, other) = super::room(world, &tenant).await;
        let (_peer, _) = link.join(None).await;
        until(&tenant, &room, |room| room["status"] == "joined").await;
        world.restart().await;
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("failed", "internal_error"));
        assert_eq!(how(&session(&tenant, &room).await), ("failed", "node_lost"));
        assert_eq!(link.page().await.status, 404);
        // Who had not joined still can.
        assert_eq!(outcome(&get(&tenant, &waiting).await), ("created", ""));
        let (_peer, participant) = other.join(None).await;
        until(&tenant, &waiting, |room| room["status"] == "joined").await;
        other.leave(&participant).await;
    }

    /// The room's commit stood, and its session was not told; and the reverse.
    async fn what_is_out_of_step_is_put_in_step(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, _) = room(world, &tenant).await;
        // The session's row is written, in another process as it were, without a word to anybody.
        let key = entities::ids::TenantScoped::new(tenant.id, entities::values::Env::Test, room["session_id"].as_str().unwrap().parse().unwrap());
        let mut row = entities::session::load(&world.deps().db.read, key).await.unwrap();
        row.version += 1;
        (row.phase, row.status) = (entities::session::Phase::Ended, entities::session::Status::Failed);
        row.end_reason = Some(entities::session::EndReason::RoomExpired);
        row.ended_by = Some(entities::session::EndedBy::Api);
        row.ended_at = Some(world.clock.now());
        let mut commit = rules::commit::Commit::default();
        commit.changes.sessions.push(row);
        world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
        world.restart().await;
        world.settle().await;
        assert_eq!(outcome(&get(&tenant, &room).await), ("expired", ""));

        let (room, _) = super::room(world, &tenant).await;
        let key = entities::ids::TenantScoped::new(tenant.id, entities::values::Env::Test, room["id"].as_str().unwrap().parse().unwrap());
        let mut row = entities::room::load(&world.deps().db.read, key).await.unwrap();
        row.version += 1;
        (row.status, row.ended_at, row.wake_at) = (entities::room::Status::Expired, Some(world.clock.now()), None);
        let mut commit = rules::commit::Commit::default();
        commit.changes.rooms.push(row);
        world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
        world.restart().await;
        world.settle().await;
        assert_eq!(how(&session(&tenant, &room).await), ("no_answer", "room_expired"));
    }
}
