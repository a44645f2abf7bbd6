//! What the rows say of the people whose turn may come: asked at once, for many.
use crate::{deps::Deps, reach};
use entities::{
    Result, boxed,
    campaign::Channel,
    connection::Connection,
    contact::Address,
    ids::{SessionId, TenantId},
    message_send,
    values::{E164, Env, Moment},
};
use rules::eligibility::ContactRecord;
use std::collections::{BTreeMap, HashMap};

/// Whose calls, or messages, count.
#[derive(Clone, Copy, Debug)]
pub struct People {
    pub owner: (TenantId, Env),
    pub channel: Channel,
    /// A call that was placed before does not count against itself.
    pub itself: Option<SessionId>,
}

/// What is known of these addresses: four look-ups at most for all of them.
#[boxed]
pub async fn people(
    deps: &Deps,
    db: &Connection,
    whose: People,
    mut addresses: Vec<Address>,
    now: Moment,
) -> Result<BTreeMap<Address, ContactRecord>> {
    let People { owner, channel, itself } = whose;
    addresses.sort();
    addresses.dedup();
    let texts: Vec<String> = addresses.iter().map(|address| address.as_str().to_owned()).collect();
    let numbers: Vec<E164> = addresses
        .iter()
        .filter_map(|address| match address {
            Address::Number(number) => Some(number.clone()),
            Address::Email(_) => None,
        })
        .collect();
    let barred = entities::dnc::barred(db, owner, channel.dnc(), &texts).await?;
    let mut recent = recent((deps, db), owner, channel, &numbers, &texts, (itself, now)).await?;
    let verified = match owner.1 {
        Env::Live => Vec::new(),
        Env::Test => {
            let others: Vec<E164> = numbers.iter().filter(|number| !number.is_sandbox()).cloned().collect();
            entities::verified_number::among(db, owner.0, &others).await?
        }
    };
    let reach = match (owner.1, channel) {
        (Env::Live, Channel::Phone) => Some(reach::of(deps, owner.0).await?),
        _ => None,
    };
    let is_in_reach = |number: &E164| reach.as_ref().is_none_or(|reach| reach.check(number).is_ok());
    let people = addresses.into_iter().map(|address| {
        let record = ContactRecord {
            has_number: match (&address, owner.1) {
                (Address::Number(number), Env::Live) => !number.is_sandbox() && is_in_reach(number),
                (Address::Number(number), Env::Test) => number.is_sandbox() || verified.contains(number),
                // In the test env no mail leaves the house.
                (Address::Email(_), Env::Live | Env::Test) => true,
            },
            is_barred: barred.contains(address.as_str()),
            recent: recent.remove(address.as_str()).unwrap_or_default(),
            ..ContactRecord::default()
        };
        (address, record)
    });
    Ok(people.collect())
}

/// When each of them was called, or written to by that channel, in the last 30 days, in order: the longest span of any cap.
/// Source: France, at most four calls in 30 days.
async fn recent(
    (deps, db): (&Deps, &Connection),
    owner: (TenantId, Env),
    channel: Channel,
    numbers: &[E164],
    texts: &[String],
    (itself, now): (Option<SessionId>, Moment),
) -> Result<HashMap<String, Vec<Moment>>> {
    // By the wall clock too, where that is behind.
    let behind_ms = deps.clock.times().behind_ms().max(0);
    let month_ago = now.plus_seconds(-30 * 24 * 3600).plus_millis(-behind_ms);
    Ok(match channel.of_messages() {
        None => entities::dial::recent(db, owner, numbers, month_ago)
            .await?
            .into_iter()
            .map(|(number, calls)| {
                let others = calls.into_iter().filter(|call| Some(call.session_id) != itself);
                (number.as_str().to_owned(), others.map(|call| call.at).collect())
            })
            .collect(),
        Some(channel) => message_send::recent(db, owner, channel, texts, month_ago)
            .await?
            .into_iter()
            .map(|(address, sent)| (address, sent.into_iter().map(|sent| sent.at).collect()))
            .collect(),
    })
}
