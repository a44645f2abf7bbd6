//! When somebody may be called, and how often, by the law of the place and by the clocks there.
use super::{
    SELLER, attempts, called, campaign, cancel, consent, contacts, eligibility, fates, introduce, law, mid_morning,
    number, person, person_by, run, seller, untouched,
};
use crate::{
    on_both,
    world::{
        Tenant, World, minutes,
        realtime_server::{self, RealtimeServer, Turn},
        seconds,
    },
};
use entities::values::Moment;
use serde_json::{Value, json};

async fn leap(world: &World, to: &str) {
    world.leap_to(Moment::parse(to).unwrap()).await;
}

/// Until when its campaign rests because everybody sleeps; `None`: it does not.
async fn opens(tenant: &Tenant, path: &str) -> Option<String> {
    let row = campaign(tenant, path).await;
    let rests = row["pause_reason"] == "quiet_hours";
    rests.then(|| row["next_open_at"].as_str().unwrap().to_owned())
}

/// The one contact of a campaign: why it waits, until when, how often it was called.
async fn waits(tenant: &Tenant, path: &str) -> (String, String, i64) {
    let contact = contacts(tenant, path).await[0].clone();
    let text = |name: &str| contact[name].as_str().unwrap_or("-").to_owned();
    let until: String = text("next_attempt_at").chars().take(15).collect();
    (text("wait_reason"), until, contact["attempts"].as_i64().unwrap())
}

/// As often as it is busy, every ten minutes, whatever the workspace's own caps say.
fn again_and_again() -> Value {
    json!({
        "retry": { "max_attempts": 8, "min_gap_minutes": 10 },
        "caps": { "per_number_24h": null, "per_number_7d": null },
    })
}

on_both! {
    /// Source: Texas B&C 301.051: on Sundays from noon. Both sides of the minute.
    async fn texas_sleeps_on_sundays_until_noon(world: &mut World) {
        let tenant = seller(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        leap(world, "2027-03-07T17:58:00Z").await;
        let path = run(&tenant, &[person_by("+15002340001", "US-TX", "America/Chicago")], json!({})).await;
        world.advance(seconds(5)).await;
        assert_eq!(opens(&tenant, &path).await.as_deref(), Some("2027-03-07T18:00:00.000Z"));
        world.advance(seconds(100)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched()], "11:59 in Austin");
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
    }

    /// Source: decree 2022-1313: weekdays 10:00 to 13:00 and 14:00 to 20:00, never on holidays.
    async fn france_eats_and_keeps_its_holidays(world: &mut World) {
        let tenant = seller(world).await;
        for n in 1..=4 {
            consent(&tenant.api, &format!("+15002340{n:02}1"), json!({})).await;
        }
        let call = async |n: usize| {
            let path = run(&tenant, &[person(&format!("+15002340{n:02}1"), "FR")], json!({})).await;
            world.advance(seconds(20)).await;
            path
        };
        leap(world, "2027-03-03T11:58:00Z").await;
        let before = call(1).await;
        assert_eq!((fates(&tenant, &before).await, opens(&tenant, &before).await), (vec![called()], None), "12:58 in Paris");
        // All of the ringing must lie inside.
        leap(world, "2027-03-03T11:59:40Z").await;
        let meal = call(2).await;
        assert_eq!(opens(&tenant, &meal).await.as_deref(), Some("2027-03-03T13:00:00.000Z"));
        world.advance(minutes(59)).await;
        assert_eq!(fates(&tenant, &meal).await, [untouched()], "13:59 in Paris");
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &meal).await, [called()]);
        leap(world, "2027-03-05T18:59:45Z").await;
        let evening = call(3).await;
        assert_eq!(opens(&tenant, &evening).await.as_deref(), Some("2027-03-08T09:00:00.000Z"), "from Friday to Monday");
        // The Monday of Easter, the day after the clocks went ahead.
        leap(world, "2027-03-29T12:30:00Z").await;
        let easter = call(4).await;
        assert_eq!(opens(&tenant, &easter).await.as_deref(), Some("2027-03-30T08:00:00.000Z"));
        for path in [evening, easter] {
            cancel(world, &tenant, &path).await;
        }
    }

    /// Who has no hour left before the end is told by whose hours.
    async fn who_may_not_be_called_before_the_end_is_skipped_by_that_rule(world: &mut World) {
        let tenant = seller(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        // Friday, 20:30 in Paris.
        leap(world, "2027-03-05T19:30:00Z").await;
        let schedule = json!({ "schedule": { "ends_at": "2027-03-06T12:00:00Z" } });
        let path = run(&tenant, &[person("+15002340001", "FR")], schedule).await;
        world.advance(seconds(5)).await;
        let contact = contacts(&tenant, &path).await[0].clone();
        let why = (&contact["skip_reason"], &contact["skip_rule"]);
        assert_eq!(why, (&json!("quiet_hours_expired"), &json!("fr.hours")), "{contact}");
    }

    async fn germany_rests_on_saturday(world: &mut World) {
        let tenant = seller(world).await;
        for number in ["+15002340001", "+15002340011"] {
            consent(&tenant.api, number, json!({})).await;
        }
        leap(world, "2027-03-06T10:00:00Z").await;
        let path = run(&tenant, &[person("+15002340001", "DE")], json!({})).await;
        world.advance(seconds(5)).await;
        assert_eq!(opens(&tenant, &path).await.as_deref(), Some("2027-03-08T08:00:00.000Z"));
        // Observed, nobody asks for the hours of the place.
        let observed = run(&tenant, &[person("+15002340011", "DE")], json!({ "sandbox_law": "observe" })).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &observed).await, [called()]);
        cancel(world, &tenant, &path).await;
    }

    /// The campaign's own windows hold on top: of both the later opening.
    async fn the_campaigns_own_windows_stay(world: &mut World) {
        let tenant = seller(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        leap(world, "2027-03-03T08:00:00Z").await;
        for (window, expected) in [
            (json!({ "start": "06:00", "end": "22:00" }), "2027-03-03T09:00:00.000Z"),
            (json!({ "start": "13:30", "end": "18:00" }), "2027-03-03T13:00:00.000Z"),
            (json!({ "start": "17:00", "end": "18:00" }), "2027-03-03T16:00:00.000Z"),
        ] {
            let path = run(&tenant, &[person("+15002340001", "FR")], json!({ "schedule": { "windows": [window] } })).await;
            world.advance(seconds(5)).await;
            assert_eq!(opens(&tenant, &path).await.as_deref(), Some(expected));
            cancel(world, &tenant, &path).await;
        }
    }

    /// The fourth call within a day, whatever the campaign's own caps are.
    async fn the_united_states_three_a_day(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let path = run(&tenant, &[person_by("+15002340001", "US-FL", "America/New_York")], again_and_again()).await;
        world.advance(minutes(90)).await;
        assert_eq!(waits(&tenant, &path).await, ("cap".to_owned(), "2027-03-03T15:0".to_owned(), 3));
        let contact = contacts(&tenant, &path).await[0].clone();
        let said = eligibility(&tenant, &path, &contact).await;
        assert_eq!([law(&said, "us.cap.day"), law(&said, "us-fl.cap"), law(&said, "us.cap.week")], [Some("wait"), Some("wait"), Some("yes")]);
        // Another campaign asks the same of that number, and a direct call.
        let other = run(&tenant, &[person_by("+15002340001", "US-FL", "America/New_York")], again_and_again()).await;
        world.advance(seconds(30)).await;
        assert_eq!(waits(&tenant, &other).await, ("cap".to_owned(), "2027-03-03T15:0".to_owned(), 0));
        let call = json!({ "to_number": "+15002340001", "agent_id": tenant.agent().await, "sandbox_law": "enforce", "contact": { "region": "US-FL", "timezone": "America/New_York" } });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (409, "daily_cap_reached", Some("to_number")));
        cancel(world, &tenant, &other).await;
        leap(world, "2027-03-03T15:09:00Z").await;
        world.advance(minutes(1)).await;
        assert_eq!(waits(&tenant, &path).await.2, 4);
        cancel(world, &tenant, &path).await;
    }

    /// Source: decree 2022-1313: four in 30 days.
    async fn france_four_in_thirty_days(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let path = run(&tenant, &[person("+15002340001", "FR")], again_and_again()).await;
        world.advance(minutes(120)).await;
        assert_eq!(waits(&tenant, &path).await, ("cap".to_owned(), "2027-04-01T15:0".to_owned(), 4));
        leap(world, "2027-04-01T14:58:00Z").await;
        assert_eq!(waits(&tenant, &path).await.2, 4);
        world.advance(minutes(8)).await;
        assert_eq!(waits(&tenant, &path).await.2, 5);
        cancel(world, &tenant, &path).await;
    }

    /// A cap that is not waited for, and one that outlives the campaign, skip as the campaign's own would.
    async fn a_cap_of_the_law_skips_where_the_campaign_says_so(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let first = run(&tenant, &[person_by("+15002340001", "US-FL", "America/New_York")], again_and_again()).await;
        world.advance(minutes(90)).await;
        cancel(world, &tenant, &first).await;
        for more in [
            json!({ "caps": { "on_cap": "skip", "per_number_24h": null, "per_number_7d": null } }),
            json!({ "caps": { "per_number_24h": null, "per_number_7d": null }, "schedule": { "ends_at": "2027-03-03T10:00:00Z" } }),
        ] {
            let path = run(&tenant, &[person_by("+15002340001", "US-FL", "America/New_York")], more).await;
            world.advance(seconds(30)).await;
            assert_eq!(fates(&tenant, &path).await, [("skipped".to_owned(), "daily_cap_reached".to_owned(), 0)]);
        }
    }

    /// Source: decree 2022-1313: 60 days after a no.
    async fn who_has_said_no_in_france_has_sixty_days(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let call = json!({ "to_number": "+15002340001", "agent_id": tenant.agent().await, "sandbox": { "outcome": "declined" } });
        tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(minutes(1)).await;
        let path = run(&tenant, &[person("+15002340001", "FR")], json!({})).await;
        world.advance(seconds(30)).await;
        assert_eq!(fates(&tenant, &path).await, [("skipped".to_owned(), "daily_cap_reached".to_owned(), 0)], "nobody waits so long");
        let contact = contacts(&tenant, &path).await[0].clone();
        assert_eq!(contact["skip_rule"], "fr.rest");
        let said = eligibility(&tenant, &path, &contact).await;
        assert_eq!((law(&said, "fr.rest"), law(&said, "fr.cap")), (Some("wait"), Some("yes")));
        let rest = said["law"].as_array().unwrap().iter().find(|asked| asked["rule"] == "fr.rest").unwrap();
        assert!(rest["until"].as_str().unwrap().starts_with("2027-05-01T15:0"), "{rest}");
        // The first of May is a Saturday, and a holiday.
        leap(world, "2027-05-03T08:01:00Z").await;
        let path = run(&tenant, &[person("+15002340001", "FR")], json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [called()], "Monday, 10:00 in Paris");
    }

    /// Source: Ofcom, persistent misuse: 72 hours after a call that was abandoned. The agent's model fails before its first word.
    async fn who_was_left_with_silence_in_britain_has_three_days(world: &mut World) {
        let server = RealtimeServer::start_with(|_: &Turn, _| realtime_server::Answer::Fail("out of order".into()));
        world.change_settings(&[("realtime_url", json!(server.url)), ("law_file", "".into())]).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        number(world, &tenant, "+442071838750").await;
        let broken = json!({ "name": "Ann", "prompt": "Be kind.", "brain": { "mode": "realtime" } });
        let broken = tenant.api.post("/v1/agents", broken).await.ok();
        tenant.run_campaign(&["+15002348000"], json!({ "agent_id": broken["id"] })).await;
        world.advance(minutes(120)).await;
        consent(&tenant.api, "+15002348000", json!({})).await;
        let path = run(&tenant, &[person("+15002348000", "GB")], json!({ "from_numbers": ["+442071838750"] })).await;
        world.advance(seconds(30)).await;
        assert_eq!(waits(&tenant, &path).await, ("cap".to_owned(), "2027-03-05T13:0".to_owned(), 0));
        let contact = contacts(&tenant, &path).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &path, &contact).await, "gb.rest"), Some("wait"));
        leap(world, "2027-03-05T13:10:00Z").await;
        world.advance(minutes(5)).await;
        let attempt = attempts(&tenant, &path).await[0].clone();
        assert_eq!((&attempt["seller"], &attempt["objections"]), (&json!(SELLER), &json!([])), "{attempt}");
    }
}
