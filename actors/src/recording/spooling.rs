//! What is said over a line is spooled from the moment at which it may be recorded until the talk's end, and not needed any more when
//! it is stored.
use crate::deps::Deps;
use adapters::recording::spool::{self, Left, Unrecorded};
use entities::{
    Error, Result,
    ids::{SessionId, TenantScoped},
    recording,
    session::{self, Phase},
};
use rules::session::command::Command;
use std::{collections::HashMap, time::Duration};

/// What is kept beyond the longest that a talk may last: its end may be a little late.
const SLACK_SECONDS: u64 = 60;

/// The name of a session's spool.
pub fn spool_name(session: TenantScoped<SessionId>) -> String {
    format!("{}/{}.{}", session.tenant_id, session.id, spool::ENDING)
}

/// Records a talk's line from now on, unless it is recorded already; one that carries no sound is recorded by its words, after its
/// end.
pub fn begin(deps: &Deps, call: &session::Model) {
    let session = call.key();
    let Some(bridge) = deps.studio.lines.bridge(session.id) else {
        return;
    };
    // The spool is one of what this would keep alive.
    let its = deps.downgrade();
    let told = move |why: Unrecorded| {
        if let Some(deps) = Deps::upgrade(&its) {
            let (kind, detail) = ("recording_failed", why.to_string());
            deps.router.sessions().tell(session, Command::Note { kind, detail });
        }
    };
    let most = u64::try_from(call.max_duration_seconds).unwrap_or(0) + SLACK_SECONDS;
    let name = spool_name(session);
    if let Some(track) = deps.studio.spools.begin(&name, most, Box::new(told)) {
        bridge.record(track);
    }
}

/// Removes what was recorded of a talk's line, or is being recorded. What cannot be removed is found again.
pub fn erase(deps: &Deps, session: TenantScoped<SessionId>) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        if let Err(why) = its.studio.spools.erase(&spool_name(session)).await {
            tracing::warn!(why, session = %session.id, "the sound of a call could not be removed; it is tried again");
        }
        drop(busy);
    });
}

/// Spools that are looked at at once.
const SWEPT: usize = 1_000;
/// The database may be the wrong one, or an older one: what it does not know is kept for so long.
const UNKNOWN_FOR: Duration = Duration::from_secs(7 * 86_400);

/// Removes the spools of which no recording will be made: a crash came in between, or removing them has failed. One sweep at a time,
/// and nobody waits for it: the disk may not answer.
pub fn sweep(deps: &Deps) {
    let its = deps.clone();
    let work = async move { sweep_all(&its).await };
    deps.jobs.run(&deps.studio.sweeping, "spools", "sweep", work);
}

async fn sweep_all(deps: &Deps) -> Result<()> {
    let spools = &deps.studio.spools;
    if spools.is_off() {
        return Ok(());
    }
    let (mut after, mut failed) = (None, None);
    loop {
        let left = spools.left(after, SWEPT).await.map_err(Error::Unavailable)?;
        let Some(last) = left.last() else { break };
        after = Some(last.name.clone());
        for name in unneeded(deps, left).await? {
            // One that cannot be removed keeps no other.
            if let Err(why) = spools.erase(&name).await {
                failed.get_or_insert_with(|| format!("{name}: {why}"));
            }
        }
    }
    failed.map_or(Ok(()), |why| Err(Error::Unavailable(why)))
}

/// Those of which the call has ended and no recording waits, and those of no call that is known, after a while.
async fn unneeded(deps: &Deps, left: Vec<Left>) -> Result<Vec<String>> {
    let named = left
        .into_iter()
        .filter_map(|left| Some((session_of(&left.name)?, left)));
    let named: Vec<(SessionId, Left)> = named.collect();
    let sessions: Vec<SessionId> = named.iter().map(|(session, _)| *session).collect();
    let db = &deps.db.read;
    // In this order: the row of a recording is there when its call has ended.
    let phases: HashMap<SessionId, Phase> = session::phases(db, &sessions).await?.into_iter().collect();
    let waiting = recording::waiting(db, &sessions).await?;
    let is_unneeded = |(session, left): &(SessionId, Left)| match phases.get(session) {
        Some(phase) => *phase == Phase::Ended && !waiting.contains(session),
        None => left.age > UNKNOWN_FOR,
    };
    let unneeded = named.into_iter().filter(is_unneeded);
    Ok(unneeded.map(|(_, left)| left.name).collect())
}

fn session_of(name: &str) -> Option<SessionId> {
    let (_, file) = name.split_once('/')?;
    file.strip_suffix(spool::ENDING)?.strip_suffix('.')?.parse().ok()
}
