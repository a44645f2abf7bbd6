//! SMS that go out.
use super::{PERSON, SHARED, live, report, report_with, sms, status, text, with_provider};
use crate::{
    on_both,
    world::{
        World, awaited, minutes, seconds,
        twilio::{self, ACCOUNT, Reply, TOKEN, Twilio},
    },
};
use actors::leases::Of;
use entities::{
    changes::{Guard, Reachable},
    dnc::DncChannel,
    ids::{SmsId, TenantScoped},
    values::Env,
};
use futures_util::future::join;
use rules::message::machine::Command;
use serde_json::json;

on_both! {
    async fn the_provider_gets_it_and_reports(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let id = text(&api, PERSON, json!({ "client_reference_id": "r1", "metadata": { "a": "b" } })).await;
        world.settle().await;
        let [asked] = &provider.asked()[..] else { panic!("{:?}", provider.asked()) };
        assert_eq!(asked.path, format!("/2010-04-01/Accounts/{ACCOUNT}/Messages.json"));
        assert_eq!(asked.authorization, format!("Basic {}", base64::Engine::encode(&base64::prelude::BASE64_STANDARD, format!("{ACCOUNT}:{TOKEN}"))));
        assert_eq!((asked.fields["To"].as_str(), asked.fields["From"].as_str(), asked.fields["Body"].as_str()), (PERSON, SHARED, "Hello."));
        assert_eq!(asked.fields["StatusCallback"], format!("{}/v1/_internal/twilio/status/{id}", world.url));
        let row = sms(&api, &id).await;
        assert_eq!((row["status"].as_str(), row["provider_message_id"].as_str()), (Some("sent"), Some("SM1")));
        assert_eq!((row["segments"].as_i64(), row["encoding"].as_str(), row["attempts"].as_i64()), (Some(1), Some("gsm7"), Some(1)));
        assert_eq!((row["client_reference_id"].as_str(), row["direction"].as_str()), (Some("r1"), Some("outbound")));
        assert_eq!(report(world, &id, "sent").await, 204);
        world.advance(seconds(3)).await;
        assert_eq!(report(world, &id, "delivered").await, 204);
        let row = sms(&api, &id).await;
        assert_eq!((row["status"].as_str(), row["delivered_at"].as_str()), (Some("delivered"), Some("2027-03-02T13:00:03.000Z")));
        assert_eq!(world.rows("message_sends").await, 1);
        let listed = api.get("/v1/sms_messages?status=delivered&direction=outbound&to_number=%2B12025550123").await.ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
        assert_eq!(api.get("/v1/sms_messages?status=queued").await.ok()["data"], json!([]));
    }

    async fn reports_come_in_any_order_and_more_than_once(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        for (reports, last) in [
            (vec!["delivered", "sent", "queued", "delivered", "undelivered"], "delivered"),
            (vec!["undelivered", "sent", "undelivered", "delivered"], "undelivered"),
            (vec!["sent", "failed", "sent"], "failed"),
        ] {
            let id = text(&api, PERSON, json!({})).await;
            world.settle().await;
            for progress in &reports {
                assert_eq!(report(world, &id, progress).await, 204);
            }
            assert_eq!(status(&api, &id).await, last, "{reports:?}");
        }
        assert_eq!(provider.asked().len(), 3);
    }

    /// The answer is lost after the request was read: it is never asked again; the report tells, also when it comes late.
    async fn an_answer_that_is_lost_is_never_asked_for_again(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        provider.answer_next([Reply::HangUp, Reply::error(500, 0)]);
        let (told, untold) = (text(&api, PERSON, json!({})).await, text(&api, "+12025550124", json!({})).await);
        world.advance(minutes(9)).await;
        assert_eq!((status(&api, &told).await, status(&api, &untold).await), ("queued".into(), "queued".into()));
        assert_eq!(api.post(&format!("/v1/sms_messages/{told}/cancel"), json!({})).await.error().0, 409);
        assert_eq!(report(world, &told, "delivered").await, 204);
        world.advance(minutes(2)).await;
        assert_eq!(status(&api, &told).await, "delivered");
        let row = sms(&api, &untold).await;
        assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some("failed"), Some("unknown_outcome")));
        assert_eq!(provider.asked().len(), 2, "each was handed over once");
        assert_eq!(report(world, &untold, "sent").await, 204);
        assert_eq!(report(world, &untold, "delivered").await, 204);
        let row = sms(&api, &untold).await;
        assert_eq!((row["status"].as_str(), row["error"].clone()), (Some("delivered"), json!(null)));
    }

    async fn what_was_not_taken_is_handed_over_again_by_the_plan(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        provider.answer_next([Reply::Status(429, Some("120"), json!({})), Reply::error(503, 20_503), Reply::error(503, 0)]);
        let id = text(&api, PERSON, json!({})).await;
        world.settle().await;
        let row = sms(&api, &id).await;
        assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some("queued"), Some("provider_unavailable")));
        // Each at its time: what the provider asked for, then half a minute, then two minutes.
        for (wait, asked) in [(119, 1), (1, 2), (29, 2), (1, 3), (119, 3), (1, 4)] {
            world.advance(seconds(wait)).await;
            assert_eq!(provider.asked().len(), asked);
        }
        let row = sms(&api, &id).await;
        assert_eq!((row["status"].as_str(), row["attempts"].as_i64(), row["error"].clone()), (Some("sent"), Some(4), json!(null)));
        assert_eq!(world.rows("message_sends").await, 4, "each intent is a row");
    }

    async fn a_provider_that_cannot_be_reached_is_asked_when_it_can(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        with_provider(world, &tenant, &provider).await;
        let closed = { let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap(); format!("http://{}", listener.local_addr().unwrap()) };
        world.change_setting("sms_url", json!(closed)).await;
        let api = live(world, &tenant).await;
        let id = text(&api, PERSON, json!({})).await;
        world.settle().await;
        assert_eq!(sms(&api, &id).await["error"]["code"], "provider_unavailable");
        world.change_setting("sms_url", json!(provider.url)).await;
        world.advance(minutes(1)).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("sent", 1));
    }

    async fn refusals_are_final_and_an_opt_out_counts_for_us(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        provider.answer_next([Reply::error(400, 21_211), Reply::error(400, 21_614), Reply::error(400, 21_610), Reply::error(400, 30_022)]);
        for (to, code) in [("+12025550111", "invalid_number"), ("+12025550112", "invalid_number"), (PERSON, "recipient_opted_out"), ("+12025550113", "provider_rejected")] {
            let id = text(&api, to, json!({})).await;
            world.settle().await;
            let row = sms(&api, &id).await;
            assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some("failed"), Some(code)));
        }
        let entry = api.get("/v1/dnc?phone_number=%2B12025550123").await.ok()["data"][0].clone();
        assert_eq!((entry["source"].as_str(), entry["channels"].clone()), (Some("sms_stop"), json!(["phone", "sms"])));
        let refused = api.post("/v1/sms_messages", json!({ "to_number": PERSON, "body": "x" })).await;
        assert_eq!(refused.error(), (409, "recipient_on_dnc", Some("to_number")));
        assert_eq!(provider.asked().len(), 4);
    }

    async fn who_comes_onto_the_list_meanwhile_gets_nothing(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let later = text(&api, PERSON, json!({ "scheduled_at": "2027-03-02T14:00:00Z" })).await;
        provider.answer_next([Reply::error(503, 0)]);
        let retried = text(&api, "+12025550124", json!({})).await;
        world.settle().await;
        assert_eq!(status(&api, &later).await, "scheduled");
        for number in [PERSON, "+12025550124"] {
            api.post("/v1/dnc", json!({ "phone_number": number, "channels": ["sms"] })).await.ok();
        }
        world.advance(minutes(61)).await;
        for id in [&later, &retried] {
            let row = sms(&api, id).await;
            assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some("failed"), Some("recipient_on_dnc")));
        }
        assert_eq!(provider.asked().len(), 1);
        // The intent's own commit looks as well, in its transaction.
        let person = |address: &str| Guard::Reachable(Reachable { tenant_id: tenant.id, env: Env::Live, channel: DncChannel::Sms, address: address.into() });
        for (address, stands) in [(PERSON, false), ("+12025550125", true)] {
            let mut commit = rules::commit::Commit::default();
            commit.changes.guards.push(person(address));
            assert_eq!(world.deps().writer.commit(Of::Anybody, commit).await.is_ok(), stands);
        }
        // A number that must not be called may be written to.
        api.post("/v1/dnc", json!({ "phone_number": "+12025550126", "channels": ["phone"] })).await.ok();
        let id = text(&api, "+12025550126", json!({})).await;
        world.settle().await;
        assert_eq!(status(&api, &id).await, "sent");
    }

    async fn a_scheduled_message_waits_and_can_be_canceled(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let at = json!({ "scheduled_at": "2027-03-02T15:00:00Z" });
        let (sent, canceled) = (text(&api, PERSON, at.clone()).await, text(&api, PERSON, at).await);
        world.restart().await;
        world.advance(minutes(119)).await;
        assert_eq!((status(&api, &sent).await.as_str(), provider.asked().len()), ("scheduled", 0));
        for _ in 0..2 {
            assert_eq!(api.post(&format!("/v1/sms_messages/{canceled}/cancel"), json!({})).await.ok()["status"], "canceled");
        }
        world.advance(minutes(2)).await;
        assert_eq!((status(&api, &sent).await.as_str(), status(&api, &canceled).await.as_str()), ("sent", "canceled"));
        assert_eq!(provider.asked().len(), 1);
        assert_eq!(api.post(&format!("/v1/sms_messages/{sent}/cancel"), json!({})).await.error(), (409, "invalid_state", None));
        let far = api.post("/v1/sms_messages", json!({ "to_number": PERSON, "body": "x", "scheduled_at": "2027-04-20T00:00:00Z" })).await;
        assert_eq!(far.error(), (422, "validation_failed", Some("scheduled_at")));
    }

    /// Canceled and due at the same moment: it is sent or canceled, never both.
    async fn a_cancel_races_with_the_time(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let mut ids = Vec::new();
        for n in 0..12 {
            ids.push(text(&api, &format!("+120255501{:02}", 30 + n), json!({ "scheduled_at": "2027-03-02T13:01:00Z" })).await);
        }
        let cancels = futures_util::future::join_all(ids.iter().map(|id| {
            let (api, path) = (api.clone(), format!("/v1/sms_messages/{id}/cancel"));
            async move { api.post(&path, json!({})).await.status.as_u16() }
        }));
        let (answers, ()) = tokio::join!(cancels, world.advance(minutes(1)));
        world.advance(minutes(1)).await;
        let mut sent = 0;
        for (id, answer) in ids.iter().zip(answers) {
            match answer {
                200 => assert_eq!(status(&api, id).await, "canceled"),
                409 => { assert_eq!(status(&api, id).await, "sent"); sent += 1; }
                other => panic!("{other}"),
            }
        }
        assert_eq!(provider.asked().len(), sent);
    }

    /// Cut off while the provider has the request: the intent stands, so nobody asks again.
    async fn a_crash_while_it_is_handed_over_sends_nothing_twice(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        provider.answer_next([Reply::Hang]);
        let id = text(&api, PERSON, json!({})).await;
        provider.arrived(1).await;
        world.restart().await;
        world.advance(minutes(9)).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("queued", 1));
        world.advance(minutes(2)).await;
        assert_eq!(sms(&api, &id).await["error"]["code"], "unknown_outcome");
        assert_eq!(report(world, &id, "delivered").await, 204);
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("delivered", 1));
    }

    /// A commit fails before the intent, at the intent and after it: handed over once all the same.
    async fn commits_that_fail_cost_nothing(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        let mut ids = Vec::new();
        for fail in 1..=3 {
            let id = text(&api, PERSON, json!({ "scheduled_at": "2027-03-02T13:01:00Z" })).await;
            ids.push((fail, id));
        }
        world.fail_next_commits(3);
        world.advance(minutes(5)).await;
        for (fail, id) in &ids {
            assert_eq!(status(&api, id).await, "sent", "{fail}");
        }
        assert_eq!(provider.asked().len(), 3);
        // The provider has it, and the commit that says so fails.
        provider.answer_next([Reply::Hang]);
        let id = text(&api, PERSON, json!({})).await;
        provider.arrived(4).await;
        world.fail_next_commits(2);
        assert!([204, 503].contains(&report(world, &id, "delivered").await));
        assert!([204, 503].contains(&report(world, &id, "delivered").await));
        assert_eq!(report(world, &id, "delivered").await, 204);
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("delivered", 4));
        world.restart().await;
    }

    /// Commits fail at the intent for so long that the message is due again before anybody knows whether it stands: only one sender has
    /// it, so nobody takes back an intent that another one has kept.
    async fn a_message_in_doubt_has_one_sender(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        // At first there is no room. Later it is taken, and the answer is lost.
        provider.answer_next([Reply::error(503, 20_503), Reply::HangUp]);
        let id = text(&api, PERSON, json!({})).await;
        let message = TenantScoped::new(tenant.id, Env::Live, id.parse::<SmsId>().unwrap());
        world.advance(seconds(9)).await;
        assert_eq!(provider.asked().len(), 1);
        world.fail_next_commits(8);
        let due_again = async {
            let writer = &world.deps().writer;
            awaited("nobody knows what became of it", async || (writer.still_to_fail() == 0).then_some(())).await;
            world.deps().router.sms().tell(message, Command::Tick);
        };
        join(world.advance(minutes(5)), due_again).await;
        assert_eq!((status(&api, &id).await.as_str(), provider.asked().len()), ("queued", 2));
        world.advance(minutes(10)).await;
        assert_eq!(sms(&api, &id).await["error"]["code"], "unknown_outcome");
        assert_eq!(provider.asked().len(), 2);
    }

    async fn forged_reports_change_nothing(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let unconfigured = format!("{}/v1/_internal/twilio/inbound", world.url);
        assert_eq!(twilio::call_back(&unconfigured, &[("To", SHARED)], "x").await.0, 501);
        let api = with_provider(world, &tenant, &provider).await;
        let id = text(&api, PERSON, json!({})).await;
        world.settle().await;
        let fields = [("MessageSid", "SM1"), ("MessageStatus", "delivered")];
        let url = format!("{}/v1/_internal/twilio/status/{id}", world.url);
        let other = format!("{}/v1/_internal/twilio/status/{}", world.url, "00000000-0000-7000-8000-000000000000");
        for signature in ["", "x", &twilio::signature("another-token", &url, &fields), &twilio::signature(TOKEN, &other, &fields), &twilio::signature(TOKEN, &url, &fields[..1])] {
            assert_eq!(twilio::call_back(&url, &fields, signature).await.0, 403);
        }
        assert_eq!(status(&api, &id).await, "sent");
        assert_eq!(report_with(world, "00000000-0000-7000-8000-000000000000", &fields).await, 404);
        let many = "x".repeat(70_000);
        assert_eq!(report_with(world, &id, &[("MessageStatus", "delivered"), ("X", &many)]).await, 413);
        assert_eq!(status(&api, &id).await, "sent");
    }

    async fn every_digit_of_the_sandbox(world: &mut World) {
        let tenant = world.tenant().await;
        let expected = [
            ("delivered", None), ("undelivered", Some("undelivered")), ("failed", Some("invalid_number")), ("sent", None), ("delivered", None),
            ("failed", Some("recipient_opted_out")), ("delivered", None), ("failed", Some("unknown_outcome")), ("delivered", None), ("failed", Some("provider_failed")),
        ];
        let mut ids = Vec::new();
        for digit in 0..10 {
            ids.push(text(&tenant.api, &format!("+1500234000{digit}"), json!({})).await);
        }
        world.advance(minutes(15)).await;
        for (digit, (id, (status, code))) in ids.iter().zip(expected).enumerate() {
            let row = sms(&tenant.api, id).await;
            assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some(status), code), "{digit}");
        }
        assert_eq!(sms(&tenant.api, &ids[4]).await["attempts"], 2);
        let refused = tenant.api.post("/v1/sms_messages", json!({ "to_number": PERSON, "body": "x" })).await;
        assert_eq!(refused.error(), (403, "number_not_verified", Some("to_number")));
        let live_key = live(world, &tenant).await;
        assert_eq!(live_key.post("/v1/sms_messages", json!({ "to_number": PERSON, "body": "x" })).await.error(), (501, "not_configured", None));
    }

    async fn what_is_sent_is_charged_and_nothing_else(world: &mut World) {
        let tenant = world.tenant().await;
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let before = tenant.api.get("/v1/credits").await.ok();
        let long = json!({ "body": "a".repeat(161) });
        let mut ids = Vec::new();
        // Delivered, refused, unknown, tried twice; canceled.
        for digit in [0, 2, 7, 4] {
            ids.push(text(&tenant.api, &format!("+1500234000{digit}"), long.clone()).await);
        }
        let canceled = text(&tenant.api, "+15002340010", json!({ "scheduled_at": "2027-03-03T13:00:00Z" })).await;
        tenant.api.post(&format!("/v1/sms_messages/{canceled}/cancel"), json!({})).await.ok();
        world.settle().await;
        let midway = tenant.api.get("/v1/credits").await.ok();
        assert_eq!(midway["held_cents"], 12, "the unknown one's and the one's that is tried again");
        world.advance(minutes(15)).await;
        let mut costs = Vec::new();
        for id in &ids {
            let row = sms(&tenant.api, id).await;
            assert_eq!(row["price_cents"], 6);
            costs.push(row["actual_cost_cents"].as_i64().unwrap());
        }
        assert_eq!(costs, [6, 0, 0, 6]);
        let after = tenant.api.get("/v1/credits").await.ok();
        assert_eq!(after["balance_cents"].as_i64().unwrap(), before["balance_cents"].as_i64().unwrap() - 12);
        assert_eq!(after["held_cents"], 0);
    }

    async fn bad_input_names_its_field(world: &mut World) {
        let tenant = world.tenant().await;
        let good = json!({ "to_number": "+15002340000", "body": "x" });
        for (name, value, param) in [
            ("to_number", json!(null), "to_number"), ("to_number", json!("5002340000"), "to_number"), ("body", json!(""), "body"), ("body", json!("x".repeat(1601)), "body"),
            ("from_number", json!("+12025550199"), "from_number"), ("metadata", json!({ "x": "y".repeat(501) }), "metadata"), ("bdoy", json!("x"), "bdoy"), ("scheduled_at", json!("soon"), "scheduled_at"),
        ] {
            let mut body = good.clone();
            body[name] = value;
            assert_eq!(tenant.api.post("/v1/sms_messages", body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        assert_eq!(tenant.api.get("/v1/sms_messages").await.ok()["data"], json!([]));
        assert_eq!(tenant.api.get("/v1/sms_messages?status=asleep").await.error().0, 422);
        // The workspace's own number writes, the oldest by default.
        tenant.api.post("/v1/numbers", json!({ "phone_number": "+12025550199" })).await.ok();
        let id = text(&tenant.api, "+15002340000", json!({})).await;
        assert_eq!(sms(&tenant.api, &id).await["from_number"], "+12025550199");
    }

    /// The same request twice, also across a crash: one message.
    async fn a_repeated_request_is_one_message(world: &mut World) {
        let tenant = world.tenant().await;
        let post = async || {
            let request = tenant.api.request(reqwest::Method::POST, "/v1/sms_messages").header("Idempotency-Key", "k1");
            tenant.api.send(request.json(&json!({ "to_number": "+15002340000", "body": "x" }))).await.ok()["id"].clone()
        };
        let first = post().await;
        world.restart().await;
        assert_eq!(post().await, first);
        world.advance(minutes(1)).await;
        assert_eq!((world.rows("sms_messages").await, world.rows("message_sends").await), (1, 1));
    }

    async fn what_has_ended_is_forgotten_with_the_events(world: &mut World) {
        let tenant = world.tenant().await;
        text(&tenant.api, "+15002340000", json!({})).await;
        let kept = text(&tenant.api, "+15002340000", json!({ "scheduled_at": "2027-04-05T13:00:00Z" })).await;
        world.settle().await;
        world.leap(minutes(31 * 24 * 60)).await;
        assert_eq!(tenant.api.get("/v1/sms_messages").await.ok()["data"].as_array().unwrap().len(), 1);
        assert_eq!(status(&tenant.api, &kept).await, "scheduled");
    }
}
