//! Facts as rows of `cases.txt` write them.
use crate::law::facts::{
    AbandonmentFact, CallerFact, ConsentFact, Facts, IdentityFact, PlaceSource, ReassignedAnswer, ReassignedFact,
    RegisterFact, RestCause, RestFact,
};
use chrono::{NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use entities::{
    dnc::DncChannel,
    ids::{ConsentId, RegisterId},
    law::Purpose,
    values::{Moment, Place, Zone},
};
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// One attempt, and what is special about it.
pub struct Row<'a> {
    pub places: &'a str,
    pub at: &'a str,
    pub keys: Vec<(&'a str, &'a str)>,
}

impl<'a> Row<'a> {
    /// `places at key=value..`
    pub fn read(text: &'a str) -> Self {
        let mut words = text.split(' ');
        Row {
            places: words.next().unwrap(),
            at: words.next().unwrap(),
            keys: words
                .map(|word| word.split_once('=').unwrap_or_else(|| panic!("{text}")))
                .collect(),
        }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.keys
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| *value)
    }
    fn is_no(&self, key: &str) -> bool {
        self.get(key) == Some("no")
    }
    fn word<T: DeserializeOwned>(&self, key: &str, default: &str) -> T {
        word(self.get(key).unwrap_or(default))
    }

    fn zones(&self, places: &[Place]) -> Vec<Zone> {
        let mut zones: Vec<Zone> = match self.get("zone") {
            Some(names) => names.split(',').map(|name| name.parse().unwrap()).collect(),
            None => places
                .iter()
                .map(|place| zone_of(place.as_str()).parse().unwrap())
                .collect(),
        };
        let mut seen = Vec::new();
        zones.retain(|zone| {
            !seen.contains(zone) && {
                seen.push(*zone);
                true
            }
        });
        zones
    }

    /// Whose wall times the row is written in.
    pub fn zone(&self) -> Tz {
        self.zones(&self.places()).first().map_or(Tz::UTC, |zone| zone.tz())
    }

    fn places(&self) -> Vec<Place> {
        let names = self.places.split(',').filter(|name| *name != "-");
        let mut places: Vec<Place> = names.map(|name| name.parse().unwrap()).collect();
        places.sort();
        places
    }

    /// `rule`: which one is meant by `override=yes`.
    pub fn facts(&self, rule: &str) -> Facts {
        let at = moment(self.zone(), self.at);
        let before = |text: &str| at.plus_seconds(-span(text));
        let places = self.places();
        let consent = self.consent(at);
        let (reassigned, since) = (self.get("rnd"), self.get("rnd-since"));
        Facts {
            at,
            channel: self.word("channel", "phone"),
            purpose: self.word("purpose", "marketing"),
            audience: self.word("audience", "consumer"),
            vertical: self.get("vertical").map(word),
            zones: self.zones(&places),
            place_sources: vec![PlaceSource::Given; places.len()],
            places,
            seller: Some("Acme Inc.".to_owned()),
            subject: None,
            contract_ref: self.get("for-contract").map(str::to_owned),
            is_barred: self.get("barred").is_some(),
            recent: {
                let mut recent: Vec<Moment> = self
                    .get("recent")
                    .into_iter()
                    .flat_map(|ages| ages.split(','))
                    .map(before)
                    .collect();
                recent.sort();
                recent
            },
            rests: self
                .get("rest")
                .map(|rest| {
                    let (cause, age) = rest.split_once(':').unwrap();
                    RestFact {
                        cause: word::<RestCause>(cause),
                        since: before(age),
                    }
                })
                .into_iter()
                .collect(),
            registers: [("register", false), ("answer", true)]
                .into_iter()
                .filter_map(|(key, is_answer)| Some((self.get(key)?, is_answer)))
                .flat_map(|(copies, is_answer)| copies.split(',').map(move |copy| (copy, is_answer)))
                .map(|(copy, is_answer)| {
                    let mut parts = copy.split(':');
                    let name = parts.next().unwrap().to_owned();
                    let fetched_at = before(parts.next().unwrap());
                    RegisterFact {
                        id: RegisterId(Uuid::from_u128(2)),
                        name,
                        version: 1,
                        fetched_at,
                        is_listed: parts.next().is_some(),
                        listed_on: parts.next().map(|day| day.parse().unwrap()),
                        asked_at: is_answer.then_some(fetched_at),
                    }
                })
                .collect(),
            asked_registers: self.get("asked").map(str::to_owned).into_iter().collect(),
            reassigned: reassigned.map(|reassigned| {
                let (answer, age) = reassigned.split_once(':').unwrap();
                ReassignedFact {
                    checked_at: before(age),
                    answer: word::<ReassignedAnswer>(answer),
                    since: since.map_or_else(|| consent.as_ref().unwrap().given_at, before),
                }
            }),
            consent,
            caller: self.caller(),
            identity: self.identity(),
            language: self.get("lang").unwrap_or("en").to_owned(),
            is_cloned_voice: false,
            ring_seconds: self.get("ring").unwrap_or("30").parse().unwrap(),
            abandonment: Some(AbandonmentFact {
                day: share(self.get("day")),
                month: share(self.get("month")),
            }),
            overrides: self.get("override").map(|_| rule.to_owned()).into_iter().collect(),
        }
    }

    fn consent(&self, at: Moment) -> Option<ConsentFact> {
        let (tier, age) = self.get("consent").unwrap_or("express_written:10d").split_once(':')?;
        let of_all = [
            Purpose::Marketing,
            Purpose::Service,
            Purpose::Debt,
            Purpose::Research,
            Purpose::CharityPolitical,
            Purpose::Emergency,
        ];
        Some(ConsentFact {
            id: ConsentId(Uuid::from_u128(1)),
            tier: word(tier),
            seller: self.get("consent-seller").unwrap_or("Acme Inc.").replace('_', " "),
            purposes: self
                .get("consent-purpose")
                .map_or_else(|| of_all.to_vec(), |purpose| vec![word(purpose)]),
            channels: self.get("consent-channel").map_or_else(
                || vec![DncChannel::Phone, DncChannel::Sms, DncChannel::Email],
                |channel| vec![word(channel)],
            ),
            covers_automated_voice: !self.is_no("voice"),
            given_at: at.plus_seconds(-span(age)),
            expires_at: self.get("expires").map(|ahead| at.plus_seconds(span(ahead))),
            contract_ref: self.get("contract").map(str::to_owned),
        })
    }

    fn caller(&self) -> Option<CallerFact> {
        let number = self.get("caller").unwrap_or("+12025550100");
        (number != "none").then(|| CallerFact {
            number: number.parse().unwrap(),
            right_to_use: (!self.is_no("right")).then(|| "verified".to_owned()),
            is_answered: !self.is_no("answered"),
            registration: (!self.is_no("registered")).then(|| "C1A2B3".to_owned()),
        })
    }

    fn identity(&self) -> IdentityFact {
        let has = |field: &str| {
            !self
                .get("without")
                .is_some_and(|without| without.split(',').any(|gone| gone == field))
        };
        IdentityFact {
            registered_name: has("registered_name").then(|| "Acme Inc.".to_owned()),
            callback_number: has("callback").then(|| "+12025550101".parse().unwrap()),
            toll_free_number: has("toll_free").then(|| "+18005550102".parse().unwrap()),
            postal_address: has("postal_address").then(|| "1 Main Street, Springfield".to_owned()),
        }
    }
}

/// A word as JSON and TOML write it.
pub fn word<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_value(text.into()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Wall time, with or without seconds.
pub fn moment(zone: Tz, wall: &str) -> Moment {
    let with_seconds = if wall.len() == 16 {
        format!("{wall}:00")
    } else {
        wall.to_owned()
    };
    let wall: NaiveDateTime = with_seconds.parse().unwrap_or_else(|error| panic!("{wall}: {error}"));
    Moment::from(zone.from_local_datetime(&wall).unwrap().to_utc())
}

/// Seconds of `1d2h3m4s`, or of the same with `-`.
fn span(text: &str) -> i64 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let mut seconds = 0;
    let mut digits = String::new();
    for char in text.chars() {
        let unit = match char {
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit => {
                digits.push(digit);
                continue;
            }
        };
        seconds += digits.parse::<i64>().unwrap() * unit;
        digits.clear();
    }
    sign * seconds
}

/// `3/100`: three of a hundred answered calls were abandoned. As facts have it: answered, abandoned.
fn share(text: Option<&str>) -> (i64, i64) {
    let Some((abandoned, answered)) = text.and_then(|text| text.split_once('/')) else {
        return (0, 0);
    };
    (answered.parse().unwrap(), abandoned.parse().unwrap())
}

fn zone_of(place: &str) -> &'static str {
    match place {
        "BR" => "America/Sao_Paulo",
        "FR" => "Europe/Paris",
        "RE" => "Indian/Reunion",
        "DE" => "Europe/Berlin",
        "AT" => "Europe/Vienna",
        "PL" => "Europe/Warsaw",
        "ES" => "Europe/Madrid",
        "IT" => "Europe/Rome",
        "NL" => "Europe/Amsterdam",
        "GB" => "Europe/London",
        "AU" => "Australia/Sydney",
        "IN" => "Asia/Kolkata",
        "CA" => "America/Toronto",
        "US-OK" | "US-TX" | "US-SD" | "US-AL" | "US-LA" | "US-MS" | "US-IL" => "America/Chicago",
        "US-UT" | "US-CO" | "US-MT" => "America/Denver",
        "US-WA" | "US-CA" | "US-NV" => "America/Los_Angeles",
        place if place.starts_with("US-") => "America/New_York",
        other => panic!("{other}: which zone?"),
    }
}
