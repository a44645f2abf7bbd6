//! A text that comes in: stored once, and, where it says STOP, START or HELP, obeyed in the same transaction and answered once.
use crate::{attempts, deps::Deps, dnc::place, verify};
use entities::{
    Result, boxed,
    dnc::{self, Source},
    ids::{SmsId, TenantId, TenantScoped},
    number, number_claim,
    sms_message::{self, Direction, Model, Phase},
    values::{E164, Env, Moment},
};
use rules::{
    barred::{still_revoked, stop},
    commit::Commit,
    sms::{
        machine::unsent,
        words::{self, Wish},
    },
};

/// A text as its provider hands it over.
#[derive(Clone, Debug)]
pub struct Arriving {
    /// The provider's id: the same text may be handed over more than once.
    pub provider_message_id: String,
    /// Whom it was written to: one of ours.
    pub to_number: E164,
    /// Who wrote; `None`: no number that could be written to.
    pub from_number: Option<E164>,
    pub body: String,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Received {
    pub message: Model,
    /// What is answered, if anything.
    pub reply: Option<String>,
}

const STOPPED: &str =
    "You are unsubscribed and will get no more messages from this number. Reply START to get them again.";
/// Of whom somebody else has put on the list as well: a START would change nothing.
const STOPPED_FOR_GOOD: &str = "You are unsubscribed and will get no more messages from this number.";
const STARTED: &str = "You will get messages from this number again. Reply STOP to get no more.";
/// The longest text that is kept.
const MAX_CHARS: usize = 1600;
/// Workspaces that may have texted one person from a number that they share.
const MAX_SENDERS: u16 = 1000;

/// Whose a live text is: the workspace's that has claimed the number. One to a number that nobody has is that of the workspace that
/// wrote last from it; but a STOP goes to all that did, also where the number has moved since.
#[boxed]
pub async fn addressees(deps: &Deps, arriving: &Arriving) -> Result<Vec<TenantId>> {
    let to_all = words::wish(&arriving.body) == Some(Wish::Stop);
    let db = &deps.db.read;
    let owner = number::owner_of(db, &arriving.to_number).await?;
    let is_free = number_claim::load(db, &arriving.to_number).await?.is_none();
    let mut owners: Vec<TenantId> = owner.into_iter().collect();
    let Some(person) = &arriving.from_number else {
        return Ok(owners);
    };
    // A code of ours is for whoever answers the number, and nobody here has shown to be that: whoever wrote from it to
    // a number of their own would read what proves that it is theirs.
    if to_all || (is_free && !verify::is_code(&arriving.body)) {
        let wrote = sms_message::senders(db, person, &arriving.to_number, MAX_SENDERS).await?;
        owners.extend(wrote.into_iter().filter(|tenant| Some(*tenant) != owner));
    }
    owners.truncate(if to_all { usize::MAX } else { 1 });
    Ok(owners)
}

/// Stores a text and obeys it. One that is known is answered with nothing.
#[boxed]
pub async fn receive(deps: &Deps, owner: (TenantId, Env), id: SmsId, arriving: Arriving) -> Result<Received> {
    let (times, entry) = (deps.clock.times(), deps.ids.next());
    let now = times.ours;
    let (wish, help, its) = (words::wish(&arriving.body), deps.sms.help_text.clone(), deps.clone());
    deps.writer
        .run(owner.0, move |db| {
            let (arriving, help, its) = (arriving.clone(), help.clone(), its.clone());
            Box::pin(async move {
                if let Some(message) = sms_message::inbound(db, owner, &arriving.provider_message_id).await? {
                    return Ok((Received { message, reply: None }, Commit::default()));
                }
                let mut commit = Commit::default();
                let reply = match (wish, &arriving.from_number) {
                    (Some(Wish::Stop), Some(person)) => {
                        let entry = stop(entry, person);
                        let row = place(db, owner, entry, times).await?;
                        let (row, outcome) = row.write(&its, &mut commit, Some(arriving.body.clone()))?;
                        let can_return = row.source == Source::SmsStop;
                        outcome
                            .bars_more()
                            .then(|| if can_return { STOPPED } else { STOPPED_FOR_GOOD }.to_owned())
                    }
                    (Some(Wish::Start), Some(person)) => {
                        let known = dnc::of_number(db, owner, person).await?;
                        match known.filter(|entry| entry.source == Source::SmsStop) {
                            Some(entry) => {
                                // Wanting texts again is no consent: what was taken back stays so.
                                commit.changes.revocations.extend(still_revoked(&entry, times.later()));
                                let lifted = lift(entry, now);
                                let told = attempts::lifted(&its, &lifted, "sms_start", Some(arriving.body.clone()))?;
                                commit.changes.attempt_records.push(told);
                                commit.changes.dnc.push(lifted);
                                Some(STARTED.to_owned())
                            }
                            None => None,
                        }
                    }
                    (Some(Wish::Help), Some(_)) => Some(help).filter(|text| !text.is_empty()),
                    (_, _) => None,
                };
                let message = row(owner, id, arriving, now);
                commit.changes.sms_messages.push(message.clone());
                Ok((Received { message, reply }, commit))
            })
        })
        .await
}

fn lift(entry: dnc::Model, now: Moment) -> dnc::Model {
    dnc::Model {
        removed_at: Some(now),
        removed_reason: Some("said START by SMS".into()),
        version: entry.version + 1,
        ..entry
    }
}

fn row((tenant_id, env): (TenantId, Env), id: SmsId, arriving: Arriving, now: Moment) -> Model {
    // What no database keeps, and nobody types.
    let body: String = arriving
        .body
        .chars()
        .filter(|char| *char != '\0')
        .take(MAX_CHARS)
        .collect();
    Model {
        phase: Phase::Received,
        direction: Direction::Inbound,
        from_number: arriving.from_number,
        wake_at: None,
        settled: true,
        provider_message_id: Some(arriving.provider_message_id),
        ended_at: Some(now),
        ..unsent(TenantScoped::new(tenant_id, env, id), arriving.to_number, body, now)
    }
}
