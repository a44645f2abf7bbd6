//! A call while it is live, and what was said in it.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    events::{HEARTBEAT, heartbeat},
    extract::{Id, Json, OptionalJson, Params, header_text},
    streams::{StreamPlace, at_hand, server_sent},
    views::{SessionView, TimelineView, TranscriptView},
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::{call::leg::Control, reach};
use bytes::Bytes;
use entities::{
    Error, agent_version,
    ids::SessionId,
    session::{self as store, Digits, Model, Phase},
    transcript::{self, Entry, Speaker, Turn},
    values::{E164, Env, Moment, Text},
};
use futures_util::stream;
use rules::session::{command::Command, machine::Session};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{collections::VecDeque, ops::ControlFlow};
use tokio::sync::{broadcast, watch};

/// GET /v1/sessions/{id}/transcript.json
pub async fn transcript(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    params: Params,
) -> ApiResult<web::Json<TranscriptView>> {
    params.finish()?;
    let db = &state.deps.db.read;
    let row = store::load(db, caller.own(id)).await?;
    let version = agent_version::load(db, row.tenant_id, row.agent_id, row.agent_version).await?;
    let (state_word, turns) = match look(&state, &caller, &row).await? {
        Look::Live(session) => ("partial", session.log.turns),
        Look::Over(stored) => ("final", stored.turns.0),
    };
    Ok(web::Json(TranscriptView {
        session_id: id,
        state: state_word,
        language: version.definition.language,
        turns,
    }))
}

/// GET /v1/sessions/{id}/timeline
pub async fn timeline(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    params: Params,
) -> ApiResult<web::Json<TimelineView>> {
    params.finish()?;
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let (row, own) = match look(&state, &caller, &row).await? {
        Look::Live(session) => (session.row(), session.log.timeline),
        Look::Over(stored) => (row, stored.timeline.0),
    };
    let mut entries = milestones(&row);
    entries.extend(own);
    entries.sort_by_key(|entry| entry.at);
    Ok(web::Json(TimelineView {
        session_id: id,
        entries,
    }))
}

/// What the row itself tells.
fn milestones(row: &Model) -> Vec<Entry> {
    let entry = |kind: &str, at: Option<Moment>, detail: Option<String>| {
        at.map(|at| Entry {
            at,
            kind: kind.to_owned(),
            detail,
        })
    };
    let answered_by = row.answered_by.map(super::report::word);
    let reason = row
        .end_reason
        .map(|reason| rules::session::machine::code(reason).to_owned());
    [
        entry("created", Some(row.created_at), None),
        entry("scheduled_for", row.scheduled_at, None),
        entry("dialed", row.dialed_at, None),
        // Where it was known at once who had picked up, that is the answer.
        entry(
            "picked_up",
            row.picked_up_at.filter(|at| Some(*at) != row.started_at),
            None,
        ),
        entry("answered", row.started_at, answered_by),
        entry("ended", row.ended_at, reason),
    ]
    .into_iter()
    .flatten()
    .collect()
}

enum Look {
    Live(Box<Session>),
    Over(transcript::Model),
}

async fn look(state: &State, caller: &Caller, row: &Model) -> ApiResult<Look> {
    let deps = &state.deps;
    if row.phase != Phase::Ended {
        // What is being said is with the actor; a `Tick` changes nothing and answers the state.
        let session = deps
            .router
            .sessions()
            .request(caller.own(row.id), Command::Tick)
            .await?;
        if !matches!(session.phase, rules::session::machine::Phase::Ended(_)) {
            return Ok(Look::Live(Box::new(session)));
        }
    }
    Ok(Look::Over(transcript::load(&deps.db.read, row.id).await?))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferTo {
    /// Default: the agent's `transfer.number`.
    #[serde(default)]
    pub transfer_number: Option<E164>,
}

/// POST /v1/sessions/{id}/transfer
pub async fn transfer(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    OptionalJson(asked): OptionalJson<TransferTo>,
) -> ApiResult<HttpResponse> {
    let db = &state.deps.db.read;
    let row = store::load(db, caller.own(id)).await?;
    let version = agent_version::load(db, row.tenant_id, row.agent_id, row.agent_version).await?;
    let own = version.definition.transfer.map(|transfer| transfer.number);
    let to = asked
        .transfer_number
        .or(own)
        .ok_or_else(|| ApiError::validation("transfer_number", "is needed: the agent has no `transfer.number`"))?;
    super::agents::check_target(&state, "transfer_number", &to)?;
    check_reach(&state, &caller, &to).await?;
    let session = state
        .deps
        .router
        .sessions()
        .request(caller.own(id), Command::Transfer { to })
        .await?;
    Ok(HttpResponse::Accepted().json(SessionView::of(session.row(), &state.deps.base_url)))
}

/// A test key reaches the sandbox's numbers and verified ones, also by a detour; a live one what the workspace may call. It is asked
/// again when the call is handed over.
async fn check_reach(state: &State, caller: &Caller, to: &E164) -> ApiResult<()> {
    let reached = match caller.env() {
        Env::Live if to.is_sandbox() => false,
        Env::Live => {
            let reach = reach::of(&state.deps, caller.tenant_id()).await?;
            reach.check(to).map_err(|beyond| beyond.of_field("transfer_number"))?;
            true
        }
        Env::Test => {
            to.is_sandbox() || entities::verified_number::contains(&state.deps.db.read, caller.tenant_id(), to).await?
        }
    };
    if reached {
        Ok(())
    } else {
        Err(Error::NumberNotVerified.into())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// What the agent says next, word for word.
    pub text: Text<1, 1_000>,
}

/// POST /v1/sessions/{id}/say
pub async fn say(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    Json(asked): Json<Say>,
) -> ApiResult<HttpResponse> {
    control(&state, &caller, id, Control::Say(asked.text.into_string())).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dtmf {
    /// 1 to 32 of `0-9*#`, pressed on the agent's side.
    pub digits: Digits,
}

/// POST /v1/sessions/{id}/dtmf
pub async fn dtmf(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    Json(asked): Json<Dtmf>,
) -> ApiResult<HttpResponse> {
    control(&state, &caller, id, Control::Press(asked.digits.to_string())).await
}

async fn control(state: &State, caller: &Caller, id: SessionId, control: Control) -> ApiResult<HttpResponse> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let Look::Live(session) = look(state, caller, &row).await? else {
        return Err(not_talking("ended").into());
    };
    if !matches!(session.row().phase, Phase::Conversing) {
        return Err(not_talking("waiting").into());
    }
    if state.deps.carriers.control(&state.deps, caller.own(id), control) {
        return Ok(HttpResponse::Accepted().json(SessionView::of(session.row(), &state.deps.base_url)));
    }
    let why = "too much is waiting to be said in this call: wait until the agent has said it";
    Err(ApiError::TooMany(Code::RateLimited, why.into(), 2))
}

fn not_talking(state: &'static str) -> Error {
    Error::InvalidState {
        kind: "session",
        state,
        command: "be told anything",
        hint: "nobody is talking in it",
    }
}

/// GET /v1/sessions/{id}/stream: every turn as it begins, those said already first, or those after `Last-Event-ID`; `end` at the
/// call's end.
pub async fn stream_turns(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    request: HttpRequest,
    params: Params,
) -> ApiResult<HttpResponse> {
    params.finish()?;
    let first = match header_text(&request, "last-event-id") {
        Some(last) => last.parse::<usize>().map(|last| last.saturating_add(1)).map_err(|_| {
            let hint = "is not the `id` of a turn in this stream: leave the header out to hear every turn";
            ApiError::validation("Last-Event-ID", hint)
        })?,
        None => 0,
    };
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let place = StreamPlace::take(&state, &caller)?;
    // First listened, then looked: nothing falls in between, and what comes twice is told by its number.
    let live = state.deps.listeners.listen(id);
    let ending = state.streams.ending.subscribe();
    let mut hearing = Hearing {
        ready: VecDeque::from([Bytes::from_static(b": connected\n\n")]),
        next: 0,
        over: false,
        live,
        ending,
        pass_ended: place.pass_ended(),
    };
    let (turns, over) = match look(&state, &caller, &row).await? {
        Look::Live(session) => (session.log.turns, false),
        Look::Over(stored) => (stored.turns.0, true),
    };
    // Whoever claims to have heard more than was said hears what comes.
    hearing.next = first.min(turns.len());
    turns.iter().skip(first).for_each(|turn| hearing.take(turn));
    if over {
        hearing.end();
    }
    let body = stream::unfold((hearing, place), |(mut hearing, place)| async move {
        let chunk = hearing.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), (hearing, place)))
    });
    Ok(server_sent(body))
}

struct Hearing {
    ready: VecDeque<Bytes>,
    /// Turns told so far.
    next: usize,
    over: bool,
    live: broadcast::Receiver<(usize, Turn)>,
    ending: watch::Receiver<bool>,
    pass_ended: watch::Receiver<bool>,
}

impl Hearing {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let ControlFlow::Break(chunk) = at_hand(&mut self.ready, &self.pass_ended) {
                return chunk;
            }
            if self.over {
                return None;
            }
            let beat = tokio::time::Instant::now() + HEARTBEAT;
            tokio::select! {
                _ = self.ending.changed() => return None,
                _ = self.pass_ended.changed() => return None,
                () = heartbeat(beat) => return Some(Bytes::from_static(b": heartbeat\n\n")),
                heard = self.live.recv() => match heard {
                    Ok((place, turn)) if place >= self.next => {
                        self.next = place;
                        self.take(&turn);
                    }
                    Ok((place, turn)) if turn.role != Speaker::Tool && turn.content.is_some() => {
                        self.reword(place, &turn);
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Closed) => self.end(),
                    // A listener that cannot keep up connects again, and says how far it came.
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.ready.push_back(Bytes::from_static(b"event: lagged\ndata: {}\n\n"));
                        self.over = true;
                    }
                },
            }
        }
    }

    fn take(&mut self, turn: &Turn) {
        let text = serde_json::to_string(turn).unwrap_or_default();
        self.ready
            .push_back(Bytes::from(format!("id: {}\nevent: turn\ndata: {text}\n\n", self.next)));
        self.next += 1;
    }

    /// What was said in a turn that was sent already is known now. It has no id: a listener who connects again has heard more.
    fn reword(&mut self, place: usize, turn: &Turn) {
        let words = json!({ "content": turn.content, "place": place });
        self.ready
            .push_back(Bytes::from(format!("event: words\ndata: {words}\n\n")));
    }

    fn end(&mut self) {
        self.ready.push_back(Bytes::from_static(b"event: end\ndata: {}\n\n"));
        self.over = true;
    }
}
