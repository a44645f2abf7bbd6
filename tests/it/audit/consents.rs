//! L1: on which consents attempts rest. Tiers and days are those of the laws, not the pack's.
use super::{
    check::Evidence,
    facts::Facts,
    law::{Intents, Record},
    lawful::{bound, has, lies_in, text, time},
    read::{millis, need, or_null, words},
};
use serde_json::Value;
use std::collections::HashMap;

/// A consent that was given. Times in Unix milliseconds.
pub struct Consent<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub seller: &'a str,
    pub channels: Vec<&'a str>,
    pub purposes: Vec<&'a str>,
    pub tier: &'a str,
    pub covers_automated_voice: bool,
    pub given_at: i64,
    pub expires_at: Option<i64>,
    pub given_seq: i64,
    /// Channel, and place among all commits.
    pub withdrawals: Vec<(&'a str, i64)>,
}

pub fn consent(line: &Value) -> Result<Consent<'_>, String> {
    Ok(Consent {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        seller: need(line, "seller", Value::as_str)?,
        channels: words(line, "channels")?,
        purposes: words(line, "purposes")?,
        tier: need(line, "tier", Value::as_str)?,
        covers_automated_voice: need(line, "covers_automated_voice", Value::as_bool)?,
        given_at: need(line, "given_at", time)?,
        expires_at: or_null(line, "expires_at", time)?,
        given_seq: need(line, "given_seq", Value::as_i64)?,
        withdrawals: need(line, "withdrawals", |list| {
            list.as_array()?.iter().map(withdrawal).collect()
        })?,
    })
}

fn withdrawal(one: &Value) -> Option<(&str, i64)> {
    Some((one["channel"].as_str()?, one["seq"].as_i64()?))
}

/// As sellers are compared.
fn seller_key(seller: &str) -> String {
    seller.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Consents by their ids.
pub fn by_id<'f, 'a>(facts: &'f Facts<'a>) -> HashMap<&'a str, &'f Consent<'a>> {
    facts.consents.iter().map(|consent| (consent.id, consent)).collect()
}

/// What a call needs that sells something to a consumer.
struct Needed {
    place: &'static str,
    from: &'static str,
    tier: &'static str,
    or_contract: bool,
    automated_voice: bool,
}

const fn needs(place: &'static str, from: &'static str, tier: &'static str, automated_voice: bool) -> Needed {
    Needed {
        place,
        from,
        tier,
        or_contract: false,
        automated_voice,
    }
}

/// From the day on which all of it holds, by the clock of Greenwich. Sources: FCC 24-17 with 47 CFR 64.1200(a)(2),(f)(9); CRTC Unsolicited
/// Telecommunications Rules, part IV; PECR 2003, reg. 19; UWG, § 7(2); Codice della privacy, art. 130; LGT, art. 66.1; Telecommunicatiewet,
/// art. 11.7; loi 2025-594, art. 16.
const NEEDED: [Needed; 8] = [
    needs("US", "2024-02-08T00:00:00.000Z", "express_written", true),
    needs("CA", "2014-03-31T00:00:00.000Z", "express", true),
    needs("GB", "2003-12-11T00:00:00.000Z", "express", true),
    needs("DE", "2021-10-01T00:00:00.000Z", "express_written", true),
    needs("ES", "2023-06-29T00:00:00.000Z", "express_written", true),
    needs("IT", "2022-07-27T00:00:00.000Z", "express_written", true),
    needs("NL", "2026-07-01T00:00:00.000Z", "express_written", true),
    Needed {
        or_contract: true,
        ..needs("FR", "2026-08-11T00:00:00.000Z", "express_written", false)
    },
];
/// The stronger behind the weaker. A contract is none of them.
const TIERS: [&str; 3] = ["express", "express_written", "opt_in_double"];

/// Why a consent is not enough where somebody is.
fn is_too_weak(consent: &Consent<'_>, known: &Value, at: i64) -> Option<&'static str> {
    if known["purpose"] != "marketing" || known["channel"] != "phone" || known["audience"] != "consumer" {
        return None;
    }
    let strength = |tier: &str| TIERS.iter().position(|one| *one == tier);
    let mut needed = NEEDED
        .iter()
        .filter(|needed| lies_in(known, needed.place) && millis(needed.from).is_none_or(|from| from <= at));
    needed.find_map(|needed| match strength(consent.tier) {
        None if consent.tier == "existing_contract" && needed.or_contract => None,
        None => Some("of a tier that is too low there"),
        Some(given) if Some(given) < strength(needed.tier) => Some("of a tier that is too low there"),
        Some(_) if needed.automated_voice && !consent.covers_automated_voice => {
            Some("that does not cover an automated voice")
        }
        Some(_) => None,
    })
}

/// Where a number that is in no register, or a registration, stands for a consent to sell something.
const WITHOUT_CONSENT: [&str; 2] = ["AU", "IN"];

/// L1: "a marketing attempt with seq s: a consent of the same seller, channel and tier, given before and not revoked or expired at s (or
/// a rule of the pack that needs none)"; the same of whatever else a machine calls or texts for.
pub fn nobody_is_called_without_consent(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let consents = by_id(facts);
    let intents = Intents::of(facts);
    let mut found = Vec::new();
    for row in bound(facts) {
        let known = &row.said["facts"];
        if known["purpose"] == "emergency" || known["channel"] == "email" {
            continue;
        }
        let needs_none = known["purpose"] == "marketing"
            && (known["audience"] == "business" || WITHOUT_CONSENT.iter().any(|place| has(&known["places"], place)));
        let why = match known["consent"]["id"].as_str() {
            Some(id) => match consents.get(id) {
                Some(consent) => does_not_cover(consent, row, intents.seq(row)),
                None => Some("that nobody has given"),
            },
            None if needs_none => None,
            None => Some("that is not named"),
        };
        found.extend(why.map(|why| format!("attempt {} rests on a consent {why}", row.attempt)));
    }
    found
}

fn does_not_cover(consent: &Consent<'_>, row: &Record<'_>, seq: Option<i64>) -> Option<&'static str> {
    let known = &row.said["facts"];
    let (channel, at) = (text(known, "channel"), time(&known["at"]).unwrap_or_default());
    let taken_back = |seq: i64| {
        consent
            .withdrawals
            .iter()
            .any(|(of, then)| *of == channel && *then < seq)
    };
    match () {
        () if (consent.tenant, consent.env) != (row.tenant, row.env) => Some("of somebody else"),
        () if consent.seller != seller_key(text(known, "seller")) => Some("for another seller"),
        () if !consent.channels.contains(&channel) => Some("for another channel"),
        () if !consent.purposes.contains(&text(known, "purpose")) => Some("for another purpose"),
        () if consent.given_at > at || seq.is_some_and(|seq| consent.given_seq > seq) => Some("that came later"),
        () if consent.expires_at.is_some_and(|expires| expires <= at) => Some("that had expired"),
        () if seq.is_some_and(taken_back) => Some("that was taken back"),
        () => is_too_weak(consent, known, at),
    }
}
