//! Open event streams: each holds a connection, so they are counted, told to end at a shutdown, and end with their keys.
use super::{caller::Caller, error::ApiResult};
use crate::{access, state::State};
use actix_web::{
    HttpResponse,
    web::{Bytes, Data},
};
use entities::{api_key, ids::ApiKeyId};
use futures_util::Stream;
use runtime::bulkhead::Permit;
use std::{
    collections::{HashSet, VecDeque},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// How often the keys of open streams are looked at: another process may revoke them, too.
const LOOK_AT_KEYS: Duration = Duration::from_secs(2);

/// Ends streams whose keys are no longer valid. Sets no alarm while there are none.
pub fn watch_keys(state: Arc<State>) {
    state.deps.runtime.clone().spawn(async move {
        let (streams, clock) = (&state.streams, &state.deps.clock);
        loop {
            streams.opened.notified().await;
            let mut busy = std::mem::take(&mut streams.lock().busy);
            while let Some(keys) = streams.keys() {
                let now = clock.times().later();
                let valid = match api_key::of_ids(&state.deps.db.read, &keys).await {
                    Ok(rows) => rows
                        .into_iter()
                        .filter(|row| access::is_valid(row, now))
                        .map(|row| row.id)
                        .collect(),
                    Err(error) => {
                        tracing::warn!(%error, "the keys of event streams could not be checked: the streams end, and their clients reconnect");
                        HashSet::new()
                    }
                };
                streams.end(&keys, &valid);
                busy = clock.busy_until(clock.now().plus(LOOK_AT_KEYS), busy).await;
            }
        }
    });
}

/// The answer whose body is a stream of server-sent events. Nothing on the way may keep it, or hold it back.
pub fn server_sent(body: impl Stream<Item = Result<Bytes, actix_web::Error>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-store"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body)
}

/// What an open stream does before it waits: it ends with its key, else it sends what is `ready`.
pub fn at_hand(ready: &mut VecDeque<Bytes>, key_ended: &watch::Receiver<bool>) -> ControlFlow<Option<Bytes>> {
    if *key_ended.borrow() {
        return ControlFlow::Break(None);
    }
    match ready.pop_front() {
        Some(chunk) => ControlFlow::Break(Some(chunk)),
        None => ControlFlow::Continue(()),
    }
}

/// One open stream: counted for its workspace, and told when its key is no longer valid.
pub struct StreamPlace {
    state: Data<State>,
    key: ApiKeyId,
    ended: watch::Receiver<bool>,
    _permit: Permit,
}

impl StreamPlace {
    pub fn take(state: &Data<State>, caller: &Caller) -> ApiResult<Self> {
        let permit = state.bulkheads.stream(caller.tenant_id())?;
        let key = caller.key.id;
        let mut open = state.streams.lock();
        if !open.watched {
            open.watched = true;
            open.busy = state.deps.clock.busy();
            state.streams.opened.notify_one();
        }
        let (of_key, ended) = open.by_key.entry(key).or_insert_with(|| (0, watch::channel(false).0));
        *of_key += 1;
        let ended = ended.subscribe();
        drop(open);
        Ok(StreamPlace {
            state: state.clone(),
            key,
            ended,
            _permit: permit,
        })
    }

    /// Turns true when the key is no longer valid.
    pub fn key_ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.state.streams.lock();
        if let Some((of_key, _)) = open.by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                open.by_key.remove(&self.key);
            }
        }
    }
}
