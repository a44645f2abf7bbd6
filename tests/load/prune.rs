//! What retention costs those who call: a campaign at full speed by itself, and beside old rows that are let go all the while.
use super::{
    campaign::{agent_that_tells, at_full_speed, draft},
    lists::{MADE, Words, copies, copy},
    receiver::Receiver,
    service::{Api, Service, name_of},
    webhooks::{pace, settled, tenant_with, worst},
};
use actors::{deps::Deps, retention};
use entities::{
    connection::Connection,
    contact,
    db::{Db, Location},
    delivery, delivery_attempt, dial, event,
    ids::TenantId,
    message_send,
    retention::{self as kept, Retention},
    session, sms_message, transcript,
};
use runtime::clock::Clock;
use sea_orm::{ConnectionTrait, IdenStatic, Iterable, Statement};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ROUNDS: usize = 2;
/// Webhooks a second of another workspace: how late these are is measured.
const RATE: usize = 50;
/// `event_retention_days`: of the turns that prune, and of those in which nothing is old enough.
const KEPT_DAYS: u64 = 30;
const ALL_DAYS: u64 = 3_650;
/// As old as the first of the copies, in milliseconds; and an id that is newer than any of them.
const OLD_MS: i64 = 1_700_000_000_000;
const NEWER: &str = "01977420-dc00-0000-0000-000000000000";
/// By then two a second would have come to that id.
const MOST_OLD: usize = 100_000_000;
/// No turn lasts longer.
const HOUR_SECONDS: usize = 3_600;
/// Between two rounds of pruning, which looks in vain when nothing is left.
const REST: Duration = Duration::from_millis(20);
const TURN: &str = "Let me tell you about our new offer, which is better than anything that you have seen before.";

/// What is copied, by the column that names the call, message or contact.
const TABLES: [(&str, &str); 9] = [
    ("sessions", "id"),
    ("transcripts", "session_id"),
    ("dials", "session_id"),
    ("contacts", "id"),
    ("events", "id"),
    ("deliveries", "id"),
    ("delivery_attempts", "delivery_id"),
    ("sms_messages", "id"),
    ("message_sends", "message_id"),
];

pub async fn run(old: usize, contacts: usize, database: String) {
    assert!(old <= MOST_OLD, "--old: at most {MOST_OLD}");
    let begun = Instant::now();
    let stage = Stage::set(&database, old).await;
    println!(
        "{}: {old} old calls, contacts, SMS and events with their delivery, {} rows, made in {:.0} s; {contacts} contacts at full speed, in turns",
        name_of(&database),
        old * TABLES.len(),
        begun.elapsed().as_secs_f64()
    );
    let (mut without, mut with) = (0.0, 0.0);
    for round in 0..ROUNDS {
        // Nobody is called twice.
        let first = 2 * round * contacts;
        without += stage.turn(false, first, contacts).await;
        with += stage.turn(true, first + contacts, contacts).await;
    }
    println!(
        "  contacts/s beside pruning, of those without it: {:.0} %",
        100.0 * with / without
    );
}

/// What all turns share.
struct Stage {
    database: String,
    receiver: Receiver,
    key: String,
    agent: Value,
    /// Of the other workspace's webhooks.
    others: Receiver,
    other: TenantId,
}

impl Stage {
    async fn set(database: &str, old: usize) -> Self {
        let (receiver, others) = (Receiver::start(), Receiver::start());
        let service = Service::start_with(database, &keeping(ALL_DAYS)).await;
        let (tenant, api) = service.tenant().await;
        let agent = agent_that_tells(&api, &receiver).await;
        let other = tenant_with(&service, &others, 0..1).await;
        let originals = Originals::make(&service, &api).await;
        let key = api.key().to_owned();
        service.stop().await;

        let location = Location::parse(database).expect("a database");
        let db = Db::open(&location).await.expect("a database");
        originals.copy(&db.write, old).await;
        let asked = json!({ "sessions_days": 31, "transcripts_days": 31, "contacts_days": 31, "messages_days": 30 });
        let asked: Retention = serde_json::from_value(asked).expect("days");
        let now = Clock::wall().now();
        let known = kept::of(&db.write, tenant, now).await.expect("a row");
        kept::set(&db.write, &known, &asked, now).await.expect("a row");
        db.close().await;
        Stage {
            database: database.to_owned(),
            receiver,
            key,
            agent,
            others,
            other,
        }
    }

    /// A campaign; answers how many contacts a second it made.
    async fn turn(&self, prunes: bool, first: usize, contacts: usize) -> f64 {
        let (what, days) = match prunes {
            true => ("while it prunes", KEPT_DAYS),
            false => ("without pruning", ALL_DAYS),
        };
        let service = Service::start_with(&self.database, &keeping(days)).await;
        let (deps, api) = (service.deps().clone(), service.api(&self.key));
        let people = (first..first + contacts).map(|n| json!({ "phone_number": format!("+1500{}0", 300_000 + n) }));
        let campaign = draft(&api, json!({ "agent_id": self.agent }), people).await;
        // The first connection is nobody's latency.
        pace(&deps, self.other, RATE, 1).await;
        settled(&service).await;
        let before = left(&deps.db.read).await;
        self.others.reset().await;

        let (paced, other) = (deps.clone(), self.other);
        let pacing = actix_rt::spawn(async move { pace(&paced, other, RATE, HOUR_SECONDS).await });
        let pruning = if prunes { prune_on(&deps) } else { Vec::new() };
        let started = Instant::now();
        let speed = at_full_speed(&service, &self.receiver, &api, &campaign, contacts).await;
        let seconds = started.elapsed().as_secs_f64();
        pacing.abort();
        assert!(pacing.await.is_err_and(|end| end.is_cancelled()), "pacing has ended");
        for task in pruning {
            task.abort();
            assert!(task.await.is_err_and(|end| end.is_cancelled()), "pruning has ended");
        }
        // What has been handed in last.
        service.pause(300).await;
        settled(&service).await;

        println!(
            "  {what}: {:>6.0} contacts/s, {:.2} CPU seconds per 1,000; {RATE} webhooks/s of another workspace {}",
            speed.contacts_per_second,
            speed.cpu_per_thousand,
            worst(what, &self.others.report().await)
        );
        if prunes {
            tell(&before, &left(&deps.db.read).await, seconds);
        }
        drop(deps);
        service.stop().await;
        speed.contacts_per_second
    }
}

fn keeping(days: u64) -> [(&'static str, String); 1] {
    [("event_retention_days", days.to_string())]
}

/// Both kinds of pruning, again and again: the service itself looks every minute, and every hour.
fn prune_on(deps: &Deps) -> Vec<tokio::task::JoinHandle<()>> {
    let (installation, workspaces) = (deps.clone(), deps.clone());
    let (begun, longest) = (Instant::now(), Duration::from_secs(HOUR_SECONDS as u64));
    let of_all = async move {
        while begun.elapsed() < longest {
            retention::installation::prune(&installation).await.expect("pruning");
            installation.clock.rest(REST).await;
        }
    };
    let of_each = async move {
        while begun.elapsed() < longest {
            retention::workspaces::prune(&workspaces).await.expect("pruning");
            workspaces.clock.rest(REST).await;
        }
    };
    vec![deps.runtime.spawn(of_all), deps.runtime.spawn(of_each)]
}

/// How many of the copies are left, of each table.
async fn left(db: &Connection) -> Vec<i64> {
    let newer = Words::of(db).uuid(NEWER);
    let mut left = Vec::with_capacity(TABLES.len());
    for (table, key) in TABLES {
        let asked = format!("SELECT COUNT(*) FROM {table} WHERE {key} < {newer}");
        let asked = Statement::from_string(db.get_database_backend(), asked);
        let row = db.query_one_raw(asked).await.expect("an answer").expect("a row");
        left.push(row.try_get_by_index::<i64>(0).expect("a count"));
    }
    left
}

fn tell(before: &[i64], after: &[i64], seconds: f64) {
    let gone = before.iter().sum::<i64>() - after.iter().sum::<i64>();
    println!("    {:.0} rows pruned a second:", gone as f64 / seconds);
    for ((table, _), (before, after)) in TABLES.iter().zip(before.iter().zip(after)) {
        let short = match *after {
            0 => ": there were no more, name a larger --old",
            _ => "",
        };
        println!("      {table:<18} {:>9}, {after} left{short}", before - after);
    }
}

/// One of each, as the service makes them.
struct Originals {
    call: String,
    contact: String,
    sms: String,
    campaign: String,
}

impl Originals {
    async fn make(service: &Service, api: &Api) -> Self {
        let replies: Vec<Value> = (0..3).map(|_| json!({ "say": TURN })).collect();
        let agent = json!({ "name": "Bea", "prompt": "x", "brain": { "mode": "scripted", "replies": replies } });
        let agent = api.post("/v1/agents", agent).await["id"].clone();
        let until = async |path: &str, so: fn(&Value) -> bool| {
            while !so(&api.get(path).await) {
                service.pause(50).await;
            }
        };
        let call = id_of(
            &api.post(
                "/v1/sessions",
                json!({ "to_number": "+15002340000", "agent_id": agent }),
            )
            .await,
        );
        until(&format!("/v1/sessions/{call}"), |call| call["phase"] == "ended").await;
        let sms = json!({ "to_number": "+15002340000", "body": "Hello. See you tomorrow." });
        let sms = id_of(&api.post("/v1/sms_messages", sms).await);
        let is_sent = |sms: &Value| sms["status"] != "scheduled" && sms["status"] != "queued";
        until(&format!("/v1/sms_messages/{sms}"), is_sent).await;
        let somebody = std::iter::once(json!({ "phone_number": "+15002340010", "first_name": "Zoë" }));
        let path = draft(api, json!({ "agent_id": agent }), somebody).await;
        api.post(&format!("{path}/start"), json!({})).await;
        until(&path, |campaign| campaign["status"] == "completed").await;
        let contact = id_of(&api.get(&format!("{path}/contacts")).await["data"][0]);
        settled(service).await;
        Originals {
            call,
            contact,
            sms,
            campaign: path.trim_start_matches("/v1/campaigns/").to_owned(),
        }
    }

    /// With nobody else at the database.
    async fn copy(&self, db: &Connection, old: usize) {
        let events = event::all_after(db, None, 1_000).await.expect("events");
        let is_its_end =
            |event: &&event::Model| event.event_type == "session.ended" && event.subject_id.to_string() == self.call;
        let ended = events.iter().find(is_its_end).expect("the call's end");
        let deliveries = delivery::all_after(db, None, 1_000).await.expect("deliveries");
        let delivery = deliveries.iter().find(|delivery| delivery.event_id == ended.id);
        let delivery = delivery.expect("its delivery").id.to_string();
        let last = event::last_seq(db).await.expect("a place");
        let words = Words::of(db);
        let (ended, seq) = (ended.id.to_string(), format!("{last} + i"));
        let (id, number) = (words.id(), words.number());
        let (id, number, seq): (&str, &str, &str) = (&id, &number, &seq);
        let (call, contact, sms): (&str, &str, &str) = (&self.call, &self.contact, &self.sms);
        let (ended, delivery): (&str, &str) = (&ended, &delivery);
        let copied = |columns: Vec<String>, changed: &[(&str, &str)]| {
            copies(columns.into_iter(), |column| {
                let change = changed.iter().find(|(name, _)| *name == column);
                change.map(|(_, value)| (*value).to_owned())
            })
        };
        let sessions = [
            ("id", id),
            ("to_number", number),
            ("created_at", MADE),
            ("ended_at", MADE),
        ];
        let transcripts = [("session_id", id)];
        let dials = [("session_id", id), ("phone_number", number), ("dialed_at", MADE)];
        let contacts = [
            ("id", id),
            ("phone_number", number),
            ("address", number),
            ("created_at", MADE),
        ];
        let events = [("seq", seq), ("id", id), ("subject_id", id), ("created_at", MADE)];
        let deliveries = [("id", id), ("event_id", id), ("event_seq", seq), ("created_at", MADE)];
        let attempts = [("delivery_id", id), ("started_at", MADE)];
        let texts = [("id", id), ("to_number", number), ("created_at", MADE)];
        let sends = [("message_id", id), ("address", number), ("sent_at", MADE)];
        let rows = [
            (copied(columns::<session::Column>(), &sessions), call),
            (copied(columns::<transcript::Column>(), &transcripts), call),
            (copied(columns::<dial::Column>(), &dials), call),
            (copied(columns::<contact::Column>(), &contacts), contact),
            (copied(columns::<event::Column>(), &events), ended),
            (copied(columns::<delivery::Column>(), &deliveries), delivery),
            (copied(columns::<delivery_attempt::Column>(), &attempts), delivery),
            (copied(columns::<sms_message::Column>(), &texts), sms),
            (copied(columns::<message_send::Column>(), &sends), sms),
        ];
        for ((table, key), (columns, of)) in TABLES.into_iter().zip(rows) {
            copy(db, table, columns, (key, of), old).await;
        }
        let campaign = words.uuid(&self.campaign);
        for change in [
            format!("UPDATE campaigns SET completed_at = {OLD_MS} WHERE id = {campaign}"),
            // Events go in the order of their places, up to the first that is not old.
            format!("UPDATE events SET created_at = {OLD_MS} WHERE seq <= {last}"),
            "ANALYZE".to_owned(),
        ] {
            db.execute_unprepared(&change).await.expect("a change");
        }
    }
}

fn id_of(row: &Value) -> String {
    row["id"].as_str().unwrap_or_else(|| panic!("{row:#}")).to_owned()
}

fn columns<C: Iterable + IdenStatic>() -> Vec<String> {
    C::iter().map(|column| column.as_str().to_owned()).collect()
}
