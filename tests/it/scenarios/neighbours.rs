//! One tenant's load does not stop the others: what takes long is capped, ends with whoever asked for it, and leaves room.
use crate::{
    on_both,
    world::{Answer, Api, Tenant, World, minutes},
};
use actors::leases::Of;
use entities::{connection::Transaction, contact, ids::CampaignId};
use futures_util::future::{join_all, select};
use rules::commit::Commit;
use sea_orm::{ConnectionTrait, DbBackend};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A draft over that many sandbox contacts; answers its id.
async fn draft(tenant: &Tenant, contacts: usize) -> String {
    let draft = json!({ "name": "Long", "agent_id": tenant.agent().await });
    let draft = tenant.api.post("/v1/campaigns", draft).await.ok();
    let id = draft["id"].as_str().unwrap().to_owned();
    let all: Vec<Value> = (0..contacts)
        .map(|n| json!({ "phone_number": format!("+15002{n:06}") }))
        .collect();
    for some in all.chunks(1_000) {
        let path = format!("/v1/campaigns/{id}/contacts");
        tenant.api.post(&path, json!({ "contacts": some })).await.ok();
    }
    id
}

async fn preflight(api: Api, id: String) -> Answer {
    api.post(&format!("/v1/campaigns/{id}/preflight"), json!({})).await
}

/// Takes all connections by which whole lists are read: who needs one waits until they are given back.
pub async fn all_reports(world: &World) -> Vec<Transaction> {
    let db = &world.deps().db.reports;
    let connections = match db.get_database_backend() {
        DbBackend::Sqlite => 1,
        _ => 2,
    };
    let mut held = Vec::new();
    for _ in 0..connections {
        held.push(db.begin().await.unwrap());
    }
    held
}

/// A function at an address that takes every call and never answers; answers the path of its test.
async fn silent_function(tenant: &Tenant, silent: &TcpListener) -> String {
    let function = json!({
        "name": "wait",
        "description": "Never answers.",
        "parameters": { "type": "object" },
        "url": format!("http://{}/", silent.local_addr().unwrap()),
        "timeout_ms": 120_000,
    });
    let function = tenant.api.post("/v1/functions", function).await.ok();
    format!("/v1/functions/{}/test", function["id"].as_str().unwrap())
}

fn asking(api: &Api, path: &str) -> JoinHandle<Answer> {
    let (api, path) = (api.clone(), path.to_owned());
    actix_rt::spawn(async move { api.post(&path, json!({})).await })
}

/// Reads until the other side is gone.
async fn gone(mut call: TcpStream) {
    let mut some = [0; 1024];
    while call.read(&mut some).await.is_ok_and(|read| read > 0) {}
}

on_both! {
    async fn a_workspace_has_one_preflight_at_a_time_and_nobody_else_waits_for_it(world: &mut World) {
        let (tenant, other, third) = (world.tenant().await, world.tenant().await, world.tenant().await);
        let (one, two) = (draft(&tenant, 1).await, draft(&tenant, 1).await);
        let (theirs, more) = (draft(&other, 1).await, draft(&third, 1).await);
        let held = all_reports(world).await;
        // Whichever comes second is refused at once; the first one waits for its connection.
        let both = [&one, &two].map(|id| Box::pin(preflight(tenant.api.clone(), id.clone())));
        let [first, second] = both;
        let (refused, running) = select(first, second).await.into_inner();
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert_eq!(refused.headers["retry-after"], "5");
        // The quick reads and the writes of all go on.
        assert_eq!(tenant.campaign(&one).await["status"], "draft");
        other.agent().await;
        // Another workspace has its own, and two at once are all there are.
        let both = [(&other, &theirs), (&third, &more)].map(|(tenant, id)| Box::pin(preflight(tenant.api.clone(), id.clone())));
        let [first, second] = both;
        let (refused, other_running) = select(first, second).await.into_inner();
        assert_eq!(refused.error(), (429, "rate_limited", None));
        for connection in held {
            connection.rollback().await.unwrap();
        }
        let look = running.await.ok();
        assert_eq!((&look["contacts"], &look["generated_at"]), (&json!(1), &json!("2027-03-02T13:00:00.000Z")));
        other_running.await.ok();
        for id in [one, two] {
            preflight(tenant.api.clone(), id).await.ok();
        }
    }

    async fn exports_read_by_connections_of_their_own(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, 1).await;
        let held = all_reports(world).await;
        let exports: Vec<_> = (0..4).map(|_| tenant.api.request(reqwest::Method::GET, &format!("/v1/campaigns/{id}/report.csv")).send()).collect();
        // They have begun, and wait for their first page.
        let exports: Vec<_> = join_all(exports).await.into_iter().map(Result::unwrap).collect();
        assert!(exports.iter().all(|export| export.status().is_success()));
        assert_eq!(tenant.api.get("/v1/answers.csv").await.error(), (429, "rate_limited", None));
        tenant.api.get("/v1/campaigns").await.ok();
        for connection in held {
            connection.rollback().await.unwrap();
        }
        for export in exports {
            assert_eq!(export.text().await.unwrap().lines().count(), 2);
        }
        tenant.api.get("/v1/answers.csv").await.ok();
    }

    /// Further back than one statement looks.
    async fn what_a_filter_lets_through_is_found_however_far_back(world: &mut World) {
        let tenant = world.tenant().await;
        let old = draft(&tenant, 0).await;
        let nobody: Vec<Value> = (0..2_100).map(|n| json!({ "phone_number": format!("none {n}") })).collect();
        let campaign = json!({ "name": "Nobody", "agent_id": tenant.agent().await, "contacts": nobody });
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
        world.advance(minutes(1)).await;
        for order in ["desc", "asc"] {
            let found = tenant.api.get(&format!("/v1/events?subject_id={old}&order={order}")).await.ok();
            let types: Vec<_> = found["data"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect();
            assert_eq!((types, &found["has_more"]), (vec![json!("campaign.created")], &json!(false)), "{order}");
        }
        let (mut skipped, mut cursor) = (0, String::new());
        loop {
            let page = tenant.api.get(&format!("/v1/events?type=campaign.contact_skipped&limit=100{cursor}")).await.ok();
            skipped += page["data"].as_array().unwrap().len();
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(skipped, 2_100, "page by page each of them once");
    }

    async fn a_workspace_waits_for_few_outside_at_once_and_who_leaves_frees_a_place(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let path = silent_function(&tenant, &silent).await;
        let (mut asked, mut calls) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            asked.push(asking(&tenant.api, &path));
            calls.push(silent.accept().await.unwrap().0);
        }
        let refused = tenant.api.post(&path, json!({})).await;
        assert_eq!(refused.error(), (429, "rate_limited", None));
        assert!(refused.headers.contains_key("retry-after"));
        let agent = tenant.agent().await;
        let simulate = tenant.api.post(&format!("/v1/agents/{agent}/simulate"), json!({ "turns": ["Hello?"] })).await;
        assert_eq!(simulate.error(), (429, "rate_limited", None), "one cap for all that wait for somebody outside");
        // Others have places of their own.
        let theirs = silent_function(&other, &silent).await;
        asked.push(asking(&other.api, &theirs));
        calls.push(silent.accept().await.unwrap().0);

        // The client closes its connection: ours to the receiver goes too, and another call is let through.
        asked.remove(0).abort();
        gone(calls.remove(0)).await;
        let (api, path) = (tenant.api.clone(), path.clone());
        let next = actix_rt::spawn(async move {
            while api.post(&path, json!({})).await.status == 429 {}
        });
        calls.push(silent.accept().await.unwrap().0);
        next.abort();
        asked.iter().for_each(JoinHandle::abort);
        join_all(calls.into_iter().map(gone)).await;
    }

    async fn a_long_list_that_is_put_away_leaves_room_for_others(world: &mut World) {
        let tenant = world.tenant().await;
        let id = draft(&tenant, 5_000).await;
        let campaign: CampaignId = id.parse().unwrap();
        // Two who write all the time: one of them is always next. Each notes how far the list is.
        let writers = [0; 2].map(|_| {
            let deps = world.deps().clone();
            actix_rt::spawn(async move {
                let mut seen = Vec::new();
                while seen.last() != Some(&0) {
                    let looking = deps.writer.run(Of::Anybody, move |db| {
                        Box::pin(async move {
                            let left = contact::waiting_by_zone(db, campaign).await?;
                            Ok((left.iter().map(|(_, contacts)| contacts).sum::<i64>(), Commit::default()))
                        })
                    });
                    seen.push(looking.await.unwrap());
                }
                seen
            })
        });
        tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        let mut seen: Vec<i64> = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&5_000)));
        // Of 500 contacts each there would be ten transactions.
        assert!(seen.len() > 12, "so few had their turn between two slices: {seen:?}");
        world.settle().await;
        let counts = tenant.campaign(&id).await["counts"].clone();
        assert_eq!((&counts["canceled"], &counts["pending"]), (&json!(5_000), &json!(0)));
    }
}
