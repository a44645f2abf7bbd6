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
