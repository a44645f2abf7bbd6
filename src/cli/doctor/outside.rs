//! Everybody that the service works with: is there an answer?
use super::Findings;
use crate::{app::outbound, settings::Settings};
use adapters::{
    mail::post::Post,
    outbound::{Outbound, trouble},
    trunk::{
        advice,
        peering::Peering,
        ping::{self, Heard},
    },
};
use entities::sip_trunk::Model as Trunk;
use futures_util::{StreamExt, future, stream};
use std::time::{Duration, SystemTime};

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Trunks that are asked at once.
const AT_ONCE: usize = 8;
/// Two clocks may differ by so much.
const CLOCKS: Duration = Duration::from_secs(2);

#[expect(clippy::disallowed_methods, reason = "addresses of the operator's, not of users")]
pub(super) async fn look(settings: &Settings, is_serving: bool, trunks: Vec<Trunk>, found: &mut Findings) {
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        // As the service asks.
        .no_proxy()
        .build();
    match client {
        Ok(client) => {
            base_url(settings, is_serving, &client, found).await;
            providers(settings, &client, found).await;
        }
        Err(error) => found.failure(
            "HTTPS",
            trouble::plain(error.to_string()),
            "see that this machine has certificate authorities",
        ),
    }
    collector(settings, found).await;
    mail(settings, found).await;
    // Without it nothing is sent to any.
    if settings.sip_bind.is_empty() {
        return;
    }
    match outbound(settings, &tokio::runtime::Handle::current()) {
        Ok(client) => ask_trunks(&client, trunks, found).await,
        Err(why) => found.failure("trunks", why.to_string(), "mend the setting"),
    }
}

/// TLS in front: does the way that people take lead here?
async fn base_url(settings: &Settings, is_serving: bool, client: &reqwest::Client, found: &mut Findings) {
    let url = settings.public_url();
    if settings.base_url.is_empty() || !is_serving {
        if !settings.base_url.is_empty() {
            found.ok("base URL", format!("{url} was not asked, for the service does not run"));
        }
        return;
    }
    let advice =
        "see that its name leads to the proxy, that its certificate is valid, and that it passes requests on to `bind`";
    let asked = SystemTime::now();
    match client.get(format!("{url}/healthz")).send().await {
        Err(error) => found.failure("base URL", format!("{url} does not answer: {}", why(&error)), advice),
        Ok(answer) if !answer.status().is_success() || !answer.headers().contains_key("x-request-id") => found.failure(
            "base URL",
            format!(
                "{url}/healthz answers {}, which is not this service",
                answer.status().as_u16()
            ),
            advice,
        ),
        Ok(answer) => {
            found.ok("base URL", format!("{url} leads here"));
            let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
            let date = date.and_then(|date| chrono::DateTime::parse_from_rfc2822(date).ok());
            if let Some(apart) = date.and_then(|date| apart(asked, date.into())) {
                found.warning(
                    "clock",
                    format!("the proxy's differs from this machine's by {} s", apart.as_secs()),
                    "let NTP keep both",
                );
            }
            if url.starts_with("http://") && !settings.dev {
                found.failure(
                    "base URL",
                    format!("{url} is not encrypted"),
                    "put a TLS proxy in front, and name its https:// address",
                );
            }
        }
    }
}

/// By more than two seconds. An answer took its time, and its date has no fractions.
fn apart(asked: SystemTime, date: SystemTime) -> Option<Duration> {
    let now = SystemTime::now();
    let apart = match date.duration_since(now) {
        Ok(ahead) => ahead,
        Err(_) => asked
            .duration_since(date)
            .unwrap_or_default()
            .saturating_sub(Duration::from_secs(1)),
    };
    (apart > CLOCKS).then_some(apart)
}

/// Where providers are, by the settings that name them.
pub(super) fn addresses_of_providers(settings: &Settings) -> Vec<(&'static str, &str)> {
    let named = [
        ("chat_url", &settings.chat_url),
        ("realtime_url", &settings.realtime_url),
        ("transcription_url", &settings.transcription_url),
        ("transcription_fallback_url", &settings.transcription_fallback_url),
        ("speech_url", &settings.speech_url),
        ("speech_fallback_url", &settings.speech_fallback_url),
        ("voice_provider_url", &settings.voice_provider_url),
        ("recordings_s3_endpoint", &settings.recordings_s3_endpoint),
    ];
    let mut named: Vec<(&'static str, &str)> = named.map(|(name, url)| (name, url.as_str())).into();
    // These have an address without being used.
    if !settings.sms_account_sid.is_empty() {
        named.push(("sms_url", &settings.sms_url));
    }
    if !settings.stripe_secret_key.is_empty() {
        named.push(("stripe_url", &settings.stripe_url));
    }
    named.retain(|(_, url)| !url.is_empty());
    named
}

/// Is anybody there? Whether a key is good shows the first request that means something.
async fn providers(settings: &Settings, client: &reqwest::Client, found: &mut Findings) {
    let asked = addresses_of_providers(settings).into_iter().map(async |(name, url)| {
        // A websocket begins with a request like any other.
        let http = url.replacen("ws", "http", usize::from(url.starts_with("ws")));
        (name, url, client.get(http).send().await)
    });
    for (name, url, answer) in future::join_all(asked).await {
        let what = format!("provider, {name}");
        match answer {
            Ok(answer) => found.ok(&what, format!("{url} answers ({})", answer.status().as_u16())),
            Err(error) => found.failure(
                &what,
                format!("{url} does not answer: {}", why(&error)),
                "see that the address is right, and that this machine may reach it",
            ),
        }
    }
}

/// Does it take traces, with these headers?
async fn collector(settings: &Settings, found: &mut Findings) {
    // A bad setting is said with the settings.
    let Ok(Some(collector)) = settings.collector() else {
        return;
    };
    let (what, url) = ("traces", settings.otlp_endpoint.trim());
    // The service works without it.
    match collector.greet().await {
        Ok(status @ 200..=299) => found.ok(what, format!("{url} takes them ({status})")),
        Ok(status) => found.warning(
            what,
            format!("{url} answers {status}: it takes none"),
            "see otlp_endpoint, which is that of OTLP over HTTP and not of gRPC, and otlp_headers",
        ),
        Err(why) => found.warning(
            what,
            format!("{url} does not answer: {why}"),
            "see that the address is right, and that this machine may reach it",
        ),
    }
}

fn why(error: &reqwest::Error) -> String {
    trouble::of_system(error).map_or_else(|| trouble::words(error), trouble::unnamed)
}

async fn mail(settings: &Settings, found: &mut Findings) {
    match settings.post() {
        Ok(Post::Smtp { server, .. }) => match server.greet().await {
            Ok(()) => found.ok("mail server", "answers, and takes the login"),
            Err(why) => found.failure(
                "mail server",
                trouble::plain(why),
                "see smtp_url: host, port, TLS, user and password",
            ),
        },
        Ok(Post::Folder { folder, .. }) => found.warning(
            "mail server",
            format!("none: e-mails become files in {}", folder.display()),
            "set smtp_url for people to get them",
        ),
        Ok(Post::Unconfigured) => found.warning(
            "mail server",
            "none: e-mails to users wait three days for one",
            "set smtp_url and mail_from",
        ),
        // Said with the settings.
        Err(_) => {}
    }
}

async fn ask_trunks(client: &Outbound, trunks: Vec<Trunk>, found: &mut Findings) {
    let asked = trunks
        .iter()
        .map(|trunk| async move { (trunk, ping::ping(client, &Peering::of(trunk)).await) });
    let heard: Vec<(&Trunk, Heard)> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    for (trunk, heard) in heard {
        let what = format!("trunk, {}", &*trunk.definition.name);
        match heard.outcome {
            Ok(pong) => match advice::of_options(pong.status) {
                None => found.ok(&what, format!("{} {}", pong.status, pong.reason)),
                Some(advice) => found.ok(&what, format!("{} {}: {advice}", pong.status, pong.reason)),
            },
            // Somebody's slip: the service works without it.
            Err(failure) => found.warning(
                &what,
                ping::words(&failure),
                format!(
                    "{}; see `callboard sip check --trunk {}`",
                    advice::of_failure(&failure),
                    trunk.id
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_agree_to_two_seconds_agree() {
        let now = SystemTime::now();
        let by = |seconds: u64| Duration::from_secs(seconds);
        assert_eq!(apart(now, now), None);
        assert_eq!(apart(now, now - by(2)), None);
        assert!(apart(now, now - by(60)).is_some_and(|apart| apart > by(55)));
        assert!(apart(now, now + by(60)).is_some_and(|apart| apart > by(55)));
    }
}
