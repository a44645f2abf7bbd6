//! Wrong hours and wrong pace: I10, CAP, I11.
use super::{Fault, alter::*};
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("a call before the window", "I10", "America/New_York", |e| {
        window(e)["start"] = json!("10:01")
    }),
    ("a call after the window", "I10", "America/New_York", |e| {
        window(e)["end"] = json!("10:00")
    }),
    ("it may ring past the window's end", "I10", "America/New_York", |e| {
        window(e)["end"] = json!("10:16");
        campaign(e, "a")["ring_timeout_seconds"] = json!(31);
    }),
    ("it may ring between two windows", "I10", "America/New_York", |e| {
        two_windows(e, ["09:00", "10:00"], ["10:01", "20:00"]);
        campaign(e, "a")["ring_timeout_seconds"] = json!(60);
        one_more_by(&mut placed(e, "a1.1")["at"], -2_700_000);
    }),
    ("a call on another day of the week", "I10", "America/New_York", |e| {
        window(e)["days"] = json!(["mon", "wed"])
    }),
    ("a call on a blackout date", "I10", "America/New_York", |e| {
        campaign(e, "a")["schedule"]["blackout_dates"] = json!(["2027-03-02"]);
    }),
    ("no window at all", "I10", "America/New_York", |e| {
        campaign(e, "a")["schedule"]["windows"] = json!([])
    }),
    ("closed in the second zone", "I10", "America/Los_Angeles", |e| {
        contact(e, "a1")["zones"] = json!(["America/New_York", "America/Los_Angeles"]);
    }),
    ("closed in the campaign's zone", "I10", "Asia/Tokyo", |e| {
        campaign(e, "a")["schedule"]["fallback"] = json!("Asia/Tokyo")
    }),
    ("closed in the one zone for all", "I10", "Asia/Tokyo", |e| {
        campaign(e, "b")["schedule"]["fallback"] = json!("Asia/Tokyo")
    }),
    ("closed in the contact's zone", "I10", "Asia/Tokyo", |e| {
        campaign(e, "b")["schedule"]["mode"] = json!("contact")
    }),
    ("a zone that does not exist", "I10", "Mars/Phobos", |e| {
        contact(e, "a1")["zones"] = json!(["Mars/Phobos"])
    }),
    ("a night that ends too early", "I10", "America/New_York", |e| {
        window(e)["start"] = json!("22:00");
        window(e)["end"] = json!("10:00");
    }),
    ("the clock is set back while it rings", "I10", "America/New_York", |e| {
        on_a_sunday(e, "2027-11-07T05:59:50.000Z", ["01:30", "02:00"]);
    }),
    ("the clock jumps over the window", "I10", "America/New_York", |e| {
        on_a_sunday(e, "2027-03-14T07:00:00.000Z", ["02:00", "03:00"]);
    }),
    ("after the last minute of a night", "I10", "America/New_York", |e| {
        on_a_sunday(e, "2027-03-08T07:00:10.000Z", ["22:00", "02:00"]);
    }),
    ("before the first minute of a night", "I10", "America/New_York", |e| {
        on_a_sunday(e, "2027-03-08T02:59:50.000Z", ["22:00", "02:00"]);
    }),
    ("more calls a day than the cap", "CAP", "in 24 h", |e| {
        campaign(e, "b")["caps"]["per_number_24h"] = json!(2)
    }),
    ("more calls a week than the cap", "CAP", "in 168 h", |e| {
        campaign(e, "b")["caps"] = json!({ "per_number_24h": null, "per_number_7d": 2 })
    }),
    ("calls of the API count too", "CAP", "in 24 h", |e| {
        campaign(e, "a")["caps"]["per_number_24h"] = json!(1);
        let earlier = session(e, "other.1");
        (earlier["tenant"], earlier["number"]) = (json!("t1"), json!("+15002000008"));
    }),
    ("more calls at once than slots", "I11", "3 calls at once", |e| {
        e.limit = 2
    }),
    (
        "calls that nothing ended hold their slots",
        "I11",
        "4 calls at once",
        |e| {
            never_ends(e, "a1.1");
            e.kills.clear();
        },
    ),
    ("calls faster than the rate", "I11", "2 calls started", |e| {
        e.burst = 0.9
    }),
];
