//! Sessions: calls, placed one by one.
use super::{
    caller::Caller,
    contacts::spellings,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Nothing, Params},
    traced::Traced,
    views::{List, SessionView},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    consent::recordings::check_proves_none,
    session::{self, New, intake::IfClosed},
};
use entities::{
    Error, agent_version,
    ids::{AgentId, ConsentId, SessionId},
    law::{Audience, Legal, LegalPerson, Purpose, SandboxLaw, Vertical},
    session::{self as store, Evaluator, Filter, Model, Phase, Sandbox, Voicemail},
    values::{Bounded, E164, Metadata, Moment, Place, Text, Variables, Zone},
};
use rules::session::{
    command::{Command, Disposition, Evaluated},
    settings::RecordingOverride,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    pub to_number: E164,
    pub agent_id: AgentId,
    /// Default: the workspace's oldest number; in the sandbox, where it has none, +15001000000. Live: one with a trunk.
    #[serde(default)]
    pub from_number: Option<E164>,
    /// In place of the agent's; by default the service's own for the agent's language.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    #[serde(default)]
    pub contact: Recipient,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    /// Echoed in the session's last event.
    #[serde(default)]
    pub client_reference_id: Option<Text<1, 200>>,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    /// Not dialled before this; at most 90 days ahead.
    #[serde(default)]
    pub scheduled_at: Option<Moment>,
    /// What happens to it outside the calling hours.
    #[serde(default)]
    pub if_closed: IfClosed,
    /// How long to wait for a free slot; 0 refuses with 429 when none is free.
    #[serde(default = "five_minutes")]
    pub queue_ttl_seconds: Bounded<0, 86_400>,
    #[serde(default = "half_a_minute")]
    pub ring_timeout_seconds: Bounded<15, 60>,
    /// At most the agent's.
    #[serde(default)]
    pub max_duration_seconds: Option<Bounded<30, 7200>>,
    /// What happens when a machine picks up.
    #[serde(default)]
    pub voicemail: Voicemail,
    /// Overrides the agent's.
    #[serde(default)]
    pub recording: RecordingOverride,
    /// What it is for. Left out: `marketing`, which has the strictest rules.
    #[serde(default)]
    pub purpose: Purpose,
    /// Left out: `consumer`.
    #[serde(default)]
    pub audience: Audience,
    /// A trade that has rules of its own.
    #[serde(default)]
    pub vertical: Option<Vertical>,
    /// For whom it is made; null: the workspace's registered name.
    #[serde(default)]
    pub seller: Option<Text<1, 200>>,
    /// What it is about; the agent says it at the start.
    #[serde(default)]
    pub subject: Option<Text<1, 200>>,
    /// The contract that is being fulfilled, where that is why.
    #[serde(default)]
    pub contract_ref: Option<Text<1, 200>>,
    /// With a test key: `enforce` refuses what the law would refuse; `observe` only keeps what it would say.
    #[serde(default)]
    pub sandbox_law: SandboxLaw,
    /// With a test key: how the sandbox plays the other side.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
}
fn five_minutes() -> Bounded<0, 86_400> {
    Bounded::new(300).unwrap_or_else(|_| unreachable!("a constant"))
}
fn half_a_minute() -> Bounded<15, 60> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Who is called.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Person")]
pub struct Recipient {
    #[serde(default)]
    pub email: Option<Text<1, 254>>,
    #[serde(default)]
    pub first_name: Option<Text<1, 200>>,
    #[serde(default)]
    pub last_name: Option<Text<1, 200>>,
    /// Where the person is, if you know better than the number's prefix.
    #[serde(default)]
    pub timezone: Option<Zone>,
    /// In which country, or part of one, the person is, such as `US-FL`: its laws hold beside those of the number's place.
    #[serde(default)]
    pub region: Option<Place>,
    /// The consent that the call rests on; null: the strongest that covers it.
    #[serde(default)]
    pub consent_id: Option<ConsentId>,
}

impl Create {
    fn into_new(self, caller: &Caller, traced: &Traced) -> New {
        let Recipient {
            email,
            first_name,
            last_name,
            timezone,
            region,
            consent_id,
        } = self.contact;
        New {
            id: caller.object_id.map(SessionId::from),
            to_number: self.to_number,
            agent_id: self.agent_id,
            from_number: self.from_number,
            voice_id: self.voice_id.map(Text::into_string),
            email: email.map(Text::into_string),
            first_name: first_name.map(Text::into_string),
            last_name: last_name.map(Text::into_string),
            timezone,
            variables: self.variables,
            client_reference_id: self.client_reference_id.map(Text::into_string),
            metadata: self.metadata,
            scheduled_at: self.scheduled_at,
            if_closed: self.if_closed,
            queue_ttl_seconds: self.queue_ttl_seconds.get(),
            ring_timeout_seconds: self.ring_timeout_seconds.get(),
            max_duration_seconds: self.max_duration_seconds.map(Bounded::get),
            voicemail: self.voicemail,
            legal: Legal {
                purpose: self.purpose,
                audience: self.audience,
                vertical: self.vertical,
                seller: self.seller,
                subject: self.subject,
                contract_ref: self.contract_ref,
            },
            person: LegalPerson { region, consent_id },
            sandbox_law: self.sandbox_law,
            recording: self.recording,
            sandbox: self.sandbox,
            api_key: caller.key().filter(|key| key.has_limits()).cloned(),
            trace: traced.trace(),
        }
    }
}

/// POST /v1/sessions
pub async fn create(
    state: Data<State>,
    caller: Caller,
    traced: Traced,
    Json(asked): Json<Create>,
) -> ApiResult<HttpResponse> {
    let new = asked.into_new(&caller, &traced);
    let row = session::create(&state.deps, caller.owner(), new).await?;
    traced.made(row.id);
    Ok(HttpResponse::Created().json(SessionView::of(row, &state.deps.base_url)))
}

/// By what a session is held.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SessionType {
    Phone,
    Webrtc,
}

/// GET /v1/sessions
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<SessionView>>> {
    let page = params.page()?;
    let filter = Filter {
        statuses: params.several("status")?,
        phone_number: params.text("phone_number")?,
        email: spellings(&mut params)?.unwrap_or_default(),
        agent_id: params.text("agent_id")?,
        campaign_id: params.text("campaign_id")?,
        contact_id: params.text("contact_id")?,
        direction: params.text("direction")?,
        is_room: params.text("type")?.map(|kind| matches!(kind, SessionType::Webrtc)),
        room_id: params.text("room_id")?,
        disposition_code: params.text::<Text<1, 64>>("disposition_code")?.map(Text::into_string),
        client_reference_id: params
            .text::<Text<1, 200>>("client_reference_id")?
            .map(Text::into_string),
    };
    params.finish()?;
    let _permit = (filter.searches() || page.is_dated())
        .then(|| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let sessions = store::list(&state.deps.db, caller.tenant_id(), caller.env(), &filter, page).await?;
    Ok(web::Json(List::of(
        sessions,
        |session| session.id.0,
        |session| SessionView::of(session, &state.deps.base_url),
    )))
}

/// GET /v1/sessions/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<SessionId>) -> ApiResult<web::Json<SessionView>> {
    let mut row = store::load(&state.deps.db.read, caller.own(id)).await?;
    // How soon it answers is in memory until its end; nobody who looks holds the talk up.
    row.latency = state.deps.latencies.of(row.id).or(row.latency);
    Ok(web::Json(SessionView::of(row, &state.deps.base_url)))
}

/// POST /v1/sessions/{id}/end
pub async fn end(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    _: Nothing,
) -> ApiResult<web::Json<SessionView>> {
    let session = state
        .deps
        .router
        .sessions()
        .request(caller.own(id), Command::End)
        .await?;
    Ok(web::Json(SessionView::of(session.row(), &state.deps.base_url)))
}

/// What can be changed about a session: your labels, and how it went.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    /// Once the call has ended: how it went, as a person decides. One of the agent's or campaign's dispositions, if there are any.
    #[serde(default)]
    pub disposition_code: Option<Text<1, 64>>,
    #[serde(default)]
    pub disposition_note: Option<Text<1, 1_000>>,
}

/// PATCH /v1/sessions/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<SessionView>> {
    let key = caller.own(id);
    let mut row = store::load(&state.deps.db.read, key).await?;
    let before = serde_json::json!({
        "metadata": row.metadata,
        "disposition_code": row.disposition_code,
        "disposition_note": row.disposition_note,
    });
    let asked: Change = extract::merged(before.clone(), patch)?;
    let before: Change = extract::merged(before, serde_json::json!({}))?;
    let is_judged =
        (&asked.disposition_code, &asked.disposition_note) != (&before.disposition_code, &before.disposition_note);
    // All of it is looked at before any of it is done.
    let judged = match asked.disposition_code.filter(|_| is_judged) {
        Some(code) if row.phase == Phase::Ended => {
            check_code(&state, &row, &code).await?;
            Some(code)
        }
        Some(_) => return Err(live("be judged").into()),
        None if is_judged => {
            let why = "cannot be taken back: give another code";
            return Err(ApiError::validation("disposition_code", why));
        }
        None => None,
    };
    if asked.metadata != before.metadata {
        let command = Command::Label(asked.metadata);
        row = state.deps.router.sessions().request(key, command).await?.row();
    }
    if let Some(code) = judged {
        let evaluated = Evaluated {
            disposition: Some(Disposition {
                code: code.into_string(),
                note: asked.disposition_note.map(Text::into_string).unwrap_or_default(),
            }),
            answers: Vec::new(),
            by: Evaluator::Human,
            model: None,
            job: None,
        };
        let command = Command::Evaluate(evaluated);
        row = state.deps.router.sessions().request(key, command).await?.row();
    }
    Ok(web::Json(SessionView::of(row, &state.deps.base_url)))
}

fn live(command: &'static str) -> Error {
    Error::InvalidState {
        kind: "session",
        state: "live",
        command,
        hint: "wait until it has ended",
    }
}

/// A code must be one of those to choose from, where there are some.
async fn check_code(state: &State, row: &Model, code: &str) -> ApiResult<()> {
    let version = agent_version::load(&state.deps.db.read, row.tenant_id, row.agent_id, row.agent_version).await?;
    let own = &row.options.dispositions;
    let choice = if own.is_empty() {
        &version.definition.dispositions
    } else {
        own
    };
    if choice.is_empty() || choice.iter().any(|one| &*one.code == code) {
        return Ok(());
    }
    let codes: Vec<&str> = choice.iter().map(|one| &*one.code).collect();
    let why = format!("`{code}` is not one of {}", codes.join(", "));
    Err(ApiError::validation("disposition_code", why))
}

/// DELETE /v1/sessions/{id}: what was said, recorded and answered is removed; what it cost and its events stay.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<SessionId>) -> ApiResult<HttpResponse> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    if row.phase != Phase::Ended {
        return Err(live("be deleted").into());
    }
    if let Some(recording) = row.recording_id {
        check_proves_none(&state.deps, caller.own(recording)).await?;
    }
    session::erase(&state.deps, &row).await?;
    Ok(HttpResponse::NoContent().finish())
}
