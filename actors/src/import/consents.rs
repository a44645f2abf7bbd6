//! A list of consents: each row is one, as the API would take it.
use super::{Outcomes, advance, rows::Slice, unreadable};
use crate::{consent as giving, deps::Deps, slices::Slices};
use entities::{
    Error, Result,
    connection::Transaction,
    consent::{self, Model},
    ids::{ImportId, TenantScoped},
    import::Rejection,
    values::Country,
};
use rules::{
    commit::Commit,
    consent::{
        Accepted, MOST_OF_A_PERSON, Reading, accept, of_cells,
        taken_back::{TakenBack, check_not_revoked, people},
    },
};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A row that was read, with its line.
type Read = (u64, Accepted);

pub(super) async fn consents(
    deps: &Deps,
    size: &mut Slices,
    key: TenantScoped<ImportId>,
    (country, created_by): (Country, Option<&str>),
    slice: Slice,
) -> Result<()> {
    let reading = Reading {
        owner: (key.tenant_id, key.env),
        country,
        now: deps.clock.times(),
        by: created_by.map(str::to_owned),
    };
    let (mut rejected, mut read) = (unreadable(&slice.rows), Vec::new());
    for (line, row) in &slice.rows {
        let Ok(row) = row else { continue };
        match consent_of(row, &reading, deps) {
            Ok(accepted) => read.push((*line, accepted)),
            Err(error) => rejected.push(rejection(*line, error)?),
        }
    }
    let (slice, read, rejected, now) = (Arc::new(slice), Arc::new(read), Arc::new(rejected), deps.clock.now());
    size.write(deps, key.tenant_id, move |db| {
        let (slice, read, rejected) = (slice.clone(), read.clone(), rejected.clone());
        Box::pin(async move {
            let mut outcomes = Outcomes {
                rejected: rejected.to_vec(),
                ..Outcomes::default()
            };
            let commit = insert(db, key, &read, &mut outcomes).await?;
            outcomes.rejected.sort_by_key(|rejection| rejection.line);
            let goes_on = advance(db, key, &slice, outcomes, now).await?;
            if goes_on { Ok(((), commit)) } else { Err(Error::Stale) }
        })
    })
    .await
}

/// What a row says. Columns that contacts have, too, stand beside those that they do not.
fn consent_of(row: &Value, reading: &Reading, deps: &Deps) -> Result<Accepted> {
    let variables = row.get("variables");
    let cell = |name: &str| {
        let beside = || variables.and_then(|all| all.get(name));
        row.get(name).or_else(beside).and_then(Value::as_str)
    };
    accept(of_cells(cell)?, reading, deps.ids.next())
}

/// Of what is wrong with a row the first is told; what is no fault of the row ends the slice.
fn rejection(line: u64, error: Error) -> Result<Rejection> {
    let (code, param, message) = match error {
        Error::Invalid { field, reason } => ("validation_failed", Some(field), reason),
        Error::Faults(faults) => match faults.into_iter().next() {
            Some(fault) => ("validation_failed", Some(fault.field), fault.reason),
            None => ("validation_failed", None, "cannot be read".into()),
        },
        error @ Error::InvalidState { .. } => ("invalid_state", None, error.to_string()),
        Error::PlanLimit(why) => ("plan_limit", None, why),
        other => return Err(other),
    };
    let param = param.filter(|param| !param.is_empty());
    Ok(Rejection {
        line,
        code: code.into(),
        message: entities::error::sentence(param.as_deref().unwrap_or_default(), &message),
        param,
    })
}

/// The rows that are new. One that is known is a duplicate, or was revoked meanwhile.
async fn insert(
    db: &Transaction,
    key: TenantScoped<ImportId>,
    read: &[Read],
    outcomes: &mut Outcomes,
) -> Result<Commit> {
    let owner = (key.tenant_id, key.env);
    let fingerprints: Vec<String> = read.iter().map(|(_, one)| one.row.fingerprint.clone()).collect();
    let known = consent::known(db, owner, &fingerprints).await?;
    let all: Vec<_> = read.iter().flat_map(|(_, one)| people(&one.row)).collect();
    let standing = consent::of_people(db, owner, &all).await?;
    let mut counts: HashMap<String, usize> = standing
        .into_iter()
        .map(|(person, consents)| (person, consents.len()))
        .collect();
    let rows = read.iter().map(|(_, one)| &one.row);
    let new: Vec<&Model> = rows.filter(|row| !known.contains_key(&row.fingerprint)).collect();
    let taken_back = giving::taken_back(db, owner, &new).await?;
    let mut written: HashSet<&str> = HashSet::new();
    let mut commit = Commit::default();
    for (line, Accepted { row, text }) in read {
        if written.contains(row.fingerprint.as_str()) {
            outcomes.duplicates += 1;
            continue;
        }
        let checked = match known.get(&row.fingerprint) {
            Some(known) => check_not_revoked(known).map(|()| false),
            None => check_new(db, row, (&counts, &taken_back)).await.map(|()| true),
        };
        match checked {
            Ok(true) => {
                for person in people(row) {
                    *counts.entry(person.as_str().to_owned()).or_default() += 1;
                }
                written.insert(row.fingerprint.as_str());
                outcomes.accepted += 1;
                commit.changes.consents.push(row.clone());
                commit.changes.consent_texts.extend(text.clone());
            }
            Ok(false) => outcomes.duplicates += 1,
            Err(error) => outcomes.rejected.push(rejection(*line, error)?),
        }
    }
    Ok(commit)
}

async fn check_new(
    db: &Transaction,
    row: &Model,
    (counts, taken_back): (&HashMap<String, usize>, &TakenBack),
) -> Result<()> {
    let is_full = |person: &entities::consent::Address| {
        counts
            .get(person.as_str())
            .is_some_and(|count| *count >= MOST_OF_A_PERSON)
    };
    if people(row).any(|person| is_full(&person)) {
        return Err(giving::too_many());
    }
    taken_back.check(row)?;
    giving::check_recording(db, row).await
}
