//! Many who want the same few cents at once.
use super::{Shop, answered, post_all};
use crate::{
    process::{Place, number, on_disk, pause, written::count},
    world::Backend,
};
use serde_json::json;

/// Two hundred calls are asked for at once, and the credits cover ten.
fn killed_while_all_want_the_last_cents(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 3);
        let mut shop = Shop::open(
            place,
            &[
                ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "60"),
                // Strict: a call holds all that it can cost.
                ("CALLBOARD_CREDIT_HOLD_SECONDS", "0"),
                ("CALLBOARD_TEST_CREDITS_CENTS", "650"),
            ],
        )
        .await;
        let agent = json!({ "name": "Ann", "prompt": "x", "max_duration_seconds": 60 });
        let agent = shop.agent(agent).await;
        // One key may not ask for so many at once.
        let keys: Vec<_> = (0..4).map(|n| shop.another_key(&format!("k{n}"))).collect();
        let (mut created, mut refused) = (0, 0);
        for kill in 0..kills {
            let call = |of| json!({ "to_number": format!("+15004{:05}0", kill * 200 + of), "agent_id": agent });
            let calls = keys.iter().zip(0..).map(|(api, part)| {
                let its = part * 200 / keys.len()..(part + 1) * 200 / keys.len();
                post_all(api, "/v1/sessions", its.map(call))
            });
            let calls: Vec<_> = calls.flatten().collect();
            answered(&[&calls], [60, 20, 150, 3, 100, 199][kill % 6]).await;
            shop.kill();
            let [more, without] = shop.answers("session", calls).await;
            (created, refused) = (created + more, refused + without);
            // Those who were granted wait until it covers them.
            shop.tops_up(&format!("order {kill}"), 100).await;
        }
        // Those who wait take the rest, however slow the machine: from then on whoever asks is refused.
        for n in 0..600 {
            let call = json!({ "to_number": format!("+15005{n:05}0"), "agent_id": agent });
            let asked = post_all(&keys[0], "/v1/sessions", std::iter::once(call));
            let [more, without] = shop.answers("session", asked).await;
            (created, refused) = (created + more, refused + without);
            if refused > 0 {
                break;
            }
            pause(100).await;
        }
        shop.tops_up("last", 1_000_000).await;
        shop.quiet().await;
        let dump = shop.checked();
        eprintln!(
            "{} calls were asked for, {created} were told of, {refused} were told that credits lack",
            kills * 200
        );
        let least = dump.iter().filter_map(|line| line["balance_after"].as_i64()).min();
        assert!(least >= Some(0), "holds cover what a call can cost");
        assert!(
            count(&dump, "kind", "session") > 0 && refused > 0,
            "there was something to look at"
        );
    });
}

#[test]
fn killed_while_all_want_the_last_cents_on_sqlite() {
    killed_while_all_want_the_last_cents(Backend::Sqlite);
}
#[test]
fn killed_while_all_want_the_last_cents_on_postgres() {
    killed_while_all_want_the_last_cents(Backend::Postgres);
}
