//! SMS that come in: STOP, START, HELP, and everything else.
use super::{PERSON, SHARED, live, text, with_provider};
use crate::{
    on_both,
    world::{
        Tenant, World,
        twilio::{self, TOKEN, Twilio},
    },
};
use serde_json::{Value, json};

const NUMBER: &str = "+12025550177";

async fn arrive(world: &World, sid: &str, to: &str, body: &str) -> (u16, String) {
    let url = format!("{}/v1/_internal/twilio/inbound", world.url);
    let fields = [("MessageSid", sid), ("From", PERSON), ("To", to), ("Body", body)];
    twilio::call_back(&url, &fields, &twilio::signature(TOKEN, &url, &fields)).await
}

const NOTHING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response></Response>";

async fn listed(api: &crate::world::Api) -> Vec<Value> {
    api.get("/v1/dnc").await.ok()["data"].as_array().unwrap().clone()
}

async fn play(tenant: &Tenant, body: &str) -> Value {
    let sms = json!({ "to_number": "+15002220000", "from_number": "+15002340009", "body": body });
    tenant.api.post("/v1/_sandbox/inbound_sms", sms).await.ok()
}

on_both! {
    async fn stop_start_and_help(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        tenant.api.post("/v1/numbers", json!({ "phone_number": NUMBER })).await.ok();
        world.claim_number(tenant.id, NUMBER).await;
        let api = with_provider(world, &tenant, &provider).await;
        let (status, twiml) = arrive(world, "SM1", NUMBER, "Stop please!").await;
        assert_eq!(status, 200);
        assert!(twiml.contains("<Message>You are unsubscribed"), "{twiml}");
        let entries = listed(&api).await;
        assert_eq!((entries.len(), entries[0]["phone_number"].as_str(), entries[0]["source"].as_str()), (1, Some(PERSON), Some("sms_stop")));
        assert_eq!(entries[0]["channels"], json!(["phone", "sms"]));
        // Told twice, and said twice: nothing more happens, and nothing more is answered.
        for sid in ["SM1", "SM2"] {
            assert_eq!(arrive(world, sid, NUMBER, "Stop please!").await, (200, NOTHING.into()));
        }
        assert_eq!(listed(&api).await.len(), 1);
        let refused = api.post("/v1/sms_messages", json!({ "to_number": PERSON, "body": "x" })).await;
        assert_eq!(refused.error(), (409, "recipient_on_dnc", Some("to_number")));
        let (_, twiml) = arrive(world, "SM3", NUMBER, "HELP").await;
        assert!(twiml.contains("Reply STOP"), "{twiml}");
        let (_, twiml) = arrive(world, "SM4", NUMBER, "start").await;
        assert!(twiml.contains("again"), "{twiml}");
        assert_eq!(listed(&api).await.len(), 0);
        assert_eq!(arrive(world, "SM5", NUMBER, "start").await, (200, NOTHING.into()));
        text(&api, PERSON, json!({})).await;
        let came = api.get("/v1/sms_messages?direction=inbound&order=asc").await.ok()["data"].as_array().unwrap().clone();
        let said: Vec<_> = came.iter().map(|row| (row["body"].as_str().unwrap(), row["status"].as_str().unwrap())).collect();
        assert_eq!(said, [("Stop please!", "received"), ("Stop please!", "received"), ("HELP", "received"), ("start", "received"), ("start", "received")]);
        assert_eq!((came[0]["from_number"].as_str(), came[0]["to_number"].as_str(), came[0]["provider_message_id"].as_str()), (Some(PERSON), Some(NUMBER), Some("SM1")));
        assert_eq!(tenant.api.get("/v1/sms_messages").await.ok()["data"], json!([]), "live messages are no test key's");
    }

    /// Only what a STOP has barred is opened by a START.
    async fn start_lifts_no_other_entry(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.api.post("/v1/dnc", json!({ "phone_number": "+15002340009", "reason": "asked by letter" })).await.ok();
        assert_eq!(play(&tenant, "START").await["reply"], json!(null));
        assert_eq!(play(&tenant, "STOP").await["reply"], json!(null), "known already");
        assert_eq!(play(&tenant, "START").await["reply"], json!(null));
        let entries = listed(&tenant.api).await;
        assert_eq!((entries.len(), entries[0]["source"].as_str()), (1, Some("manual")));
    }

    /// Nor does the answer to a STOP promise it.
    async fn a_stop_that_widens_another_entry_promises_no_return(world: &mut World) {
        let tenant = world.tenant().await;
        let calls_only = json!({ "phone_number": "+15002340009", "channels": ["phone"] });
        tenant.api.post("/v1/dnc", calls_only).await.ok();
        let reply = play(&tenant, "STOP").await["reply"].as_str().unwrap().to_owned();
        assert!(reply.contains("unsubscribed") && !reply.contains("START"), "{reply}");
        assert_eq!(listed(&tenant.api).await[0]["channels"], json!(["phone", "sms"]));
        assert_eq!(play(&tenant, "START").await["reply"], json!(null));
        assert_eq!(listed(&tenant.api).await.len(), 1);
    }

    /// Who is barred again, by somebody else, after a STOP, is not freed by a START.
    async fn start_lifts_no_stop_that_another_has_taken_over(world: &mut World) {
        let tenant = world.tenant().await;
        assert!(play(&tenant, "STOP").await["reply"].as_str().unwrap().contains("unsubscribed"));
        let entry = json!({ "phone_number": "+15002340009", "reason": "asked by letter" });
        let row = tenant.api.post("/v1/dnc", entry).await.ok();
        assert_eq!((row["source"].as_str(), row["reason"].as_str()), (Some("manual"), Some("asked by letter")));
        assert_eq!(play(&tenant, "START").await["reply"], json!(null));
        let entries = listed(&tenant.api).await;
        assert_eq!((entries.len(), entries[0]["source"].as_str()), (1, Some("manual")));
    }

    async fn a_text_in_the_sandbox(world: &mut World) {
        let tenant = world.tenant().await;
        let answer = play(&tenant, "stop by at 5").await;
        assert_eq!((answer["reply"].clone(), answer["message"]["status"].as_str()), (json!(null), Some("received")));
        assert_eq!(listed(&tenant.api).await.len(), 0);
        assert!(play(&tenant, "unsubscribe").await["reply"].as_str().unwrap().contains("unsubscribed"));
        assert_eq!(listed(&tenant.api).await.len(), 1);
        let strange = json!({ "to_number": "+12025550188", "from_number": "+15002340009", "body": "x" });
        assert_eq!(tenant.api.post("/v1/_sandbox/inbound_sms", strange.clone()).await.error(), (422, "validation_failed", Some("to_number")));
        let live_key = live(world, &tenant).await;
        assert_eq!(live_key.post("/v1/_sandbox/inbound_sms", strange).await.error(), (403, "forbidden", None));
    }

    /// To a number that all share: a text goes to who wrote last, a STOP to all who wrote, and to nobody else.
    async fn a_number_that_workspaces_share(world: &mut World) {
        let (first, second, stranger) = (world.tenant().await, world.tenant().await, world.tenant().await);
        let provider = Twilio::start().await;
        assert_eq!(arrive(world, "SM0", SHARED, "STOP").await.0, 501);
        let first = with_provider(world, &first, &provider).await;
        let (second, stranger) = (live(world, &second).await, live(world, &stranger).await);
        assert_eq!(arrive(world, "SM0", SHARED, "STOP").await, (200, NOTHING.into()), "nobody has written");
        for api in [&first, &second] {
            text(api, PERSON, json!({})).await;
            world.settle().await;
        }
        assert_eq!(arrive(world, "SM1", SHARED, "Who is there?").await.0, 200);
        let count = async |api: &crate::world::Api| api.get("/v1/sms_messages?direction=inbound").await.ok()["data"].as_array().unwrap().len();
        assert_eq!((count(&first).await, count(&second).await, count(&stranger).await), (0, 1, 0));
        let (_, twiml) = arrive(world, "SM2", SHARED, "STOP").await;
        assert_eq!(twiml.matches("<Message>").count(), 1);
        assert_eq!((count(&first).await, count(&second).await, count(&stranger).await), (1, 2, 0));
        assert_eq!((listed(&first).await.len(), listed(&second).await.len(), listed(&stranger).await.len()), (1, 1, 0));
    }

    async fn a_forged_text_is_not_taken(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        tenant.api.post("/v1/numbers", json!({ "phone_number": NUMBER })).await.ok();
        world.claim_number(tenant.id, NUMBER).await;
        let api = with_provider(world, &tenant, &provider).await;
        let url = format!("{}/v1/_internal/twilio/inbound", world.url);
        let fields = [("MessageSid", "SM1"), ("From", PERSON), ("To", NUMBER), ("Body", "STOP")];
        for signature in ["", &twilio::signature("guessed", &url, &fields), &twilio::signature(TOKEN, &format!("{url}?x=1"), &fields)] {
            assert_eq!(twilio::call_back(&url, &fields, signature).await.0, 403);
        }
        let short = [("From", PERSON), ("To", NUMBER), ("Body", "STOP")];
        assert_eq!(twilio::call_back(&url, &short, &twilio::signature(TOKEN, &url, &short)).await.0, 422);
        assert_eq!((listed(&api).await.len(), world.rows("sms_messages").await), (0, 0));
    }

    /// The entry and the text are one commit; a provider that is told 503 tells it again.
    async fn a_stop_survives_a_commit_that_fails(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        tenant.api.post("/v1/numbers", json!({ "phone_number": NUMBER })).await.ok();
        world.claim_number(tenant.id, NUMBER).await;
        let api = with_provider(world, &tenant, &provider).await;
        world.fail_next_commits(1);
        assert_eq!(arrive(world, "SM1", NUMBER, "STOP").await.0, 503);
        assert_eq!((listed(&api).await.len(), world.rows("sms_messages").await), (0, 0));
        let (_, twiml) = arrive(world, "SM1", NUMBER, "STOP").await;
        assert!(twiml.contains("unsubscribed"), "{twiml}");
        assert_eq!((listed(&api).await.len(), world.rows("sms_messages").await), (1, 1));
    }
}
