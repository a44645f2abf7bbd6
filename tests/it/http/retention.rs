//! How long a workspace keeps what it has done.
use super::{console::member, dashboard::Browser};
use crate::{
    audit, on_both,
    world::{Answer, Tenant, World, minutes},
};
use actors::leases::Of;
use entities::{
    connection::Connection,
    contact,
    ids::CampaignId,
    values::{Moment, Role},
};
use futures_util::future::join_all;
use reqwest::Method;
use rules::commit::Commit;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

fn days(days: u64) -> Duration {
    minutes(days * 24 * 60)
}

fn path(tenant: &Tenant) -> String {
    format!("/v1/_internal/t/{}/retention", tenant.slug)
}

async fn keep(browser: &mut Browser, tenant: &Tenant, days: Value) -> Answer {
    let request = browser.request(Method::PATCH, &path(tenant)).json(&days);
    browser.send(request).await
}

async fn count(tenant: &Tenant, path: &str) -> usize {
    tenant.api.get(path).await.ok()["data"].as_array().unwrap().len()
}

/// What the books and the events say that is not so.
async fn breaches(world: &World) -> Vec<audit::Breach> {
    // What the carrier and the providers would have to say is looked at elsewhere.
    let mut all = audit::check(&world.evidence().await);
    all.retain(|breach| ["DUMP", "I2", "I12", "I13", "I14", "I20"].contains(&breach.invariant));
    all
}

/// A tenant of which there is some of everything: a recorded call, a campaign of three, a room, an SMS, an e-mail, a list.
async fn lively(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let agent = json!({ "name": "x", "prompt": "x", "first_message": "Hello.", "recording": { "enabled": true }, "brain": { "mode": "scripted", "replies": [{ "say": "Very well." }] } });
    let agent = tenant.api.post("/v1/agents", agent).await.ok()["id"].clone();
    tenant
        .api
        .post(
            "/v1/sessions",
            json!({ "to_number": "+15002345600", "agent_id": agent }),
        )
        .await
        .ok();
    tenant
        .run_campaign(&["+15002340000", "+15002340010", "+15002340020"], json!({}))
        .await;
    let room = tenant
        .api
        .post("/v1/rooms", json!({ "agent_id": agent, "expires_in_seconds": 60 }))
        .await;
    room.ok();
    tenant
        .api
        .post(
            "/v1/sms_messages",
            json!({ "to_number": "+15002340000", "body": "Hello." }),
        )
        .await
        .ok();
    tenant
        .api
        .post(
            "/v1/email_messages",
            json!({ "to": "ada@example.com", "subject": "x", "text": "Hello." }),
        )
        .await
        .ok();
    tenant
        .api
        .upload("/v1/dnc/import", "phone_number\n+15002349999\n")
        .await
        .ok();
    world.advance(minutes(10)).await;
    tenant
}

on_both! {
    async fn what_is_too_old_goes_and_the_books_stay(world: &mut World) {
        // Of the other workspace the server keeps messages for longer than this takes.
        world.change_settings(&[("event_retention_days", 60.into())]).await;
        let (tenant, other) = (lively(world).await, lively(world).await);
        let mut owner = member(world, &tenant, Role::Owner).await;
        // One that has not ended is not old, whenever it was made.
        let later = world.clock.now().plus_seconds(45 * 86_400).to_string();
        let agent = tenant.agent().await;
        let waits = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": agent, "scheduled_at": later })).await.ok();
        let (status, waits) = (waits["status"].clone(), format!("/v1/sessions/{}", waits["id"].as_str().unwrap()));
        let asked = json!({ "sessions_days": 32, "transcripts_days": 1, "contacts_days": 3, "messages_days": 8, "imports_days": 1 });
        assert_eq!(keep(&mut owner, &tenant, asked.clone()).await.ok(), asked);

        let sessions = tenant.api.get("/v1/sessions?limit=100").await.ok()["data"].as_array().unwrap().clone();
        let ended: Vec<&Value> = sessions.iter().filter(|row| !row["ended_at"].is_null()).collect();
        assert_eq!((sessions.len(), ended.len()), (6, 5), "one call, three of a campaign, one in a room, and one that waits");
        let talk = sessions.iter().find(|row| row["to_number"] == "+15002345600").unwrap();
        let talk = format!("/v1/sessions/{}", talk["id"].as_str().unwrap());
        let said = async || tenant.api.get(&format!("{talk}/transcript.json")).await.ok()["turns"].as_array().unwrap().len();
        assert!(said().await > 0);
        let campaigns = tenant.api.get("/v1/campaigns").await.ok();
        let campaign = format!("/v1/campaigns/{}", campaigns["data"][0]["id"].as_str().unwrap());
        let counts = tenant.api.get(&campaign).await.ok()["counts"].clone();
        let spent = tenant.api.get("/v1/credits").await.ok();
        let (dials, files) = (world.rows("dials").await, world.recorded_files().len());
        assert!(files >= 2, "one of each tenant, at least: {files}");

        // Not yet.
        world.leap(minutes(23 * 60)).await;
        assert!(said().await > 0);
        world.leap(minutes(120)).await;
        assert_eq!(said().await, 0, "and the call is there");
        assert_eq!((count(&tenant, "/v1/imports").await, count(&other, "/v1/imports").await), (0, 1));
        assert_eq!(count(&tenant, &format!("{campaign}/contacts")).await, 3);

        world.leap(days(2)).await;
        assert_eq!(count(&tenant, &format!("{campaign}/contacts")).await, 0);
        assert_eq!(tenant.api.get(&campaign).await.ok()["counts"], counts, "they were called all the same");
        assert_eq!((count(&tenant, "/v1/sms_messages").await, count(&tenant, "/v1/email_messages").await), (1, 1));
        assert_eq!(count(&tenant, "/v1/sessions?limit=100").await, 6);
        let sends = world.rows("message_sends").await;

        // The sound first, the row in the next run.
        world.leap(days(29)).await;
        world.advance(minutes(120)).await;
        assert_eq!(tenant.api.get(&talk).await.error().0, 404);
        assert_eq!(count(&tenant, "/v1/sessions?limit=100").await, 1);
        assert_eq!(tenant.api.get(&waits).await.ok()["status"], status);
        assert_eq!((count(&tenant, "/v1/recordings").await, count(&tenant, "/v1/rooms").await), (0, 0));
        assert!(world.recorded_files().len() < files);
        assert_eq!((count(&tenant, "/v1/sms_messages").await, count(&tenant, "/v1/email_messages").await), (0, 0));
        assert_eq!(world.rows("dials").await, dials - 4, "the other's are there");
        assert_eq!(world.rows("message_sends").await, sends - 2, "and what was written to the others' people");
        // Nothing of the other's is missing, and nothing of the books.
        assert_eq!(count(&other, "/v1/sessions?limit=100").await, 5);
        assert_eq!(count(&other, "/v1/sms_messages").await, 1);
        assert_eq!(tenant.api.get("/v1/credits").await.ok()["balance_cents"], spent["balance_cents"]);
        let found = breaches(world).await;
        assert!(found.is_empty(), "{}", audit::report(&found));
        // Again, and after a restart, there is nothing left to do.
        world.restart().await;
        world.leap(days(1)).await;
        assert_eq!(count(&tenant, "/v1/sessions?limit=100").await, 1);
        // It is placed when its time has come.
        world.leap(days(13)).await;
        assert_eq!(tenant.api.get(&waits).await.ok()["status"], "completed");
    }

    async fn an_owner_says_how_long_and_hears_what_is_wrong(world: &mut World) {
        let tenant = world.tenant().await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        let forever = json!({ "sessions_days": null, "transcripts_days": null, "contacts_days": null, "messages_days": null, "imports_days": null });
        assert_eq!(owner.get(&path(&tenant)).await.ok(), forever);
        for (wrong, field) in [
            (json!({ "sessions_days": 30 }), "sessions_days"),
            (json!({ "sessions_days": 3651 }), "sessions_days"),
            (json!({ "transcripts_days": 0 }), "transcripts_days"),
            (json!({ "contacts_days": "30" }), "contacts_days"),
            (json!({ "contacts_days": 1.5 }), "contacts_days"),
            (json!({ "imports_days": -1 }), "imports_days"),
            // The server keeps them for 30.
            (json!({ "messages_days": 31 }), "messages_days"),
            (json!({ "dials_days": 30 }), "dials_days"),
        ] {
            let refused = keep(&mut owner, &tenant, wrong.clone()).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(field)), "{wrong}: {}", refused.body);
        }
        assert_eq!(owner.get(&path(&tenant)).await.ok(), forever);
        let kept = keep(&mut owner, &tenant, json!({ "messages_days": 30, "contacts_days": 90 })).await.ok();
        assert_eq!((&kept["messages_days"], &kept["contacts_days"], &kept["sessions_days"]), (&json!(30), &json!(90), &Value::Null));
        let kept = keep(&mut owner, &tenant, json!({ "messages_days": null })).await.ok();
        assert_eq!((&kept["messages_days"], &kept["contacts_days"]), (&Value::Null, &json!(90)));
        let log = owner.get(&format!("/v1/_internal/t/{}/audit-log?action=workspace_changed", tenant.slug)).await.ok();
        let told: Vec<&Value> = log["data"].as_array().unwrap().iter().map(|row| &row["details"]).collect();
        assert_eq!(told, [&json!({ "messages_days": null }), &json!({ "contacts_days": 90, "messages_days": 30 })]);

        for role in [Role::Viewer, Role::Admin] {
            let mut other = member(world, &tenant, role).await;
            assert_eq!(other.get(&path(&tenant)).await.ok()["contacts_days"], 90);
            assert_eq!(keep(&mut other, &tenant, json!({ "contacts_days": 1 })).await.error().0, 403);
        }
        let stranger = world.tenant().await;
        assert_eq!(keep(&mut owner, &stranger, json!({ "contacts_days": 1 })).await.error().0, 404);
    }

    /// What is deleted does not come back: while nobody knows how late it is, nothing is.
    async fn a_wrong_clock_lets_nothing_go(world: &mut World) {
        const DAY_MS: i64 = 86_400_000;
        let tenant = lively(world).await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        keep(&mut owner, &tenant, json!({ "sessions_days": 31, "transcripts_days": 1, "contacts_days": 1, "messages_days": 8, "imports_days": 1 })).await.ok();
        let tables = ["sessions", "transcripts", "contacts", "sms_messages", "email_messages", "imports"];
        let rows = async || {
            let mut rows = Vec::new();
            for table in tables {
                rows.push(world.rows(table).await);
            }
            rows
        };
        let before = rows().await;
        world.clock.step_wall(40 * DAY_MS);
        world.advance(minutes(5)).await;
        actors::retention::workspaces::prune(world.deps()).await.unwrap();
        assert_eq!(rows().await, before);
        world.clock.step_wall(-40 * DAY_MS);
        world.advance(minutes(90)).await;
        assert_eq!(rows().await, before);
        world.leap(days(2)).await;
        let after = rows().await;
        assert_eq!((after[0], after[2], after[5]), (before[0], 0, 0));
    }

    /// Calls that overlap are over at different times: one that lasts longer than those after it is not forgotten.
    async fn what_was_said_goes_from_each_call_however_long_it_was(world: &mut World) {
        let tenant = world.tenant().await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        keep(&mut owner, &tenant, json!({ "transcripts_days": 1 })).await.ok();
        let agent = tenant.agent().await;
        let call = async |number: &str, seconds: u64| {
            let script = json!([{ "silence_seconds": seconds }, { "hang_up": true }]);
            let call = json!({ "to_number": number, "agent_id": agent, "sandbox": { "script": script } });
            tenant.api.post("/v1/sessions", call).await.ok()["id"].as_str().unwrap().to_owned()
        };
        let said = async |id: &str| tenant.api.get(&format!("/v1/sessions/{id}/transcript.json")).await.ok()["turns"].as_array().unwrap().len();
        let long = call("+15002340000", 9).await;
        let short = call("+15002340010", 1).await;
        world.advance(minutes(2)).await;
        let ended = async |id: &str| Moment::parse(tenant.api.get(&format!("/v1/sessions/{id}")).await.ok()["ended_at"].as_str().unwrap()).unwrap();
        let (first, last) = (ended(&short).await, ended(&long).await);
        assert!(first < last, "{first} {last}");
        assert!(said(&short).await > 0 && said(&long).await > 0);
        // A day later, between the two.
        world.clock.set(first.plus(days(1)).plus_millis(1));
        actors::retention::workspaces::prune(world.deps()).await.unwrap();
        assert_eq!(said(&short).await, 0);
        assert!(said(&long).await > 0);
        world.clock.set(last.plus(days(1)).plus_millis(1));
        actors::retention::workspaces::prune(world.deps()).await.unwrap();
        assert_eq!(said(&long).await, 0);
        // Days later the mark has passed them, and nothing is looked at again.
        world.leap(days(3)).await;
        let marks = entities::retention::of(&world.deps().db.read, tenant.id, world.clock.now()).await.unwrap();
        assert_eq!(marks.silent_test.map(|id| id.to_string()), Some(short.clone().max(long.clone())));
    }

    /// What an owner takes back holds at once, also for what has been begun.
    async fn settings_that_change_meanwhile_end_what_was_begun(world: &mut World) {
        let tenant = world.tenant().await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        keep(&mut owner, &tenant, json!({ "contacts_days": 1 })).await.ok();
        let db = world.deps().db.begin().await.unwrap();
        let known = entities::retention::of(&db, tenant.id, world.clock.now()).await.unwrap();
        entities::retention::still(&db, tenant.id, known.version).await.unwrap();
        db.commit().await.unwrap();
        keep(&mut owner, &tenant, json!({ "contacts_days": 30 })).await.ok();
        let db = world.deps().db.begin().await.unwrap();
        let stale = entities::retention::still(&db, tenant.id, known.version).await;
        assert!(matches!(stale, Err(entities::Error::Stale)), "{stale:?}");
    }

    /// Thousands go in slices, between which others have their turn.
    async fn a_long_list_that_is_let_go_leaves_room_for_others(world: &mut World) {
        let tenant = world.tenant().await;
        let mut owner = member(world, &tenant, Role::Owner).await;
        keep(&mut owner, &tenant, json!({ "contacts_days": 1 })).await.ok();
        let draft = tenant.api.post("/v1/campaigns", json!({ "name": "Long", "agent_id": tenant.agent().await })).await.ok();
        let path = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        let campaign: CampaignId = draft["id"].as_str().unwrap().parse().unwrap();
        let contacts: Vec<Value> = (0..5_000).map(|n| json!({ "phone_number": format!("+15002{n:06}") })).collect();
        for some in contacts.chunks(1_000) {
            tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": some })).await.ok();
        }
        tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
        world.settle().await;
        world.clock.set(world.clock.now().plus(days(2)));
        // Two who write all the time: one of them is always next. Each notes how many are left.
        // Both have looked once before anything goes.
        let begun = Arc::new(tokio::sync::Barrier::new(3));
        let writers = [0; 2].map(|_| {
            let (deps, begun) = (world.deps().clone(), begun.clone());
            actix_rt::spawn(async move {
                let mut seen = Vec::new();
                while seen.last() != Some(&0) {
                    let looking = deps.writer.run(Of::Anybody, move |db| {
                        let of_it = contact::Entity::find().filter(contact::Column::CampaignId.eq(campaign));
                        let db: &Connection = db;
                        Box::pin(async move { Ok((of_it.count(db).await?, Commit::default())) })
                    });
                    seen.push(looking.await.unwrap());
                    if seen.len() == 1 {
                        begun.wait().await;
                    }
                }
                seen
            })
        });
        begun.wait().await;
        actors::retention::workspaces::prune(world.deps()).await.unwrap();
        let mut seen: Vec<u64> = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&5_000)));
        // Of 500 contacts each there would be ten transactions.
        assert!(seen.len() > 12, "so few had their turn between two slices: {seen:?}");
        assert_eq!(tenant.api.get(&path).await.ok()["counts"]["total"], 5_000);
    }
}
