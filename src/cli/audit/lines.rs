//! A row as a line of the dump.
use entities::{
    api_key,
    campaign::{self, OnUnknownTimezone, Schedule},
    campaign_move, consent, contact, delivery, delivery_attempt, dnc, evaluation, event, recording, retention, session,
    tally,
    values::{Day, Env, Zone},
    webhook_endpoint,
};
use rules::{eligibility::RING_TIMEOUT_SECONDS, hours::Rules};
use runtime::at_rest;
use serde_json::{Value, json};

pub(super) fn event_line(row: &event::Model) -> Value {
    let mut line = json!({
        "kind": "event",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "type": row.event_type,
        "subject": row.subject_id,
        "seq": row.seq,
        "created_at": row.created_at,
        "sha256": at_rest::sha256(row),
    });
    // Only these are looked into. A body that cannot be read is null here, and its line lacks what it should have said.
    let data = || -> Value {
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        body.get("data").cloned().unwrap_or_default()
    };
    if row.event_type == "campaign.completed" {
        let data = data();
        line["totals"] = json!({
            "total_contacts": data.get("total_contacts"),
            "completed_sessions": data.get("completed_sessions"),
            "failed_sessions": data.get("failed_sessions"),
        });
    } else if row.event_type.starts_with("campaign.contact_") {
        let data = data();
        if let Some(session) = data.get("session_id").or_else(|| data.get("delivery_row_id")) {
            line["session"] = session.clone();
        }
        if let Some(cost) = data.get("actual_cost_cents") {
            line["cost"] = cost.clone();
        }
    } else if row.event_type.starts_with("session.") && row.event_type.contains("recording") {
        line["recording"] = data().get("recording_id").cloned().unwrap_or_default();
    } else if matches!(&*row.event_type, "session.ended" | "session.failed") {
        line["cost"] = data().get("actual_cost_cents").cloned().unwrap_or_default();
    } else if row.event_type.starts_with("credits.") {
        let data = data();
        line["threshold"] = data.get("threshold_cents").cloned().unwrap_or_default();
        line["payment_intent"] = data.get("processor_payment_intent_id").cloned().unwrap_or_default();
        let balance = data.get("balance_cents").or_else(|| data.get("new_balance_cents"));
        line["balance"] = balance.cloned().unwrap_or_default();
    }
    line
}

pub(super) fn delivery_line(row: &delivery::Model) -> Value {
    let live_attempts = match row.origin {
        delivery::Origin::Live => row.attempts,
        delivery::Origin::Replay | delivery::Origin::Test => 0,
    };
    json!({
        "kind": "delivery",
        "id": row.id,
        "event": row.event_id,
        "endpoint": row.endpoint_id,
        "state": row.status,
        "replay_of": row.replay_of,
        "live_attempts": live_attempts,
    })
}

pub(super) fn attempt_line(attempt: &delivery_attempt::AttemptSummary) -> Value {
    json!({
        "kind": "attempt",
        "delivery": attempt.delivery_id,
        "n": attempt.n,
        "started": attempt.started_at,
        "ended": attempt.started_at.plus_millis(attempt.duration_ms.into()),
        "status": attempt.status,
        "error": attempt.error_code,
    })
}

pub(super) fn endpoint_line(row: &webhook_endpoint::Model) -> Value {
    // Its row keeps the status that it had when it was deleted.
    let status = match row.deleted_at {
        Some(_) => json!("deleted"),
        None => json!(row.status),
    };
    json!({
        "kind": "endpoint",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "filter": row.event_types,
        "streak": row.failure_streak,
        "status": status,
    })
}

pub(super) fn campaign_line(
    row: &campaign::Model,
    tally: &tally::Model,
    states: Vec<campaign_move::Model>,
    zone: Zone,
) -> Value {
    let (schedule, caps) = (&row.plan.schedule, &row.plan.caps);
    json!({
        "kind": "campaign",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "name": row.plan.name,
        "status": row.status,
        "moves": moves(states),
        "totals": {
            "total": tally.total,
            "completed_sessions": tally.completed_sessions,
            "failed_sessions": tally.failed_sessions,
        },
        "schedule": {
            "windows": windows(schedule, row.env),
            "blackout_dates": schedule.blackout_dates,
            "mode": schedule.timezone_mode,
            "fallback": schedule.timezone.unwrap_or(zone),
        },
        "caps": {
            "per_number_24h": caps.per_number_24h,
            "per_number_7d": caps.per_number_7d,
        },
        "ring_timeout_seconds": RING_TIMEOUT_SECONDS,
    })
}

/// A state is stored with every commit of its campaign: what only repeats the one before is left out.
pub(super) fn moves(mut states: Vec<campaign_move::Model>) -> Vec<Value> {
    states.dedup_by(|state, before| state.moved_to == before.moved_to && state.reason == before.reason);
    let line = |state: &campaign_move::Model| json!({ "seq": state.seq, "at": state.at, "to": state.moved_to, "reason": state.reason });
    states.iter().map(line).collect()
}

/// The campaign's own windows, else those that its env keeps: what [`Rules`] goes by.
pub(super) fn windows(schedule: &Schedule, env: Env) -> Value {
    match (&schedule.windows, env) {
        (Some(windows), _) => json!(windows),
        (None, Env::Live) => json!([{ "days": Day::all(), "start": "09:00", "end": "20:00" }]),
        (None, Env::Test) => json!([{ "days": Day::all(), "start": "00:00", "end": "24:00" }]),
    }
}

pub(super) fn contact_line(row: &contact::Model, campaign: &campaign::Model, rules: &Rules) -> Value {
    let plan = &campaign.plan;
    json!({
        "kind": "contact",
        "id": row.id,
        "campaign": row.campaign_id,
        "tenant": row.tenant_id,
        "env": row.env,
        "number": row.phone_number,
        // Then neither says who was called, nor where.
        "erased": row.is_erased(),
        "zones": zones(rules, &plan.schedule, &row.zone),
        "state": row.status,
        "attempts": row.attempts,
        "max_attempts": row.attempt_limit.unwrap_or(plan.retry.max_attempts.get()),
        "gap": i64::from(plan.retry.min_gap_minutes.get()) * 60,
    })
}

/// Where the hours must be kept for a contact of this group. None: nobody knows, so that the campaign's fallback counts, or
/// it may not be called at all.
pub(super) fn zones(rules: &Rules, schedule: &Schedule, group: &str) -> Vec<&'static str> {
    let known = rules::hours::zones_part(group);
    let is_unknown = known.is_empty() || known.starts_with('?');
    if is_unknown && schedule.on_unknown_timezone == OnUnknownTimezone::Fallback {
        return Vec::new();
    }
    let zones = rules.zones(group).unwrap_or_default();
    zones.iter().map(|zone| zone.name()).collect()
}

pub(super) fn session_line(row: &session::Model, intents: Option<(i64, i64)>) -> Value {
    json!({
        "kind": "session",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "contact": row.contact_id,
        "campaign": row.campaign_id,
        "number": row.to_number,
        "from": row.from_number,
        "direction": row.direction,
        "status": row.status,
        "end_reason": row.end_reason,
        "ended_by": row.ended_by,
        "created_at": row.created_at,
        "intent_seq": intents.map(|(last, _)| last),
        "intents": intents.map_or(0, |(_, count)| count),
        "dialed_at": row.dialed_at,
        "picked_up_at": row.picked_up_at,
        "started_at": row.started_at,
        "bridged_at": row.bridged_at,
        "ended_at": row.ended_at,
        "attempt": row.attempt,
        "hold": row.hold_cents,
        "cost": row.actual_cost_cents,
        "price": row.price_cents_per_minute,
        "consent": row.consent,
        "opted_out_at": row.opted_out_at,
        "recording": row.recording_id,
    })
}

pub(super) fn evaluation_line(row: &evaluation::Model) -> Value {
    json!({
        "kind": "evaluation",
        "session": row.session_id,
        "tenant": row.tenant_id,
        "env": row.env,
        "state": row.status,
        "give_up_at": row.give_up_at,
    })
}

pub(super) fn recording_line(row: &recording::Model) -> Value {
    json!({
        "kind": "recording",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "session": row.session_id,
        "state": row.status,
        "created_at": row.created_at,
        "completed_at": row.completed_at,
        "purge_after": row.purge_after,
        "purge_reason": row.purge_reason,
        "purged_at": row.purged_at,
    })
}

pub(super) fn dnc_line(row: &dnc::Model) -> Value {
    json!({
        "kind": "dnc",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "number": row.phone_number,
        "email": row.email,
        "added_seq": row.added_seq,
        "removed_seq": row.removed_seq,
        "channels": row.channels,
        "source": row.source,
        "session": row.session_id,
    })
}

pub(super) fn consent_line(row: &consent::Model) -> Value {
    json!({
        "kind": "consent",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "number": row.phone_number,
        "email": row.email,
        "seller": row.seller_key,
        "channels": row.channels,
        "purposes": row.purposes,
        "tier": row.tier,
        "covers_automated_voice": row.covers_automated_voice,
        "given_at": row.given_at,
        "expires_at": row.expires_at,
        "given_seq": row.given_seq,
        "withdrawals": row.withdrawals,
        "revoked_at": row.revoked_at,
        "revoked_seq": row.revoked_seq,
    })
}

pub(super) fn key_line(row: &api_key::Model) -> Value {
    json!({
        "kind": "key",
        "id": row.id,
        "tenant": row.tenant_id,
        "revoked_at": row.revoked_at,
    })
}

/// Of what was made before these moments some may be gone.
pub(super) fn retention_line(row: &retention::Model) -> Value {
    json!({
        "kind": "retention",
        "tenant": row.tenant_id,
        "sessions_until": row.sessions_until,
        "contacts_until": row.contacts_until,
        "messages_until": row.messages_until,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::ids::TenantId;
    use entities::{
        ids::{CampaignId, EventId},
        values::Moment,
    };
    use uuid::Uuid;

    fn event(event_type: &str, body: &str) -> Value {
        event_line(&event::Model {
            seq: 7,
            id: EventId(Uuid::nil()),
            tenant_id: TenantId(Uuid::nil()),
            env: Env::Test,
            event_type: event_type.into(),
            subject_id: Uuid::nil(),
            created_at: Moment::from_millis(0),
            body: body.into(),
        })
    }

    #[test]
    fn an_event_says_what_its_body_says() {
        let line = event("session.started", "{}");
        assert!(line.to_string().starts_with(r#"{"kind":"event","id":"#), "{line}");
        assert_eq!(line["created_at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(
            line["sha256"],
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        let body = r#"{"data":{"total_contacts":3,"completed_sessions":2,"failed_sessions":1}}"#;
        let totals = json!({ "total_contacts": 3, "completed_sessions": 2, "failed_sessions": 1 });
        assert_eq!(event("campaign.completed", body)["totals"], totals);
        let dispatched = event("campaign.contact_dispatched", r#"{"data":{"delivery_row_id":"d"}}"#);
        assert_eq!(dispatched["session"], "d");
        let completed = event("campaign.contact_completed", r#"{"data":{"session_id":"s"}}"#);
        assert_eq!(completed["session"], "s");
        assert_eq!(event("campaign.contact_skipped", r#"{"data":{}}"#).get("session"), None);
        assert_eq!(event("campaign.contact_failed", "no JSON").get("session"), None);
        let ended = event("session.ended", r#"{"data":{"actual_cost_cents":12}}"#);
        assert_eq!(ended["cost"], 12);
        let low = event(
            "credits.low_balance",
            r#"{"data":{"balance_cents":3,"threshold_cents":10}}"#,
        );
        assert_eq!((&low["balance"], &low["threshold"]), (&json!(3), &json!(10)));
        let paid = r#"{"data":{"new_balance_cents":9,"processor_payment_intent_id":"pi_1"}}"#;
        let paid = event("credits.topup_succeeded", paid);
        assert_eq!((&paid["balance"], &paid["payment_intent"]), (&json!(9), &json!("pi_1")));
        let recorded = event("session.recording_completed", r#"{"data":{"recording_id":"r"}}"#);
        assert_eq!(recorded["recording"], "r");
        assert_eq!(
            event("session.opt_out_recording_purged", "{}")["recording"],
            Value::Null
        );
    }

    #[test]
    fn states_that_only_repeat_are_left_out() {
        let state = |seq, moved_to: &str, reason: Option<&str>| campaign_move::Model {
            campaign_id: CampaignId(Uuid::nil()),
            seq,
            moved_to: moved_to.into(),
            reason: reason.map(str::to_owned),
            at: Moment::from_millis(0),
        };
        let states = vec![
            state(1, "draft", None),
            state(2, "draft", None),
            state(3, "running", None),
            state(4, "paused", Some("quiet_hours")),
            state(5, "paused", Some("manual")),
            state(6, "paused", Some("manual")),
            state(7, "running", None),
        ];
        let seqs: Vec<_> = moves(states).iter().map(|line| line["seq"].clone()).collect();
        assert_eq!(seqs, [1, 3, 4, 5, 7]);
    }

    fn schedule(of: Value) -> Schedule {
        serde_json::from_value(of).unwrap()
    }

    #[test]
    fn windows_are_the_campaigns_or_its_envs() {
        let own = json!([{ "days": ["mon"], "start": "10:00", "end": "12:00" }]);
        assert_eq!(windows(&schedule(json!({ "windows": own })), Env::Live), own);
        let unsaid = schedule(json!({}));
        for (env, start, end) in [(Env::Live, "09:00", "20:00"), (Env::Test, "00:00", "24:00")] {
            let all = json!(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
            assert_eq!(
                windows(&unsaid, env),
                json!([{ "days": all, "start": start, "end": end }])
            );
        }
    }

    #[test]
    fn zones_are_those_that_count() {
        let of = |on_unknown: &str, group: &str| {
            let schedule = schedule(json!({ "on_unknown_timezone": on_unknown }));
            zones(&Rules::new(&schedule, Env::Live, Zone::NEW_YORK), &schedule, group)
        };
        let german = ["Europe/Berlin", "Europe/Busingen"];
        assert_eq!(of("fallback", "Europe/Berlin+Europe/Busingen"), german);
        assert!(of("strictest", "?1").contains(&"America/Los_Angeles"));
        for (on_unknown, group) in [
            ("fallback", "?1"),
            ("fallback", ""),
            ("skip", "?1"),
            ("strictest", "?881"),
            ("fallback", contact::UNCALLABLE),
        ] {
            assert!(of(on_unknown, group).is_empty(), "{on_unknown} {group}");
        }
    }
}
