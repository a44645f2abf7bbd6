//! Events: what happened, as a list, one by one, and as a live stream.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{Id, OptionalJson, Params, header_text},
    streams::{StreamPlace, at_hand, server_sent},
    views::{DeliveryView, EventTypeView, EventView, List},
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{Bytes, Data, Json},
};
use actors::delivery::replay;
use entities::{
    delivery, delivery_attempt,
    event::{self, Filter},
    ids::{EndpointId, EventId, TenantId},
    page::Listed,
    values::Env,
};
use futures_util::stream;
use rules::{commit::Committed, event::CATALOGUE};
use runtime::at_rest;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    collections::{HashMap, VecDeque},
    ops::ControlFlow,
    time::Duration,
};
use tokio::sync::{broadcast, watch};

/// GET /v1/events
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<Json<List<EventView>>> {
    let page = params.page()?;
    let filter = Filter {
        event_type: params.event_type("type")?,
        subject_id: params.text("subject_id")?,
    };
    params.finish()?;
    let narrowed = filter.event_type.is_some() || filter.subject_id.is_some();
    let _permit = narrowed
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let events = event::list(&state.deps.db, caller.tenant_id(), caller.env(), filter, page).await?;
    let opened = events
        .rows
        .into_iter()
        .map(|event| at_rest::opened(&state.deps.keyring, event));
    let events = Listed {
        rows: opened.collect::<entities::Result<_>>()?,
        has_more: events.has_more,
    };
    Ok(Json(List::of(events, |event| event.id.0, EventView::from)))
}

/// GET /v1/events/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<EventId>) -> ApiResult<Json<EventView>> {
    let event = event::load(&state.deps.db.read, caller.tenant_id(), caller.env(), id).await?;
    Ok(Json(at_rest::opened(&state.deps.keyring, event)?.into()))
}

/// GET /v1/events/{id}/deliveries: each with its attempts.
pub async fn deliveries(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> ApiResult<Json<List<DeliveryView>>> {
    let db = &state.deps.db.read;
    let event = event::load(db, caller.tenant_id(), caller.env(), id).await?;
    let rows = delivery::of_event(db, &event).await?;
    Ok(Json(List::whole(delivery_views(&state, &caller, &rows).await?)))
}

/// Answers' bodies in one answer of ours; what is beyond is left out.
const MAX_BODIES: usize = 1024 * 1024;

/// Deliveries with their events' types and their attempts, in the same order.
pub async fn delivery_views(state: &State, caller: &Caller, rows: &[delivery::Model]) -> ApiResult<Vec<DeliveryView>> {
    let db = &state.deps.db.read;
    let (ids, events): (Vec<_>, Vec<_>) = rows.iter().map(|row| (row.id, row.event_id)).unzip();
    let types = event::types(db, caller.tenant_id(), caller.env(), &events).await?;
    let mut attempts: HashMap<_, Vec<_>> = HashMap::new();
    let mut room = MAX_BODIES;
    for mut attempt in delivery_attempt::of(db, &ids).await? {
        let size = attempt.response_body.as_ref().map_or(0, String::len);
        if size > room {
            attempt.response_body = None;
        }
        room = room.saturating_sub(size);
        attempts.entry(attempt.delivery_id).or_default().push(attempt);
    }
    let view = |row: &delivery::Model| {
        let event_type = types.get(&row.event_id).cloned().unwrap_or_default();
        DeliveryView::new(row.clone(), event_type, attempts.remove(&row.id).unwrap_or_default())
    };
    Ok(rows.iter().map(view).collect())
}

/// The endpoint to send it to.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Without it: all active endpoints that subscribe to the event's type.
    #[serde(default)]
    pub endpoint_id: Option<EndpointId>,
}

/// POST /v1/events/{id}/replay: the same id and bytes, as new deliveries.
pub async fn replay(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<EventId>,
    OptionalJson(asked): OptionalJson<Replay>,
) -> ApiResult<HttpResponse> {
    let event = event::load(&state.deps.db.read, caller.tenant_id(), caller.env(), id).await?;
    let replays = replay::replay(&state.deps, &event, asked.endpoint_id).await?;
    let views = replays
        .into_iter()
        .map(|row| DeliveryView::new(row, event.event_type.clone(), Vec::new()));
    Ok(HttpResponse::Accepted().json(List::whole(views.collect())))
}

/// GET /v1/event_types
pub async fn types() -> Json<List<EventTypeView>> {
    let data = CATALOGUE
        .iter()
        .map(|known| EventTypeView {
            name: known.name,
            description: known.when.trim(),
        })
        .collect();
    Json(List::whole(data))
}

/// GET /v1/events/stream: server-sent events, from now on or after `Last-Event-ID`.
pub async fn stream(
    state: Data<State>,
    caller: Caller,
    request: HttpRequest,
    mut params: Params,
) -> ApiResult<HttpResponse> {
    let after = params
        .take("after")
        .or_else(|| header_text(&request, "last-event-id").map(|id| id.into_owned()));
    params.finish()?;
    let last = match after {
        Some(id) => Some(
            id.parse()
                .map_err(|_| ApiError::validation("after", "is not an event id"))?,
        ),
        None => None,
    };
    let place = StreamPlace::take(&state, &caller)?;
    // Subscribed before the backlog is read, so that nothing falls between the two.
    let watching = Watching {
        live: state.deps.writer.watch(),
        ending: state.streams.ending.subscribe(),
        tenant: caller.tenant_id(),
        env: caller.env(),
        behind: last.is_some(),
        // Without one: the newest of all, so that a stream which lags knows where it stands.
        last: match last {
            Some(last) => Some(last),
            None => event::newest(&state.deps.db.read, caller.tenant_id(), caller.env()).await?,
        },
        beat: tokio::time::Instant::now() + HEARTBEAT,
        pass_ended: place.pass_ended(),
        ready: VecDeque::from([Bytes::from_static(b": connected\n\n")]),
        state: state.clone(),
        _place: place,
    };
    let body = stream::unfold(watching, |mut watching| async move {
        watching
            .next()
            .await
            .map(|chunk| (Ok::<_, actix_web::Error>(chunk), watching))
    });
    Ok(server_sent(body))
}

struct Watching {
    state: Data<State>,
    live: broadcast::Receiver<Committed>,
    ending: watch::Receiver<bool>,
    tenant: TenantId,
    env: Env,
    beat: tokio::time::Instant,
    pass_ended: watch::Receiver<bool>,
    /// The last event sent.
    last: Option<EventId>,
    /// There may be events in the database that were not sent.
    behind: bool,
    ready: VecDeque<Bytes>,
    _place: StreamPlace,
}

/// Events read at once by a stream that catches up: each may hold a whole talk.
const CATCH_UP: u64 = 20;
/// A comment in this interval keeps the connection open.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

impl Watching {
    /// The next piece of the stream; `None` ends it.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let ControlFlow::Break(chunk) = at_hand(&mut self.ready, &self.pass_ended) {
                return chunk;
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            tokio::select! {
                _ = self.ending.changed() => return None,
                _ = self.pass_ended.changed() => return None,
                () = heartbeat(self.beat) => {
                    self.beat = tokio::time::Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(b": heartbeat\n\n"));
                }
                received = self.live.recv() => match received {
                    Ok(event) => self.take(&event),
                    Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }

    fn take(&mut self, event: &event::Model) {
        let mine = event.tenant_id == self.tenant && event.env == self.env;
        if mine && self.last.is_none_or(|last| event.id > last) {
            self.last = Some(event.id);
            self.ready.push_back(Bytes::from(format!(
                "id: {}\nevent: {}\ndata: {}\n\n",
                event.id, event.event_type, event.body
            )));
        }
    }

    async fn catch_up(&mut self) -> Option<()> {
        // Without a last event nothing was promised: what was missed while lagging starts where the stream did.
        let Some(last) = self.last else {
            self.behind = false;
            return Some(());
        };
        let deps = &self.state.deps;
        let missed = event::after(&deps.db.read, self.tenant, self.env, last, CATCH_UP).await;
        let missed = missed.and_then(|missed| {
            let opened = missed.into_iter().map(|event| at_rest::opened(&deps.keyring, event));
            opened.collect::<entities::Result<Vec<_>>>()
        });
        match missed {
            Ok(missed) => {
                self.behind = missed.len() as u64 == CATCH_UP;
                missed.iter().for_each(|event| self.take(event));
                Some(())
            }
            Err(error) => {
                tracing::warn!(%error, "an event stream fell behind and is closed; the client resumes from its last id");
                None
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a connection's heartbeat keeps the network's time"
)]
pub async fn heartbeat(at: tokio::time::Instant) {
    tokio::time::sleep_until(at).await;
}
