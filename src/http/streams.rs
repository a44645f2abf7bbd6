//! Open event streams: each holds a connection, so they are counted, told to end at a shutdown, and end with the key or the sign-in
//! that they were admitted by.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    open_streams::Pass,
};
use crate::{access, state::State};
use actix_web::{
    HttpResponse,
    web::{Bytes, Data},
};
use entities::{Result, api_key};
use futures_util::Stream;
use runtime::bulkhead::Permit;
use std::{
    collections::{HashSet, VecDeque},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// Of one session of the dashboard: pages that somebody has open must not take the streams of the workspace's programs.
const OF_LOGIN: usize = 10;
/// How often it is looked whether they are still valid: another process may revoke a key, too.
const LOOK: Duration = Duration::from_secs(2);

/// Ends streams of keys and sign-ins that are no longer valid. Sets no alarm while there are none.
pub fn watch_passes(state: Arc<State>) {
    state.deps.runtime.clone().spawn(async move {
        let (streams, clock) = (&state.streams, &state.deps.clock);
        loop {
            streams.opened.notified().await;
            let mut busy = std::mem::take(&mut streams.lock().busy);
            while let Some(passes) = streams.passes() {
                let valid = valid(&state, &passes).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "it could not be checked who may have event streams: they end, and their clients reconnect");
                    HashSet::new()
                });
                streams.end(&passes, &valid);
                busy = clock.busy_until(clock.now().plus(LOOK), busy).await;
            }
        }
    });
}

async fn valid(state: &State, passes: &[Pass]) -> Result<HashSet<Pass>> {
    let (db, now) = (&state.deps.db.read, state.deps.clock.times().later());
    let keys = passes.iter().filter_map(|pass| match pass {
        Pass::Key(id) => Some(*id),
        Pass::Login(..) => None,
    });
    let keys = api_key::of_ids(db, &keys.collect::<Vec<_>>()).await?;
    // What another node has by now is told there: its client connects again, and is led to it.
    let leases = state.deps.fence.leases();
    let keys = keys
        .into_iter()
        .filter(|row| access::is_valid(row, now) && leases.holds(row.tenant_id));
    let mut valid: HashSet<Pass> = keys.map(|row| Pass::Key(row.id)).collect();
    for pass in passes {
        if let Pass::Login(tenant, login_hash) = pass
            && leases.holds(*tenant)
            && access::is_still_in(state, *tenant, login_hash).await?
        {
            valid.insert(pass.clone());
        }
    }
    Ok(valid)
}

/// The answer whose body is a stream of server-sent events. Nothing on the way may keep it, or hold it back.
pub fn server_sent(body: impl Stream<Item = Result<Bytes, actix_web::Error>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-store"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body)
}

/// What an open stream does before it waits: it ends with what it was admitted by, else it sends what is `ready`.
pub fn at_hand(ready: &mut VecDeque<Bytes>, pass_ended: &watch::Receiver<bool>) -> ControlFlow<Option<Bytes>> {
    if *pass_ended.borrow() {
        return ControlFlow::Break(None);
    }
    match ready.pop_front() {
        Some(chunk) => ControlFlow::Break(Some(chunk)),
        None => ControlFlow::Continue(()),
    }
}

/// One open stream: counted for its workspace, and told when what it was admitted by is no longer valid.
pub struct StreamPlace {
    state: Data<State>,
    pass: Pass,
    ended: watch::Receiver<bool>,
    _permit: Permit,
}

impl StreamPlace {
    pub fn take(state: &Data<State>, caller: &Caller) -> ApiResult<Self> {
        let permit = state.bulkheads.stream(caller.tenant_id())?;
        let pass = Pass::of(caller.tenant_id(), caller.by());
        let mut open = state.streams.lock();
        if !open.watched {
            open.watched = true;
            open.busy = state.deps.clock.busy();
            state.streams.opened.notify_one();
        }
        let (count, ended) = open
            .by_pass
            .entry(pass.clone())
            .or_insert_with(|| (0, watch::channel(false).0));
        if matches!(pass, Pass::Login(..)) && *count >= OF_LOGIN {
            let message = format!("at most {OF_LOGIN} event streams of one session at once: close a page");
            return Err(ApiError::TooMany(Code::RateLimited, message, 5));
        }
        *count += 1;
        let ended = ended.subscribe();
        drop(open);
        Ok(StreamPlace {
            state: state.clone(),
            pass,
            ended,
            _permit: permit,
        })
    }

    /// Turns true when it is no longer valid.
    pub fn pass_ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.state.streams.lock();
        if let Some((count, _)) = open.by_pass.get_mut(&self.pass) {
            *count -= 1;
            if *count == 0 {
                open.by_pass.remove(&self.pass);
            }
        }
    }
}
