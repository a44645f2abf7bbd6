//! Crashes and commits that fail, in the middle of a campaign: nobody is written to twice, nobody is forgotten.
use super::{borrowed, campaign, contacts, mails, numbers, run, sent_mails, sent_texts, statuses, texts, told};
use crate::{
    on_both,
    scenarios::messages::{live, with_provider},
    world::{
        World, minutes, seconds,
        smtp::Smtp,
        twilio::{Reply, Twilio},
    },
};
use serde_json::json;
use std::collections::BTreeMap;

on_both! {
    async fn a_crash_writes_to_nobody_twice(world: &mut World) {
        let tenant = world.tenant().await;
        let server = Smtp::start();
        world.change_settings(&[("smtp_url", json!(server.url)), ("mail_from", json!("Callboard <callboard@sender.example>"))]).await;
        let api = live(world, &tenant).await;
        world.advance(minutes(61)).await;
        let people: Vec<String> = (0..30).map(|n| format!("person{n}@example.com")).collect();
        let id = run(&api, mails(&borrowed(&people), json!({ "pacing": { "calls_per_second": 5 } }))).await;
        for round in 0..4 {
            world.advance(std::time::Duration::from_millis(700)).await;
            if round % 2 == 0 {
                world.fail_next_commits(2);
            }
            world.restart().await;
        }
        world.advance(minutes(15)).await;
        assert_eq!(campaign(&api, &id).await["status"], "completed");
        let mut by_address: BTreeMap<String, usize> = BTreeMap::new();
        for mail in server.mails() {
            *by_address.entry(mail.to[0].clone()).or_default() += 1;
        }
        assert!(by_address.values().all(|count| *count == 1), "{by_address:?}");
        let sent = sent_mails(&api, &id).await;
        assert_eq!(sent.len(), 30, "each contact has one message");
        let failed = statuses(&api, &id).await.iter().filter(|status| *status == "failed").count();
        // Cut off while it was handed over: nobody knows, and nobody writes again.
        let unknown = sent.iter().filter(|row| row["error"]["code"] == "unknown_outcome").count();
        assert_eq!(failed, unknown);
        assert!(by_address.len() + unknown >= 30, "{} {unknown}", by_address.len());
        let ends = told(&api, "campaign.contact_completed").await.len() + told(&api, "campaign.contact_failed").await.len();
        assert_eq!((ends, told(&api, "campaign.contact_dispatched").await.len(), told(&api, "campaign.completed").await.len()), (30, 30, 1));
    }

    /// The commit of the intent fails, the one after it, or the one at its end: handed over once all the same.
    async fn commits_that_fail_cost_nothing(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        world.advance(minutes(61)).await;
        for fail in 1..=5 {
            let number = format!("+1202555012{fail}");
            let id = run(&api, texts(&[&number], json!({}))).await;
            world.fail_next_commits(fail);
            world.advance(minutes(20)).await;
            assert_eq!((statuses(&api, &id).await, campaign(&api, &id).await["status"].clone()), (vec!["completed".to_owned()], json!("completed")), "{fail}");
            assert_eq!(sent_texts(&api, &id).await.len(), 1, "{fail}");
        }
        let mut asked: Vec<String> = provider.asked().iter().map(|asked| asked.fields["To"].clone()).collect();
        asked.sort();
        asked.dedup();
        assert_eq!((asked.len(), provider.asked().len()), (5, 5), "each once");
    }

    /// The service ends while the provider has the request.
    async fn cut_off_in_a_talk_with_the_provider(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        world.advance(minutes(61)).await;
        provider.answer_next([Reply::Hang]);
        let id = run(&api, texts(&["+12025550121"], json!({ "retry": { "max_attempts": 3 } }))).await;
        provider.arrived(1).await;
        world.restart().await;
        world.advance(minutes(9)).await;
        assert_eq!(statuses(&api, &id).await, ["dispatched"]);
        world.advance(minutes(120)).await;
        assert_eq!((statuses(&api, &id).await, campaign(&api, &id).await["status"].clone()), (vec!["failed".to_owned()], json!("completed")));
        assert_eq!((provider.asked().len(), sent_texts(&api, &id).await.len()), (1, 1));
        assert_eq!(contacts(&api, &id).await[0]["attempts"], 1);
    }

    /// While it waits for its reports the service starts anew: they are found again.
    async fn what_waits_for_reports_survives_a_start(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let three = numbers(3);
        let mut all: Vec<&str> = borrowed(&three);
        all.push("+15002350003");
        let id = run(api, texts(&all, json!({}))).await;
        world.advance(std::time::Duration::from_millis(500)).await;
        world.restart().await;
        world.advance(seconds(30)).await;
        assert_eq!(statuses(api, &id).await, ["dispatched"; 4], "all were sent, and the sandbox has forgotten what it would report");
        world.advance(minutes(16)).await;
        assert_eq!(statuses(api, &id).await, ["completed"; 4]);
        assert_eq!(campaign(api, &id).await["status"], "completed");
        assert_eq!(told(api, "campaign.contact_completed").await.len(), 4);
    }
}
