//! What users do with campaigns that write, and with their contacts.
use super::{
    act, all, borrowed, campaign, contacts, id_of, mails, numbers, run, sent_texts, statuses, texts, told, words,
};
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use serde_json::{Value, json};

on_both! {
    async fn whoever_lacks_a_variable_is_refused_by_name(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let draft = json!({ "name": "Spring", "channel": "sms", "template": { "body": "Hi {{first_name}}, {{code}} {{shop}} {{nick|you}}" }, "variables": { "shop": "Bo" } });
        let id = id_of(&api.post("/v1/campaigns", draft.clone()).await.ok());
        let path = format!("/v1/campaigns/{id}/contacts");
        let people = json!([
            { "phone_number": "+15002350010", "first_name": "Ann", "variables": { "code": "a" } }, { "phone_number": "+15002350020", "variables": { "code": "b" } },
            { "phone_number": "+15002350030", "first_name": "Cid" }, { "phone_number": "+15002350040", "first_name": "", "variables": { "code": "d" } }, { "phone_number": "+15002350050", "first_name": "Eve", "variables": { "code": null } },
        ]);
        let added = api.post(&path, json!({ "contacts": people })).await.ok();
        assert_eq!(added["accepted"], 1);
        let refused: Vec<_> = added["rejected"].as_array().unwrap().iter().map(|row| (row["index"].as_u64().unwrap(), row["code"].as_str().unwrap(), row["param"].as_str().unwrap())).collect();
        let expected = [(1, "variables.first_name"), (2, "variables.code"), (3, "variables.first_name"), (4, "variables.code")];
        assert_eq!(refused, expected.map(|(index, param)| (index, "validation_failed", param)));
        // The same when it is started at once.
        let mut at_once = draft;
        at_once["contacts"] = people;
        let started = api.post("/v1/campaigns/run", at_once.clone()).await.ok();
        assert_eq!((&started["contacts"]["accepted"], started["contacts"]["rejected"].as_array().unwrap().len()), (&json!(1), 4));
        at_once["contacts"] = json!([{ "phone_number": "+15002350020" }]);
        assert_eq!(api.post("/v1/campaigns/run", at_once).await.error(), (422, "validation_failed", Some("contacts")));

        // A draft whose template comes to need more is not started, and says so before.
        assert_eq!(act(api, &id, "preflight").await["ready"], true);
        let patch = async |patch: Value| api.patch(&format!("/v1/campaigns/{id}"), patch).await.ok();
        patch(json!({ "template": { "body": "{{first_name}} {{more}}" } })).await;
        let look = act(api, &id, "preflight").await;
        assert_eq!((&look["ready"], words(look["problems"].as_array().unwrap(), "code")), (&json!(false), vec!["missing_variables".to_owned()]));
        assert_eq!(api.post(&format!("/v1/campaigns/{id}/start"), json!({})).await.error(), (422, "validation_failed", Some("template")));
        assert_eq!(campaign(api, &id).await["status"], "draft");
        // Any of three ways mends it: here the contact's.
        let contact = id_of(&contacts(api, &id).await[0]);
        assert_eq!(api.patch(&format!("{path}/{contact}"), json!({ "first_name": null, "variables": { "more": "x" } })).await.error(), (422, "validation_failed", Some("variables")));
        api.patch(&format!("{path}/{contact}"), json!({ "variables": { "more": "at last" } })).await.ok();
        assert_eq!(act(api, &id, "start").await["status"], "running");
        world.advance(minutes(1)).await;
        assert_eq!(words(&sent_texts(api, &id).await, "body"), ["Ann at last"]);
    }

    async fn each_channel_has_its_own_settings(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        for (campaign, param) in [
            (json!({ "channel": "sms", "session_type": "phone" }), "session_type"),
            (json!({ "channel": "email", "session_type": "webrtc" }), "session_type"),
            (json!({ "channel": "phone", "session_type": "none" }), "session_type"),
            (json!({ "channel": "fax" }), "channel"),
            (json!({ "template": { "body": "x" } }), "template"),
            (json!({ "channel": "sms", "template": { "subject": "x" } }), "template.subject"),
            (json!({ "channel": "sms", "template": { "body": "{{" } }), "template.body"),
            (json!({ "channel": "sms", "template": { "body": "x", "size": 1 } }), "template.size"),
            (json!({ "channel": "email", "template": { "subject": "x", "text": "y", "reply_to": "z" } }), "template.reply_to"),
        ] {
            let mut body = json!({ "name": "x" });
            body.as_object_mut().unwrap().extend(campaign.as_object().unwrap().clone());
            assert_eq!(api.post("/v1/campaigns", body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        assert_eq!(all(api, "/v1/campaigns").await, Vec::<Value>::new());
        for session_type in [json!("none"), Value::Null] {
            let draft = api.post("/v1/campaigns", json!({ "name": "x", "channel": "email", "session_type": session_type })).await.ok();
            assert_eq!((&draft["channel"], &draft["session_type"]), (&json!("email"), &json!("none")));
        }
        // Without its words it is not started, and the answer says which are missing.
        for (channel, param) in [("sms", "template.body"), ("email", "template.subject")] {
            let person = json!([{ "phone_number": "+15002350010", "email": "a@example.com" }]);
            let refused = api.post("/v1/campaigns/run", json!({ "name": "x", "channel": channel, "contacts": person })).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(param)));
        }
        // Who is reached how is settled with the first contact.
        let draft = api.post("/v1/campaigns", json!({ "name": "x", "agent_id": tenant.agent().await })).await.ok();
        let path = format!("/v1/campaigns/{}", id_of(&draft));
        api.post(&format!("{path}/contacts"), json!({ "contacts": [{ "phone_number": "+15002350010" }] })).await.ok();
        let other = json!({ "channel": "sms", "session_type": null, "template": { "body": "x" } });
        assert_eq!(api.patch(&path, other.clone()).await.error(), (422, "validation_failed", Some("channel")));
        let only = id_of(&contacts(api, draft["id"].as_str().unwrap()).await[0]);
        assert_eq!(api.delete(&format!("{path}/contacts/{only}")).await.status, 204);
        assert_eq!(api.patch(&path, other).await.ok()["session_type"], "none");
    }

    async fn one_address_is_in_a_campaign_once(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let draft = json!({ "name": "x", "channel": "email", "template": { "subject": "x", "text": "y" } });
        let id = id_of(&api.post("/v1/campaigns", draft).await.ok());
        let path = format!("/v1/campaigns/{id}/contacts");
        let people = json!([
            { "email": "Ann@Example.com", "first_name": "Ann" }, { "email": " ann@EXAMPLE.com ", "last_name": "Lee", "phone_number": "+15002350010" },
            { "email": "bob@example.com", "phone_number": "+15002350010" }, { "phone_number": "+15002350010" }, { "email": "" },
        ]);
        let added = api.post(&path, json!({ "contacts": people })).await.ok();
        assert_eq!((&added["accepted"], &added["duplicates"]), (&json!(2), &json!(1)), "the same number is no matter: {added}");
        let refused: Vec<_> = added["rejected"].as_array().unwrap().iter().map(|row| (row["index"].as_u64().unwrap(), row["param"].as_str().unwrap())).collect();
        assert_eq!(refused, [(3, "email"), (4, "email")]);
        let again = api.post(&path, json!({ "contacts": [{ "email": "ANN@example.com" }] })).await.ok();
        assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(1)));
        let ann = contacts(api, &id).await[0].clone();
        assert_eq!((&ann["first_name"], &ann["last_name"]), (&json!("Ann"), &json!("Lee")));
        // Changed by hand: not onto another's address; its own in other letters is the same.
        let ann = format!("{path}/{}", id_of(&ann));
        assert_eq!(api.patch(&ann, json!({ "email": "BOB@example.com" })).await.error(), (409, "already_exists", Some("email")));
        assert_eq!(api.patch(&ann, json!({ "email": null })).await.error(), (422, "validation_failed", Some("email")));
        api.patch(&ann, json!({ "email": "ANN@Example.com" })).await.ok();
        api.patch(&ann, json!({ "email": "ann.lee@example.com" })).await.ok();
        act(api, &id, "start").await;
        world.advance(minutes(1)).await;
        assert_eq!(words(&all(api, "/v1/email_messages").await, "to"), ["ann.lee@example.com", "bob@example.com"]);
        assert_eq!(api.patch(&ann, json!({ "email": "x@example.com" })).await.error().1, "invalid_state", "it was written to");
    }

    /// Addresses are enough for a campaign of e-mails; for one of SMS they are not.
    async fn a_file_of_addresses_becomes_contacts(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let (mut mailing, mut texting) = (mails(&[], json!({})), texts(&[], json!({})));
        mailing["template"]["text"] = json!("{{plan}}");
        let import = async |mut draft: Value, file: &str| {
            draft.as_object_mut().unwrap().remove("contacts");
            let id = id_of(&api.post("/v1/campaigns", draft).await.ok());
            let job = api.upload(&format!("/v1/campaigns/{id}/contacts/import"), file).await;
            (id, job)
        };
        let (id, job) = import(mailing.take(), "E-Mail,email,first_name,plan\r\nx,Ann@example.com,Ann,gold\r\nx,ANN@example.com,,gold\r\nx,,Nobody,gold\r\nx,bob@example.com,Bob,\r\nx,cid@example.com,,silver\r\n").await;
        world.settle().await;
        let done = api.get(&format!("/v1/imports/{}", job.ok()["id"].as_str().unwrap())).await.ok();
        assert_eq!(["accepted", "duplicates", "rejected"].map(|name| done[name].as_i64().unwrap()), [2, 1, 2], "{done}");
        let refused: Vec<_> = done["rejections"].as_array().unwrap().iter().map(|row| (row["line"].as_i64().unwrap(), row["param"].as_str().unwrap())).collect();
        assert_eq!(refused, [(4, "email"), (5, "variables.plan")]);
        assert_eq!(words(&contacts(api, &id).await, "phone_number"), ["-", "-"]);
        act(api, &id, "start").await;
        world.advance(minutes(1)).await;
        assert_eq!(words(&all(api, "/v1/email_messages").await, "to"), ["ann@example.com", "cid@example.com"]);
        let (_, job) = import(texting.take(), "email\nann@example.com\n").await;
        match job.status.as_u16() {
            422 => {}
            _ => {
                world.settle().await;
                let done = api.get(&format!("/v1/imports/{}", job.ok()["id"].as_str().unwrap())).await.ok();
                assert_eq!((&done["accepted"], &done["rejections"][0]["param"]), (&json!(0), &json!("phone_number")), "{done}");
            }
        }
    }

    async fn pause_resume_and_cancel_in_the_middle(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let numbers = numbers(20);
        let slow = json!({ "pacing": { "calls_per_second": 1 } });
        let id = run(api, texts(&borrowed(&numbers), slow.clone())).await;
        world.advance(seconds(4)).await;
        act(api, &id, "pause").await;
        let written = sent_texts(api, &id).await.len();
        assert_eq!(written, 5, "one at once and one a second");
        world.advance(minutes(5)).await;
        assert_eq!(sent_texts(api, &id).await.len(), written);
        let row = campaign(api, &id).await;
        assert_eq!((&row["status"], &row["counts"]["completed"]), (&json!("paused"), &json!(5)), "what was sent arrived meanwhile");
        act(api, &id, "resume").await;
        world.advance(seconds(4)).await;
        act(api, &id, "cancel").await;
        world.advance(minutes(1)).await;
        let row = campaign(api, &id).await;
        assert_eq!((&row["status"], &row["completed_reason"]), (&json!("completed"), &json!("canceled")));
        let sent = sent_texts(api, &id).await.len() as i64;
        assert_eq!((row["counts"]["completed"].as_i64(), row["counts"]["canceled"].as_i64()), (Some(sent), Some(20 - sent)));
        assert!((9..12).contains(&sent), "{sent}");
        assert_eq!(told(api, "campaign.completed").await.len(), 1);

        // One that waits for the provider when its campaign is canceled is not sent any more.
        let id = run(api, texts(&["+15002360004"], json!({}))).await;
        world.advance(seconds(1)).await;
        assert_eq!(sent_texts(api, &id).await[0]["status"], "queued");
        act(api, &id, "cancel").await;
        world.advance(minutes(1)).await;
        let message = sent_texts(api, &id).await[0].clone();
        assert_eq!((&message["status"], &message["error"]["code"], &message["attempts"]), (&json!("failed"), &json!("canceled"), &json!(1)));
        assert_eq!((campaign(api, &id).await["status"].clone(), statuses(api, &id).await), (json!("completed"), vec!["failed".to_owned()]));
        // One whose campaign is paused waits.
        let id = run(api, texts(&["+15002360014"], json!({}))).await;
        world.advance(seconds(1)).await;
        act(api, &id, "pause").await;
        world.advance(minutes(10)).await;
        let message = sent_texts(api, &id).await[0].clone();
        assert_eq!((&message["status"], &message["error"]["code"]), (&json!("queued"), &json!("campaign_paused")));
        act(api, &id, "resume").await;
        world.advance(minutes(2)).await;
        assert_eq!((campaign(api, &id).await["status"].clone(), statuses(api, &id).await), (json!("completed"), vec!["completed".to_owned()]));
    }

    async fn the_first_are_first_and_a_second_has_so_many(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let person = |n: usize, priority: i64| json!({ "phone_number": format!("+1500235{n:03}0"), "priority": priority });
        let people: Vec<_> = [0, 5, 0, 9, 5].into_iter().enumerate().map(|(n, priority)| person(n, priority)).collect();
        let id = run(api, texts(&[], json!({ "contacts": people, "pacing": { "calls_per_second": 2 } }))).await;
        let mut seen = Vec::new();
        for _ in 0..5 {
            world.advance(std::time::Duration::from_millis(500)).await;
            seen.push(sent_texts(api, &id).await.len());
        }
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{seen:?}");
        let order = words(&sent_texts(api, &id).await, "to_number");
        assert_eq!(order, [3, 1, 4, 0, 2].map(|n| format!("+1500235{n:03}0")));
    }

    async fn the_report_statistics_and_a_copy(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let id = run(api, texts(&["+15002350000", "+15002350001", "12"], json!({ "consent_basis": "customers" }))).await;
        world.advance(minutes(1)).await;
        let stats = api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!((&stats["counts"]["completed"], &stats["counts"]["failed"], &stats["counts"]["skipped"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(stats["hours"], json!([{ "hour": "2027-03-02T13:00:00.000Z", "started": 2, "answered": 1, "ended": 2, "answer_rate": 0.5, "answered_live": 0, "abandoned": 0 }]));
        let report = api.get(&format!("/v1/campaigns/{id}/report.csv")).await.ok();
        let lines: Vec<&str> = report.as_str().unwrap().lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].contains("+15002350000") && lines[1].contains(r#","completed","#), "{}", lines[1]);
        assert!(lines[2].contains(r#","failed","","","1","#), "{}", lines[2]);
        assert!(lines[3].contains(r#","skipped","invalid","","0","#), "{}", lines[3]);
        let copy = api.post(&format!("/v1/campaigns/{id}/duplicate"), json!({})).await;
        assert_eq!((copy.status.as_u16(), &copy.body["channel"], &copy.body["session_type"]), (201, &json!("sms"), &json!("none")));
        assert_eq!((&copy.body["template"], &copy.body["status"], &copy.body["counts"]["total"]), (&json!({ "body": "Hello." }), &json!("draft"), &json!(0)), "{}", copy.body);
        // What is fixed once it runs.
        let id = run(api, texts(&["+15002350010", "+15002350020"], json!({ "pacing": { "calls_per_second": 0.1 } }))).await;
        for (patch, param) in [(json!({ "template": { "body": "Other" } }), "template"), (json!({ "channel": "email", "template": { "body": null, "subject": "x", "text": "y" } }), "channel")] {
            assert_eq!(api.patch(&format!("/v1/campaigns/{id}"), patch).await.error(), (422, "validation_failed", Some(param)));
        }
        act(api, &id, "cancel").await;
        world.advance(minutes(1)).await;
    }

    /// Texts come from the workspace's numbers; one that is released in the middle stops nobody.
    async fn a_number_that_is_released_stops_nobody(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let refused = texts(&["+15002350010"], json!({ "from_numbers": ["+12025550198"] }));
        assert_eq!(api.post("/v1/campaigns/run", refused).await.error(), (422, "validation_failed", Some("from_numbers")));
        let mut own = Vec::new();
        for number in ["+12025550198", "+12025550199"] {
            own.push(id_of(&api.post("/v1/numbers", json!({ "phone_number": number })).await.ok()));
        }
        let three = numbers(3);
        let more = json!({ "from_numbers": ["+12025550199", "+12025550198"], "pacing": { "calls_per_second": 0.1 } });
        let id = run(api, texts(&borrowed(&three), more)).await;
        world.advance(seconds(11)).await;
        let mut from = words(&sent_texts(api, &id).await, "from_number");
        from.sort();
        assert_eq!(from, ["+12025550198", "+12025550199"], "they take turns");
        for number in &own {
            assert_eq!(api.delete(&format!("/v1/numbers/{number}")).await.status, 204);
        }
        let other = run(api, texts(&["+15002350090"], json!({}))).await;
        world.advance(minutes(1)).await;
        assert_eq!((statuses(api, &id).await, statuses(api, &other).await), (vec!["completed".to_owned(); 3], vec!["completed".to_owned()]));
        assert_eq!(words(&sent_texts(api, &id).await, "from_number")[2], "+15002220000", "as where the workspace has none");
    }

    async fn what_a_running_campaign_writes_stays_whole(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let more = json!({ "template": { "body": "From {{shop}}" }, "variables": { "shop": "Bo" }, "pacing": { "calls_per_second": 0.1 } });
        let id = run(api, texts(&["+15002350010", "+15002350020"], more)).await;
        world.advance(seconds(1)).await;
        let patch = async |variables: Value| api.patch(&format!("/v1/campaigns/{id}"), json!({ "variables": variables })).await;
        assert_eq!(patch(json!({ "shop": null })).await.error(), (422, "validation_failed", Some("template")));
        patch(json!({ "shop": "Cy" })).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(words(&sent_texts(api, &id).await, "body"), ["From Bo", "From Cy"]);
    }

    /// Once more by hand: a new message, after the gap.
    async fn a_contact_is_written_to_once_more(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        // The second keeps the campaign open.
        let people = json!([{ "email": "failed@example.com" }, { "email": "ann@example.com", "not_before": "2027-03-02T13:10:30Z" }]);
        let id = run(api, mails(&[], json!({ "retry": { "max_attempts": 1, "min_gap_minutes": 10 }, "contacts": people }))).await;
        world.advance(seconds(5)).await;
        let path = format!("/v1/campaigns/{id}/contacts/{}", id_of(&contacts(api, &id).await[0]));
        let before = api.get(&path).await.ok();
        assert_eq!((&before["status"], &before["attempts"]), (&json!("failed"), &json!(1)));
        let again = api.post(&format!("{path}/retry"), json!({})).await.ok();
        assert_eq!((&again["status"], &again["next_attempt_at"]), (&json!("waiting"), &json!("2027-03-02T13:10:00.000Z")));
        world.advance(minutes(11)).await;
        let after = api.get(&path).await.ok();
        assert_eq!((&after["status"], &after["attempts"]), (&json!("failed"), &json!(2)));
        assert_ne!(after["last_message_id"], before["last_message_id"]);
        assert_eq!(campaign(api, &id).await["status"], "completed");
        assert_eq!(words(&all(api, "/v1/email_messages").await, "to").iter().filter(|to| *to == "failed@example.com").count(), 2);
    }
}
