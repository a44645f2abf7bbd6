//! What the record says of attempts, against what no campaign may do. Numbers and days are those of the laws, not the pack's.
use super::{
    check::Evidence,
    consents,
    facts::{Facts, by},
    law::{Record, chains},
    read::millis,
};
use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

const DAY_MS: i64 = 86_400_000;

/// Attempts that the law bound, by what their row says.
pub fn bound<'r, 'a>(facts: &'r Facts<'a>) -> impl Iterator<Item = &'r Record<'a>> {
    let attempts = facts.records.iter().filter(|row| row.what == "attempt");
    attempts.filter(|row| row.said["observed"] != true && row.said["overrides"].is_null())
}

pub fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

pub fn has(list: &Value, word: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|one| one == word))
}

/// Does it lie there, or in a part of it?
pub fn lies_in(known: &Value, place: &str) -> bool {
    let places = known["places"].as_array().into_iter().flatten();
    let mut places = places.filter_map(Value::as_str);
    places.any(|one| one.split('-').next() == Some(place))
}

pub fn time(value: &Value) -> Option<i64> {
    millis(value.as_str()?)
}

/// L3: "no attempt on a channel after an opt-out's effective_seq, until a newer consent": by the order of the rows, in the sandbox too.
pub fn whoever_opted_out_is_left_alone(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for rows in chains(facts).into_values() {
        let mut barred: BTreeMap<&str, &Record<'_>> = BTreeMap::new();
        for row in rows {
            let entry = row.said["entry_id"].as_str();
            match (row.what, entry) {
                ("opt_out", Some(entry)) => {
                    barred.insert(entry, row);
                }
                ("lifted", Some(entry)) => {
                    barred.remove(entry);
                }
                ("attempt", _) => {
                    let channel = text(&row.said["facts"], "channel");
                    let same = |wish: &&&Record<'_>| match channel {
                        "email" => wish.email_hash.is_some() && wish.email_hash == row.email_hash,
                        _ => wish.number_hash.is_some() && wish.number_hash == row.number_hash,
                    };
                    let wish = barred
                        .values()
                        .find(|wish| same(wish) && has(&wish.said["channels"], channel));
                    found.extend(
                        wish.map(|wish| {
                            format!("attempt {} was made after the opt-out of row {}", row.attempt, wish.n)
                        }),
                    );
                }
                _ => {}
            }
        }
    }
    found
}

/// Outcomes of calls that the law bound and that somebody has answered, with their last opening.
fn answered<'r, 'a>(facts: &'r Facts<'a>) -> Vec<(&'r Record<'a>, &'r Record<'a>)> {
    let openings: HashMap<&str, &Record<'_>> = bound(facts).map(|row| (row.attempt, row)).collect();
    let outcomes = facts.records.iter().filter(|row| row.what == "outcome");
    let by_a_person = outcomes.filter(|row| matches!(text(&row.said, "answered_by"), "human" | "unknown"));
    by_a_person
        .filter_map(|row| Some((*openings.get(row.attempt)?, row)))
        .filter(|(opening, row)| opening.said["facts"]["channel"] == "phone" && row.said["picked_up_at"].is_string())
        .collect()
}

/// What was heard to its end of what the service said in a call.
fn heard_whole<'r>(row: &'r Record<'_>) -> impl Iterator<Item = &'r Value> {
    let said = row.said["disclosures"].as_array();
    said.into_iter().flatten().filter(|one| one["is_cut_off"] != true)
}

/// In so many milliseconds a call has ended, or what was cut off was begun again.
const SAID_AGAIN_MS: i64 = 15_000;

/// L4: "a person answered: AI sentence and name completed; talked over: said again". Whoever has hung up before hears no more.
pub fn a_machine_says_that_it_is_one(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (_, row) in answered(facts) {
        let said = row.said["disclosures"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        // Sentence by sentence: what was cut off is said again by itself.
        let is_told = |kind| heard_whole(row).any(|one| has(&one["kinds"], kind));
        let last = said
            .iter()
            .filter_map(|one| one["completed_ms"].as_i64())
            .max()
            .unwrap_or(0);
        let picked_up = time(&row.said["picked_up_at"]);
        let lasted = time(&row.said["ended_at"])
            .zip(picked_up)
            .map_or(0, |(end, begin)| end - begin);
        let is_excused = !row.said["abandoned"].is_null() || lasted - last <= SAID_AGAIN_MS;
        if !(is_excused || is_told("ai") && is_told("name")) {
            found.push(format!(
                "in {} nobody was told to the end that a machine speaks",
                row.attempt
            ));
        }
    }
    found
}

/// L4: "completed before the first word of the brain": also where somebody hangs up soon. Of a call that a crash has cut off nobody knows
/// when the brain began.
pub fn nothing_is_said_before_that(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (_, row) in answered(facts) {
        let Some(began) = row.said["first_words_ms"].as_i64() else {
            continue;
        };
        let is_before = |one: &Value| one["completed_ms"].as_i64().is_some_and(|ended| ended <= began);
        let is_told = |kind| heard_whole(row).any(|one| has(&one["kinds"], kind) && is_before(one));
        if !(is_told("ai") && is_told("name")) {
            found.push(format!(
                "in {} the brain spoke before it was told that a machine speaks",
                row.attempt
            ));
        }
    }
    found
}

/// Source: 16 CFR 310.4(b)(4)(iii).
const FIRST_SOUND_MS: i64 = 2_000;

/// L5: "first_audio_ms ≤ 2,000 after the greeting, or the attempt counts as abandoned".
pub fn silence_is_abandonment(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let is_late = |row: &Record<'_>| {
        row.said["first_sound_ms"]
            .as_i64()
            .is_some_and(|ms| ms > FIRST_SOUND_MS)
    };
    let late = answered(facts)
        .into_iter()
        .filter(|(_, row)| is_late(row) && row.said["abandoned"].is_null());
    late.map(|(_, row)| {
        format!(
            "in {} the first sound came late, and it does not count as abandoned",
            row.attempt
        )
    })
    .collect()
}

/// L5: "and the stored message played": to whoever an agent left alone that had nothing to say, where the law limits how often that may
/// happen. Sources: 16 CFR 310.4(b)(4)(iv); CRTC Unsolicited Telecommunications Rules, part IV; Ofcom, persistent misuse.
pub fn who_is_left_alone_hears_the_message(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let is_limited = |known: &Value| match text(known, "purpose") {
        "marketing" => ["US", "CA", "GB"].iter().any(|place| lies_in(known, place)),
        "emergency" => false,
        _ => lies_in(known, "GB"),
    };
    let left_alone = answered(facts).into_iter().filter(|(opening, row)| {
        row.said["abandoned"] == "no_brain"
            && row.said["safe_harbour_played"] != true
            && is_limited(&opening.said["facts"])
    });
    left_alone
        .map(|(_, row)| {
            format!(
                "in {} the agent had nothing to say, and the stored message was not played",
                row.attempt
            )
        })
        .collect()
}

/// L6: "abandonment over the place's limit: no new dial of that campaign until below": 3 % of the answered calls, in the United Kingdom
/// of 24 hours (Ofcom), else of 30 days (16 CFR 310.4(b)(4)(i)). One is not a rate.
pub fn abandoned_calls_hold_the_campaign(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let openings = by(&facts.records, |row| (row.what == "attempt").then_some(row.attempt));
    let mut found = Vec::new();
    for rows in chains(facts).into_values() {
        // When, and whether it was abandoned, by campaign.
        let mut ended: HashMap<&str, Vec<(i64, bool)>> = HashMap::new();
        for row in rows {
            let Some(campaign) = row.campaign else { continue };
            let is_abandoned = !row.said["abandoned"].is_null();
            let is_live = is_abandoned || matches!(text(&row.said, "answered_by"), "human" | "unknown");
            if row.what == "outcome" && is_live && openings.contains_key(row.attempt) {
                let at = time(&row.said["picked_up_at"]).or(row.at).unwrap_or_default();
                ended.entry(campaign).or_default().push((at, is_abandoned));
            }
            let (known, asked) = (&row.said["facts"], row.said["asked"].as_array());
            let limits = asked.into_iter().flatten().filter_map(Value::as_str);
            let is_limited = limits.into_iter().any(|asked| asked.starts_with("abandonment:"));
            if row.what != "attempt" || row.said["observed"] == true || !is_limited {
                continue;
            }
            let at = time(&known["at"]).unwrap_or_default();
            let days = if has(&known["places"], "GB") { 1 } else { 30 };
            let since = at - days * DAY_MS;
            let counted = ended
                .get(campaign)
                .into_iter()
                .flatten()
                .filter(|(then, _)| *then > since);
            let (live, abandoned) = counted.fold((0, 0), |(live, abandoned), (_, was)| {
                (live + 1, abandoned + i64::from(*was))
            });
            if abandoned > 1 && abandoned * 1_000 > live * 30 {
                found.push(format!(
                    "attempt {} was made when {abandoned} of {live} answered calls of its campaign were abandoned",
                    row.attempt
                ));
            }
        }
    }
    found
}

/// The register that a place asks for, and how many days a copy of it counts. Sources: 16 CFR 310.4(b)(3)(iv); CRTC Unsolicited
/// Telecommunications Rules, part II; Corporate TPS licence; D.P.R. 26/2022, art. 8; Do Not Call Register Act 2006, s. 11.
const REGISTERS: [(&str, &str, i64); 5] = [
    ("US", "us_dnc", 31),
    ("CA", "ca_dncl", 31),
    ("GB", "uk_tps", 28),
    ("IT", "it_rpo", 15),
    ("AU", "au_dncr", 30),
];

/// L7: "register copy older than allowed: no dial". Whoever has consented is called whatever the register says.
pub fn registers_are_fresh(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for row in bound(facts) {
        let known = &row.said["facts"];
        let agreed = !matches!(text(&known["consent"], "tier"), "" | "existing_contract");
        if known["purpose"] != "marketing" || known["channel"] != "phone" || known["audience"] == "business" || agreed {
            continue;
        }
        let at = time(&known["at"]).unwrap_or_default();
        for (place, register, days) in REGISTERS {
            let copies = known["registers"].as_array().into_iter().flatten();
            let is_fresh = |copy: &Value| {
                let fetched = time(&copy["fetched_at"]).unwrap_or_default();
                fetched <= at && at - fetched <= days * DAY_MS
            };
            // Where the register is asked about each number, no copy is its answer.
            let mut asked = known["asked_registers"].as_array().into_iter().flatten();
            let is_asked = asked.any(|name| name == register);
            let counts = |copy: &Value| is_fresh(copy) && (!is_asked || !copy["asked_at"].is_null());
            let mut fresh = copies.filter(|copy| copy["name"] == register && counts(copy));
            if lies_in(known, place) && fresh.all(|copy| copy["is_listed"] == true) {
                found.push(format!(
                    "attempt {} was made without a clean, fresh copy of {register}",
                    row.attempt
                ));
            }
        }
    }
    found
}

/// After so many days a consent, and an answer about a number, is asked about again. Source: ours, for 47 CFR 64.1200(m).
const STILL_THEIRS_DAYS: i64 = 30;

/// L7: "RND answer older than allowed: no dial": in the United States, where the consent is not new; of the days since it was given.
pub fn numbers_are_still_theirs(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let consents = consents::by_id(facts);
    let mut found = Vec::new();
    for row in bound(facts) {
        let known = &row.said["facts"];
        if known["purpose"] == "emergency" || known["channel"] == "email" || !lies_in(known, "US") {
            continue;
        }
        // One that nobody has given is told of by L1.
        let Some(consent) = known["consent"]["id"].as_str().and_then(|id| consents.get(id)) else {
            continue;
        };
        let at = time(&known["at"]).unwrap_or_default();
        let is_new = |then: i64| at - then <= STILL_THEIRS_DAYS * DAY_MS;
        let answer = &known["reassigned"];
        let is_fresh = time(&answer["checked_at"]).is_some_and(|checked| checked <= at && is_new(checked));
        let is_of_it = time(&answer["since"]).is_some_and(|since| since <= consent.given_at);
        let is_known = answer["answer"] == "no" && is_fresh && is_of_it;
        if !is_new(consent.given_at) && !is_known {
            found.push(format!(
                "attempt {} was made without a fresh answer that the number is still the same person's",
                row.attempt
            ));
        }
    }
    found
}

/// What a day does to a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begins,
    Ends,
}
use Turn::{Begins, Ends};

/// Year, month and day.
type Day = (i32, u32, u32);

/// Rules of calls to consumers that sell something, and the day on which they begin or hold no longer. Sources: loi 2025-594, art. 16;
/// Telecommunicatiewet, art. 11.7; Regulation (EU) 2024/1689, art. 50(1) and 113.
const DATED: [(&str, &str, Turn, Day); 5] = [
    ("FR", "fr.optin", Begins, (2026, 8, 11)),
    ("FR", "fr.machines", Ends, (2026, 8, 11)),
    ("NL", "nl.consent", Begins, (2026, 7, 1)),
    ("NL", "nl.consent.customers", Ends, (2026, 7, 1)),
    ("DE", "eu.disclosure", Begins, (2026, 8, 2)),
];

/// L8: "a rule's from/until passes at midnight of its place".
pub fn rules_begin_and_end_on_their_day(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for row in facts.records.iter().filter(|row| row.what == "attempt") {
        let known = &row.said["facts"];
        let zones = known["zones"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ([zone], Some(at)) = (zones, time(&known["at"])) else {
            continue;
        };
        let local = zone
            .as_str()
            .and_then(|zone| zone.parse::<Tz>().ok())
            .zip(DateTime::from_timestamp_millis(at));
        let Some((zone, at)) = local else { continue };
        let sells = known["purpose"] == "marketing" && known["channel"] == "phone" && known["audience"] == "consumer";
        for (place, rule, turn, (year, month, day)) in DATED {
            let is_past = NaiveDate::from_ymd_opt(year, month, day)
                .is_some_and(|day| at.with_timezone(&zone).date_naive() >= day);
            let asked = row.said["asked"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let is_asked = asked.into_iter().any(|asked| asked.split(':').nth(1) == Some(rule));
            let wrong = match turn {
                Begins if is_past != is_asked => "was asked before its day, or not from it on",
                Ends if is_past == is_asked => "was asked from its end on, or not before it",
                Begins | Ends => continue,
            };
            if sells && has(&known["places"], place) {
                found.push(format!("attempt {}: {rule} {wrong}", row.attempt));
            }
        }
    }
    found
}
