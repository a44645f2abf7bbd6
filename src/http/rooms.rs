//! Rooms: links by which a person talks with an agent in a browser.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Json, Nothing, Params},
    traced::Traced,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    consent::recordings::check_proves_none,
    room::{self, New, link},
};
use entities::{
    Error,
    ids::{AgentId, ParticipantId, RoomId, SessionId},
    page::Listed,
    room::{self as store, ErrorCode, Model, Status},
    session,
    values::{Bounded, Metadata, Moment, Text, Variables},
};
use rules::{
    room::machine::{Command, duration_seconds},
    session::{command::Command as SessionCommand, settings::RecordingOverride},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    pub agent_id: AgentId,
    /// Overrides the agent's voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    /// Echoed in the session's last event.
    #[serde(default)]
    pub client_reference_id: Option<Text<1, 200>>,
    #[serde(default)]
    pub participant: Participant,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    /// Seconds after which nobody can join any more.
    #[serde(default = "a_day")]
    pub expires_in_seconds: Bounded<60, 604_800>,
    /// At most the agent's.
    #[serde(default)]
    pub max_duration_seconds: Option<Bounded<30, 7200>>,
    /// Overrides the agent's. `transfers` is for telephone calls.
    #[serde(default)]
    pub recording: RecordingOverride,
}
fn a_day() -> Bounded<60, 604_800> {
    Bounded::new(86_400).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Who is expected.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Participant {
    /// Nothing is sent to it; it is put on the do-not-call list if the person opts out.
    #[serde(default)]
    pub email: Option<Text<1, 254>>,
    #[serde(default)]
    pub first_name: Option<Text<1, 200>>,
    #[serde(default)]
    pub last_name: Option<Text<1, 200>>,
}

#[derive(Serialize, JsonSchema)]
pub struct RoomView {
    pub id: RoomId,
    /// What is said in it: its transcript, recording and cost.
    pub session_id: SessionId,
    /// The link to send to the participant. Whoever has it can join.
    pub room_url: String,
    pub status: Status,
    pub expires_at: Moment,
    pub agent_id: AgentId,
    pub agent_version: i32,
    pub voice_id: Option<String>,
    pub client_reference_id: Option<String>,
    pub participant: ParticipantView,
    pub variables: Variables,
    pub metadata: Metadata,
    pub max_duration_seconds: i32,
    pub viewed_at: Option<Moment>,
    pub joined_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    /// From joining to the end.
    pub duration_seconds: i32,
    /// Of a room that has failed.
    pub error: Option<RoomErrorView>,
    pub created_at: Moment,
}
#[derive(Serialize, JsonSchema)]
pub struct ParticipantView {
    /// Null until somebody has joined.
    pub id: Option<ParticipantId>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}
#[derive(Serialize, JsonSchema)]
pub struct RoomErrorView {
    pub code: ErrorCode,
    pub message: String,
}

fn view(state: &State, row: Model, call: session::Model) -> RoomView {
    let joined = row.participant_id.zip(row.joined_at);
    RoomView {
        id: row.id,
        session_id: row.session_id,
        room_url: link::url(&state.deps.links, &state.deps.base_url, &row),
        status: row.status,
        expires_at: row.expires_at,
        agent_id: row.agent_id,
        agent_version: call.agent_version,
        voice_id: call.voice_id,
        client_reference_id: call.client_reference_id,
        participant: ParticipantView {
            id: row.joined_at.and(row.participant_id),
            email: call.email,
            first_name: call.first_name,
            last_name: call.last_name,
        },
        variables: call.variables,
        metadata: call.metadata,
        max_duration_seconds: call.max_duration_seconds,
        viewed_at: row.viewed_at,
        joined_at: row.joined_at,
        ended_at: row.ended_at,
        duration_seconds: row.ended_at.map_or(0, |at| duration_seconds(joined, at)),
        error: row.error_code.map(|code| RoomErrorView {
            code,
            message: row.error_message.unwrap_or_default(),
        }),
        created_at: row.created_at,
    }
}

impl Create {
    fn into_new(self, id: Option<RoomId>, traced: &Traced) -> New {
        let Participant {
            email,
            first_name,
            last_name,
        } = self.participant;
        New {
            id,
            agent_id: self.agent_id,
            voice_id: self.voice_id.map(Text::into_string),
            client_reference_id: self.client_reference_id.map(Text::into_string),
            email: email.map(Text::into_string),
            first_name: first_name.map(Text::into_string),
            last_name: last_name.map(Text::into_string),
            variables: self.variables,
            metadata: self.metadata,
            expires_in_seconds: self.expires_in_seconds.get(),
            max_duration_seconds: self.max_duration_seconds.map(Bounded::get),
            recording: self.recording,
            trace: traced.trace(),
        }
    }
}

/// POST /v1/rooms
pub async fn create(
    state: Data<State>,
    caller: Caller,
    traced: Traced,
    Json(asked): Json<Create>,
) -> ApiResult<HttpResponse> {
    let new = asked.into_new(caller.object_id.map(RoomId::from), &traced);
    let (row, call) = room::create(&state.deps, caller.owner(), new).await?;
    traced.made(call.id);
    Ok(HttpResponse::Created().json(view(&state, row, call)))
}

async fn with_session(state: &State, row: Model) -> ApiResult<RoomView> {
    let call = session::load_even_deleted(&state.deps.db.read, row.session()).await?;
    Ok(view(state, row, call))
}

/// GET /v1/rooms
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<RoomView>>> {
    let page = params.page()?;
    let status = params.text("status")?;
    params.finish()?;
    let db = &state.deps.db.read;
    let rooms = store::list(&state.deps.db, caller.owner(), status, page).await?;
    let ids: Vec<SessionId> = rooms.rows.iter().map(|room| room.session_id).collect();
    let calls = session::of_ids(db, &ids).await?;
    let has_more = rooms.has_more;
    let mut rows = Vec::new();
    for room in rooms.rows {
        let call = calls.iter().find(|call| call.id == room.session_id).cloned();
        rows.push((room, call.ok_or(Error::NotFound("session"))?));
    }
    Ok(web::Json(List::of(
        Listed { rows, has_more },
        |(room, _)| room.id.0,
        |(room, call)| view(&state, room, call),
    )))
}

/// GET /v1/rooms/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<RoomId>) -> ApiResult<web::Json<RoomView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(with_session(&state, row).await?))
}

/// POST /v1/rooms/{id}/end: hangs up; a room that nobody has joined expires at once.
pub async fn end(state: Data<State>, caller: Caller, Id(id): Id<RoomId>, _: Nothing) -> ApiResult<web::Json<RoomView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let row = match row.status {
        Status::Created | Status::Viewed => {
            match state.deps.router.rooms().request(row.key(), Command::Expire).await {
                Ok(room) => room.row(),
                // Somebody has joined at this very moment.
                Err(Error::InvalidState { .. }) => hang_up(&state, &row, SessionCommand::End).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Status::Joined => hang_up(&state, &row, SessionCommand::End).await?,
        Status::Completed | Status::Expired | Status::Failed => {
            return Err(Error::InvalidState {
                kind: "room",
                state: "ended",
                command: "end",
                hint: "it has ended already",
            }
            .into());
        }
    };
    Ok(web::Json(with_session(&state, row).await?))
}

/// Ends its talk, and lets the room follow.
pub async fn hang_up(state: &State, row: &Model, command: SessionCommand) -> ApiResult<Model> {
    let session = state.deps.router.sessions().request(row.session(), command).await?;
    let follow = Command::Follow(Box::new(session.row()));
    Ok(state.deps.router.rooms().request(row.key(), follow).await?.row())
}

/// DELETE /v1/rooms/{id}: what was said and recorded in it is removed too; what it cost and its events stay.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<RoomId>) -> ApiResult<HttpResponse> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let talk = match session::load(&state.deps.db.read, row.session()).await {
        Ok(talk) => Some(talk),
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(recording) = talk.and_then(|talk| talk.recording_id) {
        check_proves_none(&state.deps, caller.own(recording)).await?;
    }
    room::erase(&state.deps, &row).await?;
    Ok(HttpResponse::NoContent().finish())
}
