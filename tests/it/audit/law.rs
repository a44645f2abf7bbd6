//! The record of attempts: whoever was called or written to is on it, in order, and nobody has edited it.
use super::{
    check::Evidence,
    facts::{Facts, by},
    read::{millis, need, or_null},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write,
};

/// A row of the record. Times in Unix milliseconds.
pub struct Record<'a> {
    pub tenant: &'a str,
    pub env: &'a str,
    pub n: i64,
    pub what: &'a str,
    /// The session, the message, or the entry that it is about.
    pub attempt: &'a str,
    pub dial_n: i64,
    pub campaign: Option<&'a str>,
    pub number_hash: Option<&'a str>,
    pub email_hash: Option<&'a str>,
    pub at: Option<i64>,
    /// Its text, as it was hashed.
    pub body: &'a str,
    pub said: Value,
    /// The digest of what is there; `None`: nothing is.
    pub content: Option<&'a str>,
    /// The digest that was recorded.
    pub content_sha256: Option<&'a str>,
    pub prev_hash: &'a str,
    pub hash: &'a str,
    /// What the law says otherwise than was recorded.
    pub difference: Option<&'a str>,
}

/// A place in a chain: where it ends, where it begins, or where it stood on a day.
pub struct Mark<'a> {
    pub kind: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub n: i64,
    pub hash: &'a str,
    /// Of an anchor: when its row was committed, and removed.
    pub times: Option<(i64, i64)>,
}

pub fn record(line: &Value) -> Result<Record<'_>, String> {
    Ok(Record {
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        n: need(line, "n", Value::as_i64)?,
        what: need(line, "what", Value::as_str)?,
        attempt: need(line, "attempt", Value::as_str)?,
        dial_n: need(line, "dial_n", Value::as_i64)?,
        campaign: or_null(line, "campaign", Value::as_str)?,
        number_hash: or_null(line, "number_hash", Value::as_str)?,
        email_hash: or_null(line, "email_hash", Value::as_str)?,
        at: millis(need(line, "at", Value::as_str)?),
        body: need(line, "body", Value::as_str)?,
        said: need(line, "body", |body| serde_json::from_str(body.as_str()?).ok())?,
        content: or_null(line, "content", Value::as_str)?,
        content_sha256: or_null(line, "content_sha256", Value::as_str)?,
        prev_hash: need(line, "prev_hash", Value::as_str)?,
        hash: need(line, "hash", Value::as_str)?,
        difference: or_null(line, "difference", Value::as_str)?,
    })
}

pub fn mark(line: &Value) -> Result<Mark<'_>, String> {
    let kind = need(line, "kind", Value::as_str)?;
    let time = |name| need(line, name, |time| millis(time.as_str()?));
    let times = (kind == "record_anchor").then(|| Ok::<_, String>((time("recorded_at")?, time("pruned_at")?)));
    Ok(Mark {
        kind,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        n: need(line, "n", Value::as_i64)?,
        hash: need(line, "hash", Value::as_str)?,
        times: times.transpose()?,
    })
}

/// The hash of a row, as docs/attempts.md says that it is made.
pub fn hash(row: &Record<'_>) -> String {
    let parts = [
        "callboard.attempt.1".to_owned(),
        row.prev_hash.to_owned(),
        row.tenant.to_owned(),
        row.env.to_owned(),
        row.n.to_string(),
        row.what.to_owned(),
        row.attempt.to_owned(),
        row.dial_n.to_string(),
        row.campaign.unwrap_or_default().to_owned(),
        row.number_hash.unwrap_or_default().to_owned(),
        row.email_hash.unwrap_or_default().to_owned(),
        row.at.unwrap_or_default().to_string(),
        row.content_sha256.map_or_else(|| "0".repeat(64), str::to_owned),
        digest(row.body.as_bytes()),
    ];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u32).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    digest(&bytes)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub type Owner<'a> = (&'a str, &'a str);

/// The rows of each chain, in the order of their places.
pub fn chains<'r>(facts: &'r Facts<'_>) -> BTreeMap<Owner<'r>, Vec<&'r Record<'r>>> {
    let mut chains: BTreeMap<Owner<'r>, Vec<&'r Record<'r>>> = BTreeMap::new();
    for row in &facts.records {
        chains.entry((row.tenant, row.env)).or_default().push(row);
    }
    chains.values_mut().for_each(|rows| rows.sort_by_key(|row| row.n));
    chains
}

/// L2: "every rule of every place of the number was asked, with the pack then in force; the same verdict is recomputed from the record
/// alone".
pub fn verdicts_come_out_again(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let differs = |row: &Record<'_>| {
        let difference = row.difference?;
        Some(format!(
            "the law says otherwise of attempt {}: {difference}",
            row.attempt
        ))
    };
    facts.records.iter().filter_map(differs).collect()
}

/// Five years of 365 days: none is shorter. Source: 16 CFR 310.5(a).
const KEPT_MS: i64 = 5 * 365 * 86_400_000;

/// L9: "attempt rows outlive the sessions, campaigns and events, for their years": each intent that is known has its opening, each
/// call that has ended what came of it, and no row goes too early.
pub fn whoever_was_reached_is_on_record(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let of = |what: &'static str| by(&facts.records, move |row| (row.what == what).then_some(row.attempt));
    let (openings, outcomes) = (of("attempt"), of("outcome"));
    let sends = by(&facts.sends, |send| Some(send.message));
    let count = |rows: &HashMap<&str, Vec<&Record<'_>>>, id: &str| rows.get(id).map_or(0, Vec::len);
    for session in facts.sessions.iter().filter(|session| !session.inbound) {
        let opened = count(&openings, session.id);
        if opened != session.intents {
            let intents = session.intents;
            found.push(format!(
                "session {} has {intents} intents, and {opened} on record",
                session.id
            ));
        }
        let closed = count(&outcomes, session.id);
        if session.is_over() && closed != usize::from(session.intents > 0) {
            found.push(format!(
                "session {} has ended, and {closed} outcomes of it are on record",
                session.id
            ));
        }
    }
    for message in &facts.messages {
        // An answer of the service's own is no attempt.
        let sends = match message.is_judged {
            true => sends.get(message.id).map_or(0, Vec::len),
            false => 0,
        };
        let opened = count(&openings, message.id);
        if opened != sends {
            found.push(format!(
                "message {} has {sends} intents, and {opened} on record",
                message.id
            ));
        }
        let closed = count(&outcomes, message.id);
        if closed > 0 && opened == 0 {
            found.push(format!(
                "message {} was never tried, and {closed} outcomes of it are on record",
                message.id
            ));
        }
        if message.is_over() && opened > 0 && closed == 0 {
            found.push(format!(
                "message {} is over, and no outcome of it is on record",
                message.id
            ));
        }
    }
    found.extend(openings.into_iter().filter_map(|(id, rows)| {
        let places: HashSet<i64> = rows.iter().map(|row| row.dial_n).collect();
        (places.len() != rows.len()).then(|| format!("an intent of {id} is on record twice"))
    }));
    for mark in &facts.marks {
        if let Some((recorded, pruned)) = mark.times
            && pruned - recorded < KEPT_MS
        {
            found.push(format!(
                "row {} of {} in {} was let go before its five years",
                mark.n, mark.tenant, mark.env
            ));
        }
    }
    found
}

/// L10: "each row's hash follows from the row before": from the first, or from the anchor, to where the chain ends, and what was
/// published stands in it. Rows are in the order of the intents that they tell of.
pub fn nobody_has_edited_the_record(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let chains = chains(facts);
    let mut marks: BTreeMap<Owner<'_>, Vec<&Mark<'_>>> = BTreeMap::new();
    for mark in &facts.marks {
        marks.entry((mark.tenant, mark.env)).or_default().push(mark);
    }
    let owners: BTreeSet<Owner<'_>> = chains.keys().chain(marks.keys()).copied().collect();
    let mut found = Vec::new();
    for owner in owners {
        let rows = chains.get(&owner).map(Vec::as_slice).unwrap_or_default();
        let marks = marks.get(&owner).map(Vec::as_slice).unwrap_or_default();
        found.extend(unbroken(owner, rows, marks));
    }
    found.extend(in_order(facts, &chains));
    found
}

fn unbroken((tenant, env): Owner<'_>, rows: &[&Record<'_>], marks: &[&Mark<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("{tenant} in {env}: {what}"));
    let anchor = marks.iter().find(|mark| mark.kind == "record_anchor");
    let (mut n, mut before) = anchor.map_or((0, ""), |anchor| (anchor.n, anchor.hash));
    for row in rows {
        if row.n != n + 1 {
            say(format!("row {} stands where {} must be", row.n, n + 1));
        }
        if row.prev_hash != before || row.hash != hash(row) {
            say(format!("row {} does not follow from the one before", row.n));
        }
        if row.content.is_some() && row.content != row.content_sha256 {
            say(format!("row {} says of a person what was not recorded", row.n));
        }
        (n, before) = (row.n, row.hash);
    }
    match marks.iter().find(|mark| mark.kind == "record_end") {
        Some(end) if (end.n, end.hash) == (n, before) => {}
        Some(_) | None => say(format!("the chain does not end with row {n}")),
    }
    let places: HashMap<i64, &str> = rows.iter().map(|row| (row.n, row.hash)).collect();
    for head in marks.iter().filter(|mark| mark.kind == "record_head") {
        // What was let go is told by the anchor alone.
        let is_gone = anchor.is_some_and(|anchor| head.n < anchor.n);
        let is_there = places.get(&head.n) == Some(&head.hash);
        let is_anchor = anchor.is_some_and(|anchor| (anchor.n, anchor.hash) == (head.n, head.hash));
        if !(is_gone || is_there || is_anchor) {
            say(format!("row {} was published with another hash", head.n));
        }
    }
    found
}

/// Openings stand in the order of the intents among all commits.
fn in_order(facts: &Facts<'_>, chains: &BTreeMap<Owner<'_>, Vec<&Record<'_>>>) -> Vec<String> {
    let intents = Intents::of(facts);
    let mut found = Vec::new();
    for ((tenant, env), rows) in chains {
        let openings = rows.iter().filter(|row| row.what == "attempt");
        let known: Vec<(i64, i64)> = openings.filter_map(|row| Some((row.n, intents.seq(row)?))).collect();
        for pair in known.windows(2).filter(|pair| pair[0].1 > pair[1].1) {
            found.push(format!(
                "{tenant} in {env}: row {} stands before the intent of row {}",
                pair[0].0, pair[1].0
            ));
        }
    }
    found
}

/// The places of intents among all commits. Of a session that was dialled more than once the last one is known, and belongs to its last
/// opening.
pub struct Intents<'a> {
    calls: HashMap<&'a str, i64>,
    messages: HashMap<(&'a str, i64), i64>,
    /// The place of each attempt's last opening in its chain.
    last: HashMap<&'a str, i64>,
}

impl<'a> Intents<'a> {
    pub fn of(facts: &Facts<'a>) -> Self {
        let dialled = facts.sessions.iter().filter(|session| !session.inbound);
        let mut last = HashMap::new();
        for row in facts.records.iter().filter(|row| row.what == "attempt") {
            let place = last.entry(row.attempt).or_insert(row.n);
            *place = row.n.max(*place);
        }
        let sends = facts.sends.iter();
        Intents {
            calls: dialled
                .filter_map(|session| Some((session.id, session.intent_seq?)))
                .collect(),
            messages: sends
                .filter_map(|send| Some(((send.message, i64::try_from(send.n).ok()?), send.seq)))
                .collect(),
            last,
        }
    }

    pub fn seq(&self, row: &Record<'_>) -> Option<i64> {
        match self.messages.get(&(row.attempt, row.dial_n)) {
            Some(seq) => Some(*seq),
            None if self.last.get(row.attempt) == Some(&row.n) => self.calls.get(row.attempt).copied(),
            None => None,
        }
    }
}
