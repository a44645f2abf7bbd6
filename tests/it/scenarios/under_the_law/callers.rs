//! Who calls: a number that may be shown to that person and that somebody answers, and a name that can be said.
use super::{
    CALLER, SELLER, attempts, called, campaign, consent, contacts, draft, eligibility, fates, law, mid_morning, number,
    person, run, seller, untouched,
};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use serde_json::{Value, json};

const MOBILE: &str = "+33612345678";
const LANDLINE: &str = "+33140205050";
const BRITISH: &str = "+442071838750";

async fn blocked(tenant: &Tenant, path: &str) -> Value {
    campaign(tenant, path).await["blocked_by"].clone()
}

/// The rule that keeps it from being started.
async fn cannot_start(tenant: &Tenant, path: &str) -> String {
    let refused = tenant.api.post(&format!("{path}/start"), json!({})).await;
    let (status, code, rule) = refused.error();
    assert_eq!((status, code), (409, "compliance_blocked"), "{}", refused.body);
    rule.unwrap().to_owned()
}

/// Two people in Germany who have agreed to be called for a seller that the campaign names: one at once, one ten seconds later.
async fn slow(tenant: &Tenant) -> String {
    let mut people = Vec::new();
    for number in ["+15002340101", "+15002340111"] {
        consent(&tenant.api, number, json!({})).await;
        people.push(person(number, "DE"));
    }
    let more = json!({ "seller": SELLER, "pacing": { "calls_per_second": 0.1 } });
    run(tenant, &people, more).await
}

/// What its calls have shown, in the order of its contacts.
async fn shown(tenant: &Tenant, path: &str) -> Vec<String> {
    let mut shown = Vec::new();
    for contact in contacts(tenant, path).await {
        let last = contact["last_session_id"].as_str().unwrap().to_owned();
        let session = tenant.api.get(&format!("/v1/sessions/{last}")).await.ok();
        shown.push(session["from_number"].as_str().unwrap().to_owned());
    }
    shown
}

on_both! {
    /// Source: decree 2022-1313: no 06 and no 07.
    async fn france_is_shown_no_mobile_number(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        for owned in [MOBILE, LANDLINE] {
            number(world, &tenant, owned).await;
        }
        let mut people = Vec::new();
        for n in 0..4 {
            let number = format!("+150023400{n}1");
            consent(&tenant.api, &number, json!({})).await;
            people.push(person(&number, "FR"));
        }
        let alone = draft(&tenant, &people[..1], json!({ "from_numbers": [MOBILE] })).await;
        assert_eq!(cannot_start(&tenant, &alone).await, "fr.caller");
        let contact = contacts(&tenant, &alone).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &alone, &contact).await, "fr.caller"), Some("wait"));
        // With another number beside it, that is shown to all of them, whichever is named first.
        let path = run(&tenant, &people, json!({ "from_numbers": [MOBILE, LANDLINE] })).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 4]);
        assert_eq!(shown(&tenant, &path).await, [LANDLINE; 4]);
        for attempt in attempts(&tenant, &path).await {
            assert_eq!((&attempt["from_number"], &attempt["objections"]), (&json!(LANDLINE), &json!([])), "{attempt}");
        }
    }

    /// Source: Ofcom's guidance on CLI: to people in Britain a British number. Others take turns.
    async fn each_place_is_shown_what_it_may_be_shown(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        number(world, &tenant, BRITISH).await;
        let mut people = Vec::new();
        for (n, region) in ["GB", "DE", "GB", "DE", "GB"].into_iter().enumerate() {
            let number = format!("+150023400{n}1");
            consent(&tenant.api, &number, json!({})).await;
            people.push(person(&number, region));
        }
        let path = run(&tenant, &people, json!({ "from_numbers": [CALLER, BRITISH] })).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 5]);
        let shown = shown(&tenant, &path).await;
        assert_eq!([&shown[0], &shown[2], &shown[4]], [BRITISH; 3]);
        assert!([&shown[1], &shown[3]].iter().any(|number| *number == CALLER), "{shown:?}");
    }

    /// The number loses its agent, and with it everybody who would take an opt-out; then it has one again.
    async fn a_number_that_nobody_answers_is_not_shown(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let path = slow(&tenant).await;
        world.advance(seconds(5)).await;
        let row = tenant.api.get("/v1/numbers").await.ok()["data"][0].clone();
        let own = format!("/v1/numbers/{}", row["id"].as_str().unwrap());
        tenant.api.patch(&own, json!({ "agent_id": null })).await.ok();
        world.advance(minutes(2)).await;
        assert_eq!((fates(&tenant, &path).await, blocked(&tenant, &path).await), (vec![called(), untouched()], json!(["caller_id"])));
        assert_eq!(cannot_start(&tenant, &draft(&tenant, &[person("+15002340001", "DE")], json!({})).await).await, "everywhere.caller");
        let deaf = json!({ "name": "Deaf", "prompt": "x", "opt_out": { "enabled": false } });
        let deaf = tenant.api.post("/v1/agents", deaf).await.ok();
        tenant.api.patch(&own, json!({ "agent_id": deaf["id"] })).await.ok();
        world.advance(minutes(2)).await;
        assert_eq!(blocked(&tenant, &path).await, json!(["caller_id"]), "one that takes no opt-outs is nobody");
        tenant.api.patch(&own, json!({ "agent_id": row["agent_id"] })).await.ok();
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 2]);
    }

    /// Nobody knows who calls: it begins, and goes on, when that is entered, without a restart.
    async fn a_workspace_without_a_name_waits_for_one(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        number(world, &tenant, CALLER).await;
        mid_morning(world).await;
        let early = draft(&tenant, &[person("+15002340001", "DE")], json!({})).await;
        assert_eq!(cannot_start(&tenant, &early).await, "everywhere.identity");
        let name = async |name: Value| tenant.api.patch("/v1/compliance/identity", json!({ "registered_name": name })).await.ok();
        name(json!("Callers Inc.")).await;
        let path = slow(&tenant).await;
        world.advance(seconds(5)).await;
        name(Value::Null).await;
        world.advance(minutes(2)).await;
        assert_eq!((fates(&tenant, &path).await, blocked(&tenant, &path).await), (vec![called(), untouched()], json!(["disclosure"])));
        name(json!("Others Inc.")).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 2]);
    }

    /// What must be said does not exist in the agent's language.
    async fn an_agent_that_cannot_say_it_does_not_call(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let agent = async |language: &str| {
            let made = tenant.api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x", "language": language })).await.ok();
            json!({ "agent_id": made["id"] })
        };
        let finnish = draft(&tenant, &[person("+15002340001", "DE")], agent("fi-FI").await).await;
        assert_eq!(cannot_start(&tenant, &finnish).await, "everywhere.disclosure.ai");
        let german = run(&tenant, &[person("+15002340001", "DE")], agent("de-DE").await).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &german).await, [called()]);
    }
}
