//! Names: those that settings name, asked as whatever connects to them asks, and those of trunks. Is there an answer, how soon, and
//! where does it lead? Those of relays are looked up where these are asked (`relays`). Nobody else's name is asked for.
use super::{Findings, Verdict, outside};
use crate::{app::outbound, settings::Settings};
use adapters::{
    outbound::{Lookup, Outbound, SystemLookup, is_public, trouble},
    trunk::{advice, peering::Peering, ping, resolve::resolve},
};
use entities::sip_trunk::Model as Trunk;
use futures_util::{StreamExt, future, stream};
use std::{
    borrow::Cow,
    net::IpAddr,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// The longest wait for one name: the system asks a second name server after five seconds, which is worth knowing.
const PATIENCE: Duration = Duration::from_secs(8);
/// What takes longer is told: each new connection begins with it.
const SLOW: Duration = Duration::from_secs(2);
/// Names of each kind that are asked for at once: all that settings can name, and nearly all trunks.
const AT_ONCE: usize = 48;
/// Names, or addresses of one, that one line shows.
const SHOWN: usize = 3;

const ADVICE: &str = "see that this machine reaches the name servers of /etc/resolv.conf, with UDP and TCP to port 53";
const ADVICE_OF_TRUNKS: &str = "see that this machine reaches the name servers of sip_dns or else of /etc/resolv.conf; until then \
     calls go to the addresses of the names themselves";
const ADVICE_OF_ZONE: &str = "see that the name has no slip, and that whoever keeps its zone has given it an address";
const ADVICE_OF_SLOW: &str = "see which of this machine's name servers does not answer, and name another one first";

/// What was asked for, and what came of it.
struct Looked {
    what: String,
    host: String,
    took: Duration,
    answer: Answer,
    /// What it is that there is no answer.
    without: Verdict,
    /// Whoever comes by it may come from anywhere.
    for_everybody: bool,
}

enum Answer {
    At(Vec<IpAddr>),
    /// It leads nowhere, or where we may not go: why, and what to do.
    Nowhere(String, &'static str),
    /// Nobody said anything of it: in words.
    Nobody(String),
}

/// A host, and the settings that name it.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    host: String,
    settings: Vec<&'static str>,
}

pub(super) async fn look(settings: &Settings, trunks: &[Trunk], found: &mut Findings) {
    let of_settings = named(settings)
        .into_iter()
        .map(|named| ask(&SystemLookup, named, settings.dev));
    let of_settings = stream::iter(of_settings).buffered(AT_ONCE).collect::<Vec<Looked>>();
    let (of_settings, of_trunks) = future::join(of_settings, ask_for_trunks(settings, trunks)).await;
    say("DNS", ADVICE, &of_settings, found);
    say("DNS, trunks", ADVICE_OF_TRUNKS, &of_trunks, found);
}

/// Each once, in the order of their settings. Addresses are no names.
fn named(settings: &Settings) -> Vec<Named> {
    let mut urls = vec![
        ("base_url", Cow::from(settings.base_url.as_str())),
        ("smtp_url", Cow::from(settings.smtp_url.expose())),
        ("otlp_endpoint", Cow::from(settings.otlp_endpoint.trim())),
    ];
    urls.extend(outside::addresses_of_providers(settings));
    let of_url = |url: &str| name(url::Url::parse(url).ok()?.host_str()?);
    let mut hosts: Vec<(&'static str, String)> = urls
        .into_iter()
        .filter_map(|(setting, url)| Some((setting, of_url(&url)?)))
        .collect();
    // Without the socket there is nobody to be found.
    if !settings.sip_bind.is_empty() {
        hosts.extend(name(settings.sip_address.trim()).map(|host| ("sip_address", host)));
    }
    let mut all: Vec<Named> = Vec::new();
    for (setting, host) in hosts {
        match all.iter_mut().find(|named| named.host == host) {
            // Several registers may be asked at one host.
            Some(named) if named.settings.contains(&setting) => {}
            Some(named) => named.settings.push(setting),
            None => all.push(Named {
                host,
                settings: vec![setting],
            }),
        }
    }
    all
}

/// The host, if it is a name.
fn name(host: &str) -> Option<String> {
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (!host.is_empty() && !is_address).then(|| host.to_lowercase())
}

async fn ask(lookup: &dyn Lookup, named: Named, dev: bool) -> Looked {
    let Named { host, settings } = named;
    let asked = Instant::now();
    let answer = match timeout(PATIENCE, lookup.lookup(&host)).await {
        Err(_) => Answer::Nobody(nobody(&host)),
        Ok(Err(error)) if trouble::is_unanswered(&error) => Answer::Nobody(trouble::unknown(&host, &error)),
        Ok(Err(error)) => Answer::Nowhere(trouble::unknown(&host, &error), ADVICE_OF_ZONE),
        Ok(Ok(addresses)) if addresses.is_empty() => Answer::Nowhere(format!("{host} has no address"), ADVICE_OF_ZONE),
        Ok(Ok(addresses)) => Answer::At(addresses),
    };
    Looked {
        what: format!("DNS, {}", settings.join(", ")),
        took: asked.elapsed(),
        host,
        answer,
        // The service works without traces.
        without: match settings.as_slice() {
            ["otlp_endpoint"] => Verdict::Warning,
            _ => Verdict::Failure,
        },
        for_everybody: !dev && settings.iter().any(|name| ["base_url", "sip_address"].contains(name)),
    }
}

fn nobody(host: &str) -> String {
    let seconds = PATIENCE.as_secs();
    format!("{host} cannot be looked up: no name server answers within {seconds} s")
}

/// Nobody is asked where the service would send nothing. A client that cannot be made is said where the trunks are asked themselves.
async fn ask_for_trunks(settings: &Settings, trunks: &[Trunk]) -> Vec<Looked> {
    if settings.sip_bind.is_empty() || trunks.is_empty() {
        return Vec::new();
    }
    let Ok(client) = outbound(settings, &tokio::runtime::Handle::current()) else {
        return Vec::new();
    };
    let asked = trunks.iter().map(|trunk| ask_for_trunk(&client, trunk));
    let looked: Vec<Option<Looked>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    looked.into_iter().flatten().collect()
}

/// As calls look it up: the servers of its domain, then their addresses, which must be such as the service may speak with.
async fn ask_for_trunk(client: &Outbound, trunk: &Trunk) -> Option<Looked> {
    let peering = Peering::of(trunk);
    let hop = peering.next_hop();
    let host = name(&hop.host())?;
    let looking = async {
        // Apart from the addresses, for whoever calls gets by without an answer to this.
        if hop.port().is_none() {
            let services = client.names().services(&host, peering.transport, |_| 0).await;
            services.map_err(|why| Answer::Nobody(format!("the SIP servers of {host} cannot be looked up: {why}")))?;
        }
        let resolved = resolve(client, hop, peering.transport).await;
        resolved.map_err(|failure| Answer::Nowhere(ping::words(&failure), advice::of_failure(&failure)))
    };
    let asked = Instant::now();
    let answer = match timeout(PATIENCE, looking).await {
        Err(_) => Answer::Nobody(nobody(&host)),
        Ok(Err(answer)) => answer,
        Ok(Ok(resolved)) => Answer::At(resolved.addresses.iter().map(|address| address.ip()).collect()),
    };
    Some(Looked {
        what: format!("DNS, trunk {}", &*trunk.definition.name),
        took: asked.elapsed(),
        answer,
        host,
        // Somebody's slip: the service works without it.
        without: Verdict::Warning,
        for_everybody: false,
    })
}

/// First whether there are answers at all; then each name with which something is wrong.
fn say(what: &str, advice: &str, looked: &[Looked], found: &mut Findings) {
    let answered = |looked: &&Looked| !matches!(looked.answer, Answer::Nobody(_));
    if looked.is_empty() {
        return;
    }
    let all = looked.len();
    let Some(slowest) = looked.iter().filter(answered).max_by_key(|looked| looked.took) else {
        let needed = looked.iter().any(|looked| looked.without == Verdict::Failure);
        let verdict = if needed { Verdict::Failure } else { Verdict::Warning };
        let shown: Vec<&str> = looked.iter().take(SHOWN).map(|looked| &*looked.host).collect();
        let more = match all.saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let said = format!("no name server answers for {}{more}", shown.join(", "));
        found.add(what, verdict, said, Some(advice.to_owned()));
        return;
    };
    let count = looked.iter().filter(answered).count();
    let (host, ms) = (&slowest.host, slowest.took.as_millis());
    found.ok(
        what,
        format!("names answered: {count} of {all}; the slowest, {host}, in {ms} ms"),
    );
    for looked in looked {
        let Looked { what, host, took, .. } = looked;
        match &looked.answer {
            Answer::Nobody(why) => found.add(what, looked.without, why.clone(), Some(advice.to_owned())),
            Answer::Nowhere(why, advice) => found.add(what, looked.without, why.clone(), Some((*advice).to_owned())),
            Answer::At(addresses) if looked.for_everybody && !addresses.iter().any(|ip| is_public(*ip)) => {
                let shown: Vec<String> = addresses.iter().take(SHOWN).map(ToString::to_string).collect();
                found.warning(
                    what,
                    format!("{host} leads from here to {}, which is not public", shown.join(", ")),
                    "give it a public address if anybody comes by it from elsewhere: people, carriers, providers",
                );
            }
            Answer::At(_) if *took >= SLOW => {
                let ms = took.as_millis();
                let said = format!("{host} is found only after {ms} ms: each new connection waits for it");
                found.warning(what, said, ADVICE_OF_SLOW);
            }
            Answer::At(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
