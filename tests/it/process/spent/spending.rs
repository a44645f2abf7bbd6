//! One campaign that calls, one that texts and one that mails, and whatever the API is asked for beside them.
use super::{Shop, answered, post, post_all};
use crate::{
    process::{Place, number, on_disk, written::count},
    world::{Backend, twilio::Reply},
};
use serde_json::{Value, json};
use std::time::Duration;

/// By hand with more: `CALLBOARD_TEST_KILLS=100`.
fn killed_while_it_spends(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 5);
        // A second of talk costs 20, and no more than two are set aside: so the balance may fall below zero.
        let mut shop = Shop::open(
            place,
            &[
                ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "1200"),
                ("CALLBOARD_CREDIT_HOLD_SECONDS", "2"),
                ("CALLBOARD_TEST_CREDITS_CENTS", "900"),
                ("CALLBOARD_CREDIT_WARNING_THRESHOLD_CENTS", "300"),
            ],
        )
        .await;
        let agent = shop.agent(json!({ "name": "Ann", "prompt": "x" })).await;
        let campaigns = campaigns(&mut shop, &agent, kills).await;
        // What was granted is booked at the next start.
        shop.grants(300);
        shop.kill();
        shop.live
            .until("/v1/credits", |credits| credits["balance_cents"] != 0)
            .await;
        for kill in 0..kills {
            shop.grants(100);
            let n = |of: usize| kill * 10 + of;
            // Some are not taken, of some the answer is lost.
            let busy = || Reply::Status(503, None, json!({ "code": 20503, "message": "busy" }));
            shop.provider
                .answer_next([busy(), Reply::HangUp, Reply::error(400, 21211)]);
            shop.mails.answer_next(vec!["250 taken", "451 later", "554 no"]);
            let text = |of| json!({ "to_number": format!("+1202555{:04}", 200 + n(of) % 700), "body": format!("Text {}", n(of)) });
            let mail = |of| json!({ "to": format!("p{}@example.com", n(of)), "subject": "x", "text": "x" });
            let call = |of| json!({ "to_number": format!("+15008{:05}0", n(of)), "agent_id": agent });
            let texts = post_all(&shop.live, "/v1/sms_messages", (0..6).map(text));
            let mails = post_all(&shop.live, "/v1/email_messages", (0..6).map(mail));
            let calls = post_all(&shop.test, "/v1/sessions", (0..4).map(call));
            // Some moment that differs each time.
            if kill % 3 == 0 {
                shop.spends_all().await;
            }
            answered(&[&texts, &mails, &calls], [9, 3, 16, 0, 12, 6, 14, 1][kill % 8]).await;
            if kill % 3 == 1 {
                // Cut off in the middle of a payment.
                let body = json!({ "amount_cents": 2_000 });
                let _ = tokio::time::timeout(
                    Duration::from_millis(kill as u64 % 5),
                    post(&shop.test, "/v1/credits/topups", Some(&format!("order {kill}")), body),
                )
                .await;
            }
            shop.kill();
            shop.answers("sms", texts).await;
            shop.answers("email", mails).await;
            shop.answers("session", calls).await;
            // Every fourth payment is declined.
            let cents = if kill % 4 == 3 { 2_002 } else { 2_000 };
            let declined = kill % 4 == 3 && kill % 3 != 1;
            let topup = shop
                .tops_up(&format!("order {kill}"), if kill % 3 == 1 { 2_000 } else { cents })
                .await;
            assert_eq!(
                topup["status"],
                if declined { "failed" } else { "succeeded" },
                "{topup}"
            );
        }
        // Enough for all the rest.
        shop.tops_up("last", 1_000_000).await;
        shop.grants(100_000);
        shop.kill();
        for campaign in &campaigns[..1] {
            shop.test
                .until(campaign, |campaign| campaign["status"] == "completed")
                .await;
        }
        shop.quiet().await;
        shop.provider_reports().await;
        shop.quiet().await;
        let dump = shop.checked();
        assert_eq!(count(&dump, "kind", "topup"), kills + 1, "one payment for each order");
        for kind in ["credits.depleted", "credits.low_balance", "credits.topup_succeeded"] {
            assert!(count(&dump, "type", kind) > 0, "there was no {kind} to look at");
        }
    });
}

/// One that calls, one that texts and one that mails, so large that there is something to do until the last kill.
async fn campaigns(shop: &mut Shop, agent: &Value, kills: usize) -> Vec<String> {
    let windows = json!({ "windows": [{ "start": "00:00", "end": "24:00" }] });
    let digits = [0, 1, 0, 2, 0, 4, 0, 9];
    let number = |prefix: &str, n: usize| json!({ "phone_number": format!("{prefix}{n:05}{}", digits[n % 8]), "first_name": "Bo" });
    let address = |n: usize| {
        let local = ["ann", "bob", "bounced", "eve", "deferred", "zoe"][n % 6];
        json!({ "email": format!("{local}@d{n}.example"), "first_name": "Bo" })
    };
    let size = 60 + 12 * kills;
    let plans = [
        json!({ "name": "Calls", "agent_id": agent, "contacts": (0..size).map(|n| number("+15002", n)).collect::<Vec<_>>() }),
        json!({ "name": "Texts", "channel": "sms", "template": { "body": "Hello {{first_name}}." },
            "contacts": (0..size / 2).map(|n| number("+15003", n)).collect::<Vec<_>>() }),
        json!({ "name": "Mails", "channel": "email", "template": { "subject": "Hello {{first_name}}", "text": "Hello." },
            "contacts": (0..size / 2).map(address).collect::<Vec<_>>() }),
    ];
    let mut paths = Vec::new();
    for mut plan in plans {
        plan["pacing"] = json!({ "calls_per_second": 40 });
        plan["retry"] = json!({ "max_attempts": 2, "min_gap_minutes": 0 });
        plan["schedule"] = windows.clone();
        let campaign = shop.test.post("/v1/campaigns/run", plan).await;
        shop.acknowledged
            .push(json!({ "kind": "campaign", "id": campaign["id"] }));
        paths.push(format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap()));
    }
    paths
}

#[test]
fn killed_while_it_spends_on_sqlite() {
    killed_while_it_spends(Backend::Sqlite);
}
#[test]
fn killed_while_it_spends_on_postgres() {
    killed_while_it_spends(Backend::Postgres);
}
