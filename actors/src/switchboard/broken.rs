//! What is left of a call whose task has failed: its session ends, and its peers are hung up.
use super::{moments::until, orphans, phones::Switchboard};
use crate::deps::Deps;
use entities::{
    boxed,
    ids::{SessionId, TenantScoped},
    session::{EndReason, EndedBy, Status},
    sip_leg,
};
use rules::session::command::{Abandoned, Command};
use std::time::{Duration, Instant};

/// In which whatever the task had stored stands, or is not going to.
const STORED_WITHIN: Duration = Duration::from_secs(2);
/// Until rows that could not be read are read again, so often.
const AGAIN: Duration = Duration::from_secs(5);
const TRIES: u32 = 20;

/// As the next process would do it, by the rows of the legs. `key`: `None`, if it is not known yet whose call it is.
#[boxed]
pub async fn clear(deps: &Deps, switchboard: &Switchboard, session: SessionId, key: Option<TenantScoped<SessionId>>) {
    if let Some(key) = key {
        end(deps, key);
    }
    until(Some(Instant::now() + STORED_WITHIN)).await;
    for _ in 0..TRIES {
        match sip_leg::of_session(&deps.db.read, session).await {
            Ok(rows) => {
                if key.is_none()
                    && let Some(row) = rows.first()
                {
                    end(deps, TenantScoped::new(row.tenant_id, row.env, row.session_id));
                }
                // Legs that have tasks of their own keep their Call-IDs, and are left to them.
                rows.into_iter().for_each(|row| orphans::begin(deps, switchboard, row));
                return;
            }
            Err(error) => tracing::warn!(%error, "the legs of a call that failed could not be read"),
        }
        until(Some(Instant::now() + AGAIN)).await;
    }
    tracing::error!(%session, "what a call that failed left on the wire stays there until the next start");
}

/// Whether anybody has picked up or not: the session ends by one of these.
fn end(deps: &Deps, key: TenantScoped<SessionId>) {
    let why = || "the call's line failed".to_owned();
    let reason = EndReason::AgentError;
    let abandoned = Abandoned {
        status: Status::Failed,
        reason,
        by: EndedBy::System,
        why: Some(why()),
    };
    for command in [Command::Abandon(abandoned), Command::Break { reason, why: why() }] {
        deps.router.sessions().tell(key, command);
    }
}
