//! The rules of calling where they bind: consents, registers, hours and caps by place, caller ids, dates, and the operator's own file.
//! From outside, with campaigns of the sandbox that ask for it, and live where nothing has to ring. The clocks begin on Tuesday
//! 2027-03-02, 08:00 in New York; those of the year, a year before.
mod asked_registers;
mod brake;
mod callers;
mod consents;
mod dates;
mod foreseen;
mod health;
mod hours;
mod live;
mod operator;
mod pressure;
mod races;
mod reassigned;
mod registers;
mod senders;
mod year;

use crate::world::{
    Api, Tenant, World, minutes,
    reassigned_server::{self, ReassignedServer},
    twilio::Twilio,
};
use serde_json::{Value, json};

/// For whom all of these calls are made.
pub const SELLER: &str = "Acme Ltd.";
/// What they show.
pub const CALLER: &str = "+12025550177";

/// A workspace of which all is known that rules ask of whoever calls, under the rules as they come with the service.
pub async fn seller(world: &mut World) -> Tenant {
    world.under_the_law().await;
    let tenant = world.tenant().await;
    introduce(world, &tenant).await;
    tenant
}

/// Says who the workspace is, and gives it a number that it may show.
pub async fn introduce(world: &World, tenant: &Tenant) {
    let identity = json!({
        "registered_name": SELLER, "callback_number": "+12025550178", "toll_free_number": "+18002345678",
        "postal_address": "1 Main Street\nSpringfield",
    });
    tenant.api.patch("/v1/compliance/identity", identity).await.ok();
    number(world, tenant, CALLER).await;
}

/// A number that is the workspace's own, that an agent answers and that is registered for texts; answers its path.
pub async fn number(world: &World, tenant: &Tenant, number: &str) -> String {
    let trunk = json!({ "name": "Carrier", "host": "sip.example.com" });
    let trunk = tenant.api.post("/v1/sip_trunks", trunk).await.ok();
    let settings = json!({
        "phone_number": number, "trunk_id": trunk["id"], "agent_id": tenant.agent().await, "sms": { "registration_id": "C123" },
    });
    let made = tenant.api.post("/v1/numbers", settings).await.ok();
    world.claim_number(tenant.id, number).await;
    format!("/v1/numbers/{}", id_of(&made))
}

/// 10:00 in New York, 15:00 in London, 16:00 in Paris and Berlin: all of them may be called. For whoever has nothing under way.
pub async fn mid_morning(world: &World) {
    world.leap_exactly(minutes(120)).await;
}

/// A consent as strong as any place asks for, but for what is said otherwise.
pub fn given(number: &str, more: Value) -> Value {
    let strongest = json!({
        "phone_number": number, "seller": SELLER, "channels": ["phone", "sms"], "purposes": ["marketing"], "tier": "express_written",
        "covers_automated_voice": true, "method": "web form", "request_copy": "Acme Ltd. may call and text me by machine.",
        "given_at": "2027-03-01T12:00:00Z",
    });
    with(strongest, more)
}

/// Records one; answers its id.
pub async fn consent(api: &Api, number: &str, more: Value) -> String {
    id_of(&api.post("/v1/consents", given(number, more)).await.ok())
}

/// Takes one back, and nothing else.
pub async fn revoke(api: &Api, consent: &str) {
    let only = json!({ "only_this": true });
    api.post(&format!("/v1/consents/{consent}/revoke"), only).await.ok();
}

/// Somebody in that place, by the clocks that are kept there.
pub fn person(number: &str, region: &str) -> Value {
    json!({ "phone_number": number, "region": region })
}

/// The same by that clock.
pub fn person_by(number: &str, region: &str, timezone: &str) -> Value {
    json!({ "phone_number": number, "region": region, "timezone": timezone })
}

/// A campaign in which the law binds, not started; answers its path.
pub async fn draft(tenant: &Tenant, people: &[Value], more: Value) -> String {
    let mut plan = with(
        json!({ "name": "Spring", "sandbox_law": "enforce", "pacing": { "calls_per_second": 50 } }),
        more,
    );
    if plan.get("channel").is_none() && plan.get("agent_id").is_none() {
        plan["agent_id"] = tenant.agent().await.into();
    }
    let made = tenant.api.post("/v1/campaigns", plan).await.ok();
    let path = format!("/v1/campaigns/{}", id_of(&made));
    let contacts = json!({ "contacts": people });
    tenant.api.post(&format!("{path}/contacts"), contacts).await.ok();
    path
}

/// The same, started.
pub async fn run(tenant: &Tenant, people: &[Value], more: Value) -> String {
    let path = draft(tenant, people, more).await;
    start(tenant, &path).await;
    path
}

/// One that writes to these people.
pub async fn text(tenant: &Tenant, numbers: &[&str]) -> String {
    let people: Vec<Value> = numbers.iter().map(|number| json!({ "phone_number": number })).collect();
    let texts = json!({ "channel": "sms", "template": { "body": "Hello." } });
    run(tenant, &people, texts).await
}

pub async fn start(tenant: &Tenant, campaign: &str) {
    tenant.api.post(&format!("{campaign}/start"), json!({})).await.ok();
}

pub async fn contacts(tenant: &Tenant, campaign: &str) -> Vec<Value> {
    let page = tenant
        .api
        .get(&format!("{campaign}/contacts?order=asc&limit=100"))
        .await
        .ok();
    page["data"].as_array().unwrap().clone()
}

/// What became of each of its contacts: status, why it was skipped, attempts.
pub async fn fates(tenant: &Tenant, campaign: &str) -> Vec<(String, String, i64)> {
    let fate = |contact: &Value| {
        let text = |name: &str| contact[name].as_str().unwrap_or("-").to_owned();
        (
            text("status"),
            text("skip_reason"),
            contact["attempts"].as_i64().unwrap(),
        )
    };
    contacts(tenant, campaign).await.iter().map(fate).collect()
}

/// Was called once, and was busy.
pub fn called() -> (String, String, i64) {
    ("failed".to_owned(), "-".to_owned(), 1)
}

pub fn barred() -> (String, String, i64) {
    ("skipped".to_owned(), "dnc_blocked".to_owned(), 0)
}

pub fn untouched() -> (String, String, i64) {
    ("pending".to_owned(), "-".to_owned(), 0)
}

/// Was written to, by a campaign that has not heard of it since.
pub fn texted() -> (String, String, i64) {
    ("dispatched".to_owned(), "-".to_owned(), 1)
}

/// What the rules say of one of its contacts.
pub async fn eligibility(tenant: &Tenant, campaign: &str, contact: &Value) -> Value {
    let path = format!("{campaign}/contacts/{}/eligibility", id_of(contact));
    tenant.api.get(&path).await.ok()
}

/// What a rule of the law says; `None`: it is not asked.
pub fn law<'a>(eligibility: &'a Value, rule: &str) -> Option<&'a str> {
    let asked = eligibility["law"].as_array().unwrap();
    asked.iter().find(|asked| asked["rule"] == rule)?["verdict"].as_str()
}

/// What is on record of the attempts of a campaign, oldest first.
pub async fn attempts(tenant: &Tenant, campaign: &str) -> Vec<Value> {
    let id = campaign.trim_start_matches("/v1/campaigns/");
    let path = format!("/v1/compliance/attempts?campaign_id={id}&order=asc&limit=100");
    tenant.api.get(&path).await.ok()["data"].as_array().unwrap().clone()
}

/// One of them with all that is on record of it.
pub async fn proof(api: &Api, attempt: &Value) -> Value {
    api.get(&format!("/v1/compliance/attempts/{}", id_of(attempt)))
        .await
        .ok()
}

/// Cancels what is left of it, so that nothing is left undone.
pub async fn cancel(world: &World, tenant: &Tenant, campaign: &str) {
    tenant.api.post(&format!("{campaign}/cancel"), json!({})).await.ok();
    world.settle().await;
}

pub async fn campaign(tenant: &Tenant, path: &str) -> Value {
    tenant.api.get(path).await.ok()
}

/// To whom something was handed over, in the order of their numbers.
pub fn reached(provider: &Twilio) -> Vec<String> {
    let asked = provider.asked();
    let mut all: Vec<String> = asked.iter().map(|asked| asked.fields["To"].clone()).collect();
    all.sort();
    all
}

/// Starts the service again, which asks that server whose numbers are now, under the rules as they come with it.
pub async fn asks_whose_numbers(world: &mut World, server: &ReassignedServer) {
    let settings = [
        ("reassigned_url", json!(server.url)),
        ("reassigned_api_key", json!(reassigned_server::KEY)),
        ("law_file", "".into()),
    ];
    world.change_settings(&settings).await;
}

/// Starts the service again under an operator's file of that text. It is read at each start: whoever asks keeps the folder.
pub async fn under(world: &mut World, law: &str) -> tempfile::TempDir {
    let (folder, path) = file(law);
    world.change_setting("law_file", path.into()).await;
    folder
}

/// An operator's file, and where it lies.
pub fn file(law: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("law.toml");
    std::fs::write(&path, law).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

pub fn with(mut object: Value, more: Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    object
}

pub fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}
