//! Who is written to when: hours, the do-not-call list by channel, caps, credits, suspension. The clock stands at Tuesday
//! 2027-03-02, 08:00 in New York.
use super::{
    act, all, borrowed, campaign, contacts, mails, numbers, run, sent_mails, sent_texts, skips, statuses, texts, told,
};
use crate::{
    on_both,
    world::{Tenant, World, client, minutes, seconds},
};
use actors::leases::Of;
use entities::{
    dispatch_block::{self, Reason},
    values::Env,
};
use serde_json::{Value, json};

fn nine_to_eight() -> Value {
    json!({ "schedule": { "windows": [{ "start": "09:00", "end": "20:00" }] } })
}

/// Slow enough that something can happen in the middle.
fn slow(more: Value) -> Value {
    let mut slow = json!({ "pacing": { "calls_per_second": 0.1 } });
    slow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    slow
}

/// Nothing is dispatched in the test env.
async fn suspend(world: &World, tenant: &Tenant) {
    let (deps, id) = (world.deps(), tenant.id);
    let since = deps.clock.now();
    let written = deps.writer.run(Of::Anybody, move |db| {
        Box::pin(async move {
            let row = dispatch_block::Model {
                tenant_id: id,
                env: Env::Test,
                reason: Reason::Suspension,
                since,
            };
            dispatch_block::add(db, &[row]).await?;
            Ok(((), rules::commit::Commit::default()))
        })
    });
    written.await.unwrap();
}

/// The link in the newest mail to somebody.
fn link(world: &World, to: &str) -> String {
    let mails = world.mail_files();
    let mail = mails.iter().find(|mail| mail.contains(&format!("To: {to}"))).unwrap();
    let unfolded = mail.replace("\r\n ", "").replace("\r\n\t", "");
    let line = unfolded
        .lines()
        .find_map(|line| line.strip_prefix("List-Unsubscribe: "));
    line.unwrap().trim().trim_matches(['<', '>']).to_owned()
}

on_both! {
    async fn nobody_is_written_to_in_their_quiet_hours(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let mut texting = texts(&[], nine_to_eight());
        texting["contacts"] = json!([{ "phone_number": "+15002350010", "timezone": "Europe/Berlin" }, { "phone_number": "+15002350020" }]);
        let mut mailing = mails(&[], nine_to_eight());
        mailing["contacts"] = json!([
            { "email": "ann@example.com", "timezone": "Europe/Berlin" }, { "email": "bob@example.com" },
            // Where a number is known, its prefix tells where the person is.
            { "email": "cid@example.com", "phone_number": "+442071838750" }, { "email": "dan@example.com", "phone_number": "12" },
        ]);
        let (texting, mailing) = (run(api, texting).await, run(api, mailing).await);
        world.advance(seconds(30)).await;
        assert_eq!(statuses(api, &texting).await, ["completed", "pending"]);
        assert_eq!(statuses(api, &mailing).await, ["completed", "pending", "completed", "pending"]);
        for id in [&texting, &mailing] {
            let row = campaign(api, id).await;
            assert_eq!((&row["status"], &row["pause_reason"], &row["next_open_at"]), (&json!("paused"), &json!("quiet_hours"), &json!("2027-03-02T14:00:00.000Z")));
        }
        assert_eq!(told(api, "campaign.paused_quiet_hours").await.len(), 2);
        world.restart().await;
        world.advance(minutes(59)).await;
        assert_eq!((sent_texts(api, &texting).await.len(), sent_mails(api, &mailing).await.len()), (1, 2));
        world.advance(minutes(2)).await;
        for id in [&texting, &mailing] {
            assert_eq!(campaign(api, id).await["status"], "completed");
        }
        assert_eq!((sent_texts(api, &texting).await.len(), sent_mails(api, &mailing).await.len()), (2, 4));
    }

    /// Not taken while the hours were open: it is not handed over when they are closed, and written again by the rules.
    async fn a_message_that_was_not_taken_in_time_is_not_sent_at_night(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let evening = json!({ "schedule": { "windows": [{ "start": "08:00", "end": "08:01" }] }, "retry": { "max_attempts": 2 } });
        // Deferred for a minute at first.
        let id = run(api, mails(&["deferred@example.com"], evening.clone())).await;
        world.advance(minutes(90)).await;
        let sent = sent_mails(api, &id).await;
        assert_eq!((sent.len(), &sent[0]["status"], &sent[0]["error"]["code"], &sent[0]["attempts"]), (1, &json!("failed"), &json!("outside_calling_hours"), &json!(1)), "{sent:?}");
        assert_eq!((statuses(api, &id).await, campaign(api, &id).await["pause_reason"].clone()), (vec!["waiting".to_owned()], json!("quiet_hours")));
        assert_eq!(campaign(api, &id).await["next_open_at"], "2027-03-03T13:00:00.000Z");
        act(api, &id, "cancel").await;
        world.advance(minutes(1)).await;
        assert_eq!(campaign(api, &id).await["status"], "completed");
    }

    /// STOP in the middle of one campaign: nobody writes to that number any more, in whatever campaign.
    async fn stop_in_the_middle_holds_for_all_campaigns(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let first = run(api, texts(&["+15002350000", "+15002350010", "+15002350020"], slow(json!({})))).await;
        let (person, mut others) = ("+15002350020", Vec::new());
        for _ in 0..2 {
            others.push(run(api, texts(&["+15002350030", person], slow(json!({})))).await);
        }
        world.advance(seconds(1)).await;
        let stop = json!({ "from_number": person, "to_number": "+15002220000", "body": " stop " });
        api.post("/v1/_sandbox/inbound_sms", stop).await.ok();
        world.advance(minutes(2)).await;
        assert_eq!((statuses(api, &first).await[2].as_str(), skips(api, &first).await[2].as_str()), ("skipped", "dnc_blocked"));
        for id in &others {
            assert_eq!(skips(api, id).await, ["-", "dnc_blocked"]);
            assert_eq!(campaign(api, id).await["status"], "completed");
        }
        let sent = all(api, "/v1/sms_messages").await;
        assert!(!sent.iter().any(|row| row["to_number"] == person), "nothing went to them");
        assert_eq!(told(api, "campaign.contact_skipped").await.len(), 3);
        // Calls to them, an entry that bars only them, and the other env's list.
        api.post("/v1/dnc", json!({ "phone_number": "+15002350040", "channels": ["phone"] })).await.ok();
        api.post("/v1/dnc", json!({ "phone_number": "+15002350050", "channels": ["sms"] })).await.ok();
        let id = run(api, texts(&["+15002350040", "+15002350050"], json!({}))).await;
        world.advance(minutes(1)).await;
        assert_eq!(skips(api, &id).await, ["-", "dnc_blocked"]);
    }

    async fn who_unsubscribes_gets_no_mail_of_any_campaign(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let done = run(api, mails(&["ann@example.com"], json!({}))).await;
        world.advance(seconds(1)).await;
        assert_eq!(statuses(api, &done).await, ["completed"]);
        let mut others = Vec::new();
        for address in ["ANN@example.com", "Ann@Example.com"] {
            others.push(run(api, mails(&["bob@example.com", address], slow(json!({})))).await);
        }
        world.advance(seconds(1)).await;
        let pressed = client().post(link(world, "ann@example.com")).header("content-type", "application/x-www-form-urlencoded").body("List-Unsubscribe=One-Click").send().await.unwrap();
        assert_eq!(pressed.status().as_u16(), 200);
        world.advance(minutes(2)).await;
        for id in &others {
            assert_eq!(skips(api, id).await, ["-", "dnc_blocked"]);
        }
        // A retry is barred as well: it has failed.
        let id = run(api, mails(&["failed@example.com"], json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 5 } }))).await;
        world.advance(minutes(1)).await;
        assert_eq!(statuses(api, &id).await, ["waiting"]);
        api.post("/v1/dnc", json!({ "email": "Failed@example.com" })).await.ok();
        world.advance(minutes(10)).await;
        assert_eq!((statuses(api, &id).await, sent_mails(api, &id).await.len()), (vec!["failed".to_owned()], 1));
        assert_eq!(campaign(api, &id).await["status"], "completed");
    }

    /// Every message to a number counts, of whatever campaign; calls and messages are counted apart.
    async fn caps_count_messages_by_channel_over_all_campaigns(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let cap = |on_cap: &str| json!({ "caps": { "per_number_24h": 2, "on_cap": on_cap } });
        for _ in 0..2 {
            let id = run(api, texts(&["+15002350010"], cap("defer"))).await;
            world.advance(seconds(10)).await;
            assert_eq!(statuses(api, &id).await, ["completed"]);
        }
        let skipped = run(api, texts(&["+15002350010"], cap("skip"))).await;
        let waits = run(api, texts(&["+15002350010"], cap("defer"))).await;
        world.advance(seconds(10)).await;
        assert_eq!(skips(api, &skipped).await, ["daily_cap_reached"]);
        let contact = contacts(api, &waits).await[0].clone();
        assert_eq!((&contact["status"], &contact["wait_reason"]), (&json!("pending"), &json!("cap")));
        assert_eq!(contact["next_attempt_at"], "2027-03-03T13:00:00.000Z", "a day after the first");
        // Its calls are others.
        let called = tenant.run_campaign(&["+15002350010"], cap("skip")).await;
        world.advance(minutes(2)).await;
        assert_eq!(statuses(api, &called).await, ["completed"]);
        let verdict = api.get(&format!("/v1/campaigns/{waits}/contacts/{}/eligibility", contact["id"].as_str().unwrap())).await.ok();
        assert_eq!(verdict["eligible"], false);
        world.leap(minutes(24 * 60)).await;
        assert_eq!(statuses(api, &waits).await, ["completed"]);
        // The same for mail, however the address is written.
        let id = run(api, mails(&["ann@example.com"], cap("skip"))).await;
        world.advance(seconds(10)).await;
        let once = json!({ "caps": { "per_number_24h": 1, "on_cap": "skip" } });
        let other = run(api, mails(&["ANN@example.com"], once)).await;
        world.advance(seconds(10)).await;
        assert_eq!((statuses(api, &id).await, skips(api, &other).await), (vec!["completed".to_owned()], vec!["daily_cap_reached".to_owned()]));
    }

    async fn a_day_and_a_budget_have_their_ends(world: &mut World) {
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let five = numbers(5);
        let id = run(api, texts(&borrowed(&five), json!({ "caps": { "budget_cents": 10, "on_cap": "skip" } }))).await;
        world.advance(minutes(1)).await;
        let stats = api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!((sent_texts(api, &id).await.len(), &stats["cost_cents"]), (3, &json!(9)), "a fourth would pass 10 cents");
        assert_eq!(skips(api, &id).await, ["-", "-", "-", "daily_cap_reached", "daily_cap_reached"]);
        assert_eq!(campaign(api, &id).await["status"], "completed");
        let id = run(api, texts(&borrowed(&five), json!({ "caps": { "campaign_per_day": 2 } }))).await;
        world.advance(minutes(5)).await;
        assert_eq!(sent_texts(api, &id).await.len(), 2);
        assert_eq!(api.get(&format!("/v1/campaigns/{id}/stats")).await.ok()["limiting_factor"], "daily_cap");
        world.restart().await;
        world.leap(minutes(16 * 60)).await;
        assert_eq!(sent_texts(api, &id).await.len(), 4);
        act(api, &id, "cancel").await;
        world.advance(minutes(1)).await;
    }

    async fn without_credits_it_waits_and_goes_on_by_itself(world: &mut World) {
        world.change_settings(&[("sms_price_cents_per_segment", json!(3)), ("email_price_cents", json!(4)), ("test_credits_cents", json!(20))]).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let nine = numbers(9);
        let id = run(api, texts(&borrowed(&nine), json!({}))).await;
        world.advance(minutes(1)).await;
        assert_eq!(sent_texts(api, &id).await.len(), 6, "20 cents cover six of them");
        let row = campaign(api, &id).await;
        assert_eq!((&row["status"], &row["blocked_by"]), (&json!("running"), &json!(["credits"])));
        let depleted = told(api, "credits.depleted").await;
        assert_eq!((depleted.len(), &depleted[0]["balance_cents"]), (1, &json!(2)), "no text can be paid for any more");
        let mailing = run(api, mails(&["ann@example.com"], json!({}))).await;
        world.restart().await;
        world.advance(minutes(5)).await;
        assert_eq!((sent_texts(api, &id).await.len(), sent_mails(api, &mailing).await.len()), (6, 0));
        api.post("/v1/credits/topups", json!({ "amount_cents": 1_000 })).await.ok();
        world.advance(minutes(2)).await;
        for id in [&id, &mailing] {
            let row = campaign(api, id).await;
            assert_eq!((&row["status"], &row["blocked_by"]), (&json!("completed"), &json!([])), "{row}");
        }
        assert_eq!(sent_texts(api, &id).await.len(), 9);
        let credits = api.get("/v1/credits").await.ok();
        assert_eq!((&credits["balance_cents"], &credits["held_cents"]), (&json!(20 + 1_000 - 27 - 4), &json!(0)));
        assert_eq!(told(api, "credits.depleted").await.len(), 1);
    }

    async fn a_suspended_workspaces_contacts_wait_a_day(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let texting = run(api, texts(&["+15002350010", "+15002350020", "+15002350030"], slow(json!({})))).await;
        let mailing = run(api, mails(&["deferred@example.com", "bob@example.com"], slow(json!({})))).await;
        world.advance(seconds(1)).await;
        suspend(world, &tenant).await;
        world.restart().await;
        world.leap(minutes(23 * 60)).await;
        assert_eq!(statuses(api, &texting).await, ["completed", "pending", "pending"]);
        let waits = sent_mails(api, &mailing).await;
        assert_eq!((waits.len(), &waits[0]["error"]["code"]), (1, &json!("plan_limit")), "{waits:?}");
        assert_eq!(campaign(api, &texting).await["blocked_by"], json!(["suspension"]));
        world.leap(minutes(50)).await;
        assert_eq!(skips(api, &texting).await, ["-", "tenant_suspended", "tenant_suspended"]);
        assert_eq!(campaign(api, &texting).await["status"], "completed");
        assert_eq!(skips(api, &mailing).await, ["-", "tenant_suspended"]);
        world.leap(minutes(24 * 60)).await;
        let given_up = sent_mails(api, &mailing).await;
        assert_eq!((&given_up[0]["status"], statuses(api, &mailing).await[0].as_str()), (&json!("failed"), "failed"));
        assert_eq!(campaign(api, &mailing).await["status"], "completed");
    }
}
