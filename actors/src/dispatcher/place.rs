//! The last step of a dispatch: a call, or a message, that is committed leaves at its moment, or not at all.
use crate::{deps::Deps, leases::Of, shell::Stored, voice::standby};
use entities::{
    ids::{SessionId, TenantScoped},
    values::Moment,
};
use rules::{
    dispatch::last_second::{LastSecondLimiter, Paced},
    session::{
        command::Command as SessionCommand,
        machine::{PLACED_WITHIN_MS, Phase, Session},
    },
};
use std::sync::Arc;

/// Hands a committed call, or message, over at its moment; and says whether that has passed too long ago for a call. `paced`: what
/// has a rate beside the tenant.
pub fn at_its_moment(
    deps: &Deps,
    of: Of,
    limiter: Arc<LastSecondLimiter>,
    paced: Vec<(Paced, f64)>,
    at: Moment,
    hand_over: impl FnOnce(&Deps, bool) + Send + 'static,
) {
    let (deps, mut busy) = (deps.clone(), deps.clock.busy());
    // A machine that sleeps stands still by our time, and by no other.
    let wall_at = at.plus_millis(-deps.clock.times().behind_ms());
    deps.runtime.clone().spawn(async move {
        busy = deps.clock.busy_until(at, busy).await;
        limiter.begin_to_wait();
        while let Err(free_at) = limiter.pass(&paced, deps.clock.now()) {
            busy = deps.clock.busy_until(free_at, busy).await;
        }
        limiter.end_to_wait();
        let moved = deps.pass(of).await.is_err();
        // The last look at the clock: what stalled the process has stalled everything above.
        let times = deps.clock.times();
        let late = moved
            || times.in_doubt
            || times.ours > at.plus_millis(PLACED_WITHIN_MS)
            || times.wall > wall_at.plus_millis(PLACED_WITHIN_MS);
        hand_over(&deps, late);
        drop(busy);
    });
}

/// Hands a call to its carrier; one that is too late goes back to the queue.
pub fn place(deps: &Deps, session: Session, at: Moment, late: bool) {
    if late {
        metrics::counter!("callboard_calls_late_total").increment(1);
        return take_back(deps, session, at);
    }
    if let Some(carrier) = deps.carriers.of(session.call.env) {
        // An end that comes first keeps it from being dialled at all.
        deps.calls.place(session.call.id, |leg| {
            standby::prepare_for(deps, &leg);
            carrier.place(deps, leg);
        });
    }
    deps.router.sessions().adopt(session);
}

/// It goes back to the queue. One that has waited before has an actor, which knows nothing of an intent that the dispatcher has
/// committed: unless it takes that over first, it takes no call of it back.
fn take_back(deps: &Deps, session: Session, at: Moment) {
    let (sessions, key) = (deps.router.sessions(), session.key());
    sessions.adopt(session);
    sessions.tell(key, SessionCommand::Requeue { dialed_at: at });
}

/// The intent to call may stand all the same, though its commit was given up. Nothing was placed: the call stays in hand until that
/// is known, and then waits for its turn again, with the same attempt.
pub fn undecided(deps: &Deps, key: TenantScoped<SessionId>, at: Moment) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        its.decided().await;
        let stored = loop {
            match <Session as Stored>::load(&its, key).await {
                Err(error) if error.retryable() && !its.is_draining() => its.clock.back_off(20).await,
                stored => break stored,
            }
        };
        match stored {
            Ok(session) if matches!(session.phase, Phase::Dialing { ringing: false, .. }) => {
                take_back(&its, session, at)
            }
            _ => its.calls.remove(key.id),
        }
    });
}
