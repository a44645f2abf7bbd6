//! The rules of calling by machine as COMPLIANCE.md tells them, in tables of their own. Nothing of the law pack is used here: where the
//! two disagree, one of them is wrong. Behind each rule stands the section that it was written from.
//!
//! Only what the text says plainly is asked. What it leaves open is allowed here, so that a yes of the pack is a breach only where the
//! text says no.
use super::calendar::{Open, is_holiday, minute_of_day};
use chrono::{DateTime, Datelike, Weekday};
use chrono_tz::Tz;
use entities::{
    dnc::DncChannel,
    law::{ConsentTier, Purpose, Vertical},
    values::Moment,
};
use rules::law::facts::{ConsentFact, Facts, ReassignedAnswer, RestCause};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// What is said of one place.
pub struct Law {
    pub place: &'static str,
    /// When a call may be made, where the person is.
    windows: &'static [Open],
    /// Closed on public holidays?
    keeps_holidays: bool,
    /// Attempts at one number in so many hours.
    caps: &'static [(usize, i64)],
    consent: Needs,
    /// Of the calls that people answered, how many of a thousand may be abandoned, over 24 hours or 30 days.
    abandoned: Option<(i64, Span)>,
}

/// The consent that a marketing call needs.
#[derive(Clone, Copy)]
enum Needs {
    /// In writing, for a machine's voice.
    WrittenForMachine,
    /// Said, for a machine's voice.
    ExpressForMachine,
    /// Said; a contract is none.
    Express,
    /// In writing, and not older than so many days.
    Written { days: Option<i64> },
    /// Said (E4: an automatic machine needs consent); from that day on in writing; or a contract that is named.
    WrittenFromOrContract(&'static str),
    /// In writing; until that day customers need none.
    WrittenCustomersUntil(&'static str),
    /// A consent, or a fresh register without the number.
    ExpressOrClean { register: &'static str, days: i64 },
}

#[derive(Clone, Copy)]
enum Span {
    Day,
    Month,
}

use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
const WEEK: &[Weekday] = &[Mon, Tue, Wed, Thu, Fri];
const SIX: &[Weekday] = &[Mon, Tue, Wed, Thu, Fri, Sat];

const fn open(days: &'static [Weekday], from: u32, to: u32) -> Open {
    Open {
        days,
        from: from * 60,
        to: to * 60,
    }
}

/// Section 6: Monday to Saturday 9 to 20, Sunday 12 to 20. Florida (S1: 8 to 20) and Texas (S5: 9 to 21, Sunday 12 to 21) leave it so.
const US: &[Open] = &[open(SIX, 9, 20), open(&[Sun], 12, 20)];
/// S5: 9 to 21, Sunday 12 to 21.
const TEXAS_TEXTS: &[Open] = &[open(SIX, 9, 21), open(&[Sun], 12, 21)];
/// Section 6: 3 in 24 hours, 7 in 7 days.
const US_CAPS: &[(usize, i64)] = &[(3, 24), (7, 7 * 24)];
/// U6: the limit is 3 %, the brake 2 %.
const US_ABANDONED: Option<(i64, Span)> = Some((20, Span::Month));

const fn us(place: &'static str) -> Law {
    Law {
        place,
        windows: US,
        keeps_holidays: false,
        caps: US_CAPS,
        consent: Needs::WrittenForMachine,
        abandoned: US_ABANDONED,
    }
}

const EU: &[Open] = &[open(WEEK, 9, 20)];

/// Section 6, "DE, AT, NL, other EU": Monday to Friday 9 to 20, 2 in 24 hours.
const fn eu(place: &'static str, consent: Needs) -> Law {
    Law {
        place,
        windows: EU,
        keeps_holidays: false,
        caps: &[(2, 24)],
        consent,
        abandoned: None,
    }
}

/// The twelve places of the simulated year.
pub static LAWS: [Law; 12] = [
    us("US-NY"),
    us("US-FL"),
    us("US-TX"),
    // S7: machine solicitation on weekdays, 9 to 17, once in 8 hours.
    Law {
        windows: &[open(WEEK, 9, 17)],
        caps: &[(1, 8), (3, 24), (7, 7 * 24)],
        ..us("US-ME")
    },
    // C1, C2, section 6.
    Law {
        place: "CA-ON",
        windows: &[open(WEEK, 9, 20), open(&[Sat, Sun], 10, 18)],
        keeps_holidays: false,
        caps: &[(3, 24)],
        consent: Needs::Express,
        abandoned: Some((30, Span::Month)),
    },
    // E12, E13, section 6.
    Law {
        place: "GB",
        windows: &[open(SIX, 9, 20)],
        keeps_holidays: false,
        caps: &[(3, 24)],
        consent: Needs::ExpressForMachine,
        abandoned: Some((5, Span::Day)),
    },
    // E4, E5.
    eu("DE", Needs::Written { days: None }),
    // E6, E7: 10 to 13 and 14 to 20, no holidays, 4 in 30 days.
    Law {
        windows: &[open(WEEK, 10, 13), open(WEEK, 14, 20)],
        keeps_holidays: true,
        caps: &[(4, 30 * 24)],
        ..eu("FR", Needs::WrittenFromOrContract("2026-08-11"))
    },
    // E8, E9: 9 to 21, no weekend or holiday, consent renewed every two years.
    Law {
        windows: &[open(WEEK, 9, 21)],
        keeps_holidays: true,
        ..eu("ES", Needs::Written { days: Some(731) })
    },
    // E10: 9 to 20, Saturday 10 to 19, never on Sundays and holidays.
    Law {
        windows: &[open(WEEK, 9, 20), open(&[Sat], 10, 19)],
        keeps_holidays: true,
        ..eu("IT", Needs::Written { days: None })
    },
    // E11: customers need to have consented, too, since 1 July 2026.
    eu("NL", Needs::WrittenCustomersUntil("2026-07-01")),
    // A1: 9 to 20, Saturday 9 to 17, no Sundays and holidays; section 6: 3 in 24 hours.
    Law {
        place: "AU",
        windows: &[open(WEEK, 9, 20), open(&[Sat], 9, 17)],
        keeps_holidays: true,
        caps: &[(3, 24)],
        consent: Needs::ExpressOrClean {
            register: "au_dncr",
            days: 30,
        },
        abandoned: None,
    },
];

type Allows = fn(&Law, &Facts) -> bool;

/// In which there are texts: those of the phrases for opting out. Source: issue, item 4.
const LANGUAGES: [&str; 9] = ["de", "en", "es", "fr", "it", "nl", "pl", "pt", "tr"];

/// What is asked, and what it is called if the answer is no.
#[rustfmt::skip]
const ASKED: [(&str, Allows); 14] = [
    ("L3: on the own list", |_, facts| !facts.is_barred),
    ("U1, C1, E4: consent", |law, facts| !is_marketing_call(facts) || consents(law, facts)),
    ("U1: consent to a service call", |law, facts| !(is_us(law) && is_call(facts) && facts.purpose == Purpose::Service)
        || facts.consent.as_ref().is_some_and(|consent| covers(consent, facts))),
    ("U16, E4, A2: consent to messages", |law, facts| is_call(facts) || messages(law, facts)),
    ("E6: energy renovation", |law, facts| !(law.place == "FR" && facts.vertical == Some(Vertical::EnergyRenovation)
        && is_marketing_call(facts) && is_from("2026-08-11", facts))),
    ("E10: the Italian register", |law, facts| !(law.place == "IT" && is_marketing_call(facts)) || italian_register(facts)),
    ("U13: reassigned", |law, facts| !(is_us(law) && is_marketing_call(facts)) || reassigned(facts)),
    ("U11, E5, E7, E9, A1: caller id", |law, facts| !is_call(facts) || caller_id(law, facts)),
    ("U5, C1, E12, U17: identity", identity),
    ("E1, S9: no text in the language", |_, facts| !is_call(facts)
        || LANGUAGES.contains(&facts.language.split('-').next().unwrap_or_default())),
    ("U7: ring", |law, facts| !(is_us(law) && is_marketing_call(facts)) || facts.ring_seconds >= 15),
    ("U6, C2, E13: abandonment", |law, facts| !is_marketing_call(facts) || abandonment(law, facts)),
    ("E7, E13: rest; caps", |law, facts| !is_marketing_call(facts) || (rested(law, facts) && within_caps(law, facts))),
    ("U8, C2, E7, E8, E10, A1: hours", hours),
];

/// May this be done? Otherwise the rule that forbids it.
pub fn may(law: &Law, facts: &Facts) -> Result<(), &'static str> {
    match ASKED.iter().find(|(_, holds)| !holds(law, facts)) {
        Some((rule, _)) => Err(*rule),
        None => Ok(()),
    }
}

fn is_call(facts: &Facts) -> bool {
    facts.channel == DncChannel::Phone
}
fn is_marketing_call(facts: &Facts) -> bool {
    is_call(facts) && facts.purpose == Purpose::Marketing
}
fn is_us(law: &Law) -> bool {
    law.place.starts_with("US-")
}

/// Has that day begun where the person is, by the first clock?
fn is_from(day: &str, facts: &Facts) -> bool {
    local(facts).any(|time| time.date_naive().to_string().as_str() >= day)
}

fn local(facts: &Facts) -> impl Iterator<Item = DateTime<Tz>> {
    let at = facts.at.datetime();
    facts.zones.iter().map(move |zone| at.with_timezone(&zone.tz()))
}

fn days_since(earlier: Moment, facts: &Facts) -> i64 {
    (facts.at.millis() - earlier.millis()) / DAY
}

/// U1, U2: the same seller, channel and purpose, given before, neither expired nor revoked. E6: a contract is good for what fulfils it.
fn covers(consent: &ConsentFact, facts: &Facts) -> bool {
    facts.seller.as_ref() == Some(&consent.seller)
        && consent.purposes.contains(&facts.purpose)
        && consent.channels.contains(&facts.channel)
        && consent.given_at <= facts.at
        && consent.expires_at.is_none_or(|until| facts.at < until)
        && (consent.tier != ConsentTier::ExistingContract
            || facts.contract_ref.is_none()
            || facts.contract_ref == consent.contract_ref)
}

fn is_written(tier: ConsentTier) -> bool {
    matches!(tier, ConsentTier::ExpressWritten | ConsentTier::OptInDouble)
}
fn is_express(tier: ConsentTier) -> bool {
    tier == ConsentTier::Express || is_written(tier)
}

fn consents(law: &Law, facts: &Facts) -> bool {
    let consent = facts.consent.as_ref().filter(|consent| covers(consent, facts));
    let has = |allows: &dyn Fn(&ConsentFact) -> bool| consent.is_some_and(allows);
    let has_contract =
        || has(&|consent| consent.tier == ConsentTier::ExistingContract && consent.contract_ref.is_some());
    match law.consent {
        Needs::WrittenForMachine => has(&|consent| is_written(consent.tier) && consent.covers_automated_voice),
        Needs::ExpressForMachine => has(&|consent| is_express(consent.tier) && consent.covers_automated_voice),
        Needs::Express => has(&|consent| is_express(consent.tier)),
        Needs::Written { days } => has(&|consent| {
            is_written(consent.tier) && days.is_none_or(|days| days_since(consent.given_at, facts) <= days)
        }),
        Needs::WrittenFromOrContract(day) => {
            let is_enough: fn(ConsentTier) -> bool = if is_from(day, facts) { is_written } else { is_express };
            has(&|consent| is_enough(consent.tier)) || has_contract()
        }
        Needs::WrittenCustomersUntil(day) => {
            has(&|consent| is_written(consent.tier)) || (!is_from(day, facts) && has_contract())
        }
        Needs::ExpressOrClean { register, days } => {
            has(&|consent| is_express(consent.tier)) || fresh(register, days, facts) == Some(false)
        }
    }
}

/// Does a copy that is no older than that hold the number?
fn fresh(register: &str, days: i64, facts: &Facts) -> Option<bool> {
    let copy = facts.registers.iter().find(|copy| copy.name == register)?;
    let age = facts.at.millis() - copy.fetched_at.millis();
    (0..=days * DAY).contains(&age).then_some(copy.is_listed)
}

/// E10: looked into at least every 15 days; an entry takes back the consents before it.
fn italian_register(facts: &Facts) -> bool {
    let copy = facts.registers.iter().find(|copy| copy.name == "it_rpo");
    let is_newer = || match (copy, &facts.consent) {
        (Some(copy), Some(consent)) => match copy.listed_on {
            Some(day) => consent.given_at.datetime().date_naive() >= day,
            None => consent.given_at > copy.fetched_at,
        },
        _ => false,
    };
    fresh("it_rpo", 15, facts).is_some_and(|is_listed| !is_listed || is_newer())
}

/// U13: of a consent that is older than 30 days, "no" to the question whether the number was given away since it.
fn reassigned(facts: &Facts) -> bool {
    let Some(consent) = &facts.consent else { return false };
    if facts.at.millis() - consent.given_at.millis() <= 30 * DAY {
        return true;
    }
    facts.reassigned.as_ref().is_some_and(|asked| {
        asked.answer == ReassignedAnswer::No && asked.since.millis() <= consent.given_at.millis() + DAY
    })
}

fn caller_id(law: &Law, facts: &Facts) -> bool {
    // E5: nobody calls without showing a number.
    let Some(caller) = &facts.caller else { return false };
    let begins = |prefixes: [&str; 2]| prefixes.iter().any(|prefix| caller.number.as_str().starts_with(prefix));
    let is_marketing = facts.purpose == Purpose::Marketing;
    match law.place {
        // U11.
        place if place.starts_with("US-") => caller.is_answered && caller.right_to_use.is_some(),
        // E7: no number that begins with 06 or 07.
        "FR" => !is_marketing || !begins(["+336", "+337"]),
        // E9: no mobile number.
        "ES" => !is_marketing || !begins(["+346", "+347"]),
        // A1.
        "AU" => !is_marketing || caller.is_answered,
        _ => true,
    }
}

fn identity(law: &Law, facts: &Facts) -> bool {
    let known = &facts.identity;
    let by_phone = known.callback_number.is_some() || known.toll_free_number.is_some();
    let is_marketing = facts.purpose == Purpose::Marketing;
    match (facts.channel, law.place) {
        // S9, E1: a name stands in the first sentence of every call.
        (DncChannel::Phone, _) if known.registered_name.is_none() => false,
        // U5.
        (DncChannel::Phone, place) if place.starts_with("US-") => {
            !is_marketing || (known.callback_number.is_some() && known.toll_free_number.is_some())
        }
        // C1.
        (DncChannel::Phone, "CA-ON") => !is_marketing || (known.postal_address.is_some() && by_phone),
        // E12.
        (DncChannel::Phone, "GB") => {
            !is_marketing || known.postal_address.is_some() || known.toll_free_number.is_some()
        }
        // U17.
        (DncChannel::Email, place) if place.starts_with("US-") => !is_marketing || known.postal_address.is_some(),
        _ => true,
    }
}

/// U16: SMS are registered with the carriers. E4, C3, A2: marketing by SMS and e-mail needs a consent; U1 for SMS in the US.
fn messages(law: &Law, facts: &Facts) -> bool {
    let (is_sms, is_marketing) = (facts.channel == DncChannel::Sms, facts.purpose == Purpose::Marketing);
    let is_registered = || {
        facts
            .caller
            .as_ref()
            .is_some_and(|caller| caller.registration.is_some())
    };
    if is_us(law) && is_sms && !is_registered() {
        return false;
    }
    let needs_none = law.place == "GB" || (is_us(law) && !is_sms);
    let consent = facts.consent.as_ref().filter(|consent| covers(consent, facts));
    !is_marketing || needs_none || consent.is_some()
}

fn abandonment(law: &Law, facts: &Facts) -> bool {
    let (Some((permille, span)), Some(counted)) = (law.abandoned, &facts.abandonment) else {
        return true;
    };
    let (answered, abandoned) = match span {
        Span::Day => counted.day,
        Span::Month => counted.month,
    };
    abandoned * 1000 <= answered * permille
}

/// E7: 60 days after a no in France. E13: 72 hours after an abandoned call in the United Kingdom.
fn rested(law: &Law, facts: &Facts) -> bool {
    let (cause, hours) = match law.place {
        "FR" => (RestCause::Declined, 60 * 24),
        "GB" => (RestCause::Abandoned, 72),
        _ => return true,
    };
    let mut rests = facts.rests.iter().filter(|rest| rest.cause == cause);
    rests.all(|rest| facts.at.millis() - rest.since.millis() >= hours * HOUR)
}

fn within_caps(law: &Law, facts: &Facts) -> bool {
    law.caps.iter().all(|(most, hours)| {
        let since = facts.at.millis() - hours * HOUR;
        facts.recent.iter().filter(|tried| tried.millis() > since).count() < *most
    })
}

/// Open by every clock that counts. Service calls keep the windows of section 6; Maine's are for solicitation.
fn hours(law: &Law, facts: &Facts) -> bool {
    // S5: in Texas texts keep the hours of calls.
    let is_text = facts.channel == DncChannel::Sms && facts.purpose == Purpose::Marketing && law.place == "US-TX";
    let is_kept = matches!(facts.purpose, Purpose::Marketing | Purpose::Service);
    let windows = match (facts.channel, facts.purpose) {
        (DncChannel::Phone, Purpose::Service) if is_us(law) => US,
        (DncChannel::Phone, _) if is_kept => law.windows,
        (DncChannel::Sms, _) if is_text => TEXAS_TEXTS,
        _ => return true,
    };
    let is_open = |time: DateTime<Tz>| {
        let minute = minute_of_day(&time);
        let mut windows = windows.iter();
        windows.any(|open| open.days.contains(&time.weekday()) && (open.from..open.to).contains(&minute))
            && !(law.keeps_holidays && is_holiday(law.place, time.date_naive()))
    };
    local(facts).all(is_open)
}
