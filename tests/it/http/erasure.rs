//! What is held about a person, and its erasure.
use crate::{
    on_both,
    world::{World, minutes},
};
use entities::{Error, contact, email_message, ids::CampaignId, sms_message};
use serde_json::{Value, json};

const NUMBER: &str = "+15002340000";

fn path_of(kind: &str, row: &Value) -> String {
    format!("/v1/{kind}/{}", row["id"].as_str().unwrap())
}

on_both! {
    async fn what_a_message_said_is_erased_and_its_state_stays(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let later = world.clock.now().plus_seconds(3600).to_string();
        let about = json!({ "client_reference_id": "order 7", "metadata": { "dog": "Rex" } });
        let with = |mut message: Value| {
            message.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
            message
        };
        let sms = with(json!({ "to_number": NUMBER, "body": "Rex is well." }));
        let mail = with(json!({ "to": "ada@example.com", "subject": "Rex", "text": "Rex is well.", "from_name": "Vet" }));
        for (kind, message, whom) in [("sms_messages", sms, "to_number=%2B15002340000"), ("email_messages", mail, "to=ada@example.com")] {
            let sent = tenant.api.post(&format!("/v1/{kind}"), message.clone()).await.ok();
            let mut waits = message;
            waits["scheduled_at"] = json!(later);
            let waits = tenant.api.post(&format!("/v1/{kind}"), waits).await.ok();
            world.advance(minutes(1)).await;
            let (sent, waits) = (path_of(kind, &sent), path_of(kind, &waits));

            // Not before it has left, and nobody else's.
            assert_eq!(tenant.api.delete(&waits).await.error(), (409, "invalid_state", None));
            assert_eq!(other.api.delete(&sent).await.error().0, 404);
            assert_eq!(tenant.api.delete(&sent).await.status, 204);
            for gone in [tenant.api.get(&sent).await, tenant.api.delete(&sent).await, tenant.api.post(&format!("{sent}/cancel"), json!({})).await] {
                assert_eq!(gone.error(), (404, "not_found", None));
            }
            let found = async || tenant.api.get(&format!("/v1/{kind}?{whom}")).await.ok()["data"].as_array().unwrap().len();
            assert_eq!(found().await, 1, "the one that waits");
            tenant.api.post(&format!("{waits}/cancel"), json!({})).await.ok();
            assert_eq!(tenant.api.delete(&waits).await.status, 204);
            assert_eq!(found().await, 0);
        }
        world.restart().await;
        let db = &world.deps().db.read;
        let texts = sms_message::outbound_after(db, None, 100).await.unwrap();
        let mails = email_message::all_after(db, None, 100).await.unwrap();
        assert_eq!((texts.len(), mails.len()), (2, 2));
        for mail in &mails {
            let content = email_message::content::load(db, mail.key()).await;
            assert!(matches!(content, Err(Error::NotFound(_))), "{content:?}");
        }
        let left = format!("{texts:?} {mails:?}");
        for said in ["Rex", "order 7", "Vet"] {
            assert!(!left.contains(said), "{said} in {left}");
        }
        // It was sent, and paid for: the ledger can still be proved.
        assert!(left.contains("Delivered") && left.contains("phase: Sent"), "{left}");
    }

    async fn a_contact_that_is_written_to_is_found_by_its_number_and_erased(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = json!({ "name": "x", "channel": "email", "template": { "subject": "Rex", "text": "Rex is well." } });
        let campaign = tenant.api.post("/v1/campaigns", campaign).await.ok();
        let path = path_of("campaigns", &campaign);
        let contacts = json!([{ "email": "ada@example.com", "phone_number": NUMBER }, { "email": "not an address", "first_name": "Eve" }]);
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": contacts })).await.ok();
        let found = tenant.api.get("/v1/contacts?phone_number=%2B15002340000").await.ok();
        assert_eq!((found["data"].as_array().unwrap().len(), &found["data"][0]["email"]), (1, &json!("ada@example.com")), "{found}");
        tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
        world.advance(minutes(5)).await;
        assert_eq!(tenant.api.get(&path).await.ok()["status"], "completed");
        // Its counts were told: they stay, and nobody is in them any more.
        for contact in tenant.api.get(&format!("{path}/contacts")).await.ok()["data"].as_array().unwrap() {
            assert_eq!(tenant.api.delete(&format!("{path}/contacts/{}", contact["id"].as_str().unwrap())).await.status, 204);
        }
        let left = tenant.api.get(&format!("{path}/contacts")).await.ok();
        let statuses: Vec<_> = left["data"].as_array().unwrap().iter().map(|one| (one["status"].as_str().unwrap(), &one["email"])).collect();
        assert_eq!(statuses.len(), 2);
        for (status, email) in statuses {
            assert!(["completed", "skipped"].contains(&status) && email.is_null(), "{left}");
        }
        assert_eq!(tenant.api.get("/v1/contacts?phone_number=%2B15002340000").await.ok()["data"], json!([]));
        assert_eq!(tenant.api.get(&path).await.ok()["counts"]["total"], 2);
    }

    async fn a_text_that_came_in_is_found_by_who_wrote_it(world: &mut World) {
        let tenant = world.tenant().await;
        let text = |from: &str| json!({ "to_number": "+15002349999", "from_number": from, "body": "Hello." });
        let arrived = tenant.api.post("/v1/_sandbox/inbound_sms", text(NUMBER)).await.ok();
        tenant.api.post("/v1/_sandbox/inbound_sms", text("+15002340001")).await.ok();
        let found = tenant.api.get("/v1/sms_messages?from_number=%2B15002340000").await.ok();
        assert_eq!(found["data"], json!([arrived["message"]]));
        assert_eq!(tenant.api.get("/v1/sms_messages?from_number=5").await.error(), (422, "validation_failed", Some("from_number")));
        assert_eq!(tenant.api.delete(&path_of("sms_messages", &arrived["message"])).await.status, 204);
        assert_eq!(tenant.api.get("/v1/sms_messages?from_number=%2B15002340000").await.ok()["data"], json!([]));
    }

    async fn a_contact_that_was_called_goes_on_to_count_as_nobody(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let campaign = json!({ "name": "x", "agent_id": agent, "retry": { "max_attempts": 3, "rules": { "busy": { "delays_minutes": [600] } } } });
        let campaign = tenant.api.post("/v1/campaigns", campaign).await.ok();
        let path = path_of("campaigns", &campaign);
        // The last digit: a talk, busy, and nobody answers.
        let contacts: Vec<Value> = (0..3).map(|n| json!({ "phone_number": format!("+1500234000{n}"), "first_name": "Ada",
            "email": "ada@example.com", "external_id": format!("crm-{n}"), "variables": { "dog": "Rex" } })).collect();
        tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": contacts })).await.ok();
        let row = async |n: u32| tenant.api.get(&format!("{path}/contacts?phone_number=%2B1500234000{n}")).await.ok()["data"][0].clone();
        let of = |contact: &Value| format!("{path}/contacts/{}", contact["id"].as_str().unwrap());

        let found = tenant.api.get("/v1/contacts?email=Ada@Example.COM").await.ok();
        assert_eq!(found["data"].as_array().unwrap().len(), 3);
        assert_eq!(tenant.api.get("/v1/contacts?email=eve@example.com").await.ok()["data"], json!([]));
        // One that was never called is not there any more.
        let never = row(2).await;
        assert_eq!(tenant.api.delete(&of(&never)).await.status, 204);
        assert_eq!(tenant.api.get(&of(&never)).await.error().0, 404);
        assert_eq!(tenant.api.get(&path).await.ok()["counts"]["total"], 2);

        tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
        world.advance(minutes(20)).await;
        let (called, waits) = (row(0).await, row(1).await);
        for contact in [&called, &waits] {
            assert!(contact["attempts"].as_i64().unwrap() > 0, "{contact}");
            assert_eq!(tenant.api.delete(&of(contact)).await.status, 204);
            let left = tenant.api.get(&of(contact)).await.ok();
            assert_eq!((&left["erased"], &left["attempts"], &left["last_session_id"]), (&json!(true), &contact["attempts"], &contact["last_session_id"]));
            for field in ["phone_number", "email", "first_name", "external_id"] {
                assert_eq!(left[field], Value::Null, "{field}");
            }
            assert_eq!(left["variables"], json!({}));
            assert_eq!(tenant.api.delete(&of(contact)).await.status, 204, "a second time is no change");
            let again = tenant.api.post(&format!("{}/retry", of(contact)), json!({})).await;
            assert_eq!(again.error().0, 409);
            // Not by its number, nor by anything else.
            let known = contact["external_id"].as_str().unwrap();
            assert_eq!(tenant.api.get(&format!("/v1/contacts?external_id={known}")).await.ok()["data"], json!([]));
        }
        // What was said to whom is found by the address, in whatever case, also of a contact that is not known any more.
        let calls = async |query: &str| tenant.api.get(&format!("/v1/sessions?{query}")).await.ok()["data"].as_array().unwrap().len();
        assert_eq!((calls("email=ADA@example.com").await, calls("email=eve@example.com").await), (2, 0));
        world.leap(minutes(24 * 60)).await;
        let over = tenant.api.get(&path).await.ok();
        assert_eq!((&over["status"], &over["counts"]["total"]), (&json!("completed"), &json!(2)), "{over}");
        let left = tenant.api.get(&of(&waits)).await.ok();
        assert_eq!(left["attempts"], waits["attempts"], "nobody has called any more");
        let id = CampaignId(campaign["id"].as_str().unwrap().parse().unwrap());
        let left = contact::after(&world.deps().db.read, id, None, 100).await.unwrap();
        let left = format!("{left:?}");
        for known in ["Ada", "ada@", "1500234000", "crm-", "Rex"] {
            assert!(!left.contains(known), "{known} in {left}");
        }
        let report = tenant.api.get(&format!("{path}/report.csv")).await.ok();
        let report = report.as_str().unwrap();
        assert!(report.lines().count() == 3 && !report.contains("Ada") && !report.contains("1500234000"), "{report}");
    }
}
