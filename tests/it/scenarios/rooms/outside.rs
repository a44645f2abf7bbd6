//! What goes wrong around a talk while it goes on: a database that stalls, a wall clock that is set.
use super::*;
use crate::{on_both, scenarios::the_database_fails::Stall, world::seconds};
use runtime::clock::Clock;

const HOUR_MS: i64 = 3_600_000;
/// After so long a silence the agent has said what it had to say.
const SILENT: Duration = Duration::from_millis(2_000);

/// Whoever speaks sooner cuts in on it.
pub async fn until_silent(peer: &Peer) {
    let wall = Clock::wall();
    while peer.view().heard_at.is_none_or(|at| at.elapsed() < SILENT) {
        let _busy = wall.sleep(Duration::from_millis(25)).await;
    }
}

/// Says a sentence, and hears the agent's answer to it.
async fn take_a_turn(peer: &Peer) {
    until_silent(peer).await;
    let before = peer.view().spoke_at;
    peer.say(speech());
    peer.until("the agent answers", |view| {
        view.spoke_at > before && view.answered_at.is_some()
    })
    .await;
}

/// Somebody has joined, and the agent has as many answers as are needed.
async fn joined(world: &World, tenant: &Tenant) -> (Value, Link, Peer, String) {
    let replies = vec![json!({ "say": "I see." }); 10];
    let more = json!({ "first_message": "Hello.", "brain": { "mode": "scripted", "replies": replies } });
    let agent = the_call::agent(tenant, more).await;
    let room = create(tenant, &agent, json!({})).await;
    let link = Link::of(world, tenant, &room);
    let (peer, participant) = link.join(None).await;
    (room, link, peer, participant)
}

/// How often each side has spoken.
async fn turns(tenant: &Tenant, room: &Value) -> [usize; 2] {
    let path = format!("/v1/sessions/{}/transcript.json", room["session_id"].as_str().unwrap());
    let transcript = tenant.api.get(&path).await.ok();
    let turns = transcript["turns"].as_array().unwrap();
    ["agent", "user"].map(|role| turns.iter().filter(|turn| turn["role"] == role).count())
}

on_both! {
    /// About ten seconds in which nothing can be committed, and somebody who hangs up meanwhile.
    async fn a_talk_goes_on_while_the_database_stalls_and_ends_when_it_is_back(world: &mut World) {
        // A slow machine's ten seconds, too.
        world.change_setting("commit_timeout_seconds", json!(60)).await;
        let tenant = world.tenant().await;
        let (room, link, peer, participant) = joined(world, &tenant).await;
        until_silent(&peer).await;
        let stall = Stall::begin(world).await;
        for _ in 0..2 {
            take_a_turn(&peer).await;
        }
        until_silent(&peer).await;
        let (left, ()) = tokio::join!(link.leave(&participant), stall.end());
        assert_eq!(left.status, 204);
        peer.closed().await;
        world.settle().await;
        assert_eq!(get(&tenant, &room).await["status"], "completed");
        let call = session(&tenant, &room).await;
        assert_eq!((&call["status"], &call["end_reason"], &call["ended_by"]), (&json!("completed"), &json!("completed"), &json!("caller")));
        assert_eq!(turns(&tenant, &room).await, [3, 2], "what was said meanwhile is kept");
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 0);
        assert_eq!(story(&tenant).await.iter().filter(|event| *event == "session.ended").count(), 1);
    }

    /// An hour ahead, then an hour back: neither is time that anybody has talked.
    async fn a_wall_clock_that_is_set_in_the_middle_of_a_talk_changes_nothing_in_it(world: &mut World) {
        let tenant = world.tenant().await;
        let (room, link, peer, participant) = joined(world, &tenant).await;
        for step in [HOUR_MS, -2 * HOUR_MS] {
            world.clock.step_wall(step);
            take_a_turn(&peer).await;
            world.advance(seconds(5)).await;
        }
        until_silent(&peer).await;
        assert_eq!(get(&tenant, &room).await["status"], "joined");
        assert_eq!(link.leave(&participant).await.status, 204);
        peer.closed().await;
        world.settle().await;
        let over = get(&tenant, &room).await;
        assert_eq!((&over["status"], &over["duration_seconds"]), (&json!("completed"), &json!(10)));
        let call = session(&tenant, &room).await;
        let latency = &call["latency"];
        assert_eq!(latency["turns"], 2, "{latency}");
        assert!(latency["p95_ms"].as_u64().is_some_and(|ms| ms < 15_000), "{latency}");
        assert_eq!(turns(&tenant, &room).await, [3, 2]);
    }
}
