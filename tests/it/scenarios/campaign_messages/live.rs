//! A live campaign, through a provider that reports.
use super::{act, borrowed, campaign, contacts, id_of, run, sent_texts, statuses, texts, told, words};
use crate::{
    on_both,
    scenarios::messages::{SHARED, report, with_provider},
    world::{
        World, minutes, seconds,
        twilio::{Reply, Twilio},
    },
};
use serde_json::json;

on_both! {
    async fn a_live_campaign_by_its_providers_answers(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let people: Vec<String> = (1..=6).map(|n| format!("+1202555012{n}")).collect();
        // Taken; too fast; the answer is lost; no such number; has opted out; taken.
        provider.answer_next([Reply::Taken, Reply::Status(429, Some("60"), json!({})), Reply::HangUp, Reply::error(400, 21_211), Reply::error(400, 21_610)]);
        let id = run(&api, texts(&borrowed(&people), json!({ "pacing": { "calls_per_second": 1 }, "retry": { "max_attempts": 3, "min_gap_minutes": 30 } }))).await;
        world.advance(seconds(10)).await;
        assert_eq!(campaign(&api, &id).await["pause_reason"], "quiet_hours", "live, nobody is written to before nine");
        world.advance(minutes(60)).await;
        assert_eq!(statuses(&api, &id).await, ["dispatched", "dispatched", "dispatched", "failed", "failed", "dispatched"]);
        let sent = sent_texts(&api, &id).await;
        assert_eq!(words(&sent, "status"), ["sent", "queued", "queued", "failed", "failed", "sent"]);
        assert_eq!(words(&sent, "from_number"), [SHARED; 6]);
        assert_eq!(report(world, sent[0]["id"].as_str().unwrap(), "delivered").await, 204);
        assert_eq!(report(world, sent[5]["id"].as_str().unwrap(), "undelivered").await, 204);
        world.settle().await;
        assert_eq!(statuses(&api, &id).await, ["completed", "dispatched", "dispatched", "failed", "failed", "waiting"]);
        assert_eq!(provider.asked().len(), 6);
        // What was too fast is handed over again when it was asked to be; what was lost is not.
        world.advance(minutes(2)).await;
        let second: Vec<_> = provider.asked().iter().filter(|asked| asked.fields["To"] == people[1]).map(|asked| asked.fields["Body"].clone()).collect();
        assert_eq!(second, ["Hello.", "Hello."]);
        assert_eq!(report(world, sent[1]["id"].as_str().unwrap(), "delivered").await, 204);
        world.advance(minutes(10)).await;
        assert_eq!(statuses(&api, &id).await, ["completed", "completed", "failed", "failed", "failed", "waiting"]);
        // The truth about it comes too late for its contact.
        assert_eq!(report(world, sent[2]["id"].as_str().unwrap(), "delivered").await, 204);
        world.advance(minutes(50)).await;
        assert_eq!(statuses(&api, &id).await, ["completed", "completed", "failed", "failed", "failed", "completed"], "without a report it has arrived");
        let row = campaign(&api, &id).await;
        assert_eq!(row["status"], "completed");
        assert_eq!(provider.asked().iter().filter(|asked| asked.fields["To"] == people[2]).count(), 1);
        assert_eq!(provider.asked().len(), 8);
        let attempts: Vec<_> = contacts(&api, &id).await.iter().map(|contact| contact["attempts"].as_i64().unwrap()).collect();
        assert_eq!(attempts, [1, 1, 1, 1, 1, 2]);
        assert_eq!((told(&api, "campaign.contact_completed").await.len(), told(&api, "campaign.contact_failed").await.len()), (3, 3));
        assert_eq!(sent_texts(&api, &id).await[2]["status"], "delivered", "the message itself says so");
        // Who has opted out with the provider is on the list from now on.
        let check = api.get("/v1/dnc/check?phone_number=%2B12025550125").await.ok();
        assert_eq!(check["listed"], true);
    }

    async fn without_a_provider_nothing_is_started(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let draft = json!({ "name": "x", "channel": "sms", "template": { "body": "x" } });
        let id = id_of(&api.post("/v1/campaigns", draft).await.ok());
        api.post(&format!("/v1/campaigns/{id}/contacts"), json!({ "contacts": [{ "phone_number": "+12025550121" }, { "phone_number": "+15002350000" }] })).await.ok();
        // The sandbox's numbers are nobody, live.
        let look = act(&api, &id, "preflight").await;
        assert_eq!((&look["ready"], &look["skips"]["invalid"], &look["eligible"]), (&json!(true), &json!(1), &json!(1)), "{look}");
        world.change_settings(&[("sms_account_sid", json!("")), ("sms_auth_token", json!(""))]).await;
        assert_eq!(api.post(&format!("/v1/campaigns/{id}/start"), json!({})).await.error(), (501, "not_configured", None));
        assert_eq!(api.post("/v1/campaigns/run", texts(&["+12025550121"], json!({}))).await.error(), (501, "not_configured", None));
        let look = act(&api, &id, "preflight").await;
        assert_eq!(words(look["problems"].as_array().unwrap(), "code"), ["not_configured"], "{look}");
    }

    /// The operator takes the provider away in the middle: that campaign waits, and nothing else does.
    async fn a_provider_that_is_taken_away_stops_its_campaigns_only(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        world.advance(minutes(61)).await;
        let id = run(&api, texts(&["+12025550121", "+12025550122"], json!({ "pacing": { "calls_per_second": 0.1 } }))).await;
        world.advance(seconds(1)).await;
        assert_eq!(provider.asked().len(), 1);
        world.change_settings(&[("sms_account_sid", json!("")), ("sms_auth_token", json!(""))]).await;
        let played = run(&tenant.api, texts(&["+15002350010"], json!({}))).await;
        world.advance(minutes(5)).await;
        assert_eq!(statuses(&tenant.api, &played).await, ["completed"]);
        assert_eq!((statuses(&api, &id).await[1].as_str(), campaign(&api, &id).await["status"].as_str()), ("pending", Some("running")));
        with_provider(world, &tenant, &provider).await;
        world.advance(minutes(20)).await;
        assert_eq!((statuses(&api, &id).await, campaign(&api, &id).await["status"].clone()), (vec!["completed".to_owned(); 2], json!("completed")));
        assert_eq!(provider.asked().len(), 2);
    }
}
