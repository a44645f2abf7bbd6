//! Wrongs between events and facts: I2.
use super::{Fault, alter::*};
use crate::bites::story::uuid;
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("no session.created", "I2", "0 session.created", |e| {
        without(e, "session.created", "a1.1")
    }),
    ("two session.created", "I2", "2 session.created", |e| {
        twice(e, "session.created", "a1.1")
    }),
    ("no session.started", "I2", "0 session.started", |e| {
        without(e, "session.started", "a1.1")
    }),
    (
        "a session.started of a call not answered",
        "I2",
        "1 session.started",
        |e| session(e, "a1.1")["started_at"] = json!(null),
    ),
    ("no session.ended", "I2", "0 session.ended", |e| {
        without(e, "session.ended", "a1.1")
    }),
    ("two session.ended", "I2", "2 session.ended", |e| {
        twice(e, "session.ended", "a1.1")
    }),
    ("no session.failed", "I2", "0 session.failed", |e| {
        without(e, "session.failed", "a2.1")
    }),
    ("two session.failed", "I2", "2 session.failed", |e| {
        twice(e, "session.failed", "a2.1")
    }),
    ("a session.failed of a completed call", "I2", "0 session.ended", |e| {
        event(e, "session.ended", "a1.1")["type"] = json!("session.failed")
    }),
    ("a session.ended of a live call", "I2", "1 session.ended", |e| {
        session(e, "a1.1")["status"] = json!("in_progress")
    }),
    ("two dispositions", "I2", "more than one session.disposition_set", |e| {
        twice(e, "session.ended", "a1.1");
        e.dump.last_mut().unwrap()["type"] = json!("session.disposition_set");
        let mut second = e.dump.last().unwrap().clone();
        second["id"] = json!(uuid(1_900_000_000_000, 2));
        e.dump.push(second);
    }),
    (
        "a contact completed without a word",
        "I2",
        "0 campaign.contact_completed",
        |e| without(e, "campaign.contact_completed", "a1"),
    ),
    ("a contact completed twice", "I2", "2 campaign.contact_completed", |e| {
        twice(e, "campaign.contact_completed", "a1")
    }),
    (
        "a contact failed without a word",
        "I2",
        "0 campaign.contact_failed",
        |e| without(e, "campaign.contact_failed", "a3"),
    ),
    ("a contact failed twice", "I2", "2 campaign.contact_failed", |e| {
        twice(e, "campaign.contact_failed", "a3")
    }),
    (
        "a contact skipped without a word",
        "I2",
        "0 campaign.contact_skipped",
        |e| without(e, "campaign.contact_skipped", "a4"),
    ),
    (
        "a completed contact is said to have failed",
        "I2",
        "1 campaign.contact_failed",
        |e| {
            event(e, "campaign.contact_completed", "a1")["type"] = json!("campaign.contact_failed");
        },
    ),
    (
        "a canceled contact is said to be skipped",
        "I2",
        "1 campaign.contact_skipped",
        |e| contact(e, "a4")["state"] = json!("canceled"),
    ),
    ("a waiting contact has failed", "I2", "1 campaign.contact_failed", |e| {
        contact(e, "a3")["state"] = json!("waiting")
    }),
    (
        "a contact is dispatched without a word",
        "I2",
        "1 campaign.contact_dispatched",
        |e| without(e, "campaign.contact_dispatched", "a2"),
    ),
    (
        "a contact is dispatched once too often",
        "I2",
        "2 campaign.contact_dispatched",
        |e| twice(e, "campaign.contact_dispatched", "a1"),
    ),
    ("two dispatches name one session", "I2", "name each session once", |e| {
        let second = session(e, "a2.2")["id"].clone();
        event(e, "campaign.contact_dispatched", "a2")["session"] = second;
    }),
    ("a dispatch names no session", "I2", "name each session once", |e| {
        drop(
            event(e, "campaign.contact_dispatched", "a1")
                .as_object_mut()
                .unwrap()
                .remove("session"),
        );
    }),
    ("a dispatch names another's session", "I2", "not one of contact", |e| {
        let other = session(e, "a2.1")["id"].clone();
        event(e, "campaign.contact_dispatched", "a1")["session"] = other;
    }),
    ("an end names another's session", "I2", "not one of contact", |e| {
        let other = session(e, "a2.1")["id"].clone();
        event(e, "campaign.contact_completed", "a1")["session"] = other;
    }),
    ("a skipped contact was called", "I2", "is skipped, and has 1", |e| {
        contact(e, "a7")["state"] = json!("skipped")
    }),
    ("no campaign.created", "I2", "0 campaign.created", |e| {
        without(e, "campaign.created", "a")
    }),
    ("no campaign.started", "I2", "0 campaign.started", |e| {
        without(e, "campaign.started", "a")
    }),
    ("a start for each resume", "I2", "2 campaign.started", |e| {
        twice(e, "campaign.started", "a")
    }),
    ("no campaign.completed", "I2", "0 campaign.completed", |e| {
        without(e, "campaign.completed", "a")
    }),
    ("two campaign.completed", "I2", "2 campaign.completed", |e| {
        twice(e, "campaign.completed", "a")
    }),
    (
        "a campaign.completed of one that runs",
        "I2",
        "1 campaign.completed",
        |e| campaign(e, "a")["status"] = json!("running"),
    ),
    ("total_contacts is wrong", "I2", "campaign.completed of", |e| {
        one_more(&mut completed(e)["total_contacts"])
    }),
    ("completed_sessions is wrong", "I2", "campaign.completed of", |e| {
        one_more(&mut completed(e)["completed_sessions"])
    }),
    ("failed_sessions is wrong", "I2", "campaign.completed of", |e| {
        one_more(&mut completed(e)["failed_sessions"])
    }),
    ("the stored totals are wrong", "I2", "has the totals", |e| {
        one_more(&mut campaign(e, "b")["totals"]["failed_sessions"])
    }),
    ("an event of no session", "I2", "does not exist", |e| {
        about_nothing(e, "session.created", "a1.1")
    }),
    ("an event of no contact", "I2", "does not exist", |e| {
        about_nothing(e, "campaign.contact_skipped", "a4")
    }),
    ("an event of no campaign", "I2", "does not exist", |e| {
        about_nothing(e, "campaign.created", "a")
    }),
    ("an event about nothing", "I2", "does not exist", |e| {
        event(e, "campaign.created", "a")["subject"] = json!(null)
    }),
    ("an event of another tenant", "I2", "another tenant", |e| {
        event(e, "session.created", "a1.1")["tenant"] = json!("t2")
    }),
    ("an event of the other env", "I2", "another tenant", |e| {
        event(e, "campaign.contact_skipped", "a4")["env"] = json!("test")
    }),
    ("a session of no contact", "I2", "its contact's campaign", |e| {
        session(e, "a1.1")["contact"] = json!("nobody")
    }),
    ("a session hides its campaign", "I2", "its contact's campaign", |e| {
        session(e, "a1.1")["campaign"] = json!(null)
    }),
    (
        "a contact of another env than its campaign",
        "I2",
        "its campaign's tenant",
        |e| contact(e, "b8")["env"] = json!("test"),
    ),
    ("a contact of no campaign", "I2", "its campaign's tenant", |e| {
        contact(e, "b8")["campaign"] = json!("none")
    }),
];
