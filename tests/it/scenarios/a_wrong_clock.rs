//! The machine's wall clock is set, ahead or back: nothing is erased by it, and nobody called who should not be. The clocks begin on
//! Tuesday 2027-03-02, 08:00 in New York.
use super::an_event_is_delivered::{attempts, one_event};
use crate::{
    on_both,
    world::{Receiver, Tenant, World, minutes, seconds},
};
use actors::{holds::ClockStatus, leases::Of};
use entities::{
    Error,
    changes::{Callable, Guard},
    meta,
    values::{Env, Moment},
};
use rules::commit::Commit;
use serde_json::{Value, json};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

async fn ready(tenant: &Tenant) -> Value {
    tenant.api.get("/readyz").await.ok()
}

async fn is_trusted(tenant: &Tenant) -> bool {
    ready(tenant).await["clock"]["trusted"] == true
}

async fn calls(tenant: &Tenant, campaign: &str) -> usize {
    let sessions = tenant
        .api
        .get(&format!("/v1/sessions?campaign_id={campaign}"))
        .await
        .ok();
    sessions["data"].as_array().unwrap().len()
}

/// As `callboard clock accept` does it, for the step that the service has noted.
async fn accept(world: &World) {
    let status = ClockStatus::stored(&world.deps().db.read).await.unwrap().unwrap();
    let since = status.doubt.unwrap().since.to_string();
    let accepting = world.deps().writer.run(Of::Anybody, move |db| {
        let since = since.clone();
        Box::pin(async move { Ok((meta::set(db, meta::CLOCK_ACCEPTED, &since).await?, Commit::default())) })
    });
    accepting.await.unwrap();
}

on_both! {
    /// 40 days ahead for 80 seconds: no event is deleted, no delivery expires, no endpoint is suspended, nobody is called.
    async fn forty_days_ahead_for_a_while_erase_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let endpoint = tenant.webhook(&receiver).await;
        for _ in 0..3 {
            one_event(&tenant).await;
        }
        world.settle().await;
        receiver.answer_next([500, 500]);
        let open = one_event(&tenant).await;
        world.settle().await;
        let events = world.rows("events").await;

        world.clock.step_wall(40 * DAY_MS);
        world.advance(seconds(80)).await;
        actors::retention::installation::prune(world.deps()).await.unwrap();
        assert_eq!(world.rows("events").await, events);
        assert_eq!(attempts(&tenant, &open).await["status"], "retrying");
        assert_eq!(receiver.requests().len(), 4, "a signature of that time would be refused for good");
        let looked = ready(&tenant).await;
        assert_eq!((&looked["status"], &looked["dispatch"], &looked["clock"]["trusted"]), (&json!("ready"), &json!("held_by_clock"), &json!(false)));
        assert_eq!((&looked["clock"]["gap_ms"], &looked["clock"]["doubt"]["step_ms"]), (&json!(40 * DAY_MS), &json!(40 * DAY_MS)));
        assert!(tenant.api.get("/metrics").await.body.as_str().unwrap().contains("callboard_clock_suspect"));
        let id = tenant.run_campaign(&["+15002340000", "+15002340010"], json!({})).await;
        world.advance(seconds(60)).await;
        assert_eq!(calls(&tenant, &id).await, 0);
        let stats = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!(stats["limiting_factor"], "clock");
        let agent = tenant.agent().await;
        let call = json!({ "to_number": "+15002340020", "agent_id": agent });
        let refused = tenant.api.post("/v1/sessions", call.clone()).await;
        assert_eq!(refused.error(), (503, "unavailable", None));
        assert_eq!(refused.headers["retry-after"], "30");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("clock"), "{}", refused.body);

        world.clock.step_wall(-40 * DAY_MS);
        world.advance(minutes(3)).await;
        let looked = ready(&tenant).await;
        assert_eq!((&looked["dispatch"], &looked["clock"]["trusted"], &looked["clock"]["gap_ms"]), (&json!("running"), &json!(true), &json!(0)));
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert_eq!(attempts(&tenant, &open).await["status"], "succeeded");
        let endpoint = tenant.api.get(&format!("/v1/webhook_endpoints/{endpoint}")).await.ok();
        assert_eq!((&endpoint["status"], &endpoint["failure_streak"]), (&json!("active"), &json!(0)));
        tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(minutes(2)).await;
        assert_eq!(receiver.counts_by_id().len(), tenant.events().await.len());
    }

    /// Two hours ahead, taken for true, and mended: whose hours are open by one of the clocks only is not called.
    async fn a_window_that_is_open_by_one_clock_only_is_closed(world: &mut World) {
        let tenant = world.tenant().await;
        let began = world.clock.now();
        let step = 2 * HOUR_MS + 15 * MINUTE_MS;
        world.clock.step_wall(step);
        world.advance(minutes(9)).await;
        assert!(!is_trusted(&tenant).await);
        assert_eq!(world.clock.now(), began.plus_seconds(9 * 60));
        world.advance(minutes(2)).await;
        assert!(is_trusted(&tenant).await, "it has stood still for ten minutes");
        assert_eq!(world.clock.now(), began.plus_millis(step + 11 * MINUTE_MS));
        world.clock.step_wall(-step);
        world.advance(minutes(11)).await;
        assert!(is_trusted(&tenant).await);
        let behind = world.clock.times().behind_ms();
        assert!(behind < step && behind > 2 * HOUR_MS, "10:37 and 08:22 in New York: {behind}");

        let window = |start: &str, end: &str| json!({ "schedule": { "windows": [{ "start": start, "end": end }] } });
        let by_ours = tenant.run_campaign(&["+15002340000"], window("10:00", "11:00")).await;
        let by_the_wall = tenant.run_campaign(&["+15002340010"], window("08:00", "09:00")).await;
        let by_both = tenant.run_campaign(&["+15002340020"], window("08:00", "11:00")).await;
        world.advance(minutes(10)).await;
        assert_eq!([calls(&tenant, &by_ours).await, calls(&tenant, &by_the_wall).await], [0, 0]);
        assert_eq!(tenant.campaign(&by_both).await["status"], "completed", "{}", world.clock.now());
        for id in [by_ours, by_the_wall] {
            tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        }
        // Half the time is lost until both agree.
        world.advance(minutes(5 * 60)).await;
        let times = world.clock.times();
        assert_eq!((times.ours, times.wall), (times.wall, began.plus_seconds((11 + 11 + 10 + 5 * 60) * 60)));
    }

    /// The guard of the intent itself, whatever was planned.
    async fn the_guard_of_a_dial_reads_both_clocks(world: &mut World) {
        let tenant = world.tenant().await;
        let now = world.clock.now();
        let around = |at: Moment| (at.plus_seconds(-3600), at.plus_seconds(3600));
        let (open, over) = (around(now), around(now.plus_seconds(-2 * 3600)));
        let dial = async |hours, wall_hours| {
            let mut commit = Commit::default();
            commit.changes.guards.push(Guard::Callable(Callable {
                tenant_id: tenant.id,
                env: Env::Test,
                session_id: world.deps().ids.next(),
                phone_number: "+15002340000".parse().unwrap(),
                dialed_at: now,
                hours,
                wall_hours,
                caps: Vec::new(),
            }));
            world.deps().writer.commit(Of::Anybody, commit).await
        };
        dial(open, open).await.unwrap();
        for (hours, wall_hours) in [(over, open), (open, over)] {
            assert!(matches!(dial(hours, wall_hours).await, Err(Error::Stale)));
        }
        world.clock.step_wall(4 * MINUTE_MS);
        assert!(matches!(dial(open, open).await, Err(Error::Stale)), "in doubt");
        world.clock.step_wall(-4 * MINUTE_MS);
        dial(open, open).await.unwrap();
    }

    async fn the_operator_ends_the_doubt_of_one_step(world: &mut World) {
        let tenant = world.tenant().await;
        let began = world.clock.now();
        let id = tenant.run_campaign(&["+15002340000", "+15002340010"], json!({ "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(seconds(1)).await;
        assert_eq!(calls(&tenant, &id).await, 1, "what is live runs on");
        world.clock.step_wall(2 * DAY_MS);
        world.advance(minutes(2)).await;
        assert_eq!(calls(&tenant, &id).await, 1);
        accept(world).await;
        world.advance(seconds(4)).await;
        assert!(is_trusted(&tenant).await);
        assert_eq!(world.clock.now(), began.plus_millis(2 * DAY_MS + 125_000));
        world.advance(minutes(2)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        // What was accepted was that step.
        world.clock.step_wall(HOUR_MS);
        world.advance(seconds(4)).await;
        assert!(!is_trusted(&tenant).await);
        world.clock.step_wall(-HOUR_MS);
        world.advance(seconds(4)).await;
        assert!(is_trusted(&tenant).await);
    }

    /// Ids and times go with the order of the commits, also over a restart with a clock that was set back; and no key that has
    /// expired is good again.
    async fn nothing_goes_back_with_the_clock(world: &mut World) {
        let tenant = world.tenant().await;
        let expires_at = world.clock.now().plus_seconds(3600);
        let mut commit = Commit::default();
        let asked = callboard::access::NewKey {
            name: entities::values::Text::parse("short").unwrap(),
            env: Env::Test,
            scopes: entities::values::Scopes::all(),
            limits: Default::default(),
            expires_at: Some(expires_at),
        };
        let (key, plaintext) = callboard::access::new_key(world.deps().ids.next(), tenant.id, asked, world.clock.now());
        commit.changes.api_keys.push(key);
        world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
        let short = crate::world::Api { key: plaintext.to_string(), ..tenant.api.clone() };
        assert_eq!(short.get("/v1/me").await.status, 200);
        one_event(&tenant).await;
        world.advance(minutes(61)).await;
        one_event(&tenant).await;
        assert_eq!(short.get("/v1/me").await.status, 401);
        world.clock.step_wall(-2 * HOUR_MS);
        assert_eq!(short.get("/v1/me").await.status, 401, "no longer expired by the wall clock");
        one_event(&tenant).await;
        world.restart().await;
        assert!(!is_trusted(&tenant).await, "it is behind what is stored");
        assert_eq!(short.get("/v1/me").await.status, 401);
        one_event(&tenant).await;
        world.advance(minutes(11)).await;
        assert!(is_trusted(&tenant).await);
        assert_eq!(short.get("/v1/me").await.status, 401);
        one_event(&tenant).await;
        let events = tenant.events().await;
        assert_eq!(events.len(), 5);
        for pair in events.windows(2) {
            let of = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
            assert!(of(&pair[0], "id") < of(&pair[1], "id"));
            assert!(of(&pair[0], "created_at") <= of(&pair[1], "created_at"));
        }
    }
}
