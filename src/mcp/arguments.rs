//! Arguments that several tools take, in the words of the API.
use super::tool::{
    Argument,
    Kind::{self, Choice, Id, Integer, Text},
    Place::{self, Path, Query},
};

pub const fn arg(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument {
        name,
        about,
        kind,
        place: Query,
    }
}

pub const fn at(place: Place, argument: Argument) -> Argument {
    Argument { place, ..argument }
}

pub const fn id(name: &'static str, about: &'static str) -> Argument {
    at(Path, arg(name, Id, about))
}

pub const LIMIT: Argument = arg("limit", Integer(1, 50, 20), "How many at most.");
pub const CURSOR: Argument = arg(
    "cursor",
    Text(100),
    "`next_cursor` of the page before, to go on after it.",
);
pub const ORDER: Argument = arg(
    "order",
    Choice(&["desc", "asc"]),
    "`desc`: newest first, which is usual.",
);
pub const AFTER: Argument = arg(
    "created_after",
    Text(40),
    "Only what is newer than this: RFC 3339, such as 2027-03-02T13:00:00Z.",
);
pub const BEFORE: Argument = arg("created_before", Text(40), "Only what is older than this: RFC 3339.");
pub const NUMBER: Argument = arg("phone_number", Text(32), "A number in E.164, such as +14155550100.");
pub const EMAIL: Argument = arg("email", Text(254), "An e-mail address.");
pub const AGENT: Argument = arg("agent_id", Id, "Only of this agent.");
pub const CAMPAIGN: Argument = arg("campaign_id", Id, "Only of this campaign.");
pub const A_CALL: Argument = id("id", "The call's id.");
pub const A_CAMPAIGN: Argument = id("id", "The campaign's id.");

pub const CALLS: [&str; 7] = [
    "queued",
    "in_progress",
    "completed",
    "failed",
    "no_answer",
    "voicemail",
    "busy",
];
pub const CONTACTS: [&str; 7] = [
    "pending",
    "waiting",
    "dispatched",
    "completed",
    "failed",
    "skipped",
    "canceled",
];
/// Of what the law would say.
pub const TO: Argument = arg(
    "to",
    Text(254),
    "A number in E.164, or an e-mail address. This or region.",
);
pub const REGION: Argument = arg("region", Text(6), "A country (FR), or a part of one (US-FL).");
pub const AT: Argument = arg(
    "at",
    Text(40),
    "A date (2026-08-11: noon there) or a time (RFC 3339); left out: now.",
);
pub const CHANNEL: Argument = arg(
    "channel",
    Choice(&["phone", "sms", "email"]),
    "How the person is reached.",
);
pub const PURPOSE: Argument = arg("purpose", Choice(&PURPOSES), "What for; left out: marketing.");
pub const AUDIENCE: Argument = arg(
    "audience",
    Choice(&["consumer", "business"]),
    "Whom; left out: consumer.",
);
pub const VERTICAL: Argument = arg(
    "vertical",
    Choice(&["energy", "energy_renovation", "health", "licensed"]),
    "A trade that has rules of its own.",
);
pub const SELLER: Argument = arg(
    "seller",
    Text(200),
    "For whom; left out: the workspace's registered name.",
);
pub const LANGUAGE: Argument = arg("language", Text(35), "In which it is spoken or written, BCP 47.");
pub const CONSENT: Argument = arg("consent", Choice(&TIERS), "As if there were a consent of this tier.");

const PURPOSES: [&str; 6] = [
    "marketing",
    "service",
    "debt",
    "research",
    "charity_political",
    "emergency",
];
pub const TIERS: [&str; 4] = ["existing_contract", "express", "express_written", "opt_in_double"];
