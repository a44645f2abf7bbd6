//! The e-mail that tells owners of a suspension: the same facts as the event, and what to do.
use crate::{event::WebhookEndpointDisabledNotice, mail::Mail};
use entities::webhook_endpoint::Model as Endpoint;

/// The mail has the event's name: in a header, for filters, and in its text.
const KIND: &str = "webhook.endpoint_disabled_notice";

pub fn mail(endpoint: &Endpoint, notice: &WebhookEndpointDisabledNotice) -> Mail {
    let WebhookEndpointDisabledNotice {
        endpoint_id,
        url,
        disabled_at,
        failure_streak,
        last_status,
    } = notice;
    let answer = match last_status {
        0 => "no HTTP answer came".to_owned(),
        410 => "it answered 410, which says that it is gone".to_owned(),
        status => format!("the last answer was HTTP {status}"),
    };
    let failed = match failure_streak {
        1 => "a delivery failed for good".to_owned(),
        streak => format!("{streak} deliveries in a row failed for good"),
    };
    let body = format!(
        "Callboard has suspended a webhook endpoint of your workspace.\n\
         \n\
         Notice       {KIND}\n\
         Endpoint     {endpoint_id}\n\
         URL          {url}\n\
         Environment  {env}\n\
         Suspended    {disabled_at}\n\
         Why          {failed}; {answer}\n\
         \n\
         Nothing is lost: new events are held, for as long as events are kept (30 days, if the operator has set no other time).\n\
         \n\
         When your receiver works again:\n\
         1. POST /v1/webhook_endpoints/{endpoint_id}/test      sends one event and tells you the answer\n\
         2. POST /v1/webhook_endpoints/{endpoint_id}/enable    new events are sent again\n\
         3. POST /v1/webhook_endpoints/{endpoint_id}/recover   with {{\"since\":\"{since}\"}} what was missed since then is sent;\n\
         \x20                                                        take an earlier time if the trouble is older\n",
        // A delivery takes at most a day to fail; the streak may be older.
        since = disabled_at.plus_seconds(-24 * 3600),
        env = endpoint.env.as_str(),
    );
    Mail {
        kind: KIND,
        subject: format!("Webhook endpoint suspended: {}", host(url)),
        body,
    }
}

/// A subject line has no room for a long URL.
fn host(url: &str) -> String {
    let host = url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_default().chars().take(100).collect()
}
