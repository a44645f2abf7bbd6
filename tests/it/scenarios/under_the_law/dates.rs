//! Rules begin and end with their days, at midnight of their place, while the service runs; and no wrong clock opens anything.
use super::{
    barred, called, cancel, consent, contacts, draft, eligibility, fates, introduce, law, mid_morning, person_by, run,
    start, under, untouched, with,
};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use entities::values::Moment;
use serde_json::{Value, json};

const DAY_MS: i64 = 24 * 3_600_000;
const NEW_YORK: (&str, &str) = ("US-NY", "America/New_York");
const PORTLAND: (&str, &str) = ("US-OR", "America/Los_Angeles");

/// Of the operator's own: texts end, and calls begin, with 3 March.
const LAW: &str = r#"
[[rule]]
id = "house.spring"
title = "No texts from 3 March on"
places = ["US"]
purposes = ["marketing"]
channels = ["sms"]
says = { kind = "forbidden" }
from = "2027-03-03"
source = "house"
confidence = "high"
mend = "Call them."

[[rule]]
id = "house.winter"
title = "No calls before 3 March"
places = ["US"]
purposes = ["marketing"]
channels = ["phone"]
says = { kind = "forbidden" }
until = "2027-03-03"
source = "house"
confidence = "high"
mend = "Wait."
"#;

async fn leap(world: &World, to: &str) {
    world.leap_to(Moment::parse(to).unwrap()).await;
}

fn somebody(number: &str, (region, timezone): (&str, &str), more: Value) -> Value {
    with(person_by(number, region, timezone), more)
}

async fn says(tenant: &Tenant, path: &str, n: usize, rule: &str) -> Option<String> {
    let contact = contacts(tenant, path).await[n].clone();
    let said = eligibility(tenant, path, &contact).await;
    law(&said, rule).map(str::to_owned)
}

fn texted() -> (String, String, i64) {
    ("completed".to_owned(), "-".to_owned(), 1)
}

on_both! {
    async fn a_rule_begins_at_midnight_of_each_place(world: &mut World) {
        let _file = under(world, LAW).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        let texts = json!({ "channel": "sms", "template": { "body": "Hello." } });
        let moments = [
            ("+15002350000", NEW_YORK, "2027-03-03T04:59:00Z"),
            ("+15002350010", NEW_YORK, "2027-03-03T05:00:00Z"),
            ("+15002350020", PORTLAND, "2027-03-03T05:00:00Z"),
            ("+15002350030", PORTLAND, "2027-03-03T07:59:00Z"),
            ("+15002350040", PORTLAND, "2027-03-03T08:00:00Z"),
        ];
        let mut people = Vec::new();
        for (number, place, at) in moments {
            consent(&tenant.api, number, json!({})).await;
            people.push(somebody(number, place, json!({ "not_before": at })));
        }
        let path = run(&tenant, &people, texts).await;
        leap(world, "2027-03-03T04:59:00Z").await;
        world.advance(seconds(30)).await;
        assert_eq!(fates(&tenant, &path).await[..2], [texted(), untouched()]);
        assert_eq!(says(&tenant, &path, 1, "house.spring").await, None, "23:59 in New York");
        leap(world, "2027-03-03T05:00:00Z").await;
        world.advance(seconds(30)).await;
        assert_eq!(fates(&tenant, &path).await[..4], [texted(), barred(), texted(), untouched()]);
        assert_eq!(says(&tenant, &path, 1, "house.spring").await.as_deref(), Some("never"));
        assert_eq!(says(&tenant, &path, 3, "house.spring").await, None, "21:00 in Portland");
        leap(world, "2027-03-03T07:59:00Z").await;
        world.advance(seconds(30)).await;
        leap(world, "2027-03-03T08:00:00Z").await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [texted(), barred(), texted(), texted(), barred()]);
    }

    /// Who is not read before is judged by what holds then; with several clocks the last of them ends it.
    async fn a_rule_ends_at_midnight_of_the_last_clock(world: &mut World) {
        let _file = under(world, LAW).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        // In two zones: it may be either.
        let somewhere = json!({ "phone_number": "+15002340001", "region": "US-FL" });
        let path = draft(&tenant, &[somebody("+15002340001", NEW_YORK, json!({}))], json!({})).await;
        let both = draft(&tenant, &[somewhere], json!({})).await;
        for (at, [new_york, florida]) in [
            ("2027-03-03T04:59:58Z", [Some("never"), Some("never")]),
            ("2027-03-03T05:00:00Z", [None, Some("never")]),
            ("2027-03-03T05:59:58Z", [None, Some("never")]),
            ("2027-03-03T06:00:00Z", [None, None]),
        ] {
            world.clock.set(Moment::parse(at).unwrap());
            world.settle().await;
            assert_eq!(says(&tenant, &path, 0, "house.winter").await.as_deref(), new_york, "{at}");
            assert_eq!(says(&tenant, &both, 0, "house.winter").await.as_deref(), florida, "{at}");
        }
        leap(world, "2027-03-03T15:00:00Z").await;
        start(&tenant, &path).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
    }

    /// The machine's clock is a day ahead: by it the calls would be open. Nobody is called while it is in doubt, and by the right one
    /// they are closed.
    async fn a_clock_in_doubt_opens_nothing(world: &mut World) {
        let _file = under(world, LAW).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let path = draft(&tenant, &[somebody("+15002340001", NEW_YORK, json!({}))], json!({})).await;
        world.clock.step_wall(DAY_MS);
        world.advance(seconds(30)).await;
        start(&tenant, &path).await;
        world.advance(minutes(5)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched()]);
        assert_eq!(says(&tenant, &path, 0, "house.winter").await.as_deref(), Some("never"), "by our time");
        world.clock.step_wall(-DAY_MS);
        world.advance(minutes(3)).await;
        assert_eq!(fates(&tenant, &path).await, [barred()]);
    }

    /// The wall clock is a minute and a half ahead, and trusted: by it the day has come. Nobody is planned, and refused, again and again
    /// until it has by our time.
    async fn what_begins_between_the_two_clocks_is_waited_for(world: &mut World) {
        let _file = under(world, LAW).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        consent(&tenant.api, "+15002350000", json!({})).await;
        leap(world, "2027-03-03T04:59:00Z").await;
        world.clock.step_wall(90_000);
        assert!(!world.clock.is_in_doubt());
        let texts = json!({ "channel": "sms", "template": { "body": "Hello." } });
        let path = run(&tenant, &[somebody("+15002350000", NEW_YORK, json!({}))], texts).await;
        world.advance(seconds(10)).await;
        let waits = contacts(&tenant, &path).await[0].clone();
        assert_eq!((&waits["attempts"], &waits["next_attempt_at"]), (&json!(0), &json!("2027-03-03T05:00:00.000Z")), "{waits}");
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [barred()]);
    }

    /// Set back by a day, and taken for true: what began by our time holds, though the wall clock has yet to see that day.
    async fn a_clock_that_was_set_back_opens_nothing(world: &mut World) {
        let _file = under(world, LAW).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        leap(world, "2027-03-03T15:00:00Z").await;
        consent(&tenant.api, "+15002350000", json!({})).await;
        world.clock.step_wall(-DAY_MS);
        world.advance(minutes(12)).await;
        let texts = json!({ "channel": "sms", "template": { "body": "Hello." } });
        let path = run(&tenant, &[somebody("+15002350000", NEW_YORK, json!({}))], texts).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [barred()], "{:#}", tenant.api.get(&format!("{path}/contacts")).await.ok());
        // A call is closed by the wall clock's day, and open by ours: it waits until both agree.
        consent(&tenant.api, "+15002340001", json!({})).await;
        let calls = run(&tenant, &[somebody("+15002340001", NEW_YORK, json!({}))], json!({})).await;
        world.advance(minutes(10)).await;
        assert_eq!(fates(&tenant, &calls).await[0].2, 0);
        cancel(world, &tenant, &calls).await;
    }
}
