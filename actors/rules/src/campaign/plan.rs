//! What a campaign's settings may say, as far as they tell it by themselves.
use super::message_template::MessageTemplate;
use crate::session::settings::{check_dispositions, check_voicemail};
use entities::{
    Error, Result,
    campaign::{Plan, Schedule},
    checks::Checks,
};

pub const MOST_FROM_NUMBERS: usize = 100;

/// Errors: each field that is wrong, and why. `max_calls_per_second` is the operator's.
pub fn check(plan: &Plan, max_calls_per_second: f64) -> Result<()> {
    let mut checks = Checks::default();
    if plan.pacing.calls_per_second.get() > max_calls_per_second {
        let why = format!("is more than the operator's maximum of {max_calls_per_second}");
        checks.refuse("pacing.calls_per_second", why);
    }
    if plan.from_numbers.len() > MOST_FROM_NUMBERS {
        checks.refuse("from_numbers", format!("has more than {MOST_FROM_NUMBERS} entries"));
    }
    if plan.retry.rules.values().any(|rule| rule.delays_minutes.len() > 10) {
        checks.refuse("retry.rules", "a rule has more than 10 delays");
    }
    checks.add(check_windows(&plan.schedule));
    let kind = plan.channel.session_type();
    if plan.session_type.is_some_and(|given| given != kind) {
        let why = "does not match the channel: `phone` for phone, `none` for sms and email; leave it out";
        checks.refuse("session_type", why);
    }
    // A draft may still lack its template; its start needs it.
    if plan.template.is_some() {
        checks.add(MessageTemplate::check(plan).map(drop));
    }
    checks.add(check_dispositions("dispositions", &plan.dispositions));
    checks.add(check_voicemail(&plan.voicemail));
    checks.add(check_dates(&plan.schedule));
    checks.end()
}

fn check_windows(schedule: &Schedule) -> Result<()> {
    match &schedule.windows {
        Some(windows) if windows.len() > 50 => Err(Error::invalid("schedule.windows", "has more than 50 entries")),
        Some(windows) if windows.is_empty() => Err(Error::invalid(
            "schedule.windows",
            "is empty: nobody could ever be called; leave it out for the default",
        )),
        Some(_) | None => Ok(()),
    }
}

fn check_dates(schedule: &Schedule) -> Result<()> {
    let mut checks = Checks::default();
    if schedule.blackout_dates.len() > 366 {
        checks.refuse("schedule.blackout_dates", "has more than 366 entries");
    }
    if let (Some(starts_at), Some(ends_at)) = (schedule.starts_at, schedule.ends_at)
        && starts_at >= ends_at
    {
        checks.refuse("schedule.ends_at", "must be later than `starts_at`");
    }
    checks.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn checked(fields: &Value) -> Result<()> {
        let mut plan = json!({ "name": "x" });
        plan.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        check(&serde_json::from_value(plan).unwrap(), 10.0)
    }

    #[test]
    fn each_rule_names_its_field() {
        let window = json!({ "start": "09:00", "end": "17:00" });
        let refused = [
            (
                json!({ "pacing": { "calls_per_second": 11 } }),
                "pacing.calls_per_second",
            ),
            (json!({ "from_numbers": vec!["+15002340000"; 101] }), "from_numbers"),
            (
                json!({ "schedule": { "windows": vec![window; 51] } }),
                "schedule.windows",
            ),
            (json!({ "schedule": { "windows": [] } }), "schedule.windows"),
            (json!({ "channel": "sms", "session_type": "phone" }), "session_type"),
            (json!({ "template": { "body": "x" } }), "template"),
            (
                json!({ "dispositions": [{ "code": "a" }, { "code": "a" }] }),
                "dispositions[1].code",
            ),
            (
                json!({ "voicemail": { "action": "leave_message" } }),
                "voicemail.message",
            ),
            (
                json!({ "schedule": { "blackout_dates": vec!["2027-12-25"; 367] } }),
                "schedule.blackout_dates",
            ),
            (
                json!({ "schedule": { "starts_at": "2027-01-02T00:00:00Z", "ends_at": "2027-01-01T00:00:00Z" } }),
                "schedule.ends_at",
            ),
        ];
        for (fields, field) in refused {
            match checked(&fields) {
                Err(Error::Invalid { field: found, .. }) => {
                    assert_eq!(found, field, "{fields}");
                }
                other => panic!("{fields}: {other:?}"),
            }
        }
        // A draft may lack what its start needs.
        for fields in [json!({}), json!({ "channel": "sms" }), json!({ "channel": "email" })] {
            assert!(checked(&fields).is_ok(), "{fields}");
        }
    }
}
