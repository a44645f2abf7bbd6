//! A database that hangs, answers late, is locked or full: nothing is said that is not so, and nobody is called late.
use super::an_event_is_delivered::one_event;
use crate::{
    on_both,
    world::{Backend, Proxy, Receiver, Tenant, World, awaited, minutes, run, seconds},
};
use actors::leases::Of;
use entities::{delivery, session, values::Moment};
use futures_util::FutureExt;
use rules::commit::Commit;
use sea_orm::{ConnectionTrait, Database, TransactionTrait};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{sync::Notify, task::JoinHandle};

/// On PostgreSQL, behind a proxy; a commit is given up after five seconds.
pub fn behind_a_proxy(scenario: impl AsyncFnOnce(&mut World, Proxy)) {
    run(Backend::Postgres, async |world| {
        let proxy = Proxy::before(world.database_url()).await;
        let through = json!(proxy.url);
        world
            .change_settings(&[("database_url", through), ("commit_timeout_seconds", json!(5))])
            .await;
        scenario(world, proxy).await;
    });
}

async fn names(tenant: &crate::world::Tenant) -> Vec<String> {
    let list = tenant.api.get("/v1/campaigns?order=asc").await.ok();
    let names = list["data"].as_array().unwrap().iter();
    names
        .map(|campaign| campaign["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Every event has its own id, and there is one for each campaign.
async fn assert_created(tenant: &crate::world::Tenant, campaigns: usize) {
    assert_eq!(tenant.event_types().await, vec!["campaign.created"; campaigns]);
}

#[test]
fn a_commit_that_hangs_is_ended_and_never_lands_in_what_follows() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = world.tenant().await;
        proxy.hold_commit();
        let stuck = tenant.api.post("/v1/campaigns", json!({ "name": "stuck" })).await;
        assert_eq!(stuck.error(), (503, "unavailable", None));
        tenant.api.post("/v1/campaigns", json!({ "name": "after" })).await.ok();
        proxy.release().await;
        for name in ["later", "last"] {
            tenant.api.post("/v1/campaigns", json!({ "name": name })).await.ok();
        }
        assert_eq!(names(&tenant).await, ["after", "later", "last"]);
        assert_created(&tenant, 3).await;
        assert_eq!(tenant.api.get("/readyz").await.status, 200);
    });
}

#[test]
fn a_commit_whose_answer_was_lost_stands_and_what_follows_comes_after_it() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = world.tenant().await;
        proxy.hold_answer();
        let keyed = |name: &str| {
            let request = tenant.api.request(reqwest::Method::POST, "/v1/campaigns");
            tenant
                .api
                .send(request.header("Idempotency-Key", "once").json(&json!({ "name": name })))
        };
        // The claim of the key is the commit that is held: nothing else has begun.
        assert_eq!(keyed("once").await.error(), (503, "unavailable", None));
        proxy.release().await;
        let made = keyed("once").await.ok();
        tenant.api.post("/v1/campaigns", json!({ "name": "after" })).await.ok();
        assert_eq!(
            keyed("once").await.ok()["id"],
            made["id"],
            "what was refused for want of a commit was not kept"
        );
        assert_eq!(names(&tenant).await, ["once", "after"]);
        assert_created(&tenant, 2).await;
    });
}

#[test]
fn an_event_that_landed_unseen_takes_nobodys_place() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = world.tenant().await;
        proxy.hold_answer();
        let unseen = tenant.api.post("/v1/campaigns", json!({ "name": "unseen" })).await;
        assert_eq!(unseen.error(), (503, "unavailable", None));
        tenant.api.post("/v1/campaigns", json!({ "name": "after" })).await.ok();
        proxy.release().await;
        assert_eq!(names(&tenant).await, ["unseen", "after"]);
        assert_created(&tenant, 2).await;
    });
}

/// Its intent stands, nobody was told so, and nothing was placed: it is made at another moment, as the same attempt.
#[test]
fn a_call_whose_commit_was_given_up_and_landed_is_made_all_the_same() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = world.tenant().await;
        // The first is busy and over when the second is decided, ten seconds later.
        let slow = json!({ "pacing": { "calls_per_second": 0.1 } });
        let id = tenant.run_campaign(&["+15002345601", "+15002345600"], slow).await;
        world.advance(seconds(8)).await;
        proxy.hold_answer();
        world.advance(seconds(5)).await;
        proxy.release().await;
        world.advance(minutes(5)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!(
            (&campaign["status"], &campaign["counts"]["completed"]),
            (&json!("completed"), &json!(1)),
            "{campaign}"
        );
        let sessions = tenant.api.get("/v1/sessions?order=asc").await.ok();
        let ends: Vec<_> = sessions["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| (&call["attempt"], &call["end_reason"]))
            .collect();
        assert_eq!(
            ends,
            [(&json!(1), &json!("busy")), (&json!(1), &json!("completed"))],
            "{sessions}"
        );
    });
}

async fn ready(world: &World) -> (u16, Value) {
    let answer = world.anybody().get("/readyz").await;
    (answer.status.as_u16(), answer.body["commits"].clone())
}

async fn until_ready(world: &World) {
    // A commit is tried every second.
    let is_ready = async || (ready(world).await == (200, json!("ok"))).then_some(());
    awaited("the service is ready", is_ready).await;
}

/// A transaction of the writer that hangs until it is told to go on.
pub struct Stall {
    held: Arc<Notify>,
    release: Arc<Notify>,
    task: JoinHandle<entities::Result<()>>,
}

impl Stall {
    pub async fn begin(world: &World) -> Self {
        let stall = Stall::queued(world);
        stall.held.notified().await;
        stall
    }

    /// Behind all that waits for the writer by now, and before all that comes.
    fn queued(world: &World) -> Self {
        let (held, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (writer, begun, goes_on) = (world.deps().writer.clone(), held.clone(), release.clone());
        let mut stalled = async move {
            let stalled = writer.run(Of::Anybody, move |_| {
                let (begun, goes_on) = (begun.clone(), goes_on.clone());
                Box::pin(async move {
                    begun.notify_one();
                    goes_on.notified().await;
                    Ok(((), Commit::default()))
                })
            });
            stalled.await
        }
        .boxed();
        // Its first step hands it in.
        assert!((&mut stalled).now_or_never().is_none(), "nobody has told it to go on");
        let task = tokio::spawn(stalled);
        Stall { held, release, task }
    }

    /// Lets the writer go on until that is so. Then it hangs again, before whatever follows from it.
    async fn until(self, world: &World, is_so: impl AsyncFn() -> bool) -> Self {
        let mut stall = self;
        while !is_so().await {
            let next = Stall::queued(world);
            stall.end().await;
            next.held.notified().await;
            stall = next;
        }
        stall
    }

    pub async fn end(self) {
        self.release.notify_one();
        self.task.await.unwrap().unwrap();
    }
}

/// A call that was late and is about to be committed once more, by a writer that hangs. It has an actor by now.
struct LateOnce {
    campaign: String,
    stall: Stall,
    /// The time that passes meanwhile.
    passing: JoinHandle<()>,
}

impl LateOnce {
    async fn begin(world: &World, tenant: &Tenant) -> Self {
        // The first is busy and over when the second is decided, ten seconds later.
        let slow = json!({ "pacing": { "calls_per_second": 0.1 } });
        let campaign = tenant.run_campaign(&["+15002345601", "+15002345600"], slow).await;
        world.advance(seconds(8)).await;
        let calls = &world.deps().calls;
        assert_eq!(calls.count(), 0);
        let stall = Stall::begin(world).await;
        let passing = tokio::spawn({
            let clock = world.clock.clone();
            async move { clock.advance(seconds(5)).await }
        });
        let key = awaited("a call is decided", async || calls.sessions().pop()).await;
        let first = calls.leg(key.id).unwrap();
        world.clock.set(world.clock.now().plus_seconds(60));
        let is_back = async || {
            let stored = session::load(&world.deps().db.read, key).await;
            stored.is_ok_and(|row| row.phase == session::Phase::Queued)
        };
        let stall = stall.until(world, is_back).await;
        // Each intent has a leg of its own.
        let is_another = async || calls.leg(key.id).filter(|leg| !Arc::ptr_eq(leg, &first));
        awaited("the call has another leg", is_another).await;
        LateOnce {
            campaign,
            stall,
            passing,
        }
    }
}

/// The second call was decided three times, and made the third time, as the same attempt. Answers when it began.
async fn assert_made_at_last(world: &World, tenant: &Tenant, campaign: &str) -> Moment {
    let campaign = tenant.campaign(campaign).await;
    assert_eq!(
        (&campaign["status"], &campaign["counts"]["completed"]),
        (&json!("completed"), &json!(1)),
        "{campaign}"
    );
    assert_eq!(world.rows("dials").await, 4);
    let sessions = tenant.api.get("/v1/sessions?order=asc").await.ok();
    let session = &sessions["data"][1];
    assert_eq!(
        (sessions["data"].as_array().unwrap().len(), &session["attempt"]),
        (2, &json!(1)),
        "{sessions}"
    );
    Moment::parse(session["started_at"].as_str().unwrap()).unwrap()
}

/// The same of one that had waited: its actor must not take what it knows for what is stored.
#[test]
fn a_call_that_was_late_and_whose_next_commit_was_given_up_and_landed_is_made_all_the_same() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = world.tenant().await;
        let LateOnce {
            campaign,
            stall,
            passing,
        } = LateOnce::begin(world, &tenant).await;
        // That of the writer's own halt comes first.
        proxy.hold_answer_after(1);
        stall.end().await;
        passing.await.unwrap();
        proxy.release().await;
        world.advance(minutes(5)).await;
        assert_made_at_last(world, &tenant, &campaign).await;
    });
}

on_both! {
    /// The log is moved into the file beside the writer, which may be in the middle of something, or behind an outside reader.
    async fn a_checkpoint_does_not_ask_for_the_writer(world: &mut World) {
        let stall = Stall::begin(world).await;
        world.deps().db.checkpoint().await.unwrap();
        stall.end().await;
    }

    /// Its client was cut off after the commit: the key is claimed, and no answer was kept for it.
    async fn an_import_that_is_asked_for_again_is_found_and_no_collision(world: &mut World) {
        let tenant = world.tenant().await;
        let owner = entities::ids::TenantScoped::new(tenant.id, entities::values::Env::Test, ());
        let id = world.deps().ids.next();
        let new = || actors::import::New { id, kind: entities::import::Kind::Dnc, campaign: None, created_by: "k".into(), body: "phone_number\n+12025550142\n".into() };
        let first = actors::import::start(world.deps(), owner, new()).await.unwrap();
        let again = actors::import::start(world.deps(), owner, new()).await.unwrap();
        assert_eq!((first.id, world.rows("imports").await), (again.id, 1));
        assert_eq!(ready(world).await, (200, json!("ok")));
        world.settle().await;
    }

    async fn it_is_not_ready_while_commits_fail(world: &mut World) {
        let tenant = world.tenant().await;
        assert_eq!(ready(world).await, (200, json!("ok")));
        world.fail_next_commits(1);
        assert_eq!(tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.error(), (503, "unavailable", None));
        assert_eq!(ready(world).await, (503, json!("failing")));
        // Nobody writes meanwhile: it finds out by itself.
        until_ready(world).await;
    }

    /// A key that this service made itself is nobody's fault who asked, and says nothing of what they asked for.
    async fn a_key_of_ours_that_is_taken_is_doubt_and_not_a_conflict(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok();
        // What a commit does that lands between the look at the order and ours. A campaign's birth takes two places, the event's
        // is the second.
        let columns = "tenant_id, env, event_type, subject_id, created_at, body";
        let id = match world.database_url().starts_with("postgres") {
            true => "'01890000-0000-7000-8000-000000000000'",
            false => "x'01890000000070008000000000000000'",
        };
        let ahead = format!("INSERT INTO events (seq, id, {columns}) SELECT seq + 2, {id}, {columns} FROM events");
        let outside = Database::connect(world.database_url()).await.unwrap();
        outside.execute_unprepared(&ahead).await.unwrap();
        outside.close().await.unwrap();
        let keyed = async || {
            let request = tenant.api.request(reqwest::Method::POST, "/v1/campaigns").header("Idempotency-Key", "k");
            tenant.api.send(request.json(&json!({ "name": "y" }))).await
        };
        let first = keyed().await;
        assert_eq!(first.error(), (503, "unavailable", None), "{}", first.body);
        // The order was read anew, and no refusal was kept for the key.
        assert_eq!(keyed().await.ok()["name"], "y");
        until_ready(world).await;
    }

    /// A commit that stalls takes its call's moment with it: the call waits for another, and the attempt is the same.
    async fn a_call_that_was_committed_too_late_is_not_placed(world: &mut World) {
        let tenant = world.tenant().await;
        // The first is busy and over when the second is decided, ten seconds later.
        let id = tenant.run_campaign(&["+15002345601", "+15002345600"], json!({ "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(seconds(8)).await;
        assert_eq!(world.deps().calls.count(), 0);
        let stall = Stall::begin(world).await;
        let passing = tokio::spawn({
            let clock = world.clock.clone();
            async move { clock.advance(seconds(5)).await }
        });
        let is_decided = async || (world.deps().calls.count() > 0).then_some(());
        awaited("a call is decided", is_decided).await;
        let planned = world.clock.now();
        world.clock.set(planned.plus_seconds(60));
        stall.end().await;
        passing.await.unwrap();
        world.advance(minutes(5)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["counts"]["completed"]), (&json!("completed"), &json!(1)), "{campaign}");
        assert_eq!(world.rows("dials").await, 3, "the second was decided twice");
        let sessions = tenant.api.get("/v1/sessions?order=asc").await.ok();
        let session = &sessions["data"][1];
        assert_eq!((sessions["data"].as_array().unwrap().len(), &session["attempt"]), (2, &json!(1)), "{sessions}");
        let started = entities::values::Moment::parse(session["started_at"].as_str().unwrap()).unwrap();
        assert!(started >= planned.plus(seconds(60)), "it rang at {started}");
    }
}

/// The second time it has an actor, to which the intent is news. On SQLite alone: on PostgreSQL it is not certain that the stall holds the
/// second commit back until the clock is set, and a call that was not late rings.
#[test]
fn a_call_that_is_late_twice_waits_for_its_turn_again() {
    run(Backend::Sqlite, async |world| {
        let tenant = world.tenant().await;
        let LateOnce {
            campaign,
            stall,
            passing,
        } = LateOnce::begin(world, &tenant).await;
        let planned = world.clock.now();
        world.clock.set(planned.plus_seconds(60));
        stall.end().await;
        passing.await.unwrap();
        world.advance(minutes(5)).await;
        let started = assert_made_at_last(world, &tenant, &campaign).await;
        assert!(started >= planned.plus(seconds(60)), "it rang at {started}");
    });
}

/// Somebody else's transaction that does not end: writes fail in time, and say so.
#[test]
fn it_is_not_ready_while_somebody_else_has_locked_the_file() {
    run(Backend::Sqlite, async |world| {
        let tenant = world.tenant().await;
        let outside = Database::connect(world.database_url()).await.unwrap();
        outside.execute_unprepared("BEGIN IMMEDIATE").await.unwrap();
        let refused = tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await;
        assert_eq!(refused.error(), (503, "unavailable", None));
        assert_eq!(ready(world).await, (503, json!("failing")));
        outside.execute_unprepared("ROLLBACK").await.unwrap();
        outside.close().await.unwrap();
        until_ready(world).await;
        assert_eq!(names(&tenant).await, Vec::<String>::new());
    });
}

/// They have a connection of their own: one that waits for a row keeps no event from being committed and delivered.
#[test]
fn events_do_not_wait_for_outcomes_of_deliveries_and_none_is_sent_again() {
    run(Backend::Postgres, async |world| {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        one_event(&tenant).await;
        world.settle().await;
        let elsewhere = Database::connect(world.database_url()).await.unwrap();
        let held = elsewhere.begin().await.unwrap();
        let lock = "SELECT 1 FROM endpoint_health FOR UPDATE";
        held.execute_unprepared(lock).await.unwrap();
        for arrived in 2..=4 {
            let name = json!({ "name": "beside" });
            tenant.api.post("/v1/campaigns", name).await.ok();
            receiver.arrived(arrived).await;
        }
        assert_eq!(delivery::count_open(&world.deps().db.read).await.unwrap(), 3);
        held.rollback().await.unwrap();
        world.advance(minutes(2)).await;
        assert_eq!(delivery::count_open(&world.deps().db.read).await.unwrap(), 0);
        assert!(receiver.counts_by_id().values().all(|count| *count == 1));
        assert_eq!(receiver.requests().len(), 4);
    });
}
