//! What a tenant of these tests is made of: its slots, its campaigns, its blocks.
use super::*;
use crate::{
    credits::terms::Terms,
    delivery::machine::Schedule,
    dispatch::concurrency::Concurrency,
    limits::{Limits, Retention},
};
use entities::{
    agent::Definition,
    campaign::{AgentSnapshot, Model as Campaign, Plan as CampaignPlan, Status},
    dispatch_block::Model as Block,
    ids::AgentId,
};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

pub fn limits() -> Limits {
    Limits {
        max_calls_per_second: 1_000.0,
        max_concurrency: 1_000,
        schedule: Schedule::default(),
        suspend_after: 10,
        retention: Retention::default(),
        number_cap_24h: 0,
        number_cap_7d: 0,
        call_price_cents_per_minute: 6,
        credits: Terms::default(),
        sms_price_cents_per_segment: 2,
        email_price_cents: 1,
        allow_costly_numbers: false,
        blocked_prefixes: Default::default(),
        opt_out_purge_grace: Duration::ZERO,
    }
}

pub fn room(limit: i32, reserve: i32) -> Concurrency {
    Concurrency { limit, reserve }
}

/// Texts of that body, sixty a second.
pub fn texts(body: &str) -> Value {
    json!({ "channel": "sms", "template": { "body": body }, "pacing": { "calls_per_second": 60.0 } })
}

/// A block of that env, from noon on.
pub fn blocked(env: Env, reason: Reason) -> Block {
    Block {
        tenant_id: TENANT,
        env,
        reason,
        since: noon(),
    }
}

pub fn plan_of(fields: &Value) -> CampaignPlan {
    let mut plan = json!({ "name": "x", "from_numbers": ["+15005550001"] });
    plan.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    serde_json::from_value(plan).unwrap()
}

pub fn campaign(env: Env, n: usize, plan: CampaignPlan) -> Campaign {
    let definition: Definition = serde_json::from_value(json!({ "name": "Ada", "prompt": "Ask." })).unwrap();
    let agent = AgentSnapshot {
        id: AgentId(Uuid::from_u128(3)),
        version: 1,
        definition,
    };
    Campaign {
        id: campaign_id(n),
        tenant_id: TENANT,
        env,
        agent: (plan.channel == Channel::Phone).then_some(agent),
        plan,
        status: Status::Running,
        pause_reason: None,
        cancel_requested_at: None,
        armed_at: None,
        next_open_at: None,
        wake_at: None,
        started_at: Some(noon()),
        paused_at: None,
        completed_at: None,
        completed_reason: None,
        api_key_id: None,
        deleted_at: None,
        rules_version: 0,
        review_of: None,
        version: 1,
        created_at: noon(),
    }
}
