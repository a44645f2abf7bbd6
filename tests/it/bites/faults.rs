//! The checker bites: to the sound evidence one wrong is done at a time, and the clause that forbids it must say so.
//! What is right though it looks odd must pass.
mod alter;
mod dialing;
mod events;
mod law;
mod letters;
mod money;
mod pace;
mod recordings;
mod records;
mod rooms;
mod talks;

use super::{Breach, Evidence, check, read::millis, report, story};
use alter::*;
use serde_json::json;
use story::row;

/// What is wrong, which invariant forbids it, a word of the clause that must notice it, and how it is done.
type Fault = (&'static str, &'static str, &'static str, Change);
type Change = fn(&mut Evidence);

const FAULTS: [&[Fault]; 10] = [
    records::FAULTS,
    events::FAULTS,
    talks::FAULTS,
    recordings::FAULTS,
    dialing::FAULTS,
    pace::FAULTS,
    letters::FAULTS,
    money::FAULTS,
    rooms::FAULTS,
    law::FAULTS,
];

/// Changes after which nothing is wrong.
const STILL_SOUND: &[(&str, Change)] = &[
    ("the lines in another order", |e| e.dump.reverse()),
    ("while faults go on, things may be under way", |e| {
        e.settled = false;
        contact(e, "b8")["state"] = json!("dispatched");
        never_ends(e, "b3.1");
    }),
    ("lines of kinds that others check", |e| {
        e.dump.push(json!({ "kind": "delivery", "id": 1 }))
    }),
    ("contacts that were erased", |e| {
        for nick in ["a1", "a2"] {
            let line = contact(e, nick);
            (line["number"], line["zones"], line["erased"]) = (json!(""), json!([]), json!(true));
        }
    }),
    ("an entry for messages only", |e| {
        row(e, "dnc", "lifted")["removed_seq"] = json!(null);
        row(e, "dnc", "lifted")["channels"] = json!(["sms"]);
    }),
    ("an entry that comes with the intent", |e| {
        let intent = session(e, "a6.1")["intent_seq"].clone();
        (
            row(e, "dnc", "lifted")["added_seq"],
            row(e, "dnc", "lifted")["removed_seq"],
        ) = (intent, json!(null));
    }),
    ("an entry of the other env", |e| {
        row(e, "dnc", "lifted")["removed_seq"] = json!(null);
        row(e, "dnc", "lifted")["env"] = json!("test");
        e.acknowledged.retain(|told| told["number"] != "+15002000006");
    }),
    ("a call in the transaction of the pause", |e| {
        let pause = campaign(e, "a")["moves"][2]["seq"].clone();
        session(e, "a3.1")["intent_seq"] = pause;
    }),
    ("a call in the transaction of the resume", |e| {
        let resume = campaign(e, "a")["moves"][3]["seq"].clone();
        session(e, "a6.1")["intent_seq"] = resume;
    }),
    ("a campaign that still runs", |e| {
        campaign(e, "b")["moves"].as_array_mut().unwrap().pop();
        campaign(e, "b")["status"] = json!("running");
    }),
    ("the API cancels a call long after the pause", |e| {
        session(e, "a1.1")["end_reason"] = json!("canceled")
    }),
    ("a clock two milliseconds behind", |e| {
        one_more_by(&mut placed(e, "a1.1")["at"], -2_700)
    }),
    ("a second call as the first one ends", |e| {
        ended(e, "b2.1")["at"] = placed(e, "b2.2")["at"].clone();
        contact(e, "b2")["gap"] = json!(0);
        let again = session(e, "b2.2")["created_at"].clone();
        session(e, "b2.1")["ended_at"] = again;
    }),
    ("after a call that was never accepted a new attempt", |e| {
        contact(e, "a8")["max_attempts"] = json!(1);
        contact(e, "a8")["gap"] = json!(3_600);
    }),
    ("after a call that the service cut off itself the same attempt", |e| {
        contact(e, "a2")["max_attempts"] = json!(1);
        contact(e, "a2")["gap"] = json!(3_600);
        let cut = session(e, "a2.1");
        for (name, value) in [("status", "failed"), ("end_reason", "canceled"), ("ended_by", "system")] {
            cut[name] = json!(value);
        }
    }),
    ("what is no number may come twice", |e| {
        e.acknowledged.clear();
        contact(e, "b7")["number"] = json!("none");
        contact(e, "b8")["number"] = json!("none");
    }),
    ("a kill that was noted a moment too early", |e| {
        one_more_by(&mut placed(e, "a7.1")["at"], 17_010_000);
        earlier(session(e, "a7.1"), "dialed_at", -17_010);
    }),
    ("a call right after a quick restart", |e| {
        one_more_by(&mut placed(e, "a7.1")["at"], 17_010_000);
        session(e, "a7.1")["end_reason"] = json!("no_answer");
    }),
    ("an end that was committed as the kill came", |e| {
        session(e, "a7.1")["end_reason"] = json!("no_answer");
        earlier(session(e, "a7.1"), "ended_at", 4_950);
    }),
    ("a kill a moment ago, and nothing is closed yet", |e| {
        e.settled = false;
        e.kills.push(millis("2027-03-02T15:08:30.000Z").unwrap());
        let call = session(e, "b3.1");
        (call["status"], call["end_reason"], call["ended_at"]) = (json!("in_progress"), json!(null), json!(null));
        without(e, "session.ended", "b3.1");
        without(e, "campaign.contact_completed", "b3");
        contact(e, "b3")["state"] = json!("dispatched");
        one_more_by(&mut campaign(e, "b")["totals"]["completed_sessions"], -1);
    }),
    ("a cancel of the campaign hangs up", |e| {
        session(e, "a8.2")["end_reason"] = json!("canceled");
        earlier(session(e, "a8.2"), "ended_at", 19_500);
    }),
    ("one disposition", |e| {
        twice(e, "session.ended", "a1.1");
        e.dump.last_mut().unwrap()["type"] = json!("session.disposition_set");
    }),
    ("a caller is not counted as called", |e| {
        e.acknowledged.clear();
        campaign(e, "a")["caps"]["per_number_24h"] = json!(2);
        session(e, "caller.1")["number"] = json!("+15002000002");
        session(e, "hidden.1")["number"] = json!("+15002000002");
    }),
    ("a call once an opt-out is lifted", |e| {
        let number = json!("+15002990001");
        e.acknowledged.clear();
        contact(e, "b3")["number"] = number.clone();
        session(e, "b3.1")["number"] = number.clone();
        placed(e, "b3.1")["to"] = number;
        let intent = session(e, "b3.1")["intent_seq"].as_i64().unwrap();
        row(e, "dnc", "caller.1")["removed_seq"] = json!(intent - 1);
    }),
    ("an opt-out of a number that was on the list before", |e| {
        let entry = row(e, "dnc", "a2.2");
        (entry["source"], entry["session"]) = (json!("manual"), json!(null));
        entry["added_seq"] = json!(entry["added_seq"].as_i64().unwrap() - 1);
    }),
    ("a recording is half stored while faults go on", |e| {
        e.settled = false;
        let recording = row(e, "recording", "a6.1");
        (recording["state"], recording["completed_at"]) = (json!("processing"), json!(null));
        without(e, "session.recording_completed", "a6.1");
        for file in e.files.as_mut().unwrap() {
            file.push_str("#1");
        }
        row(e, "evaluation", "a6.1")["state"] = json!("pending");
    }),
    ("a recording that was erased by hand", |e| {
        let recording = row(e, "recording", "a6.1");
        recording["state"] = json!("purged");
        recording["purge_reason"] = json!("deleted");
        recording["purge_after"] = json!("2027-03-02T15:20:00.000Z");
        recording["purged_at"] = json!("2027-03-02T15:20:00.000Z");
        e.files = Some(Vec::new());
    }),
    ("a recording that is erased before it was told of", |e| {
        let recording = row(e, "recording", "a6.1");
        (recording["purge_reason"], recording["completed_at"]) = (json!("deleted"), json!(null));
        without(e, "session.recording_completed", "a6.1");
    }),
    ("a recording that was not to be had", |e| {
        let recording = row(e, "recording", "a6.1");
        (recording["state"], recording["completed_at"]) = (json!("failed"), json!(null));
        without(e, "session.recording_completed", "a6.1");
        e.files = Some(Vec::new());
    }),
    ("a purge that is due this minute", |e| {
        row(e, "recording", "a6.1")["purge_after"] = json!("2027-03-02T15:59:00.000Z")
    }),
    ("a disposition of a call that failed", |e| {
        let failed = session(e, "a9.2")["id"].clone();
        event(e, "session.disposition_set", "a6.1")["subject"] = failed;
        event(e, "session.disposition_set", "a6.1")["seq"] = json!(900_000);
        event(e, "session.disposition_set", "a6.1")["id"] = json!(story::uuid(1_900_000_000_000, 1));
    }),
    ("what names people was erased from the record", |e| {
        for line in e.dump.iter_mut().filter(|line| line["kind"] == "record") {
            line["content"] = json!(null);
        }
    }),
    ("a call of the sandbox without an agreement", |e| {
        law::says(e, "ann.1", |body| {
            body["observed"] = json!(true);
            body["facts"]["consent"] = json!(null);
        })
    }),
    ("an agreement that is taken back after the call", |e| {
        row(e, "consent", "ann")["withdrawals"] = json!([{ "channel": "phone", "seq": 1_000_000 }])
    }),
    ("whoever hangs up hears no more", |e| {
        law::says(e, "ann.1 outcome", |body| {
            body["disclosures"] = json!([]);
            body["first_words_ms"] = json!(null);
            body["ended_at"] = body["picked_up_at"].clone();
        })
    }),
    ("one call that was abandoned", |e| {
        law::says(e, "ann.1 outcome", |body| {
            (body["abandoned"], body["first_sound_ms"]) = (json!("late_sound"), json!(2_001));
        })
    }),
    ("the day before a rule begins", |e| {
        law::says(e, "bob.1", |body| {
            body["facts"]["at"] = json!("2026-08-10T21:59:59.000Z");
            body["asked"] = json!(["consent:fr.machines"]);
        });
        row(e, "consent", "bob")["given_at"] = json!("2026-08-01T00:00:00.000Z");
    }),
    ("a consent is new, and nobody asks whose the number is", |e| {
        law::says(e, "eve.1", |body| body["facts"]["reassigned"] = json!(null));
        row(e, "consent", "eve")["given_at"] = json!("2027-02-15T00:00:00.000Z");
    }),
    ("an agent had nothing to say, and the stored message was heard", |e| {
        law::says(e, "ann.1 outcome", |body| {
            (body["abandoned"], body["safe_harbour_played"]) = (json!("no_brain"), json!(true));
        })
    }),
    ("nobody looked into the folder", |e| e.files = None),
    ("nobody asked the providers", |e| e.provider.clear()),
    ("a code that proves a number is not kept", |e| {
        let mut send = row(e, "send", "start.1").clone();
        send["message"] = json!("a code");
        e.dump.push(send);
    }),
    ("a stop that bars calls only", |e| {
        row(e, "dnc", "stopped")["removed_seq"] = json!(null);
        row(e, "dnc", "stopped")["channels"] = json!(["phone"]);
    }),
    ("a text on its way, and not overdue", |e| {
        let message = row(e, "sms", "start");
        (message["phase"], message["wake_at"]) = (json!("sending"), json!("2027-03-02T16:05:00.000Z"));
    }),
    ("a text in the transaction that spends the last cent", |e| {
        let gone = event(e, "credits.depleted", "purse")["seq"].as_i64().unwrap();
        row(e, "send", "start.1")["seq"] = json!(gone);
        row(e, "dnc", "stopped")["removed_seq"] = json!(gone - 1);
    }),
    ("a threshold that was changed", |e| {
        row(e, "account", "purse")["threshold"] = json!(null);
    }),
    ("windows that touch", |e| {
        two_windows(e, ["09:00", "10:00"], ["10:00", "20:00"])
    }),
    ("a window until midnight", |e| window(e)["end"] = json!("24:00")),
    ("a night that lasts into the day", |e| {
        window(e)["start"] = json!("22:00");
        window(e)["end"] = json!("11:00");
    }),
    ("all day and all night", |e| {
        window(e)["start"] = json!("00:00");
        window(e)["end"] = json!("00:00");
    }),
    ("ringing that ends with the window", |e| {
        window(e)["end"] = json!("10:16");
        one_more_by(&mut placed(e, "a8.2")["at"], -700);
    }),
    ("the first evening of a night", |e| {
        on_a_sunday(e, "2027-03-08T03:00:10.000Z", ["22:00", "02:00"])
    }),
    ("no caps", |e| {
        campaign(e, "b")["caps"] = json!({ "per_number_24h": null, "per_number_7d": null })
    }),
    ("an older call is just outside the cap's day", |e| {
        campaign(e, "b")["caps"] = json!({ "per_number_24h": 2, "per_number_7d": 3 });
        earlier(session(e, "a10.1"), "dialed_at", 86_400_000 - 151_000);
    }),
    ("a call that was never accepted is none", |e| {
        campaign(e, "a")["caps"]["per_number_24h"] = json!(2)
    }),
    ("a slot that is taken again at once", |e| {
        ended(e, "a1.1")["at"] = placed(e, "a7.1")["at"].clone()
    }),
    ("the same hour twice, and it is open", |e| {
        on_a_sunday(e, "2027-11-07T05:59:50.000Z", ["01:00", "02:00"])
    }),
    ("the hour after the one that there was not", |e| {
        on_a_sunday(e, "2027-03-14T07:00:00.000Z", ["03:00", "04:00"])
    }),
];

#[test]
fn sound_evidence_passes() {
    let breaches = check(&story::evidence());
    assert!(breaches.is_empty(), "{}", report(&breaches));
}

#[test]
fn every_fault_is_found() {
    let sound = story::evidence();
    for (name, invariant, word, fault) in FAULTS.into_iter().flatten() {
        let mut evidence = sound.clone();
        fault(&mut evidence);
        let breaches = check(&evidence);
        let found = |breach: &Breach| breach.invariant == *invariant && breach.what.contains(word);
        assert!(
            breaches.iter().any(found),
            "{name}: {invariant} with `{word}` is not among {}",
            report(&breaches)
        );
    }
}

#[test]
fn what_only_looks_wrong_passes() {
    let sound = story::evidence();
    for (name, change) in STILL_SOUND {
        let mut evidence = sound.clone();
        change(&mut evidence);
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{name}: {}", report(&breaches));
    }
}

#[test]
fn a_report_is_short() {
    let breach = Breach {
        invariant: "I1",
        what: "it is gone".into(),
    };
    let breaches = vec![breach; 500];
    assert_eq!(report(&breaches[..1]), "1 breaches\nI1: it is gone");
    assert_eq!(report(&breaches).lines().count(), 22);
}
