//! The evidence as rows, borrowed from its JSON, with the calls put together from the carrier's lines.
use super::{
    books::{self, Account, Asked, Message, Posting, Send, Topup},
    check::Evidence,
    consents::{self, Consent},
    law::{self, Mark, Record},
    read::{self, CarrierLine, Step},
    rooms::{self, Room},
};
use chrono::{NaiveDate, Weekday};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

/// How far the clock of whoever noted a kill may be off from the process that died, in milliseconds.
pub const KILL_SLACK: i64 = 50;

pub struct Event<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub kind: &'a str,
    pub subject: Option<&'a str>,
    pub seq: i64,
    pub session: Option<&'a str>,
    pub recording: Option<&'a str>,
    pub totals: Option<Totals>,
    /// Of a call's or a contact's end, in cents.
    pub cost: Option<i64>,
    /// Of `credits.low_balance`.
    pub threshold: Option<i64>,
    /// Of `credits.topup_succeeded`.
    pub payment: Option<&'a str>,
    /// Of `credits.*`.
    pub balance: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    pub contacts: i64,
    pub completed_sessions: i64,
    pub failed_sessions: i64,
}

pub struct Campaign<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub status: &'a str,
    /// By `seq`.
    pub moves: Vec<Move<'a>>,
    pub totals: Totals,
    pub schedule: Schedule<'a>,
    pub per_number_24h: Option<i64>,
    pub per_number_7d: Option<i64>,
    pub ring_timeout_seconds: i64,
}

pub struct Move<'a> {
    pub seq: i64,
    pub at: Option<i64>,
    pub to: &'a str,
}

pub struct Schedule<'a> {
    pub windows: Vec<Window>,
    pub blackout_dates: Vec<NaiveDate>,
    /// All contacts are called by the fallback zone.
    pub fixed: bool,
    pub fallback: &'a str,
}

/// `[start, end)` in minutes of the local day.
pub struct Window {
    pub days: Vec<Weekday>,
    pub start: u32,
    pub end: u32,
}

pub struct Contact<'a> {
    pub id: &'a str,
    pub campaign: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub number: Option<&'a str>,
    /// Nobody knows any more whom it was, nor where.
    pub erased: bool,
    pub zones: Vec<&'a str>,
    pub state: &'a str,
    pub max_attempts: usize,
    /// Seconds from the end of one call to the next, at least.
    pub gap: i64,
}

/// Times in Unix milliseconds.
pub struct Session<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub contact: Option<&'a str>,
    pub campaign: Option<&'a str>,
    pub number: Option<&'a str>,
    /// Who called; of a call that comes in, if it is shown.
    pub from: Option<&'a str>,
    pub inbound: bool,
    pub status: &'a str,
    pub end_reason: Option<&'a str>,
    pub ended_by: Option<&'a str>,
    pub consent: &'a str,
    pub recording: Option<&'a str>,
    pub opted_out_at: Option<i64>,
    pub created_at: Option<i64>,
    /// Of the last intent to dial it.
    pub intent_seq: Option<i64>,
    pub intents: usize,
    pub dialed_at: Option<i64>,
    pub picked_up_at: Option<i64>,
    pub started_at: Option<i64>,
    /// Since when a second leg costs as much.
    pub bridged_at: Option<i64>,
    pub ended_at: Option<i64>,
    /// Cents that were set aside, and those that it has cost.
    pub hold: i64,
    pub cost: i64,
    /// Cents of a minute.
    pub price: i64,
}

impl Session<'_> {
    pub fn is_over(&self) -> bool {
        matches!(self.status, "completed" | "failed" | "no_answer" | "voicemail" | "busy")
    }

    /// Cut off by the service's own stop, while it rang: no attempt of its contact's, and so nothing that it must rest after.
    pub fn was_given_back(&self) -> bool {
        (self.end_reason, self.ended_by) == (Some("canceled"), Some("system"))
            && self.dialed_at.is_some()
            && self.picked_up_at.is_none()
            && self.started_at.is_none()
    }

    /// The number of the other side.
    pub fn person(&self) -> Option<&str> {
        if self.inbound { self.from } else { self.number }
    }
}

/// The sound of a call. Times in Unix milliseconds.
pub struct Recording<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub session: &'a str,
    pub state: &'a str,
    pub created_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub purge_after: Option<i64>,
    pub purge_reason: Option<&'a str>,
    pub purged_at: Option<i64>,
}

/// A look at a talk after its end.
pub struct Evaluation<'a> {
    pub session: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub state: &'a str,
}

pub struct Dnc<'a> {
    pub tenant: &'a str,
    pub env: &'a str,
    pub number: Option<&'a str>,
    pub added_seq: i64,
    /// `None`: still there.
    pub removed_seq: Option<i64>,
    pub phone: bool,
    pub sms: bool,
    /// An address that gets no e-mail.
    pub email: Option<&'a str>,
    /// The call in which it was said, if it was said in one.
    pub said_in: Option<&'a str>,
}

/// A call as the carrier saw it, in Unix microseconds. A kill of the process ends it.
pub struct Call<'a> {
    pub session: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub to: &'a str,
    pub placed: i64,
    /// `i64::MAX`: not ended yet.
    pub ended: i64,
    /// The kill that ended it, in Unix milliseconds.
    pub killed: Option<i64>,
}

/// A line of the dump with what every check asks of it.
pub struct Line<'a> {
    pub kind: &'a str,
    pub id: Option<&'a str>,
    pub value: &'a Value,
}

#[derive(Default)]
pub struct Facts<'a> {
    /// Of the kinds below.
    pub lines: Vec<Line<'a>>,
    pub events: Vec<Event<'a>>,
    pub campaigns: Vec<Campaign<'a>>,
    pub contacts: Vec<Contact<'a>>,
    pub sessions: Vec<Session<'a>>,
    pub dnc: Vec<Dnc<'a>>,
    pub recordings: Vec<Recording<'a>>,
    pub rooms: Vec<Room<'a>>,
    pub evaluations: Vec<Evaluation<'a>>,
    pub messages: Vec<Message<'a>>,
    /// In no order.
    pub sends: Vec<Send<'a>>,
    /// What the providers were asked, in their order.
    pub asked: Vec<Asked<'a>>,
    pub topups: Vec<Topup<'a>>,
    pub accounts: Vec<Account<'a>>,
    pub postings: Vec<Posting<'a>>,
    /// The record of attempts, in no order.
    pub records: Vec<Record<'a>>,
    pub marks: Vec<Mark<'a>>,
    pub consents: Vec<Consent<'a>>,
    /// By `placed`.
    pub calls: Vec<Call<'a>>,
    /// Sessions whose call the carrier refused before it accepted it: nobody's phone rang.
    pub never_accepted: HashSet<&'a str>,
    pub unreadable: Vec<String>,
    campaign_by_id: HashMap<&'a str, usize>,
    contact_by_id: HashMap<&'a str, usize>,
    session_by_id: HashMap<&'a str, usize>,
    message_by_id: HashMap<&'a str, usize>,
    /// Of each tenant that does not keep everything: what was made before then may be gone.
    let_go_until: HashMap<&'a str, i64>,
}

impl<'a> Facts<'a> {
    pub fn read(evidence: &'a Evidence) -> Self {
        let mut facts = Facts::default();
        for line in &evidence.dump {
            if let Err(why) = facts.add(line) {
                facts.unreadable.push(format!("{why} in {line}"));
            }
        }
        facts.campaign_by_id = positions(&facts.campaigns, |campaign| campaign.id);
        facts.contact_by_id = positions(&facts.contacts, |contact| contact.id);
        facts.session_by_id = positions(&facts.sessions, |session| session.id);
        facts.message_by_id = positions(&facts.messages, |message| message.id);
        facts.forget_events(&evidence.dump);
        facts.add_calls(evidence);
        for line in &evidence.provider {
            match books::asked(line) {
                Ok(asked) => facts.asked.push(asked),
                Err(why) => facts.unreadable.push(format!("{why} in {line}")),
            }
        }
        facts
    }

    pub fn campaign(&self, id: &str) -> Option<&Campaign<'a>> {
        self.campaign_by_id.get(id).map(|at| &self.campaigns[*at])
    }
    pub fn contact(&self, id: &str) -> Option<&Contact<'a>> {
        self.contact_by_id.get(id).map(|at| &self.contacts[*at])
    }
    pub fn session(&self, id: &str) -> Option<&Session<'a>> {
        self.session_by_id.get(id).map(|at| &self.sessions[*at])
    }
    pub fn message(&self, id: &str) -> Option<&Message<'a>> {
        self.message_by_id.get(id).map(|at| &self.messages[*at])
    }

    /// Is this missing because its workspace did not want to keep it any longer? By its id, which says when it was made.
    pub fn was_let_go(&self, tenant: &str, id: &str) -> bool {
        let is_known = self.campaign(id).is_some()
            || self.session(id).is_some()
            || self.contact(id).is_some()
            || self.message(id).is_some()
            || self.rooms.iter().any(|room| room.id == id)
            || self.recordings.iter().any(|recording| recording.id == id);
        !is_known && self.may_be_incomplete(tenant, id)
    }

    /// May some of what belongs to it be missing for that reason?
    pub fn may_be_incomplete(&self, tenant: &str, id: &str) -> bool {
        let until = self.let_go_until.get(tenant);
        until.is_some_and(|until| read::made_at(id).is_some_and(|made| made < *until))
    }

    /// What events say of rows that were let go cannot be looked into.
    fn forget_events(&mut self, dump: &'a [Value]) {
        for line in dump.iter().filter(|line| line["kind"] == "retention") {
            let until = ["sessions_until", "contacts_until", "messages_until"]
                .map(|name| line[name].as_str().and_then(read::millis));
            if let (Some(tenant), Some(until)) = (line["tenant"].as_str(), until.into_iter().flatten().max()) {
                self.let_go_until.insert(tenant, until);
            }
        }
        if self.let_go_until.is_empty() {
            return;
        }
        let mut events = std::mem::take(&mut self.events);
        events.retain(|event| {
            let about = [event.subject, event.session, event.recording];
            !about.into_iter().flatten().any(|id| self.was_let_go(event.tenant, id))
        });
        self.events = events;
    }

    fn add(&mut self, line: &'a Value) -> Result<(), String> {
        let kind = read::need(line, "kind", Value::as_str)?;
        match kind {
            "event" => self.events.push(read::event(line)?),
            "campaign" => self.campaigns.push(read::campaign(line)?),
            "contact" => self.contacts.push(read::contact(line)?),
            "session" => self.sessions.push(read::session(line)?),
            "dnc" => self.dnc.push(read::dnc(line)?),
            "room" => self.rooms.push(rooms::room(line)?),
            "recording" => self.recordings.push(read::recording(line)?),
            "evaluation" => self.evaluations.push(read::evaluation(line)?),
            "sms" | "email" => self.messages.push(books::message(line)?),
            "topup" => self.topups.push(books::topup(line)?),
            // They have no id of their own.
            "send" => return books::send(line).map(|send| self.sends.push(send)),
            "account" => return books::account(line).map(|account| self.accounts.push(account)),
            "record" => return law::record(line).map(|record| self.records.push(record)),
            "record_end" | "record_anchor" | "record_head" => return law::mark(line).map(|mark| self.marks.push(mark)),
            "consent" => self.consents.push(consents::consent(line)?),
            "posting" => return books::posting(line).map(|posting| self.postings.push(posting)),
            // Kinds that other checks read.
            _ => return Ok(()),
        }
        let id = line.get("id").and_then(Value::as_str);
        self.lines.push(Line { kind, id, value: line });
        Ok(())
    }

    fn add_calls(&mut self, evidence: &'a Evidence) {
        let mut lines = Vec::new();
        for line in &evidence.carrier {
            match read::carrier_line(line) {
                Ok(read) => lines.push(read),
                Err(why) => self.unreadable.push(format!("{why} in {line}")),
            }
        }
        lines.sort_by_key(|line| line.at);
        let mut kills = evidence.kills.clone();
        kills.sort_unstable();
        let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
        for CarrierLine { at, call } in lines {
            match call {
                Step::Placed {
                    session,
                    to,
                    tenant,
                    env,
                } => {
                    let killed = kills.iter().copied().find(|kill| at <= (kill + KILL_SLACK) * 1_000);
                    open.entry(session).or_default().push(self.calls.len());
                    // A call placed while its killer looked at the clock ends where it starts.
                    let ended = killed.map_or(i64::MAX, |kill| at.max(kill * 1_000));
                    self.calls.push(Call {
                        session,
                        tenant,
                        env,
                        to,
                        placed: at,
                        ended,
                        killed,
                    });
                }
                Step::Ended {
                    session,
                    never_accepted,
                } => {
                    if never_accepted {
                        self.never_accepted.insert(session);
                    }
                    if let Some(call) = open.get_mut(session).and_then(Vec::pop) {
                        let call = &mut self.calls[call];
                        if at <= call.ended {
                            call.ended = at;
                            call.killed = None;
                        }
                    }
                }
            }
        }
    }
}

/// The rows by a key; those without one are left out.
pub fn by<'r, T, K: Eq + Hash>(rows: &'r [T], key: impl Fn(&'r T) -> Option<K>) -> HashMap<K, Vec<&'r T>> {
    let mut found: HashMap<K, Vec<&T>> = HashMap::new();
    for row in rows {
        if let Some(key) = key(row) {
            found.entry(key).or_default().push(row);
        }
    }
    found
}

fn positions<'a, T>(rows: &[T], id: impl Fn(&T) -> &'a str) -> HashMap<&'a str, usize> {
    rows.iter().enumerate().map(|(at, row)| (id(row), at)).collect()
}
