//! How much at once: caps per number, slots and rate.
use super::{
    check::Evidence,
    facts::{Facts, by},
};

const HOUR: i64 = 3_600_000;

/// CAP: at the dial of a campaign its number has, that one included, no more dials in the last 24 h and 7 d than the
/// campaign's caps say; dials of all of the tenant's campaigns and of the API in that env count.
///
/// A call that the carrier never accepted reached nobody, and does not count.
pub fn caps(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let dials = by(&facts.sessions, |session| {
        session.intent_seq.and(session.dialed_at)?;
        let accepted = !facts.never_accepted.contains(session.id);
        accepted.then_some((session.tenant, session.env, session.number?))
    });
    for ((_, _, number), mut dials) in dials {
        dials.sort_by_key(|session| session.intent_seq);
        for (at, dial) in dials.iter().enumerate() {
            let Some(campaign) = dial.campaign.and_then(|campaign| facts.campaign(campaign)) else {
                continue;
            };
            for (cap, hours) in [(campaign.per_number_24h, 24), (campaign.per_number_7d, 7 * 24)] {
                let Some(cap) = cap.and_then(|cap| usize::try_from(cap).ok()) else {
                    continue;
                };
                let in_window = dials[..=at].iter().rev().filter(|earlier| {
                    let since = dial.dialed_at.zip(earlier.dialed_at).map(|(now, then)| now - then);
                    since.is_some_and(|since| since < hours * HOUR)
                });
                if in_window.take(cap + 1).count() > cap {
                    found.push(format!(
                        "session {} called {number} more than {cap} times in {hours} h",
                        dial.id
                    ));
                }
            }
        }
    }
    found
}

/// I11, first half: "slots (always): overlap of K intervals per tenant <= limit in force (+0)", in each env.
pub fn slots(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for ((tenant, env), calls) in by(&facts.calls, |call| Some((call.tenant, call.env))) {
        // At one moment ends come before starts: the slot may be taken again at once.
        let mut steps: Vec<(i64, i64)> = calls
            .iter()
            .flat_map(|call| [(call.placed, 1), (call.ended, -1)])
            .collect();
        steps.sort_unstable();
        let mut live = 0;
        let most = steps.iter().map(|(at, step)| {
            live += step;
            (live, *at)
        });
        let (most, at) = most.max_by_key(|(live, at)| (*live, -at)).unwrap_or_default();
        if usize::try_from(most).is_ok_and(|most| most > evidence.limit) {
            found.push(format!(
                "tenant {tenant}, {env}: {most} calls at once at {at} µs, {} are allowed",
                evidence.limit
            ));
        }
    }
    found
}

/// Calls that a breach of the rate names.
const SHOWN: usize = 12;

/// I11, second half: "rate (always): starts in any 1 s <= rate + burst", of each tenant.
pub fn rate(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let allowed = evidence.rate + evidence.burst;
    let mut found = Vec::new();
    // The calls come by `placed`.
    for (tenant, calls) in by(&facts.calls, |call| Some(call.tenant)) {
        let within_a_second = |from: usize| {
            let end = calls[from].placed + 1_000_000;
            calls.partition_point(|call| call.placed < end) - from
        };
        let (most, from) = (0..calls.len())
            .map(|from| (within_a_second(from), from))
            .max()
            .unwrap_or_default();
        if most as f64 > allowed {
            let at = calls[from].placed;
            let who: Vec<_> = calls[from..from + most]
                .iter()
                .take(SHOWN)
                .map(|call| {
                    let campaign = facts.session(call.session).and_then(|session| session.campaign);
                    format!(
                        "+{} ms {}",
                        (call.placed - at) / 1000,
                        campaign.unwrap_or("no campaign")
                    )
                })
                .collect();
            let kill = evidence
                .kills
                .iter()
                .find(|kill| (at / 1000 - 1000..at / 1000 + 2000).contains(*kill));
            found.push(format!(
                "tenant {tenant}: {most} calls started in the second from {at} µs, {allowed} are allowed: {}; killed at {kill:?}",
                who.join(", ")
            ));
        }
    }
    found
}
