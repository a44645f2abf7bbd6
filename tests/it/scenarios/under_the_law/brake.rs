//! A campaign that leaves people with silence is held, its owners are told, and it goes on by itself when the span is over.
use super::{
    called, campaign, consent, contacts, eligibility, fates, introduce, law, mid_morning, number, person, run,
    untouched,
};
use crate::{
    on_both,
    world::{
        Tenant, World, minutes,
        realtime_server::{self, RealtimeServer, Turn},
    },
};
use entities::values::Moment;
use serde_json::json;

const BRITISH: &str = "+442071838750";
/// Two who answer, and two whose lines are busy.
const NUMBERS: [&str; 4] = ["+15002348000", "+15002348010", "+15002348001", "+15002348011"];

async fn leap(world: &World, to: &str) {
    world.leap_to(Moment::parse(to).unwrap()).await;
}

/// Nothing more is dialled, and the campaign says why.
async fn assert_held(tenant: &Tenant, path: &str, when: &str) {
    let row = campaign(tenant, path).await;
    let is_held = (&row["status"], &row["blocked_by"]);
    assert_eq!(is_held, (&json!("running"), &json!(["abandonment"])), "{when}: {row}");
    assert_eq!(fates(tenant, path).await[2..], [untouched(), untouched()], "{when}");
}

/// How often the owner was told.
fn letters(world: &World) -> usize {
    let subject = "Subject: Campaign held for abandoned calls: Spring";
    let mails = world.mail_files();
    mails.iter().filter(|mail| mail.contains(subject)).count()
}

on_both! {
    /// Source: Ofcom, persistent misuse, over 24 hours. The agent's model fails before its first word.
    async fn who_abandons_people_is_held_until_the_span_is_over(world: &mut World) {
        let server = RealtimeServer::start_with(|_: &Turn, _| realtime_server::Answer::Fail("out of order".into()));
        world.change_settings(&[("realtime_url", json!(server.url)), ("law_file", "".into())]).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        number(world, &tenant, BRITISH).await;
        let broken = json!({ "name": "Ann", "prompt": "Be kind.", "brain": { "mode": "realtime" } });
        let broken = tenant.api.post("/v1/agents", broken).await.ok();
        mid_morning(world).await;
        let mut people = Vec::new();
        for to in NUMBERS {
            consent(&tenant.api, to, json!({})).await;
            people.push(person(to, "GB"));
        }
        // The next is called when it is known what has become of the one before.
        let one_by_one = json!({ "calls_per_second": 1, "max_concurrency": 1 });
        let plan = json!({ "agent_id": broken["id"], "from_numbers": [BRITISH], "pacing": one_by_one });
        let path = run(&tenant, &people, plan).await;
        world.advance(minutes(5)).await;
        let id = path.trim_start_matches("/v1/campaigns/");
        let list = tenant.api.get(&format!("/v1/sessions?campaign_id={id}")).await.ok();
        let calls = list["data"].as_array().unwrap();
        assert_eq!(calls.len(), 2, "one by itself is not a rate: {list:#}");
        assert!(calls.iter().all(|call| call["abandoned"].is_string()), "{list:#}");
        assert_held(&tenant, &path, "two of two").await;
        let waits = contacts(&tenant, &path).await[2].clone();
        let said = eligibility(&tenant, &path, &waits).await;
        assert_eq!(law(&said, "gb.abandonment"), Some("wait"), "{said:#}");
        assert_eq!(letters(world), 1);

        world.restart().await;
        world.advance(minutes(5)).await;
        assert_held(&tenant, &path, "after a crash").await;
        // They were called in the hour that began at 15:00, and that counts until all of it is a day old.
        leap(world, "2027-03-03T15:58:00Z").await;
        world.advance(minutes(1)).await;
        assert_held(&tenant, &path, "a minute before").await;
        world.advance(minutes(3)).await;
        assert_eq!(fates(&tenant, &path).await[2..], [called(), called()]);
        let row = campaign(&tenant, &path).await;
        assert_eq!((&row["status"], &row["blocked_by"]), (&json!("completed"), &json!([])), "{row}");
        assert_eq!(letters(world), 1, "once, though it was held over a crash");
    }
}
