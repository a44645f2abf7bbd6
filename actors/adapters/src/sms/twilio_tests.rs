//! What a callback says of a message.
use super::*;

fn fields(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn every_status_of_an_answer() {
    for (status, expected) in [
        (201, "taken"),
        (400, "refused"),
        (401, "busy"),
        (404, "refused"),
        (429, "busy"),
        (500, "lost"),
        (501, "lost"),
        (502, "lost"),
        (503, "busy"),
        (504, "lost"),
    ] {
        let answer = http::Response::builder().status(status).body("{}").unwrap();
        let found = match judge(answer.into()).await {
            SmsOutcome::Taken(_) => "taken",
            SmsOutcome::Busy { .. } => "busy",
            SmsOutcome::Refused(_) => "refused",
            SmsOutcome::Lost(_) => "lost",
        };
        assert_eq!(found, expected, "{status}");
    }
}

#[test]
fn every_status_of_a_callback() {
    let told = |status: &str| report(&fields(&[("MessageSid", "SM1"), ("MessageStatus", status)]));
    for status in ["accepted", "scheduled", "queued", "sending", "sent"] {
        assert_eq!(told(status).unwrap().progress, Progress::OnItsWay, "{status}");
    }
    assert_eq!(told("delivered").unwrap().progress, Progress::Delivered);
    assert_eq!(told("read").unwrap().progress, Progress::Delivered);
    assert!(
        matches!(told("undelivered").unwrap().progress, Progress::Undelivered(fault) if fault.code == "undelivered")
    );
    assert!(matches!(told("failed").unwrap().progress, Progress::Failed(fault) if fault.code == "provider_failed"));
    assert_eq!(told("dreaming"), None);
    assert_eq!(report(&fields(&[("MessageSid", "SM1")])), None);
    let opted_out = report(&fields(&[("SmsStatus", "failed"), ("ErrorCode", "21610")])).unwrap();
    assert!(matches!(opted_out.progress, Progress::Failed(fault) if fault.code == "recipient_opted_out"));
    assert_eq!(told("sent").unwrap().provider_message_id.as_deref(), Some("SM1"));
}
