//! What the tests of this folder have in common.
use entities::{
    api_key::Model as Key,
    campaign::Channel,
    contact::{Model as Contact, Status},
    ids::{ApiKeyId, CampaignId, ContactId, TenantId},
    values::{Env, Moment, Scopes, Variables},
};
use uuid::Uuid;

pub const TENANT: TenantId = TenantId(Uuid::from_u128(1));

/// Monday, 2 March 2026, noon in UTC.
pub fn noon() -> Moment {
    Moment::from_millis(1_772_452_800_000)
}

pub fn campaign_id(n: usize) -> CampaignId {
    CampaignId(Uuid::from_u128(100 + n as u128))
}

pub fn contact_id(campaign: usize, n: usize) -> ContactId {
    ContactId(Uuid::from_u128((campaign as u128 + 1) << 64 | n as u128))
}

/// The nth of its list, whom nobody has called yet.
#[rustfmt::skip]
pub fn contact(campaign: usize, n: usize, zone: &str) -> Contact {
    let number = format!("+1500{:03}{n:04}", 200 + campaign);
    Contact {
        id: contact_id(campaign, n), tenant_id: TENANT, env: Env::Test,
        campaign_id: campaign_id(campaign), external_id: None, channel: Channel::Phone,
        address: number.clone(), phone_number: number,
        email: None, first_name: None, last_name: None, variables: Variables::default(),
        timezone: None, region: None, consent_id: None, zone: zone.into(), not_before: None, priority: 0,
        status: Status::Pending, wait_reason: None, attempts: 0, last_row_id: None, attempt_limit: None,
        next_attempt_at: None, skip_reason: None, skip_rule: None, disposition_code: None, version: 1, created_at: noon(),
    }
}

/// An API key whose calls may cost so much in a day, and of which so many may be dialled in a minute.
#[rustfmt::skip]
pub fn key(spend: Option<i32>, calls: Option<i32>) -> Key {
    Key {
        id: ApiKeyId(Uuid::from_u128(80)), tenant_id: TENANT, name: "k".into(), key_prefix: String::new(), key_hash: String::new(),
        env: Env::Test, scopes: Scopes::all(), max_spend_cents_per_day: spend, max_calls_per_minute: calls, expires_at: None,
        created_at: noon(), last_used_at: None, revoked_at: None,
    }
}
