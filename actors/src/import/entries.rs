//! A list of those who must not be reached: each row bars a number, an address, or both.
use super::{Outcomes, advance, rows::Slice, unreadable};
use crate::{
    attempts,
    deps::Deps,
    dnc::{self, DncOutcome},
    slices::Slices,
};
use entities::{
    Error, Result,
    dnc::{Channels, DncChannel, Source},
    ids::{ImportId, TenantScoped},
    import::Rejection,
    values::{Country, E164},
};
use rules::{
    barred::{self, Entry, Whom},
    commit::Commit,
};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

pub(super) async fn entries(
    deps: &Deps,
    size: &mut Slices,
    key: TenantScoped<ImportId>,
    (country, created_by): (Country, Option<&str>),
    slice: Slice,
) -> Result<()> {
    let (mut rejected, mut asked) = (unreadable(&slice.rows), Vec::new());
    for (line, row) in &slice.rows {
        let Ok(row) = row else { continue };
        match entries_of(deps, row, country, created_by) {
            Ok(entries) => asked.extend(entries),
            Err(Error::Invalid { field, reason }) => rejected.push(Rejection {
                line: *line,
                code: "validation_failed".into(),
                message: entities::error::sentence(&field, &reason),
                param: Some(field),
            }),
            Err(error) => return Err(error),
        }
    }
    rejected.sort_by_key(|rejection| rejection.line);
    let (slice, asked, rejected) = (Arc::new(slice), Arc::new(asked), Arc::new(rejected));
    let (its, now) = (deps.clone(), deps.clock.times());
    size.write(deps, key.tenant_id, move |db| {
        let (its, slice, asked, rejected) = (its.clone(), slice.clone(), asked.clone(), rejected.clone());
        Box::pin(async move {
            let mut commit = Commit::default();
            let mut outcomes = Outcomes {
                rejected: rejected.to_vec(),
                ..Outcomes::default()
            };
            let mut written: HashMap<Whom, usize> = HashMap::new();
            for entry in asked.iter() {
                let placed = dnc::place(db, (key.tenant_id, key.env), entry.clone(), now).await?;
                let (row, outcome) = (placed.row, placed.outcome);
                commit.changes.revocations.push(placed.revocation);
                // A second one in the same slice is not in the database yet: it widens the first.
                let first = written.get(&entry.whom).and_then(|at| commit.changes.dnc.get_mut(*at));
                if let Some(first) = first {
                    let all = first.channels.0.iter().chain(&row.channels.0);
                    first.channels = Channels::of(all.copied().collect());
                    outcomes.duplicates += 1;
                    continue;
                }
                outcomes.accepted += i64::from(outcome == DncOutcome::New);
                outcomes.duplicates += i64::from(outcome != DncOutcome::New);
                if outcome.bars_more() {
                    written.insert(entry.whom.clone(), commit.changes.dnc.len());
                    commit.changes.dnc.push(row);
                }
            }
            // Each as it has become in this slice.
            let told = commit
                .changes
                .dnc
                .iter()
                .map(|row| attempts::opted_out(&its, row, None));
            commit.changes.attempt_records = told.collect::<Result<_>>()?;
            let goes_on = advance(db, key, &slice, outcomes, now.ours).await?;
            if goes_on { Ok(((), commit)) } else { Err(Error::Stale) }
        })
    })
    .await
}

/// What a row bars: a number, an address, or both.
fn entries_of(deps: &Deps, row: &Value, country: Country, created_by: Option<&str>) -> Result<Vec<Entry>> {
    let cell = |name: &str| row.get(name).and_then(Value::as_str);
    let variables = row.get("variables");
    let extra = |name: &str| variables.and_then(|all| all.get(name)).and_then(Value::as_str);
    let names = extra("channels")
        .unwrap_or_default()
        .split([',', ';', ' '])
        .map(str::trim);
    let channels = names.filter(|name| !name.is_empty()).map(|name| match name {
        "phone" => Ok(DncChannel::Phone),
        "sms" => Ok(DncChannel::Sms),
        "email" => Ok(DncChannel::Email),
        other => Err(Error::invalid(
            "channels",
            format!("`{other}` is not a channel: use phone, sms or email"),
        )),
    });
    let channels: Vec<DncChannel> = channels.collect::<Result<_>>()?;
    let reason = extra("reason").map(str::to_owned);
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > 500) {
        return Err(Error::invalid("reason", "has more than 500 characters"));
    }
    // Doubt goes against us: whoever is behind an extension, the line is not called.
    let number = cell("phone_number").map(|text| E164::parse_line(text, country));
    let number = number.transpose().map_err(|why| Error::invalid("phone_number", why))?;
    let email = cell("email").map(barred::email).transpose()?;
    let entry = |whom, channels| Entry {
        id: deps.ids.next(),
        whom,
        channels,
        reason: reason.clone(),
        source: Source::Import,
        session_id: None,
        requested_at: None,
        created_by: created_by.map(str::to_owned),
    };
    match (number, email) {
        (Some(number), None) => Ok(vec![entry(Whom::Number(number), channels)]),
        (None, Some(email)) => Ok(vec![entry(Whom::Email(email), channels)]),
        // Of the channels that are named, each has its own.
        (Some(number), Some(email)) => {
            let (of_email, of_number): (Vec<_>, Vec<_>) = channels
                .iter()
                .copied()
                .partition(|channel| *channel == DncChannel::Email);
            let both = [(Whom::Number(number), of_number), (Whom::Email(email), of_email)];
            let meant = both
                .into_iter()
                .filter(|(_, own)| channels.is_empty() || !own.is_empty());
            Ok(meant.map(|(whom, own)| entry(whom, own)).collect())
        }
        (None, None) => Err(Error::invalid("phone_number", "is empty")),
    }
}
