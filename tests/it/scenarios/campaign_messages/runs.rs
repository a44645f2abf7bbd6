//! From the start to the completion: what is written, what its contacts become, and what is told.
use super::{
    all, borrowed, campaign, contacts, id_of, mails, run, sent_mails, sent_texts, skips, statuses, texts, told, words,
};
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use serde_json::{Value, json};

/// The sandbox's outcomes, one for each last digit.
const DIGITS: [&str; 10] = [
    "completed",
    "failed",
    "failed",
    "completed",
    "completed",
    "failed",
    "completed",
    "failed",
    "completed",
    "failed",
];

fn ten() -> Vec<String> {
    (0..10).map(|digit| format!("+1500235000{digit}")).collect()
}

fn names(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

on_both! {
    /// Every outcome of the sandbox: the message's end is its contact's.
    async fn texts_reach_their_ends_and_their_contacts_with_them(world: &mut World) {
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let numbers = ten();
        let id = run(api, texts(&borrowed(&numbers), json!({}))).await;
        world.advance(minutes(10)).await;
        let waiting = statuses(api, &id).await;
        assert_eq!((waiting[3].as_str(), waiting[0].as_str()), ("dispatched", "completed"), "of the fourth nothing was reported yet");
        world.advance(minutes(6)).await;
        assert_eq!(statuses(api, &id).await, DIGITS);
        let row = campaign(api, &id).await;
        assert_eq!((&row["status"], &row["completed_reason"], &row["counts"]["completed"], &row["counts"]["failed"]), (&json!("completed"), &json!("finished"), &json!(5), &json!(5)));

        let sent = sent_texts(api, &id).await;
        let people = contacts(api, &id).await;
        assert_eq!(sent.len(), 10, "one each");
        for (contact, message) in people.iter().zip(&sent) {
            assert_eq!((&contact["last_message_id"], &contact["last_session_id"]), (&message["id"], &Value::Null));
            assert_eq!((&message["contact_id"], &message["campaign_id"], &message["to_number"]), (&contact["id"], &json!(id), &contact["phone_number"]));
        }
        let created = told(api, "campaign.created").await;
        assert_eq!(created[0], json!({ "campaign_id": id, "name": "Spring", "channel": "sms", "session_type": "none" }));
        let dispatched = told(api, "campaign.contact_dispatched").await;
        assert_eq!(words(&dispatched, "delivery_row_id"), words(&sent, "id"));
        let reached = told(api, "campaign.contact_completed").await;
        let missed = told(api, "campaign.contact_failed").await;
        assert_eq!((reached.len(), missed.len()), (5, 5));
        for data in reached.iter().chain(&missed) {
            assert_eq!(names(data), ["contact_id", "campaign_id", "phone_number", "email", "first_name", "last_name", "session_id", "duration_seconds", "actual_cost_cents"]);
            assert_eq!((&data["session_id"], &data["duration_seconds"]), (&Value::Null, &json!(0)));
            let message = sent.iter().find(|message| message["contact_id"] == data["contact_id"]).unwrap();
            assert_eq!(data["actual_cost_cents"], message["actual_cost_cents"]);
        }
        assert!(reached.iter().all(|data| data["actual_cost_cents"] == 3 || data["phone_number"] == "+15002350006"), "{reached:?}");
        let completed = told(api, "campaign.completed").await;
        assert_eq!((&completed[0]["total_contacts"], &completed[0]["completed_sessions"], &completed[0]["failed_sessions"]), (&json!(10), &json!(5), &json!(5)));
        let types = words(&all(api, "/v1/events").await, "type");
        assert!(types.iter().all(|name| name.starts_with("campaign.")), "nobody was called: {types:?}");
    }

    async fn what_did_not_arrive_is_written_again_by_the_rules_and_what_never_will_is_not(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let numbers = ten();
        let id = run(api, texts(&borrowed(&numbers), json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 30 } }))).await;
        world.advance(minutes(29)).await;
        assert_eq!(statuses(api, &id).await[1], "waiting");
        world.advance(minutes(20)).await;
        assert_eq!(statuses(api, &id).await, DIGITS);
        let attempts: Vec<_> = contacts(api, &id).await.iter().map(|contact| contact["attempts"].as_i64().unwrap()).collect();
        assert_eq!(attempts, [1, 2, 1, 1, 1, 1, 1, 1, 1, 2]);
        assert_eq!(sent_texts(api, &id).await.len(), 12);
        assert_eq!(told(api, "campaign.completed").await[0]["failed_sessions"], 7);
        assert_eq!((told(api, "campaign.contact_dispatched").await.len(), told(api, "campaign.contact_failed").await.len()), (12, 5));
        // Unless its rules say otherwise.
        let never = json!({ "retry": { "max_attempts": 3, "rules": { "failed": { "never": true } } }, "caps": { "per_number_24h": null } });
        let id = run(api, texts(&["+15002350001"], never)).await;
        world.advance(minutes(1)).await;
        assert_eq!((statuses(api, &id).await, campaign(api, &id).await["status"].clone()), (vec!["failed".to_owned()], json!("completed")));
    }

    async fn each_is_written_in_its_own_words(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let people = json!([
            { "phone_number": "+15002350010", "first_name": "Ann", "variables": { "nick": "Annie", "total": 12.5 } },
            { "phone_number": "+15002350020", "first_name": "<Bob>", "variables": { "total": 7 } },
        ]);
        let template = json!({ "body": "Hi {{first_name}} {{nick|there}}: {{total}} at {{shop}}." });
        let id = run(api, texts(&[], json!({ "template": template, "contacts": people, "variables": { "shop": "Bo's", "total": 0 } }))).await;
        world.advance(minutes(1)).await;
        assert_eq!(words(&sent_texts(api, &id).await, "body"), ["Hi Ann Annie: 12.5 at Bo's.", "Hi <Bob> there: 7 at Bo's."]);

        let people = json!([{ "email": "Ann@Example.com", "first_name": "<b>Ann</b> & Co\r\nBcc: eve@example.com" }]);
        let template = json!({
            "subject": "For {{first_name}}", "text": "Hi {{nick|there}}. Bye: {{unsubscribe_url}}", "html": "<p>{{first_name}}</p><a href=\"{{unsubscribe_url}}\">bye</a>",
            "from_name": "Bo", "reply_to": "Bo@Example.com",
        });
        let id = run(api, mails(&[], json!({ "template": template, "contacts": people, "metadata": { "season": "spring" } }))).await;
        world.advance(minutes(1)).await;
        let sent = sent_mails(api, &id).await;
        assert_eq!((&sent[0]["to"], &sent[0]["kind"], &sent[0]["status"], &sent[0]["metadata"]["season"]), (&json!("ann@example.com"), &json!("marketing"), &json!("sent"), &json!("spring")));
        assert_eq!(sent[0]["reply_to"].as_str().map(str::to_lowercase).as_deref(), Some("bo@example.com"));
        assert!(!sent[0]["subject"].as_str().unwrap().contains(['\r', '\n']), "{}", sent[0]["subject"]);
        let files = world.mail_files();
        let [mail] = &files[..] else { panic!("{files:?}") };
        let plain = mail.replace("=\r\n", "").replace("=3D", "=");
        assert!(!plain.lines().any(|line| line.starts_with("Bcc:") && !line.contains("</p>")) || !mail.split("\r\n\r\n").next().unwrap().contains("\r\nBcc:"), "{mail}");
        assert!(plain.contains("&lt;b&gt;Ann&lt;/b&gt; &amp; Co"), "{plain}");
        assert!(plain.contains(&format!("Hi there. Bye: {}/u/", world.url)) && plain.contains(&format!("href=\"{}/u/", world.url)), "{plain}");
        assert!(plain.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"));
        assert!(!plain.contains("{{"), "{plain}");
    }

    async fn mails_reach_their_ends_and_their_contacts_with_them(world: &mut World) {
        world.change_setting("email_price_cents", json!(2)).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let more = json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 30 } });
        let id = run(api, mails(&["ann@example.com", "bounced@example.com", "deferred@example.com", "failed@example.com", "nobody"], more)).await;
        world.advance(seconds(10)).await;
        assert_eq!(statuses(api, &id).await, ["completed", "failed", "dispatched", "waiting", "skipped"]);
        world.advance(minutes(40)).await;
        assert_eq!(statuses(api, &id).await, ["completed", "failed", "completed", "failed", "skipped"]);
        let people = contacts(api, &id).await;
        let attempts: Vec<_> = people.iter().map(|contact| contact["attempts"].as_i64().unwrap()).collect();
        assert_eq!((attempts, people[4]["skip_reason"].as_str()), (vec![1, 1, 1, 2, 0], Some("invalid")), "a mailbox that is none is not tried again");
        assert_eq!(sent_mails(api, &id).await.len(), 5);
        let costs: Vec<_> = told(api, "campaign.contact_completed").await.iter().map(|data| data["actual_cost_cents"].as_i64().unwrap()).collect();
        assert_eq!(costs, [2, 2]);
        let skipped = told(api, "campaign.contact_skipped").await;
        assert_eq!((&skipped[0]["email"], &skipped[0]["phone_number"]), (&json!("nobody"), &Value::Null));
        let completed = told(api, "campaign.completed").await;
        assert_eq!((&completed[0]["total_contacts"], &completed[0]["completed_sessions"], &completed[0]["failed_sessions"]), (&json!(5), &json!(2), &json!(3)));
        assert_eq!(told(api, "campaign.created").await[0]["channel"], "email");
        assert_eq!(people[0]["last_message_id"], sent_mails(api, &id).await[0]["id"]);
    }

    /// One of them costs more than was foreseen: the texts with their variables tell.
    async fn a_long_text_costs_its_segments(world: &mut World) {
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let people = json!([{ "phone_number": "+15002350010", "variables": { "x": "a" } }, { "phone_number": "+15002350020", "variables": { "x": "a".repeat(400) } }, { "phone_number": "+15002350030", "variables": { "x": "a".repeat(2_000) } }]);
        let answer = api.post("/v1/campaigns/run", texts(&[], json!({ "template": { "body": "{{x}}" }, "contacts": people }))).await.ok();
        let id = id_of(&answer);
        world.advance(minutes(1)).await;
        let costs: Vec<_> = sent_texts(api, &id).await.iter().map(|row| row["actual_cost_cents"].as_i64().unwrap()).collect();
        assert_eq!(costs, [3, 9]);
        assert_eq!(skips(api, &id).await, ["-", "-", "invalid"], "2000 characters are no SMS");
        let stats = api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!((&stats["cost_cents"], &stats["counts"]["completed"]), (&json!(12), &json!(2)), "{stats}");
    }
}
