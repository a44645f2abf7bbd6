//! The do-not-call list: adding to it and taking off it, each in one transaction with its place among all commits.
use crate::{attempts, deps::Deps};
use entities::{
    Result, boxed,
    connection::Connection,
    dnc::{self, Channels, DncChannel, Model, Source},
    ids::{DncId, SessionId, TenantId, TenantScoped},
    values::Env,
};
use rules::{
    barred::{Entry, Whom},
    commit::Commit,
};

/// Adds one; a second entry of one number or address adds its channels to the first. Answers the entry and whether it is new.
#[boxed]
pub async fn add(deps: &Deps, owner: (TenantId, Env), entry: Entry) -> Result<(Model, bool)> {
    let (its, now) = (deps.clone(), deps.clock.now());
    deps.writer
        .run(owner.0, move |db| {
            let (its, entry) = (its.clone(), entry.clone());
            Box::pin(async move {
                let (row, outcome) = place(db, owner, entry, now).await?;
                let mut commit = Commit::default();
                if outcome != DncOutcome::Known {
                    commit
                        .changes
                        .attempt_records
                        .push(attempts::opted_out(&its, &row, None)?);
                    commit.changes.dnc.push(row.clone());
                }
                Ok(((row, outcome == DncOutcome::New), commit))
            })
        })
        .await
}

/// What an entry is to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DncOutcome {
    New,
    /// Known, and bars more than before, or for longer.
    Wider,
    Known,
}

/// The row of an entry. One that was added meanwhile makes its commit fail.
#[boxed]
pub async fn place(
    db: &Connection,
    (tenant_id, env): (TenantId, Env),
    entry: Entry,
    now: entities::values::Moment,
) -> Result<(Model, DncOutcome)> {
    let owner = (tenant_id, env);
    let known = match &entry.whom {
        Whom::Number(number) => dnc::of_number(db, owner, number).await?,
        Whom::Email(email) => dnc::of_email(db, owner, email).await?,
    };
    let channels = if entry.channels.is_empty() {
        match entry.whom {
            Whom::Number(_) => vec![DncChannel::Phone, DncChannel::Sms],
            Whom::Email(_) => vec![DncChannel::Email],
        }
    } else {
        entry.channels
    };
    if let Some(known) = known {
        return Ok(joined(
            known,
            Channels::of(channels),
            entry.source,
            entry.reason,
            entry.session_id,
            entry.created_by,
        ));
    }
    let (phone_number, email) = match entry.whom {
        Whom::Number(number) => (Some(number), None),
        Whom::Email(email) => (None, Some(email)),
    };
    let row = Model {
        id: entry.id,
        tenant_id,
        env,
        phone_number,
        email,
        channels: Channels::of(channels),
        reason: entry.reason,
        source: entry.source,
        session_id: entry.session_id,
        created_by: entry.created_by,
        added_seq: 0,
        removed_at: None,
        removed_reason: None,
        removed_by: None,
        removed_seq: None,
        version: 1,
        created_at: now,
    };
    Ok((row, DncOutcome::New))
}

/// An entry that is there, with what another adds to it. A START lifts what a STOP has barred, and nothing else: so whoever
/// else bars that person makes the entry their own.
fn joined(
    known: Model,
    channels: Channels,
    source: Source,
    reason: Option<String>,
    session_id: Option<SessionId>,
    created_by: Option<String>,
) -> (Model, DncOutcome) {
    let all = Channels::of(known.channels.0.iter().copied().chain(channels.0).collect());
    let is_taken_over = known.source == Source::SmsStop && source != Source::SmsStop;
    if all == known.channels && !is_taken_over {
        return (known, DncOutcome::Known);
    }
    let mut wider = Model {
        channels: all,
        version: known.version + 1,
        ..known
    };
    if is_taken_over {
        (wider.source, wider.reason, wider.session_id, wider.created_by) = (source, reason, session_id, created_by);
    }
    (wider, DncOutcome::Wider)
}

/// Takes one off the list; the row stays, with the reason.
#[boxed]
pub async fn remove(deps: &Deps, key: TenantScoped<DncId>, reason: String, by: String) -> Result<()> {
    let now = deps.clock.now();
    deps.writer
        .run(key.tenant_id, move |db| {
            let (reason, by) = (reason.clone(), by.clone());
            Box::pin(async move {
                let row = dnc::load(db, key).await?;
                let mut commit = Commit::default();
                commit.changes.dnc.push(Model {
                    removed_at: Some(now),
                    removed_reason: Some(reason),
                    removed_by: Some(by),
                    version: row.version + 1,
                    ..row
                });
                Ok(((), commit))
            })
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use DncChannel::{Phone, Sms};

    #[test]
    fn who_bars_somebody_again_owns_the_entry_of_a_stop() {
        let known = |source, channels: &[DncChannel]| Model {
            id: DncId(uuid::Uuid::from_u128(1)),
            tenant_id: TenantId(uuid::Uuid::from_u128(2)),
            env: Env::Live,
            phone_number: Some("+12025550123".parse().unwrap()),
            email: None,
            channels: Channels::of(channels.to_vec()),
            reason: Some("first".into()),
            source,
            session_id: None,
            created_by: None,
            added_seq: 7,
            removed_at: None,
            removed_reason: None,
            removed_by: None,
            removed_seq: None,
            version: 3,
            created_at: entities::values::Moment::from_millis(0),
        };
        let both = [Phone, Sms];
        let others = [Source::Manual, Source::Import, Source::OptOutVoice, Source::Unsubscribe];
        for source in others {
            let second = |known: Model, channels: &[DncChannel], source| {
                joined(
                    known,
                    Channels::of(channels.to_vec()),
                    source,
                    Some("second".into()),
                    None,
                    None,
                )
            };
            // Whatever it bars, the entry is theirs: no START lifts it.
            for channels in [&both[..], &[Sms]] {
                let (row, outcome) = second(known(Source::SmsStop, &both), channels, source);
                assert_eq!((outcome, row.source, row.version), (DncOutcome::Wider, source, 4));
                assert_eq!(
                    (row.reason.as_deref(), row.channels),
                    (Some("second"), Channels::of(both.to_vec()))
                );
            }
            // A STOP takes nothing over, but bars more; and nobody takes over from anybody else.
            let (row, outcome) = second(known(source, &both), &both, Source::SmsStop);
            assert_eq!((outcome, row), (DncOutcome::Known, known(source, &both)));
            let (row, outcome) = second(known(source, &[Phone]), &both, Source::SmsStop);
            assert_eq!((outcome, row.source, row.version), (DncOutcome::Wider, source, 4));
            assert_eq!(
                (row.reason.as_deref(), row.channels),
                (Some("first"), Channels::of(both.to_vec()))
            );
            for other in others {
                assert_eq!(second(known(source, &both), &both, other).1, DncOutcome::Known);
            }
        }
        let again = joined(
            known(Source::SmsStop, &both),
            Channels::of(both.to_vec()),
            Source::SmsStop,
            None,
            None,
            None,
        );
        assert_eq!(again, (known(Source::SmsStop, &both), DncOutcome::Known));
    }
}
