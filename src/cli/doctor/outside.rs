//! Everybody that the service works with: is there an answer?
use super::{
    Findings, certificate,
    clocks::{self, Told},
    instance,
};
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
use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Trunks that are asked at once.
const AT_ONCE: usize = 8;

#[expect(clippy::disallowed_methods, reason = "addresses of the operator's, not of users")]
pub(super) async fn look(settings: &Settings, serving: Option<&str>, trunks: Vec<Trunk>, found: &mut Findings) {
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        // As the service asks.
        .no_proxy()
        .tls_info(true)
        .build();
    match client {
        Ok(client) => {
            base_url(settings, serving, &client, found).await;
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

/// TLS in front: does the way that people take lead here, to the instance that serves at `bind`?
async fn base_url(settings: &Settings, serving: Option<&str>, client: &reqwest::Client, found: &mut Findings) {
    let url = settings.public_url();
    if settings.base_url.is_empty() {
        return;
    }
    let Some(here) = serving else {
        found.ok("base URL", format!("{url} was not asked, for the service does not run"));
        return;
    };
    let advice =
        "see that its name leads to the proxy, that its certificate is valid, and that it passes requests on to `bind`";
    let asked = SystemTime::now();
    let answer = match client.get(format!("{url}/healthz")).send().await {
        Ok(answer) => answer,
        Err(error) => {
            found.failure("base URL", format!("{url} does not answer: {}", why(&error)), advice);
            return;
        }
    };
    let status = answer.status().as_u16();
    let (told, ends) = (clocks::told(asked, answer.headers()), certificate::ends(&answer));
    match instance::named(answer).await {
        None => found.failure(
            "base URL",
            format!("{url}/healthz answers {status}, which is not this service"),
            advice,
        ),
        Some(other) if other != here => found.failure(
            "base URL",
            format!(
                "{url} leads to another Callboard, with another database, than the one at {}",
                settings.bind
            ),
            advice,
        ),
        Some(_) => {
            found.ok("base URL", format!("{url} leads here"));
            if let Some(Told::Differs(apart)) = told {
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
    if let Some(ends) = ends {
        certificate::say(ends, asked, found);
    }
}

/// Where providers are, by the settings that name them.
pub(super) fn addresses_of_providers(settings: &Settings) -> Vec<(&'static str, Cow<'_, str>)> {
    let named = [
        ("chat_url", &settings.chat_url),
        ("realtime_url", &settings.realtime_url),
        ("transcription_url", &settings.transcription_url),
        ("transcription_fallback_url", &settings.transcription_fallback_url),
        ("speech_url", &settings.speech_url),
        ("speech_fallback_url", &settings.speech_fallback_url),
        ("voice_provider_url", &settings.voice_provider_url),
        ("reassigned_url", &settings.reassigned_url),
        ("recordings_s3_endpoint", &settings.recordings_s3_endpoint),
    ];
    let mut named: Vec<(&'static str, Cow<'_, str>)> = named.map(|(name, url)| (name, Cow::from(url.as_str()))).into();
    let registers = settings.register_addresses().into_values();
    named.extend(registers.map(|url| ("register_urls", Cow::from(url))));
    // These have an address without being used.
    if !settings.sms_account_sid.is_empty() {
        named.push(("sms_url", Cow::from(settings.sms_url.as_str())));
    }
    if !settings.stripe_secret_key.is_empty() {
        named.push(("stripe_url", Cow::from(settings.stripe_url.as_str())));
    }
    // And Amazon's store has one without naming it.
    if settings.recordings.starts_with("s3://") && settings.recordings_s3_endpoint.is_empty() {
        let region = match settings.recordings_s3_region.as_str() {
            "" => "us-east-1",
            region => region,
        };
        named.push(("recordings", format!("https://s3.{region}.amazonaws.com").into()));
    }
    named.retain(|(_, url)| !url.is_empty());
    named
}

/// Is anybody there? Whether a key is good shows the first request that means something.
async fn providers(settings: &Settings, client: &reqwest::Client, found: &mut Findings) {
    let asked = addresses_of_providers(settings).into_iter().map(async |(name, url)| {
        // A websocket begins with a request like any other.
        let http = url.replacen("ws", "http", usize::from(url.starts_with("ws")));
        let asked = SystemTime::now();
        let answer = client.get(http).send().await;
        let told = answer
            .as_ref()
            .ok()
            .and_then(|answer| clocks::told(asked, answer.headers()));
        (name, url, answer, told)
    });
    let mut times = Vec::new();
    for (name, url, answer, told) in future::join_all(asked).await {
        let what = format!("provider, {name}");
        times.extend(told);
        match answer {
            Ok(answer) => found.ok(&what, format!("{url} answers ({})", answer.status().as_u16())),
            Err(error) => found.failure(
                &what,
                format!("{url} does not answer: {}", why(&error)),
                "see that the address is right, and that this machine may reach it",
            ),
        }
    }
    clocks::say_of_providers(&times, found);
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
