//! What recurs: owners are told of registers that age, their ages are measured, and what no register has any more is removed.
use super::upload::{ROWS, given_up_before};
use crate::{deps::Deps, leases::Of, slices::Slices};
use entities::{
    Result, boxed,
    ids::TenantId,
    membership, reassigned,
    register::{self, Model, answer, chunk},
    values::{Env, Moment},
};
use rules::{
    commit::Commit,
    registers::{
        aging::{Stage, news},
        known::known,
        notice,
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// Registers that are looked at by one statement.
const PAGE: u64 = 100;
/// Answers about numbers that one transaction removes, at most.
const MOST: usize = 500;
/// An answer is kept for so long after it was asked for: what a call went by stands in its own record.
const KEEP_ANSWERS_SECONDS: i64 = 400 * 24 * 3600;

#[boxed]
pub async fn watch(deps: &Deps) -> Result<()> {
    let times = deps.clock.times();
    let mut ages = BTreeMap::new();
    let mut after = None;
    loop {
        let page = register::all_after(&deps.db.read, deps.share(), after, PAGE).await?;
        for row in &page {
            note_age(&mut ages, row, times.later());
            // Too early is better than too late.
            if let Some(stage) = news(row, times.later()).filter(|_| row.env == Env::Live) {
                warn(deps, row, stage).await?;
            }
        }
        after = page.last().map(|row| row.id);
        if (page.len() as u64) < PAGE {
            break;
        }
    }
    for (name, age) in ages {
        metrics::gauge!("callboard_register_age_seconds", "name" => name).set(age);
    }
    Ok(())
}

/// The oldest of each name counts. Names that workspaces make up are one: they may be any number.
fn note_age(ages: &mut BTreeMap<String, f64>, row: &Model, now: Moment) {
    if row.env != Env::Live {
        return;
    }
    let name = match row.is_operators() || known(&row.name).is_some() {
        true => row.name.clone(),
        false => "other".to_owned(),
    };
    let oldest = ages.entry(name).or_insert(0.0);
    *oldest = oldest.max(now.since(row.fetched_at).as_secs_f64());
}

async fn warn(deps: &Deps, row: &Model, stage: Stage) -> Result<()> {
    let Some(mail) = notice::mail(row, stage) else {
        return Ok(());
    };
    let recipients = match row.is_operators() {
        true => {
            tracing::warn!(register = row.name, fetched_at = %row.fetched_at, "{}", mail.subject);
            deps.registers.notify.iter().cloned().collect()
        }
        false => membership::owners(&deps.db.read, row.tenant_id).await?,
    };
    let now = deps.clock.now();
    let mails = recipients
        .into_iter()
        .map(|recipient| mail.row(deps.ids.next(), row.tenant_id, recipient, now));
    let mails: Arc<Vec<_>> = Arc::new(mails.collect());
    let (row, of) = (row.clone(), whose(row.tenant_id));
    let told = deps.writer.run(of, move |db| {
        let (row, mails) = (row.clone(), mails.clone());
        Box::pin(async move {
            let mut commit = Commit::default();
            if register::warn(db, &row, stage.number()).await? {
                commit.changes.mails.extend(mails.iter().cloned());
            }
            Ok(((), commit))
        })
    });
    told.await?;
    deps.router.mailer();
    Ok(())
}

/// By whom it is written.
fn whose(tenant: TenantId) -> Of {
    match super::settle::is_operators(tenant) {
        true => Of::Installation,
        false => Of::Workspace(tenant),
    }
}

/// Removes, slice by slice, the files that were replaced or were never whole, and answers that are too old for anything.
#[boxed]
pub async fn sweep(deps: &Deps) -> Result<()> {
    let times = deps.clock.times();
    if times.in_doubt || !deps.fence.leases().serves(Of::Installation) {
        return Ok(());
    }
    let now = times.earlier();
    let mut slices = Slices::of(ROWS);
    while let Some(file) = chunk::orphan(&deps.db.read, given_up_before(now)).await? {
        let rows = slices.rows() as u64;
        let slice = slices.write(deps, Of::Installation, move |db| {
            Box::pin(async move {
                chunk::remove_some(db, file, rows).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    let before = now.plus_seconds(-KEEP_ANSWERS_SECONDS);
    forget_reassigned(deps, before).await?;
    forget_answers(deps, before).await
}

/// What registers have answered over their APIs.
async fn forget_answers(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    loop {
        let rows = answer::oldest(&deps.db.read, before, slices.rows() as u64).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let slice = slices.write(deps, Of::Installation, move |db| {
            let rows = rows.clone();
            Box::pin(async move {
                answer::prune(db, &rows).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
}

async fn forget_reassigned(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    loop {
        let rows = reassigned::oldest(&deps.db.read, before, slices.rows() as u64).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let slice = slices.write(deps, Of::Installation, move |db| {
            let rows = rows.clone();
            Box::pin(async move {
                reassigned::prune(db, &rows).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
}
