//! Consents: what is taken down of one, and what is refused. What it is good for is said by [`standing`], how long it is kept by [`kept`].
pub mod evidence;
pub mod kept;
pub mod standing;
pub mod taken_back;

use crate::{barred, digest::sha256, shape};
use entities::{
    Error, Result,
    checks::Checks,
    consent::{Model, Purposes, Withdrawals, seller_key, text},
    dnc::{Channels, DncChannel},
    ids::{ConsentId, RecordingId, TenantId},
    law::{ConsentTier, Purpose},
    values::{Country, E164, Env, Moment, Text, Times},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use url::Url;

/// Characters of the text that was shown, or read out, and of what was answered.
pub const MAX_COPY: usize = 20_000;
/// Consents of one person that nobody has revoked: each dial looks at all of them.
pub const MOST_OF_A_PERSON: usize = 100;
/// Older ones are typing errors: 1 January 1990.
const EARLIEST_MS: i64 = 631_152_000_000;

/// That somebody agreed to be called or written to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsentGiven {
    /// However it is typed; without `+` it is read in the workspace's country. Required for `phone` and `sms`.
    #[serde(default)]
    pub phone_number: Option<Text<1, 40>>,
    /// Required for `email`.
    #[serde(default)]
    pub email: Option<Text<3, 254>>,
    /// Who gave it.
    #[serde(default)]
    pub name: Option<Text<1, 200>>,
    /// To whom it was given, as it was written there. A consent is good for this seller alone; case and blanks do not count.
    pub seller: Text<1, 200>,
    pub channels: Vec<DncChannel>,
    /// What it was given for.
    pub purposes: Vec<Purpose>,
    pub tier: ConsentTier,
    /// It says that a machine, or an artificial voice, will call.
    #[serde(default)]
    pub covers_automated_voice: bool,
    /// How it was given, such as "web form", "paper, signed", "said in a call".
    pub method: Text<1, 500>,
    /// The page on which it was given.
    #[serde(default)]
    pub source_url: Option<Text<1, 2000>>,
    /// From where it was sent.
    #[serde(default)]
    pub source_ip: Option<Text<2, 45>>,
    /// The recording of the call in which it was said.
    #[serde(default)]
    pub recording_id: Option<RecordingId>,
    /// What was asked, word for word as it was shown or read out. Required for `express_written` and `opt_in_double`.
    #[serde(default)]
    pub request_copy: Option<Text<1, MAX_COPY>>,
    /// What was answered or signed.
    #[serde(default)]
    pub consent_copy: Option<Text<1, MAX_COPY>>,
    /// Nothing could be bought only by giving it.
    #[serde(default)]
    pub not_a_condition_of_purchase: bool,
    /// The contract that is being fulfilled. Required for `existing_contract`.
    #[serde(default)]
    pub contract_ref: Option<Text<1, 200>>,
    /// Not in the future.
    pub given_at: Moment,
    /// From then on it is not good any more; null: until it is revoked.
    #[serde(default)]
    pub expires_at: Option<Moment>,
}

/// Where and by whom one is taken down.
#[derive(Clone, Debug)]
pub struct Reading {
    pub owner: (TenantId, Env),
    /// Numbers without `+` are of it.
    pub country: Country,
    pub now: Times,
    pub by: Option<String>,
}

/// A consent that can be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    pub row: Model,
    /// None: it has no words.
    pub text: Option<text::Model>,
}

/// Takes one down, or says all that is wrong with it.
pub fn accept(given: ConsentGiven, reading: &Reading, id: ConsentId) -> Result<Accepted> {
    let mut checks = Checks::default();
    let phone_number = number(&given, reading, &mut checks);
    let email = address(&given, &mut checks);
    check_reach(&given, &mut checks);
    check_times(&given, reading.now, &mut checks);
    check_proof(&given, &mut checks);
    checks.end()?;
    let (tenant_id, env) = reading.owner;
    let request_copy = given.request_copy.map(Text::into_string);
    let consent_copy = given.consent_copy.map(Text::into_string);
    let mut row = Model {
        id,
        tenant_id,
        env,
        phone_number,
        email,
        name: given.name.map(Text::into_string),
        seller_key: seller_key(&given.seller),
        seller: given.seller.into_string(),
        channels: Channels::of(given.channels),
        purposes: Purposes::of(given.purposes),
        tier: given.tier,
        covers_automated_voice: given.covers_automated_voice,
        method: given.method.into_string(),
        source_url: given.source_url.map(Text::into_string),
        source_ip: given.source_ip.map(Text::into_string),
        recording_id: given.recording_id,
        request_sha256: request_copy.as_deref().map(|text| sha256(text.as_bytes())),
        consent_sha256: consent_copy.as_deref().map(|text| sha256(text.as_bytes())),
        not_a_condition_of_purchase: given.not_a_condition_of_purchase,
        contract_ref: given.contract_ref.map(Text::into_string),
        given_at: given.given_at,
        expires_at: given.expires_at,
        evidence: None,
        withdrawals: Withdrawals::default(),
        revoked_at: None,
        revoked_by: None,
        revoked_reason: None,
        given_seq: 0,
        revoked_seq: None,
        fingerprint: String::new(),
        version: 1,
        created_at: reading.now.ours,
        created_by: reading.by.clone(),
    };
    row.fingerprint = fingerprint(&row);
    let has_words = request_copy.is_some() || consent_copy.is_some();
    let text = has_words.then_some(text::Model {
        consent_id: id,
        request_copy,
        consent_copy,
    });
    Ok(Accepted { row, text })
}

fn number(given: &ConsentGiven, reading: &Reading, checks: &mut Checks) -> Option<E164> {
    match E164::parse(given.phone_number.as_deref()?, reading.country) {
        Ok(number) => Some(number),
        Err(why) => {
            checks.refuse("phone_number", why);
            None
        }
    }
}

fn address(given: &ConsentGiven, checks: &mut Checks) -> Option<String> {
    match barred::email(given.email.as_deref()?) {
        Ok(email) => Some(email),
        Err(error) => {
            checks.add(Err(error));
            None
        }
    }
}

/// Who can be reached, by what and for what.
fn check_reach(given: &ConsentGiven, checks: &mut Checks) {
    let covers = |channel: DncChannel| given.channels.contains(&channel);
    if given.phone_number.is_none() && given.email.is_none() {
        checks.refuse("phone_number", "give a number, an e-mail address, or both");
    } else {
        if given.phone_number.is_none() && (covers(DncChannel::Phone) || covers(DncChannel::Sms)) {
            checks.refuse("phone_number", "is required for the channels `phone` and `sms`");
        }
        if given.email.is_none() && covers(DncChannel::Email) {
            checks.refuse("email", "is required for the channel `email`");
        }
    }
    if given.channels.is_empty() {
        checks.refuse("channels", "needs at least one of `phone`, `sms` and `email`");
    }
    if given.purposes.is_empty() {
        checks.refuse("purposes", "needs at least one, such as `marketing`");
    }
}

fn check_times(given: &ConsentGiven, now: Times, checks: &mut Checks) {
    if given.given_at > now.later() {
        checks.refuse(
            "given_at",
            "lies in the future: give the moment at which the person agreed",
        );
    }
    if given.given_at.millis() < EARLIEST_MS {
        checks.refuse(
            "given_at",
            "lies before 1990: give the moment at which the person agreed",
        );
    }
    if given.expires_at.is_some_and(|end| end <= given.given_at) {
        checks.refuse("expires_at", "must be later than `given_at`");
    }
}

fn check_proof(given: &ConsentGiven, checks: &mut Checks) {
    match given.tier {
        ConsentTier::ExistingContract if given.contract_ref.is_none() => {
            checks.refuse("contract_ref", "is required for the tier `existing_contract`");
        }
        ConsentTier::ExpressWritten | ConsentTier::OptInDouble if given.request_copy.is_none() => {
            let why = "is required for consents in writing: the text that the person agreed to, as it was shown";
            checks.refuse("request_copy", why);
        }
        ConsentTier::ExistingContract
        | ConsentTier::Express
        | ConsentTier::ExpressWritten
        | ConsentTier::OptInDouble => {}
    }
    let is_page = |text: &str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if given.source_url.as_deref().is_some_and(|text| !is_page(text)) {
        checks.refuse("source_url", "must be the address of a page, with http:// or https://");
    }
    if given
        .source_ip
        .as_deref()
        .is_some_and(|text| text.parse::<IpAddr>().is_err())
    {
        checks.refuse("source_ip", "must be an IP address such as 192.0.2.7 or 2001:db8::7");
    }
}

/// The same for the same facts, however they were written: a list that is read in again makes nothing new, and brings nothing back
/// that was revoked meanwhile.
fn fingerprint(row: &Model) -> String {
    let facts = json!([
        row.phone_number,
        row.email,
        row.seller_key,
        row.channels,
        row.purposes,
        row.tier,
        row.covers_automated_voice,
        row.method,
        row.request_sha256,
        row.consent_sha256,
        row.contract_ref,
        row.given_at,
        row.expires_at,
    ]);
    sha256(facts.to_string().as_bytes())
}

/// The columns of a list of consents.
pub const COLUMNS: [&str; 18] = [
    "phone_number",
    "email",
    "name",
    "seller",
    "channels",
    "purposes",
    "tier",
    "covers_automated_voice",
    "method",
    "source_url",
    "source_ip",
    "recording_id",
    "request_copy",
    "consent_copy",
    "not_a_condition_of_purchase",
    "contract_ref",
    "given_at",
    "expires_at",
];
/// Those that a list must have: what they say is never guessed.
pub const NEEDED: [&str; 6] = ["seller", "channels", "purposes", "tier", "method", "given_at"];

/// A row of a list as the API would take it; `cell`: what stands in the column of that name, if anything.
pub fn of_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Result<ConsentGiven> {
    let mut fields = Map::new();
    for name in COLUMNS {
        let Some(text) = cell(name) else { continue };
        let value: Value = match name {
            "channels" | "purposes" => {
                let names = text.split([',', ';', ' ']).map(str::trim);
                names.filter(|name| !name.is_empty()).map(Value::from).collect()
            }
            "covers_automated_voice" | "not_a_condition_of_purchase" => yes_or_no(name, text)?.into(),
            _ => Value::from(text),
        };
        fields.insert(name.to_owned(), value);
    }
    shape::parse_value(fields.into()).map_err(Error::from)
}

fn yes_or_no(name: &str, text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(Error::invalid(name, format!("must be `true` or `false`, not `{text}`"))),
    }
}

/// A request that was made elsewhere, such as by letter, and is entered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    pub at: Moment,
    /// Later than is decent: the law knows 10 business days (47 CFR 64.1200(a)(10)), and we warn after half of them.
    pub is_late: bool,
}

const DAY_MS: i64 = 24 * 3_600_000;
/// Of ours: half of the ten business days that 47 CFR 64.1200(a)(10) and (d)(3) allow.
const WARN_AFTER_DAYS: i64 = 5;
const OLDEST_DAYS: i64 = 365;

/// Checks when somebody says that they asked not to be reached: at most a year ago, and not in the future.
pub fn requested(at: Moment, now: Times) -> Result<Requested> {
    let days_ago = |days: i64| now.later().plus_millis(-days * DAY_MS);
    if at > now.later() {
        return Err(Error::invalid("requested_at", "lies in the future"));
    }
    if at < days_ago(OLDEST_DAYS) {
        return Err(Error::invalid(
            "requested_at",
            "lies more than a year back: leave it out, and say in `reason` when it was",
        ));
    }
    Ok(Requested {
        at,
        is_late: at < days_ago(WARN_AFTER_DAYS),
    })
}

impl Requested {
    /// What whoever enters it is told.
    pub fn warning(self) -> Option<String> {
        let words = "the person asked more than 5 days ago; requests must be honoured within 10 business days (47 CFR 64.1200(a)(10)): \
                     see to it that the next one is entered at once";
        self.is_late.then(|| words.to_owned())
    }
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;
