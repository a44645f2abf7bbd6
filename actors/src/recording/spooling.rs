//! What is said over a line is spooled from the moment at which it may be recorded until the talk's end, and not needed any more when
//! it is stored.
use crate::deps::Deps;
use adapters::recording::spool;
use entities::{
    Error, Result, boxed,
    ids::{SessionId, TenantScoped},
    recording, session,
};
use rules::session::command::Command;

/// What is kept beyond the longest that a talk may last: its end may be a little late.
const SLACK_SECONDS: u64 = 60;

/// The name of a session's spool.
pub fn spool_name(session: TenantScoped<SessionId>) -> String {
    format!("{}/{}.{}", session.tenant_id, session.id, spool::ENDING)
}

/// Records a talk's line from now on; one that carries no sound is recorded by its words, after its end.
pub fn begin(deps: &Deps, call: &session::Model) {
    let session = call.key();
    let Some(bridge) = deps.studio.lines.bridge(session.id) else {
        return;
    };
    // The spool is one of what this would keep alive.
    let its = deps.downgrade();
    let told = move |why: &str| {
        if let Some(deps) = Deps::upgrade(&its) {
            let (kind, detail) = ("recording_failed", why.to_owned());
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

/// Spools that are looked at in one sweep; the rest follow in the next.
const SWEPT: usize = 1_000;

/// Removes the spools of which no recording will be made: a crash came in between, or removing them has failed.
#[boxed]
pub async fn sweep(deps: &Deps) -> Result<()> {
    let spools = &deps.studio.spools;
    let left = spools.left(SWEPT).await.map_err(Error::Unavailable)?;
    let named = left.into_iter().filter_map(|name| Some((session_of(&name)?, name)));
    let named: Vec<(SessionId, String)> = named.collect();
    let sessions: Vec<SessionId> = named.iter().map(|(session, _)| *session).collect();
    let db = &deps.db.read;
    // In this order: the row of a recording is there when its call has ended.
    let mut needed = session::not_ended(db, &sessions).await?;
    needed.extend(recording::waiting(db, &sessions).await?);
    for (_, name) in named.iter().filter(|(session, _)| !needed.contains(session)) {
        spools.erase(name).await.map_err(Error::Unavailable)?;
    }
    Ok(())
}

fn session_of(name: &str) -> Option<SessionId> {
    let (_, file) = name.split_once('/')?;
    file.strip_suffix(spool::ENDING)?.strip_suffix('.')?.parse().ok()
}
