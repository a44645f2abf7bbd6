//! What a campaign's settings may say, as far as they tell it by themselves.
use super::message_template::MessageTemplate;
use crate::session::settings::{check_dispositions, check_voicemail};
use entities::{
    Error, Result,
    campaign::{Plan, Schedule},
};

/// Errors: the first field that is wrong, and why. `max_calls_per_second` is the operator's.
pub fn check(plan: &Plan, max_calls_per_second: f64) -> Result<()> {
    if plan.pacing.calls_per_second.get() > max_calls_per_second {
        return Err(Error::invalid(
            "pacing.calls_per_second",
            format!("is more than the operator's maximum of {max_calls_per_second}"),
        ));
    }
    if plan.from_numbers.len() > 100 {
        return Err(Error::invalid("from_numbers", "has more than 100 entries"));
    }
    if plan.retry.rules.values().any(|rule| rule.delays_minutes.len() > 10) {
        return Err(Error::invalid("retry.rules", "a rule has more than 10 delays"));
    }
    check_windows(&plan.schedule)?;
    if plan
        .session_type
        .is_some_and(|kind| kind != plan.channel.session_type())
    {
        return Err(Error::invalid(
            "session_type",
            "does not match the channel: `phone` for phone, `none` for sms and email; leave it out",
        ));
    }
    // A draft may still lack its template; its start needs it.
    if plan.template.is_some() {
        MessageTemplate::check(plan)?;
    }
    check_dispositions("dispositions", &plan.dispositions)?;
    check_voicemail(&plan.voicemail)?;
    check_dates(&plan.schedule)
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
    if schedule.blackout_dates.len() > 366 {
        return Err(Error::invalid("schedule.blackout_dates", "has more than 366 entries"));
    }
    if let (Some(starts_at), Some(ends_at)) = (schedule.starts_at, schedule.ends_at)
        && starts_at >= ends_at
    {
        return Err(Error::invalid("schedule.ends_at", "must be later than `starts_at`"));
    }
    Ok(())
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
