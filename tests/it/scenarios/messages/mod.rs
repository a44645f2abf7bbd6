//! Messages: SMS and e-mail, out and in, with a provider and a mail server that are really there.
mod emails;
mod inbound;
mod sms;

use crate::world::{
    Api, Tenant, World,
    twilio::{self, ACCOUNT, TOKEN, Twilio},
};
use entities::values::{Env, Scopes};
use serde_json::{Value, json};

/// The shared number of the provider.
pub const SHARED: &str = "+12025550100";
pub const PERSON: &str = "+12025550123";

/// The service with a provider for live messages; answers a live key of that workspace.
pub async fn with_provider(world: &mut World, tenant: &Tenant, provider: &Twilio) -> Api {
    let settings = [
        ("sms_url", json!(provider.url)),
        ("sms_account_sid", json!(ACCOUNT)),
        ("sms_auth_token", json!(TOKEN)),
        ("sms_from", json!(SHARED)),
    ];
    world.change_settings(&settings).await;
    live(world, tenant).await
}

pub async fn live(world: &World, tenant: &Tenant) -> Api {
    world.api(tenant.id, Env::Live, Scopes::all()).await
}

/// Asks for an SMS; answers its id.
pub async fn text(api: &Api, to: &str, more: Value) -> String {
    let mut sms = json!({ "to_number": to, "body": "Hello." });
    sms.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = api.post("/v1/sms_messages", sms).await;
    assert_eq!(answer.status.as_u16(), 202, "{}", answer.body);
    answer.body["id"].as_str().unwrap().to_owned()
}

pub async fn sms(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/sms_messages/{id}")).await.ok()
}

pub async fn status(api: &Api, id: &str) -> String {
    sms(api, id).await["status"].as_str().unwrap().to_owned()
}

/// A signed report of the provider; answers the HTTP status.
pub async fn report(world: &World, id: &str, progress: &str) -> u16 {
    report_with(world, id, &[("MessageSid", "SM1"), ("MessageStatus", progress)]).await
}

pub async fn report_with(world: &World, id: &str, fields: &[(&str, &str)]) -> u16 {
    let url = format!("{}/v1/_internal/twilio/status/{id}", world.url);
    twilio::call_back(&url, fields, &twilio::signature(TOKEN, &url, fields))
        .await
        .0
}
