//! Who is called when: hours, the do-not-call list, caps, suspension. The clock stands at Tuesday 2027-03-02, 08:00 in New York.
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::{
    dispatch_block::{self, Reason},
    values::Env,
};
use serde_json::{Value, json};

/// The campaign's contacts by number: status, skip reason, attempts.
async fn contacts(tenant: &Tenant, campaign: &str) -> Vec<(String, String, Value, i64)> {
    let page = tenant
        .api
        .get(&format!("/v1/campaigns/{campaign}/contacts?order=asc&limit=100"))
        .await
        .ok();
    let row = |contact: &Value| {
        let text = |name: &str| contact[name].as_str().unwrap().to_owned();
        (
            text("phone_number"),
            text("status"),
            contact["skip_reason"].clone(),
            contact["attempts"].as_i64().unwrap(),
        )
    };
    page["data"].as_array().unwrap().iter().map(row).collect()
}

async fn statuses(tenant: &Tenant, campaign: &str) -> Vec<String> {
    contacts(tenant, campaign)
        .await
        .into_iter()
        .map(|(_, status, ..)| status)
        .collect()
}

fn nine_to_eight() -> Value {
    json!({ "windows": [{ "start": "09:00", "end": "20:00" }] })
}

/// Blocks the workspace's test env, or lets it go.
async fn block(world: &World, tenant: &Tenant, reason: Reason, blocks: bool) {
    let (deps, id) = (world.deps(), tenant.id);
    let now = deps.clock.now();
    let written = deps.writer.run(Of::Anybody, move |db| {
        Box::pin(async move {
            if blocks {
                let row = dispatch_block::Model {
                    tenant_id: id,
                    env: Env::Test,
                    reason,
                    since: now,
                };
                dispatch_block::add(db, &[row]).await?;
            } else {
                dispatch_block::remove(db, id, Env::Test, reason).await?;
            }
            Ok(((), rules::commit::Commit::default()))
        })
    });
    written.await.unwrap();
}

on_both! {
    /// Whoever is awake is called; when nobody is left who is, the campaign pauses, says until when, and goes on by itself.
    async fn the_campaign_sleeps_with_the_last_of_its_contacts(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = json!({ "name": "Zones", "agent_id": tenant.agent().await, "schedule": nine_to_eight(), "pacing": { "calls_per_second": 50 },
            "contacts": [
                { "phone_number": "+15002340001", "timezone": "America/New_York" },
                { "phone_number": "+15002340011", "timezone": "Europe/Berlin" },
                { "phone_number": "+15002340021", "timezone": "America/Los_Angeles" },
            ] });
        let id = tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(seconds(30)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending", "failed", "pending"], "14:00 in Berlin, 08:00 in New York");
        let asleep = tenant.campaign(&id).await;
        let paused = (asleep["status"].as_str(), asleep["pause_reason"].as_str(), asleep["next_open_at"].as_str());
        assert_eq!(paused, (Some("paused"), Some("quiet_hours"), Some("2027-03-02T14:00:00.000Z")));
        assert_eq!(tenant.api.post(&format!("/v1/campaigns/{id}/resume"), json!({})).await.error().1, "invalid_state");

        world.advance(minutes(59)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending", "failed", "pending"]);
        world.advance(minutes(1)).await;
        assert_eq!(statuses(&tenant, &id).await[0], "failed", "09:00 in New York");
        let asleep = tenant.campaign(&id).await;
        assert_eq!(asleep["next_open_at"], "2027-03-02T17:00:00.000Z", "09:00 in Los Angeles");
        // A crash while it sleeps changes nothing.
        world.restart().await;
        world.advance(minutes(181)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!(campaign["status"], "completed", "{} {:?} {campaign}", world.clock.now(), contacts(&tenant, &id).await);
        let types = tenant.event_types().await;
        let of = |name: &str| types.iter().filter(|known| *known == name).count();
        assert_eq!((of("campaign.paused_quiet_hours"), of("campaign.started"), of("campaign.completed")), (2, 1, 1));
    }

    /// The line was busy while everybody else slept: whoever is awake is called again on time, and not tomorrow.
    async fn who_was_being_called_when_the_campaign_fell_asleep_wakes_it(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = json!({ "name": "Zones", "agent_id": tenant.agent().await, "schedule": nine_to_eight(),
            "retry": { "max_attempts": 2, "min_gap_minutes": 30 },
            "contacts": [
                { "phone_number": "+15002340001", "timezone": "America/Los_Angeles" },
                { "phone_number": "+15002340011", "timezone": "Europe/Berlin" },
            ] });
        let id = tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(seconds(30)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending", "waiting"], "14:00 in Berlin, 05:00 in Los Angeles");
        let asleep = tenant.campaign(&id).await;
        assert_eq!(asleep["pause_reason"], "quiet_hours");
        assert!(asleep["next_open_at"].as_str().unwrap() < "2027-03-02T13:31:00.000Z", "{asleep}");
        world.advance(minutes(31)).await;
        let reached = contacts(&tenant, &id).await;
        assert_eq!((reached[1].1.as_str(), reached[1].3), ("failed", 2), "called again after half an hour: {reached:?}");
        let asleep = tenant.campaign(&id).await;
        assert_eq!(asleep["next_open_at"], "2027-03-02T17:00:00.000Z", "09:00 in Los Angeles");
    }

    /// A manual pause overrides the one for quiet hours, and only `resume` lifts it.
    async fn a_manual_pause_outlasts_the_night(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "schedule": nine_to_eight() })).await;
        world.advance(seconds(1)).await;
        assert_eq!(tenant.campaign(&id).await["pause_reason"], "quiet_hours", "the sandbox block keeps the workspace's hours");
        tenant.api.post(&format!("/v1/campaigns/{id}/pause"), json!({})).await.ok();
        assert_eq!(tenant.campaign(&id).await["pause_reason"], "manual");
        world.advance(minutes(120)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending"]);
        tenant.api.post(&format!("/v1/campaigns/{id}/resume"), json!({})).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(statuses(&tenant, &id).await, ["failed"]);
    }

    /// Somebody who is awake and comes to a sleeping campaign is called at once; a rule that is loosened wakes it too.
    async fn what_changes_wakes_a_sleeping_campaign(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "schedule": nine_to_eight() })).await;
        world.advance(seconds(1)).await;
        let awake = json!({ "contacts": [{ "phone_number": "+15002340011", "timezone": "Europe/Paris" }] });
        tenant.api.post(&format!("/v1/campaigns/{id}/contacts"), awake).await.ok();
        world.advance(seconds(10)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending", "failed"]);
        assert_eq!(tenant.campaign(&id).await["pause_reason"], "quiet_hours");
        tenant.api.patch(&format!("/v1/campaigns/{id}"), json!({ "schedule": { "windows": [{ "start": "07:00", "end": "20:00" }] } })).await.ok();
        world.advance(seconds(10)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// The last call of the day starts so early that all its ringing lies inside the window.
    async fn no_phone_rings_past_the_window(world: &mut World) {
        let tenant = world.tenant().await;
        let schedule = json!({ "windows": [{ "start": "08:00", "end": "08:01" }] });
        // One every 10 seconds, ringing 30 in vain.
        let numbers: Vec<String> = (0..9).map(|n| format!("+150023400{n}2")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "schedule": schedule, "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(minutes(2)).await;
        let sessions = tenant.api.get(&format!("/v1/sessions?campaign_id={id}&order=asc")).await.ok();
        let starts: Vec<&str> = sessions["data"].as_array().unwrap().iter().map(|session| session["created_at"].as_str().unwrap()).collect();
        assert_eq!(starts.len(), 3, "at 0, 10 and 20 seconds: {starts:?}");
        let campaign = tenant.campaign(&id).await;
        assert_eq!(campaign["next_open_at"], "2027-03-03T13:00:00.000Z");
        tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        world.settle().await;
    }

    async fn a_start_ahead_of_its_time_arms_the_draft(world: &mut World) {
        let tenant = world.tenant().await;
        let draft = json!({ "name": "Later", "agent_id": tenant.agent().await, "schedule": { "starts_at": "2027-03-02T13:30:00Z" } });
        let id = tenant.api.post("/v1/campaigns", draft).await.ok()["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/campaigns/{id}");
        assert_eq!(tenant.api.post(&format!("{path}/start"), json!({})).await.error().1, "invalid_state", "no contacts");
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": [{ "phone_number": "+15002340001" }] })).await.ok();
        let armed = tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
        assert_eq!((&armed["status"], &armed["armed"]), (&json!("draft"), &json!(true)));
        // Over a crash, too.
        world.restart().await;
        world.advance(minutes(29)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "draft");
        world.advance(minutes(2)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["started_at"]), (&json!("completed"), &json!("2027-03-02T13:30:00.000Z")));
    }

    /// At `ends_at` nothing more is dialled: each contact that is left is told by its real cause, and calls in flight run on.
    async fn at_its_end_a_campaign_puts_everybody_away(world: &mut World) {
        let tenant = world.tenant().await;
        let schedule = json!({ "ends_at": "2027-03-02T13:10:00Z" });
        let id = tenant.run_campaign(&["+15002340001", "+15002340011", "+15002340000"], json!({
            "schedule": schedule, "pacing": { "calls_per_second": 0.1 }, "retry": { "max_attempts": 2 },
        })).await;
        world.advance(seconds(1)).await;
        tenant.api.post(&format!("/v1/campaigns/{id}/pause"), json!({})).await.ok();
        world.advance(minutes(1)).await;
        let called: Vec<_> = contacts(&tenant, &id).await;
        assert_eq!(called.iter().filter(|contact| contact.3 > 0).count(), 1, "{called:?}");
        world.advance(minutes(10)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["completed_reason"]), (&json!("completed"), &json!("ended")));
        let expired = json!("quiet_hours_expired");
        let rows = contacts(&tenant, &id).await;
        assert_eq!((rows[0].1.as_str(), rows[0].3), ("failed", 1), "called in vain, and its retry would come too late");
        assert_eq!((&rows[1].2, &rows[2].2), (&expired, &expired));
        assert_eq!(tenant.event_types().await.iter().filter(|name| *name == "campaign.contact_skipped").count(), 2);
    }

    /// Nobody whose hours do not begin before the end is waited for.
    async fn who_never_wakes_up_in_time_is_skipped_at_once(world: &mut World) {
        let tenant = world.tenant().await;
        let schedule = json!({ "windows": [{ "start": "09:00", "end": "20:00" }], "ends_at": "2027-03-02T13:59:00Z" });
        let id = tenant.run_campaign(&["+15002340001"], json!({ "schedule": schedule })).await;
        world.advance(seconds(1)).await;
        assert_eq!(contacts(&tenant, &id).await[0].2, "quiet_hours_expired");
        let barred = json!({ "windows": [{ "days": ["tue"], "start": "08:00", "end": "20:00" }], "blackout_dates": ["2027-03-02"], "ends_at": "2027-03-08T00:00:00Z" });
        let id = tenant.run_campaign(&["+15002340001"], json!({ "schedule": barred })).await;
        world.advance(seconds(1)).await;
        assert_eq!(contacts(&tenant, &id).await[0].2, "quiet_hours_expired");
    }

    /// However a number was typed, and whoever calls: nobody on the list is called, and taking off needs a reason.
    async fn nobody_on_the_do_not_call_list_is_called(world: &mut World) {
        let tenant = world.tenant().await;
        let listed = tenant.api.post("/v1/dnc", json!({ "phone_number": "(500) 234-0000", "reason": "asked by mail" })).await;
        assert_eq!((listed.status.as_u16(), &listed.body["phone_number"], &listed.body["channels"]), (201, &json!("+15002340000"), &json!(["phone", "sms"])));
        let again = tenant.api.post("/v1/dnc", json!({ "phone_number": "+1 500 234 0000" })).await;
        assert_eq!((again.status.as_u16(), &again.body["id"]), (200, &listed.body["id"]));
        let id = tenant.run_campaign(&["500.234.0000", "+15002340010"], json!({})).await;
        world.advance(minutes(2)).await;
        let rows = contacts(&tenant, &id).await;
        assert_eq!((&rows[0].2, rows[0].3, rows[1].1.as_str()), (&json!("dnc_blocked"), 0, "completed"));
        let call = json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await });
        assert_eq!(tenant.api.post("/v1/sessions", call.clone()).await.error(), (409, "recipient_on_dnc", Some("to_number")));

        let check = tenant.api.get("/v1/dnc/check?phone_number=%2B15002340000").await.ok();
        assert_eq!((&check["listed"], &check["entry"]["source"]), (&json!(true), &json!("manual")));
        let path = format!("/v1/dnc/{}", listed.body["id"].as_str().unwrap());
        assert_eq!(tenant.api.delete(&path).await.error(), (422, "validation_failed", Some("reason")));
        assert_eq!(tenant.api.delete(&format!("{path}?reason=a%20mistake")).await.status, 204);
        assert_eq!(tenant.api.get("/v1/dnc/check?phone_number=5002340000").await.ok()["listed"], false);
        assert_eq!(tenant.api.get("/v1/dnc").await.ok()["data"].as_array().unwrap().len(), 0);
        tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(minutes(2)).await;
        for wrong in [json!({}), json!({ "phone_number": "12" }), json!({ "email": "nobody" }), json!({ "phone_number": "+15002340000", "email": "a@b.c" })] {
            assert_eq!(tenant.api.post("/v1/dnc", wrong).await.error().0, 422);
        }
    }

    /// Who came onto the list while they waited for their turn is not called either, retries and queued calls included.
    async fn the_list_holds_for_those_who_wait_already(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "retry": { "max_attempts": 3, "min_gap_minutes": 30 } })).await;
        world.advance(minutes(1)).await;
        let later = json!({ "to_number": "+15002340010", "agent_id": tenant.agent().await, "scheduled_at": "2027-03-02T13:05:00Z" });
        let call = tenant.api.post("/v1/sessions", later).await.ok();
        assert_eq!(call["phase"], "scheduled");
        for number in ["+15002340001", "+15002340010"] {
            tenant.api.post("/v1/dnc", json!({ "phone_number": number })).await.ok();
        }
        world.advance(minutes(40)).await;
        assert_eq!(contacts(&tenant, &id).await, [("+15002340001".to_owned(), "failed".to_owned(), Value::Null, 1)]);
        let call = tenant.api.get(&format!("/v1/sessions/{}", call["id"].as_str().unwrap())).await.ok();
        assert_eq!((&call["status"], &call["end_reason"]), (&json!("failed"), &json!("canceled")));
        assert!(call["error"]["message"].as_str().unwrap().contains("do-not-call"));
    }

    /// Campaigns' calls and direct calls count together; who is over the cap waits until it allows them again.
    async fn caps_count_every_call_to_a_number(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let call = json!({ "to_number": "+15002340001", "agent_id": agent });
        for _ in 0..2 {
            tenant.api.post("/v1/sessions", call.clone()).await.ok();
            world.advance(minutes(1)).await;
        }
        let id = tenant.run_campaign(&["+15002340001"], json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 10 } })).await;
        world.advance(minutes(30)).await;
        let rows = contacts(&tenant, &id).await;
        assert_eq!((rows[0].1.as_str(), rows[0].3), ("waiting", 1), "the third call in 24 hours");
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (409, "daily_cap_reached", Some("to_number")));
        let contact = tenant.api.get(&format!("/v1/campaigns/{id}/contacts")).await.ok()["data"][0].clone();
        assert_eq!((&contact["wait_reason"], &contact["next_attempt_at"]), (&json!("cap"), &json!("2027-03-03T13:00:00.000Z")));
        let verdict = tenant.api.get(&format!("/v1/campaigns/{id}/contacts/{}/eligibility", contact["id"].as_str().unwrap())).await.ok();
        assert_eq!(verdict["eligible"], false);
        let caps = verdict["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "caps").unwrap();
        assert_eq!((&caps["verdict"], &caps["until"]), (&json!("wait"), &json!("2027-03-03T13:00:00.000Z")));
        // A campaign that does not want to wait skips; lifted caps are none.
        let skips = tenant.run_campaign(&["+15002340001"], json!({ "caps": { "on_cap": "skip" } })).await;
        let lifted = tenant.run_campaign(&["+15002340001"], json!({ "caps": { "per_number_24h": null, "per_number_7d": null } })).await;
        world.advance(minutes(1)).await;
        assert_eq!(contacts(&tenant, &skips).await[0].2, "daily_cap_reached");
        assert_eq!(contacts(&tenant, &lifted).await[0].1, "failed");
        tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        world.settle().await;
    }

    /// A cap that outlives the campaign's end is no reason to wait.
    async fn a_cap_that_outlives_the_end_skips(world: &mut World) {
        let tenant = world.tenant().await;
        let more = json!({ "caps": { "per_number_24h": 1 }, "schedule": { "ends_at": "2027-03-02T20:00:00Z" } });
        let first = tenant.run_campaign(&["+15002340001"], more.clone()).await;
        world.advance(minutes(1)).await;
        let second = tenant.run_campaign(&["+15002340001"], more).await;
        world.advance(minutes(1)).await;
        assert_eq!(contacts(&tenant, &first).await[0].1, "failed");
        assert_eq!(contacts(&tenant, &second).await[0].2, "daily_cap_reached");
    }

    async fn a_campaign_dials_so_often_a_day(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (0..5).map(|n| format!("+150023400{n}1")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "caps": { "campaign_per_day": 2 } })).await;
        let called = async || contacts(&tenant, &id).await.iter().filter(|contact| contact.3 > 0).count();
        world.advance(minutes(5)).await;
        assert_eq!(called().await, 2);
        assert_eq!(tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok()["limiting_factor"], "daily_cap");
        // The count survives a crash; the day ends at midnight in New York.
        world.restart().await;
        world.advance(minutes(5)).await;
        assert_eq!(called().await, 2);
        world.leap(minutes(16 * 60)).await;
        assert_eq!(called().await, 4);
        tenant.api.patch(&format!("/v1/campaigns/{id}"), json!({ "caps": { "campaign_per_day": null } })).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// What calls in flight may still cost is set aside: the budget is never passed.
    async fn a_budget_is_never_passed(world: &mut World) {
        world.change_setting("call_price_cents_per_minute", 600.into()).await;
        let tenant = world.tenant().await;
        let agent = tenant.api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x", "max_duration_seconds": 60 })).await.ok();
        let numbers: Vec<String> = (0..9).map(|n| format!("+150023400{n}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let more = json!({ "agent_id": agent["id"], "caps": { "budget_cents": 700, "on_cap": "skip" } });
        let id = tenant.run_campaign(&numbers, more).await;
        world.advance(seconds(1)).await;
        assert_eq!(contacts(&tenant, &id).await.iter().filter(|contact| contact.3 > 0).count(), 1, "a second one may cost 600 too");
        world.advance(minutes(10)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!(campaign["status"], "completed");
        let stats = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        let cost = stats["cost_cents"].as_i64().unwrap();
        assert!(cost > 100 && cost <= 700, "{cost}: not one more call of 600 fits");
        let skipped = contacts(&tenant, &id).await.into_iter().filter(|contact| contact.2 == "daily_cap_reached").count();
        assert_eq!(skipped as i64, campaign["counts"]["skipped"].as_i64().unwrap());
        assert!(skipped > 0);
        let sessions = tenant.api.get(&format!("/v1/sessions?campaign_id={id}&limit=100")).await.ok();
        let sum: i64 = sessions["data"].as_array().unwrap().iter().map(|session| session["actual_cost_cents"].as_i64().unwrap()).sum();
        assert_eq!(sum, cost, "each begun cent counts");
    }

    /// A contact for whom no slot comes free in time is skipped; without a limit it would wait.
    async fn who_waits_too_long_for_a_slot_is_skipped(world: &mut World) {
        let tenant = world.tenant().await;
        let more = json!({ "pacing": { "calls_per_second": 50, "max_concurrency": 1, "max_wait_seconds": 5 } });
        let id = tenant.run_campaign(&["+15002340000", "+15002340010"], more).await;
        world.advance(seconds(4)).await;
        assert_eq!(statuses(&tenant, &id).await, ["dispatched", "pending"]);
        world.advance(seconds(2)).await;
        assert_eq!(contacts(&tenant, &id).await[1].2, "concurrency_full");
        world.advance(minutes(2)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// A suspended workspace dials no more, from the next dial on; calls in flight run on; after a day its contacts are skipped.
    async fn a_suspended_workspace_dials_no_more(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340000", "+15002340010", "+15002340020"], json!({ "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(seconds(1)).await;
        block(world, &tenant, Reason::Suspension, true).await;
        world.advance(minutes(5)).await;
        assert_eq!(statuses(&tenant, &id).await, ["completed", "pending", "pending"]);
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["blocked_by"]), (&json!("running"), &json!(["suspension"])));
        let call = json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error().1, "plan_limit");
        world.leap(minutes(24 * 60)).await;
        let skipped = json!("tenant_suspended");
        let rows = contacts(&tenant, &id).await;
        assert_eq!((&rows[1].2, &rows[2].2), (&skipped, &skipped));
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// Credits that are gone hold everything up, and nothing is lost by it.
    async fn without_credits_everybody_waits(world: &mut World) {
        let tenant = world.tenant().await;
        block(world, &tenant, Reason::Credits, true).await;
        let id = tenant.run_campaign(&["+15002340001"], json!({})).await;
        world.advance(minutes(60)).await;
        assert_eq!(statuses(&tenant, &id).await, ["pending"]);
        assert_eq!(tenant.campaign(&id).await["blocked_by"], json!(["credits"]));
        let call = json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (402, "insufficient_credits", None));
        block(world, &tenant, Reason::Credits, false).await;
        world.advance(minutes(1)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// Numbers that cost a fortune are not called by mistake.
    async fn costly_numbers_are_refused(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001", "+19002345678", "+881612345678"], json!({})).await;
        world.advance(minutes(1)).await;
        let rows = contacts(&tenant, &id).await;
        assert_eq!((&rows[1].2, &rows[2].2), (&json!("invalid"), &json!("invalid")));
        let call = json!({ "to_number": "+19002345678", "agent_id": tenant.agent().await });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (422, "validation_failed", Some("to_number")));
    }

    /// A trunk that is full is asked again: each call is placed in the end, as the same attempt, at a pace that the trunk takes.
    async fn a_full_trunk_is_asked_again(world: &mut World) {
        world.change_setting("sandbox_calls_per_second", 4.into()).await;
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (10..50).map(|n| format!("+15002340{n}1")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 20 } })).await;
        world.advance(minutes(3)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["counts"]["failed"]), (&json!("completed"), &json!(40)));
        let sessions = tenant.api.get(&format!("/v1/sessions?campaign_id={id}&limit=100")).await.ok();
        let reasons: Vec<_> = sessions["data"].as_array().unwrap().iter().map(|session| (session["end_reason"].as_str().unwrap(), session["attempt"].as_i64().unwrap())).collect();
        assert!(reasons.len() == 40 && reasons.iter().all(|reason| *reason == ("busy", 1)), "{reasons:?}");
        assert!(world.rows("dials").await > 40, "some were asked twice");
    }

    /// A direct call that the trunk sent back is the same call: it does not count against itself.
    async fn a_call_that_was_sent_back_counts_once(world: &mut World) {
        world.change_setting("sandbox_calls_per_second", 1.into()).await;
        world.change_setting("number_cap_24h", 1.into()).await;
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let mut calls = Vec::new();
        for number in ["+15002340000", "+15002340010", "+15002340020"] {
            let call = tenant.api.post("/v1/sessions", json!({ "to_number": number, "agent_id": agent })).await.ok();
            calls.push(call["id"].as_str().unwrap().to_owned());
        }
        world.advance(minutes(3)).await;
        for call in calls {
            let call = tenant.api.get(&format!("/v1/sessions/{call}")).await.ok();
            assert_eq!((&call["status"], &call["end_reason"]), (&json!("completed"), &json!("completed")), "{call}");
        }
        assert!(world.rows("dials").await > 3, "some were asked twice");
        let again = json!({ "to_number": "+15002340000", "agent_id": agent });
        assert_eq!(tenant.api.post("/v1/sessions", again).await.error().1, "daily_cap_reached");
    }

    /// A campaign that is canceled does not wait for calls that a full trunk sent back.
    async fn what_was_sent_back_ends_with_its_campaign(world: &mut World) {
        // So little that it never has room.
        world.change_setting("sandbox_calls_per_second", json!(0.5)).await;
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340000", "+15002340010", "+15002340020"], json!({})).await;
        world.advance(seconds(10)).await;
        assert!(world.rows("dials").await > 3, "some were asked twice");
        tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        world.advance(minutes(1)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["completed_reason"]), (&json!("completed"), &json!("canceled")));
    }

    /// A campaign that is created and started at once keeps its times to the second.
    async fn a_run_keeps_its_start_and_its_end(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (10..40).map(|n| format!("+15002340{n}1")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let schedule = json!({ "starts_at": "2027-03-02T13:00:10Z", "ends_at": "2027-03-02T13:00:20Z" });
        let id = tenant.run_campaign(&numbers, json!({ "schedule": schedule, "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(9)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "draft");
        world.advance(seconds(2)).await;
        assert_eq!(tenant.campaign(&id).await["started_at"], "2027-03-02T13:00:10.000Z");
        world.advance(seconds(20)).await;
        let rows = contacts(&tenant, &id).await;
        let called = rows.iter().filter(|contact| contact.3 > 0).count();
        assert!((9..=11).contains(&called), "{called} in ten seconds");
        assert_eq!(tenant.campaign(&id).await["completed_reason"], "ended");
    }

    /// A direct call does not wait behind a million skips.
    async fn a_long_list_of_bad_numbers_keeps_nobody_waiting(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let contacts: Vec<_> = (0..3000).map(|n| json!({ "phone_number": format!("{n}") })).collect();
        let campaign = json!({ "name": "Bad", "agent_id": agent, "contacts": contacts });
        let call = json!({ "to_number": "+15002340001", "agent_id": agent });
        let (campaign, call) = futures_util::future::join(tenant.api.post("/v1/campaigns/run", campaign), tenant.api.post("/v1/sessions", call)).await;
        let (campaign, call) = (campaign.ok(), call.ok());
        world.advance(minutes(1)).await;
        assert_eq!(tenant.campaign(campaign["id"].as_str().unwrap()).await["counts"]["skipped"], 3000);
        assert_eq!(tenant.api.get(&format!("/v1/sessions/{}", call["id"].as_str().unwrap())).await.ok()["status"], "busy");
    }

    /// Who does not want to wait is told so, also by those who are in line already.
    async fn no_wait_is_no_place_in_the_line(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        let agent = tenant.agent().await;
        let call = |n: usize, ttl: i32| json!({ "to_number": format!("+150023400{n}0"), "agent_id": agent, "queue_ttl_seconds": ttl });
        tenant.api.post("/v1/sessions", call(1, 300)).await.ok();
        tenant.api.post("/v1/sessions", call(2, 300)).await.ok();
        assert_eq!(tenant.api.post("/v1/sessions", call(3, 0)).await.error(), (429, "concurrency_full", None));
        world.advance(minutes(2)).await;
    }

    /// A trunk that never has room: the call is given up when its time in the queue is over.
    async fn a_trunk_without_room_is_not_asked_for_ever(world: &mut World) {
        world.change_setting("sandbox_calls_per_second", json!(0.5)).await;
        let tenant = world.tenant().await;
        let call = json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await, "queue_ttl_seconds": 30 });
        let call = tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(seconds(45)).await;
        let call = tenant.api.get(&format!("/v1/sessions/{}", call["id"].as_str().unwrap())).await.ok();
        assert_eq!((&call["status"], &call["end_reason"]), (&json!("failed"), &json!("canceled")));
    }
}
