//! Single messages and calls with live keys: the law binds them without being asked.
use super::{CALLER, SELLER, asks_whose_numbers, consent, introduce, mid_morning, number, proof, revoke, with};
use crate::{
    on_both,
    scenarios::messages::{PERSON, live, sms, status, text, with_provider},
    world::{Api, Tenant, World, minutes, reassigned_server::ReassignedServer, seconds, smtp::Smtp, twilio::Twilio},
};
use actors::session::intake::{self, IfClosed};
use entities::{Error, ids::AgentId, session::Model as Session, values::Env};
use serde_json::{Value, json};

async fn texting(api: &Api, more: Value) -> (u16, Option<String>) {
    let asked = with(json!({ "to_number": PERSON, "body": "Hello." }), more);
    rule(api.post("/v1/sms_messages", asked).await)
}

async fn mailing(api: &Api, more: Value) -> (u16, Option<String>) {
    let asked = with(
        json!({ "to": "ann@example.com", "subject": "Spring", "text": "Hello." }),
        more,
    );
    rule(api.post("/v1/email_messages", asked).await)
}

/// How it was answered, and which rule has refused it.
fn rule(answer: crate::world::Answer) -> (u16, Option<String>) {
    let status = answer.status.as_u16();
    if status == 202 {
        return (status, None);
    }
    let (_, code, param) = answer.error();
    assert_eq!(code, "compliance_blocked", "{}", answer.body);
    (status, param.map(str::to_owned))
}

fn refused_by(rule: &str) -> (u16, Option<String>) {
    (409, Some(rule.to_owned()))
}

fn given_now(world: &World, more: Value) -> Value {
    with(more, json!({ "given_at": world.clock.now().to_string() }))
}

const TAKEN: (u16, Option<String>) = (202, None);

/// A live call that shows the workspace's number: what keeps it from being made.
async fn call(world: &World, tenant: &Tenant, to: &str) -> Result<(), Error> {
    let deps = world.deps();
    let agent: AgentId = tenant.agent().await.parse().unwrap();
    let owner = (tenant.id, Env::Live);
    let mut row = Session::new(
        owner,
        deps.ids.next(),
        (agent, 1),
        to.parse().unwrap(),
        world.clock.now(),
    );
    row.from_number = Some(CALLER.parse().unwrap());
    intake::check(deps, row, "en-US", IfClosed::Reject).await.map(drop)
}

on_both! {
    async fn a_text_needs_consent_and_a_registered_number(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        with_provider(world, &tenant, &provider).await;
        world.under_the_law().await;
        let api = live(world, &tenant).await;
        assert_eq!(texting(&api, json!({})).await, refused_by("us.consent.sms"));
        introduce(world, &tenant).await;
        for (more, expected) in [
            (json!({ "channels": ["phone"] }), refused_by("us.consent.sms")),
            (json!({ "tier": "express" }), refused_by("us.consent.sms")),
            (json!({ "seller": "Other Inc." }), refused_by("us.consent.sms")),
        ] {
            let weak = consent(&api, PERSON, given_now(world, more.clone())).await;
            assert_eq!(texting(&api, json!({})).await, expected, "{more}");
            revoke(&api, &weak).await;
            // Only what is given later is another one.
            world.advance(seconds(1)).await;
        }
        // Of the sandbox, it is none for live.
        consent(&tenant.api, PERSON, json!({})).await;
        assert_eq!(texting(&api, json!({})).await, refused_by("us.consent.sms"));
        let id = consent(&api, PERSON, given_now(world, json!({}))).await;
        let sent = text(&api, PERSON, json!({})).await;
        world.settle().await;
        assert_eq!((status(&api, &sent).await.as_str(), provider.asked().len()), ("sent", 1));
        assert_eq!(provider.asked()[0].fields["From"], CALLER);
        let on_record = proof(&api, &json!({ "id": sent })).await;
        let attempt = &on_record["attempt"];
        assert_eq!((&attempt["is_observed"], &attempt["objections"], &attempt["from_number"]), (&json!(false), &json!([]), &json!(CALLER)), "{attempt}");
        // Another number is not registered with the carriers.
        let other = number(world, &tenant, "+12025550179").await;
        tenant.api.patch(&other, json!({ "sms": { "registration_id": null } })).await.ok();
        assert_eq!(texting(&api, json!({ "from_number": "+12025550179" })).await, refused_by("us.sms.registration"));
        // A consent that was taken back is none any more, whatever it was good for.
        revoke(&api, &id).await;
        assert_eq!(texting(&api, json!({})).await, refused_by("us.consent.sms"));
        assert_eq!(provider.asked().len(), 1);
    }

    /// What was allowed when it was ordered is asked once more when it is handed over.
    async fn a_text_for_later_is_judged_when_it_leaves(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        with_provider(world, &tenant, &provider).await;
        world.under_the_law().await;
        introduce(world, &tenant).await;
        let api = live(world, &tenant).await;
        let id = consent(&api, PERSON, json!({})).await;
        let later = text(&api, PERSON, json!({ "scheduled_at": "2027-03-02T14:00:00Z" })).await;
        consent(&api, "+12025550124", json!({ "expires_at": "2027-03-02T13:30:00Z" })).await;
        let soon = text(&api, "+12025550124", json!({})).await;
        world.settle().await;
        assert_eq!(status(&api, &soon).await, "sent");
        let too_late = with(json!({ "to_number": "+12025550124", "body": "Hello." }), json!({ "scheduled_at": "2027-03-02T14:00:00Z" }));
        assert_eq!(rule(api.post("/v1/sms_messages", too_late).await), refused_by("us.consent.sms"), "it will have ended by then");
        revoke(&api, &id).await;
        world.advance(minutes(62)).await;
        let row = sms(&api, &later).await;
        assert_eq!((row["status"].as_str(), row["error"]["code"].as_str()), (Some("failed"), Some("compliance_blocked")), "{row}");
        assert_eq!(provider.asked().len(), 1);
    }

    async fn a_mail_that_sells_needs_an_address_or_consent(world: &mut World) {
        let (tenant, server) = (world.tenant().await, Smtp::start());
        world.change_settings(&[("smtp_url", json!(server.url)), ("mail_from", json!("Callboard <callboard@sender.example>")), ("law_file", "".into())]).await;
        let api = live(world, &tenant).await;
        let marketing = |region: &str| json!({ "kind": "marketing", "region": region });
        // What somebody has asked for needs nothing; what sells, an address in the United States and a consent in Europe.
        assert_eq!(mailing(&api, json!({})).await, TAKEN);
        assert_eq!(mailing(&api, marketing("US")).await, refused_by("us.email.address"));
        introduce(world, &tenant).await;
        assert_eq!(mailing(&api, marketing("US")).await, TAKEN);
        let (status, rule) = mailing(&api, marketing("DE")).await;
        assert!(status == 409 && ["de.consent", "eu.consent.messages"].contains(&rule.as_deref().unwrap()), "{rule:?}");
        let (status, _) = mailing(&api, json!({ "kind": "marketing" })).await;
        assert_eq!(status, 409, "nobody knows where the reader is: the strictest");
        assert_eq!(mailing(&api, marketing("BR")).await, refused_by("unknown.marketing.email"));
        let by_mail = json!({ "phone_number": null, "email": "ann@example.com", "channels": ["email"] });
        consent(&api, "", by_mail).await;
        assert_eq!(mailing(&api, marketing("DE")).await, TAKEN);
        let renovates = with(marketing("FR"), json!({ "vertical": "energy_renovation" }));
        assert_eq!(mailing(&api, renovates).await, refused_by("fr.energy_renovation"));
        world.settle().await;
        assert_eq!(server.mails().len(), 3);
        let attempts = api.get("/v1/compliance/attempts?email=ann@example.com&order=asc").await.ok();
        let mut purposes: Vec<&str> = attempts["data"].as_array().unwrap().iter().map(|attempt| attempt["purpose"].as_str().unwrap()).collect();
        // All three left in the same moment, each by itself.
        purposes.sort_unstable();
        assert_eq!(purposes, ["marketing", "marketing", "service"]);
    }

    async fn a_call_needs_all_that_the_place_asks_for(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        let api = live(world, &tenant).await;
        let refused = async |expected: &str| {
            let found = call(world, &tenant, PERSON).await;
            assert!(matches!(&found, Err(Error::ComplianceBlocked { rule, reason }) if rule == expected && !reason.is_empty()), "{expected}: {found:?}");
        };
        refused("us.consent.voice").await;
        tenant.api.patch("/v1/compliance/identity", json!({ "registered_name": SELLER })).await.ok();
        consent(&api, PERSON, json!({})).await;
        refused("everywhere.caller").await;
        let shown = number(world, &tenant, CALLER).await;
        refused("us.identity").await;
        introduce_fully(&tenant).await;
        let closed = call(world, &tenant, PERSON).await;
        assert!(matches!(closed, Err(Error::OutsideCallingHours { next_open_at: Some(_) })), "08:00 in Washington: {closed:?}");
        mid_morning(world).await;
        call(world, &tenant, PERSON).await.unwrap();
        // Nobody who takes opt-outs answers it any more.
        tenant.api.patch(&shown, json!({ "agent_id": null })).await.ok();
        refused("everywhere.caller").await;
    }

    /// Each look-up of a reassigned number is paid for.
    async fn whoever_only_looks_has_nobody_asked(world: &mut World) {
        let server = ReassignedServer::start();
        asks_whose_numbers(world, &server).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        let api = live(world, &tenant).await;
        consent(&api, PERSON, json!({ "given_at": "2027-01-04T12:00:00Z" })).await;
        let made = api.post("/v1/campaigns", json!({ "name": "Spring", "agent_id": tenant.agent().await })).await.ok();
        let path = format!("/v1/campaigns/{}", made["id"].as_str().unwrap());
        api.post(&format!("{path}/contacts"), json!({ "contacts": [{ "phone_number": PERSON }] })).await.ok();
        api.post(&format!("{path}/preflight"), json!({})).await.ok();
        let page = api.get(&format!("{path}/contacts")).await.ok();
        let contact = page["data"][0]["id"].as_str().unwrap();
        let shown = api.get(&format!("{path}/contacts/{contact}/eligibility")).await.ok();
        world.settle().await;
        assert_eq!(server.take_asked(), [], "{shown}");
        // A call that is ordered has it asked for.
        let closed = call(world, &tenant, PERSON).await;
        assert!(matches!(closed, Err(Error::OutsideCallingHours { .. })), "08:00 in Washington: {closed:?}");
        world.settle().await;
        assert_eq!(server.take_asked().len(), 1);
    }
}

async fn introduce_fully(tenant: &Tenant) {
    let identity = json!({ "callback_number": "+12025550178", "toll_free_number": "+18002345678" });
    tenant.api.patch("/v1/compliance/identity", identity).await.ok();
}
