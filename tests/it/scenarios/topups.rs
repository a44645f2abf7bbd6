//! Paying for credits: in the sandbox, and by Stripe's pages and notices, which repeat themselves and overtake each other.
use crate::{
    on_both,
    world::{
        Answer, Tenant, World, minutes, seconds,
        stripe_server::{Fault, NOTICE_SECRET, SECRET_KEY, StripeServer, notice, sign},
    },
};
use entities::values::{Env, Scopes};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

const TOPUPS: &str = "/v1/credits/topups";
const WEBHOOK: &str = "/v1/_internal/stripe/webhook";

/// A workspace as it is with live keys, and the Stripe that takes its money.
async fn with_stripe(world: &mut World) -> (Tenant, StripeServer) {
    let stripe = StripeServer::start();
    world.change_setting("stripe_url", json!(stripe.url)).await;
    world
        .change_setting("stripe_webhook_secret", json!(NOTICE_SECRET))
        .await;
    world.change_setting("stripe_secret_key", json!(SECRET_KEY)).await;
    (live(world).await, stripe)
}

async fn live(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let api = world.api(tenant.id, Env::Live, Scopes::all()).await;
    Tenant { api, ..tenant }
}

async fn top_up(tenant: &Tenant, cents: i64) -> Value {
    tenant.api.post(TOPUPS, json!({ "amount_cents": cents })).await.ok()
}

fn id_of(topup: &Value) -> &str {
    topup["id"].as_str().unwrap()
}

async fn read(tenant: &Tenant, id: &str) -> Value {
    tenant.api.get(&format!("{TOPUPS}/{id}")).await.ok()
}

async fn balance(tenant: &Tenant) -> i64 {
    tenant.api.get("/v1/credits").await.ok()["balance_cents"]
        .as_i64()
        .unwrap()
}

async fn send(world: &World, tenant: &Tenant, body: String, signature: &str) -> Answer {
    let post = tenant
        .api
        .client
        .request(Method::POST, format!("{}{WEBHOOK}", world.url));
    let post = post
        .header("content-type", "application/json")
        .header("stripe-signature", signature);
    tenant.api.send(post.body(body)).await
}

/// A good notice.
async fn tell(world: &World, tenant: &Tenant, kind: &str, object: &Value) -> Answer {
    let body = notice(kind, object);
    let signature = sign(NOTICE_SECRET, world.clock.unix_seconds(), &body);
    send(world, tenant, body, &signature).await
}

/// The data of all `credits.topup_succeeded`.
async fn settled(tenant: &Tenant) -> Vec<Value> {
    let events = tenant.events().await.into_iter();
    let settled = events.filter(|event| event["type"] == "credits.topup_succeeded");
    settled.map(|event| event["data"].clone()).collect()
}

async fn entries(tenant: &Tenant, kind: &str) -> Vec<(String, i64)> {
    let list = tenant
        .api
        .get(&format!("/v1/credits/ledger?kind={kind}&order=asc&limit=100"))
        .await
        .ok();
    let entry = |entry: &Value| {
        (
            entry["subject_id"].as_str().unwrap().to_owned(),
            entry["amount_cents"].as_i64().unwrap(),
        )
    };
    list["data"].as_array().unwrap().iter().map(entry).collect()
}

on_both! {
    async fn the_sandbox_settles_at_once(world: &mut World) {
        let tenant = world.tenant().await;
        let opening = balance(&tenant).await;
        let topup = top_up(&tenant, 2_500).await;
        let id = id_of(&topup);
        let payment = topup["processor_payment_intent_id"].as_str().unwrap();
        assert!(payment.starts_with("pi_sandbox_"), "{payment}");
        assert_eq!((&topup["status"], &topup["processor"]), (&json!("succeeded"), &json!("sandbox")));
        assert_eq!((&topup["checkout_url"], &topup["currency"]), (&Value::Null, &json!("USD")));
        assert_eq!(read(&tenant, id).await, topup);
        assert_eq!(balance(&tenant).await, opening + 2_500);
        let told = json!({ "amount_cents": 2_500, "new_balance_cents": opening + 2_500, "currency": "USD", "processor_payment_intent_id": payment });
        assert_eq!(settled(&tenant).await, [told]);
        assert_eq!(entries(&tenant, "topup").await, [(id.to_owned(), 2_500)]);

        let declined = top_up(&tenant, 1_002).await;
        assert_eq!((&declined["status"], &declined["processor_payment_intent_id"]), (&json!("failed"), &Value::Null));
        assert!(declined["error"].as_str().unwrap().contains("nothing was paid"));
        assert_eq!(balance(&tenant).await, opening + 2_500);
        let failed = tenant.api.get(&format!("{TOPUPS}?status=failed")).await.ok();
        assert_eq!(failed["data"], json!([declined]));
        assert_eq!(tenant.api.get(&format!("{TOPUPS}?status=lost")).await.error().0, 422);

        // The same request twice is one payment, also over a crash.
        let again = || tenant.api.request(Method::POST, TOPUPS).header("Idempotency-Key", "k1").json(&json!({ "amount_cents": 700 }));
        let first = tenant.api.send(again()).await.ok();
        world.restart().await;
        assert_eq!(tenant.api.send(again()).await.ok(), first);
        assert_eq!(balance(&tenant).await, opening + 3_200);
    }

    async fn bad_topups_name_the_field_and_change_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let opening = balance(&tenant).await;
        for (body, param) in [
            (json!({}), "amount_cents"),
            (json!({ "amount_cents": 99 }), "amount_cents"),
            (json!({ "amount_cents": 1_000_001 }), "amount_cents"),
            (json!({ "amount_cents": -2_500 }), "amount_cents"),
            (json!({ "amount_cents": 25.5 }), "amount_cents"),
            (json!({ "amount_cents": "2500" }), "amount_cents"),
            (json!({ "amount_cents": 2_500, "currency": "EUR" }), "currency"),
            (json!({ "amount_cents": 2_500, "success_url": "thanks" }), "success_url"),
            (json!({ "amount_cents": 2_500, "success_url": "javascript:alert(1)" }), "success_url"),
            (json!({ "amount_cents": 2_500, "cancel_url": "https://u:p@a.example/" }), "cancel_url"),
            (json!({ "amount_cents": 2_500, "cancel_url": format!("https://a.example/{}", "x".repeat(2_000)) }), "cancel_url"),
        ] {
            assert_eq!(tenant.api.post(TOPUPS, body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        assert_eq!(tenant.api.get(TOPUPS).await.ok()["data"], json!([]));
        assert_eq!(balance(&tenant).await, opening);
    }

    async fn without_a_processor_live_topups_are_not_configured(world: &mut World) {
        let tenant = live(world).await;
        let refused = tenant.api.post(TOPUPS, json!({ "amount_cents": 2_500 })).await;
        assert_eq!(refused.error(), (501, "not_configured", None));
        assert_eq!(tell(world, &tenant, "charge.refunded", &json!({})).await.error(), (501, "not_configured", None));
        assert_eq!(world.rows("topups").await, 0);
    }

    async fn a_payment_is_made_on_stripes_page(world: &mut World) {
        let (tenant, stripe) = with_stripe(world).await;
        let asked = json!({ "amount_cents": 2_500, "success_url": "https://shop.example/thanks?a=1&b=2" });
        let topup = tenant.api.post(TOPUPS, asked).await.ok();
        let id = id_of(&topup);
        assert_eq!((&topup["status"], &topup["processor"]), (&json!("pending"), &json!("stripe")));
        assert_eq!(topup["checkout_url"], "https://checkout.stripe.test/c/pay/cs_test_1");
        assert_eq!(topup["expires_at"], "2027-03-03T12:00:00.000Z");
        let page = &stripe.opened()[0];
        let form = |name: &str| page.form.get(name).map_or("", String::as_str);
        assert_eq!((page.idempotency_key.as_str(), page.version.as_str()), (id, "2025-03-31.basil"));
        assert_eq!((form("client_reference_id"), form("metadata[topup_id]")), (id, id));
        assert_eq!((form("payment_intent_data[metadata][topup_id]"), form("adaptive_pricing[enabled]")), (id, "false"));
        assert_eq!(form("success_url"), "https://shop.example/thanks?a=1&b=2");
        assert_eq!(form("expires_at"), (world.clock.unix_seconds() + 23 * 3600).to_string());
        assert_eq!(balance(&tenant).await, 0);

        // Begun and not paid yet: a slow kind of payment.
        let unpaid = stripe.session_of(id);
        assert_eq!(tell(world, &tenant, "checkout.session.completed", &unpaid).await.ok(), json!({ "received": true }));
        assert_eq!(read(&tenant, id).await, topup);

        let paid = stripe.pay(id);
        world.restart().await;
        for kind in ["checkout.session.async_payment_succeeded", "checkout.session.completed"] {
            assert_eq!(tell(world, &tenant, kind, &paid.session).await.ok(), json!({ "received": true }));
        }
        let after = read(&tenant, id).await;
        assert_eq!((&after["status"], &after["checkout_url"]), (&json!("succeeded"), &Value::Null));
        assert_eq!(after["processor_payment_intent_id"], format!("pi_{id}"));
        assert_eq!(after["settled_at"], "2027-03-02T13:00:00.000Z");
        assert_eq!(balance(&tenant).await, 2_500);
        assert_eq!(settled(&tenant).await.len(), 1);

        // Refunds tell their sum; an older one that comes late changes nothing.
        for (total, left) in [(700, 1_800), (700, 1_800), (1_500, 1_000), (700, 1_000), (2_500, 0), (1_500, 0)] {
            let mut charge = paid.charge(total);
            if total == 1_500 {
                // By its payment alone.
                charge["metadata"] = json!({});
            }
            tell(world, &tenant, "charge.refunded", &charge).await.ok();
            assert_eq!(balance(&tenant).await, left, "{total}");
        }
        assert_eq!(read(&tenant, id).await["refunded_cents"], 2_500);
        let back: Vec<_> = [-700, -800, -1_000].iter().map(|cents| (id.to_owned(), *cents)).collect();
        assert_eq!(entries(&tenant, "refund").await, back);
        assert!(tenant.event_types().await.contains(&"credits.depleted".to_owned()));

        // One of the refunds fails, is told by each of its names, and is here again once.
        let mut failed = json!({ "id": "re_1", "object": "refund", "amount": 800, "currency": "usd", "status": "pending",
            "payment_intent": paid.session["payment_intent"], "metadata": {} });
        tell(world, &tenant, "refund.updated", &failed).await.ok();
        assert_eq!(balance(&tenant).await, 0);
        failed["status"] = json!("failed");
        for kind in ["refund.failed", "refund.updated", "charge.refund.updated"] {
            assert_eq!(tell(world, &tenant, kind, &failed).await.ok(), json!({ "received": true }));
            assert_eq!(balance(&tenant).await, 800, "{kind}");
        }
        assert_eq!(read(&tenant, id).await["refunded_cents"], 1_700);
        assert_eq!(entries(&tenant, "refund_failed").await, [(id.to_owned(), 800)]);
        failed["amount"] = json!("800");
        assert_eq!(tell(world, &tenant, "refund.failed", &failed).await.error(), (422, "validation_failed", Some("amount")));

        // Another workspace and the other env see nothing of it.
        let stranger = live(world).await;
        assert_eq!(stranger.api.get(&format!("{TOPUPS}/{id}")).await.error(), (404, "not_found", None));
        assert_eq!(balance(&stranger).await, 0);
    }

    async fn what_is_not_stripes_or_does_not_fit_moves_nothing(world: &mut World) {
        let (tenant, stripe) = with_stripe(world).await;
        let topup = top_up(&tenant, 2_500).await;
        let id = id_of(&topup).to_owned();
        let paid = stripe.pay(&id);
        let now = world.clock.unix_seconds();
        let good = notice("checkout.session.completed", &paid.session);
        let changed = good.replace("2500", "9900");
        for (body, signature) in [
            (&good, sign("whsec_somebody_elses_secret", now, &good)),
            (&good, sign(NOTICE_SECRET, now - 301, &good)),
            (&good, sign(NOTICE_SECRET, now + 301, &good)),
            (&changed, sign(NOTICE_SECRET, now, &good)),
            (&good, sign(NOTICE_SECRET, now, &good).replace("v1=", "v0=")),
            (&good, "t=1,v1=00".into()),
            (&good, String::new()),
        ] {
            let refused = send(world, &tenant, body.clone(), &signature).await;
            assert_eq!(refused.error(), (400, "invalid_signature", None), "{signature}");
        }
        let large = "x".repeat(1024 * 1024 + 1);
        assert_eq!(send(world, &tenant, large, "t=1,v1=00").await.error().0, 413);
        let nonsense = send(world, &tenant, "{}".into(), &sign(NOTICE_SECRET, now, "{}")).await;
        assert_eq!(nonsense.error(), (400, "invalid_json", None));

        // Signed, and of no use: taken, so that it does not come again.
        let with = |mut object: Value, field: &str, value: Value| {
            object[field] = value;
            object
        };
        let nobody = "00000000-0000-7000-8000-000000000000";
        let unknown = with(with(paid.session.clone(), "client_reference_id", json!(nobody)), "metadata", json!({ "topup_id": nobody }));
        for (kind, object) in [
            ("customer.created", paid.session.clone()),
            ("checkout.session.completed", unknown),
            ("checkout.session.completed", with(paid.session.clone(), "amount_total", json!(9_900))),
            ("checkout.session.completed", with(paid.session.clone(), "amount_total", json!(25))),
            ("checkout.session.completed", with(paid.session.clone(), "currency", json!("eur"))),
            ("checkout.session.completed", with(paid.session.clone(), "id", json!("cs_test_99"))),
            ("checkout.session.expired", with(paid.session.clone(), "id", json!("cs_test_99"))),
            ("payment_intent.succeeded", with(paid.intent(), "metadata", json!({}))),
            ("payment_intent.succeeded", with(paid.intent(), "amount_received", json!(2_499))),
            ("charge.refunded", with(paid.charge(700), "amount_captured", json!(9_900))),
        ] {
            assert_eq!(tell(world, &tenant, kind, &object).await.ok(), json!({ "received": true }), "{kind} {object}");
        }
        // What cannot be read comes again, and is seen in Stripe's dashboard.
        let unreadable = with(paid.session.clone(), "payment_intent", Value::Null);
        assert_eq!(tell(world, &tenant, "checkout.session.completed", &unreadable).await.error(), (422, "validation_failed", Some("payment_intent")));
        assert_eq!(read(&tenant, &id).await, topup);
        assert_eq!((balance(&tenant).await, settled(&tenant).await.len()), (0, 0));

        // A busy database: Stripe sends it again. While the secret is being changed both are good.
        let secrets = format!("whsec_the_one_that_follows,{NOTICE_SECRET}");
        world.change_setting("stripe_webhook_secret", json!(secrets)).await;
        world.fail_next_commits(1);
        assert_eq!(tell(world, &tenant, "payment_intent.succeeded", &paid.intent()).await.error(), (503, "unavailable", None));
        tell(world, &tenant, "payment_intent.succeeded", &paid.intent()).await.ok();
        assert_eq!((balance(&tenant).await, settled(&tenant).await.len()), (2_500, 1));

        // That payment settles no second top-up, and no second payment settles this one.
        let other = top_up(&tenant, 2_500).await;
        let borrowed = with(paid.intent(), "metadata", json!({ "topup_id": other["id"] }));
        tell(world, &tenant, "payment_intent.succeeded", &borrowed).await.ok();
        tell(world, &tenant, "payment_intent.succeeded", &with(paid.intent(), "id", json!("pi_another"))).await.ok();
        assert_eq!(read(&tenant, id_of(&other)).await["status"], "pending");
        assert_eq!((balance(&tenant).await, settled(&tenant).await.len()), (2_500, 1));
    }

    /// 100 payments, each told ten times, all in one heap: at once, in any order, over a crash.
    async fn a_thousand_notices_settle_a_hundred_payments_once_each(world: &mut World) {
        let (tenant, stripe) = with_stripe(world).await;
        let mut notices = Vec::new();
        let (mut due, mut expected) = (0, Vec::new());
        for n in 0..100_i64 {
            // Within the limit of the key.
            world.advance(std::time::Duration::from_millis(50)).await;
            let (cents, back) = (1_000 + n, if n % 4 == 0 { 300 } else { 0 });
            let topup = top_up(&tenant, cents).await;
            let id = id_of(&topup).to_owned();
            let paid = stripe.pay(&id);
            for kind in ["checkout.session.completed", "checkout.session.async_payment_succeeded"] {
                notices.extend(vec![(kind, paid.session.clone()); 2]);
            }
            notices.extend(vec![("payment_intent.succeeded", paid.intent()); 2]);
            // Of an earlier try on the same page, late.
            notices.push(("checkout.session.async_payment_failed", paid.session.clone()));
            notices.push(("checkout.session.expired", paid.session.clone()));
            notices.push(("charge.refunded", paid.charge(back / 3)));
            notices.push(("charge.refunded", paid.charge(back)));
            due += cents - back;
            expected.push((id, cents));
        }
        let full = tenant.api.post(TOPUPS, json!({ "amount_cents": 2_500 })).await;
        assert_eq!(full.error(), (403, "plan_limit", None), "so many may wait at once");
        assert_eq!(notices.len(), 1_000);
        shuffle(&mut notices);
        let (first, second) = notices.split_at(500);
        for half in [first, second] {
            let told = stream::iter(half).map(|(kind, object)| tell(world, &tenant, kind, object));
            let answers: Vec<Answer> = told.buffer_unordered(32).collect().await;
            assert!(answers.iter().all(|answer| answer.status == 200));
            world.restart().await;
        }
        world.advance(seconds(10)).await;
        assert_eq!(balance(&tenant).await, due);
        let mut booked = entries(&tenant, "topup").await;
        booked.sort();
        expected.sort();
        assert_eq!(booked, expected, "each once");
        assert_eq!(settled(&tenant).await.len(), 100);
        let mut back = entries(&tenant, "refund").await;
        back.iter_mut().for_each(|(_, cents)| *cents = -*cents);
        assert_eq!(back.iter().map(|(_, cents)| cents).sum::<i64>(), 25 * 300);
        let succeeded = tenant.api.get(&format!("{TOPUPS}?status=succeeded&limit=100")).await.ok();
        assert_eq!((succeeded["data"].as_array().unwrap().len(), &succeeded["has_more"]), (100, &json!(false)));
    }

    async fn an_answer_that_was_lost_opens_no_second_page(world: &mut World) {
        let (tenant, stripe) = with_stripe(world).await;
        let ask = || tenant.api.request(Method::POST, TOPUPS).header("Idempotency-Key", "k1").json(&json!({ "amount_cents": 2_500 }));
        stripe.fail_next([Fault::Lose, Fault::Refuse(429)]);
        for _ in 0..2 {
            assert_eq!(tenant.api.send(ask()).await.error(), (503, "unavailable", None));
        }
        world.restart().await;
        world.advance(seconds(1)).await;
        let topup = tenant.api.send(ask()).await.ok();
        assert_eq!(topup["checkout_url"], "https://checkout.stripe.test/c/pay/cs_test_1");
        assert_eq!((stripe.opened().len(), world.rows("topups").await), (1, 1));

        // It was opened, and no answer ever came: what is paid there counts all the same.
        stripe.fail_next([Fault::Lose]);
        assert_eq!(tenant.api.post(TOPUPS, json!({ "amount_cents": 4_000 })).await.error().0, 503);
        let lost = tenant.api.get(&format!("{TOPUPS}?limit=1")).await.ok()["data"][0].clone();
        assert_eq!((&lost["status"], &lost["checkout_url"]), (&json!("pending"), &Value::Null));
        let paid = stripe.pay(id_of(&lost));
        tell(world, &tenant, "checkout.session.completed", &paid.session).await.ok();
        assert_eq!(balance(&tenant).await, 4_000);

        // A refusal is final, and what it says is for the log.
        stripe.fail_next([Fault::Refuse(400)]);
        let refused = top_up(&tenant, 3_000).await;
        assert_eq!((&refused["status"], &refused["checkout_url"]), (&json!("failed"), &Value::Null));
        assert_eq!(refused["error"], "the payment page could not be opened; nothing was paid");
    }

    async fn what_a_lost_notice_left_is_asked_for(world: &mut World) {
        let (tenant, stripe) = with_stripe(world).await;
        let paid = top_up(&tenant, 1_000).await;
        top_up(&tenant, 2_000).await;
        let gone = top_up(&tenant, 3_000).await;
        stripe.fail_next([Fault::Refuse(503)]);
        assert_eq!(tenant.api.post(TOPUPS, json!({ "amount_cents": 4_000 })).await.error().0, 503);
        stripe.pay(id_of(&paid));
        stripe.take_requests();
        world.advance(minutes(14)).await;
        assert_eq!(stripe.take_requests(), Vec::<String>::new(), "a notice has its time");

        // The first question is not answered; the second is.
        stripe.fail_next([Fault::Refuse(500), Fault::Refuse(500), Fault::Refuse(500)]);
        world.advance(minutes(2)).await;
        assert_eq!((stripe.take_requests().len(), balance(&tenant).await), (3, 0));
        world.restart().await;
        world.advance(minutes(16)).await;
        assert_eq!((balance(&tenant).await, settled(&tenant).await.len()), (1_000, 1));
        assert_eq!(read(&tenant, id_of(&paid)).await["status"], "succeeded");

        // One page closes; one is still open, for a slow kind of payment; one was never opened.
        stripe.expire(id_of(&gone));
        world.leap(minutes(24 * 60)).await;
        let statuses = async || {
            let all = tenant.api.get(&format!("{TOPUPS}?order=asc")).await.ok();
            all["data"].as_array().unwrap().iter().map(|topup| topup["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(statuses().await, ["succeeded", "pending", "expired", "failed"]);
        // Paid after all.
        let late = stripe.pay(id_of(&gone));
        tell(world, &tenant, "checkout.session.async_payment_succeeded", &late.session).await.ok();
        world.leap(minutes(31 * 24 * 60)).await;
        assert_eq!(statuses().await, ["succeeded", "expired", "succeeded", "failed"]);
        assert_eq!(balance(&tenant).await, 4_000);
        stripe.take_requests();
        world.leap(minutes(24 * 60)).await;
        assert_eq!(stripe.take_requests(), Vec::<String>::new(), "nothing is asked any more");
    }
}

/// The same order each time.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(last, usize::try_from(state % (last as u64 + 1)).unwrap());
    }
}
