//! What agents ask, and what people answered.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Params},
    report,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{csv_cell, deps::Deps};
use bytes::Bytes;
use entities::{
    Error, Result,
    agent::{self, Question, QuestionType},
    answer::{self as store, Filter, Model, Source},
    ids::{AgentId, AnswerId, CampaignId, ContactId, SessionId, TenantId},
    recording,
    values::{Env, Moment},
};
use futures_util::stream;
use runtime::bulkhead::Permit;
use schemars::JsonSchema;
use serde::Serialize;

/// A question of one of the workspace's agents.
#[derive(Serialize, JsonSchema)]
pub struct QuestionView {
    pub agent_id: AgentId,
    pub agent_name: String,
    pub key: String,
    pub text: String,
    pub r#type: QuestionType,
    pub options: Vec<String>,
    pub required: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct AnswerView {
    pub id: AnswerId,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub question_key: String,
    pub question: String,
    /// A string, a number, or true or false, depending on the question's type.
    pub value: serde_json::Value,
    /// The place in the transcript's `turns`, from 0, of the turn that shows it.
    pub evidence_turn: Option<i32>,
    pub source: Source,
    pub created_at: Moment,
}
impl From<Model> for AnswerView {
    fn from(row: Model) -> Self {
        AnswerView {
            id: row.id,
            session_id: row.session_id,
            agent_id: row.agent_id,
            campaign_id: row.campaign_id,
            contact_id: row.contact_id,
            question_key: row.question_key,
            question: row.question,
            value: row.value,
            evidence_turn: row.evidence_turn,
            source: row.source,
            created_at: row.created_at,
        }
    }
}

/// GET /v1/questions: agent by agent, the questions of one never parted: a page ends before the agent that would pass its
/// `limit`, and holds more only if its first agent alone has more.
pub async fn questions(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<QuestionView>>> {
    let page = params.page()?;
    params.finish()?;
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let mut agents = agent::list(&state.deps.db, caller.tenant_id(), None, page).await?;
    let mut count = 0;
    let fits = agents.rows.iter().take_while(|agent| {
        let first = count == 0;
        count += agent.definition.questions.len();
        first || count <= limit
    });
    let fits = fits.count();
    agents.has_more |= fits < agents.rows.len();
    agents.rows.truncate(fits);
    let pages = List::of(agents, |agent| agent.id.0, asked);
    Ok(web::Json(List {
        data: pages.data.into_iter().flatten().collect(),
        has_more: pages.has_more,
        next_cursor: pages.next_cursor,
    }))
}

fn asked(agent: agent::Model) -> Vec<QuestionView> {
    let (agent_id, name) = (agent.id, agent.definition.name.to_string());
    let view = |question: Question| QuestionView {
        agent_id,
        agent_name: name.clone(),
        key: question.key.into_string(),
        text: question.text.into_string(),
        r#type: question.r#type,
        options: question
            .options
            .into_iter()
            .map(|option| option.into_string())
            .collect(),
        required: question.required,
    };
    agent.definition.questions.into_iter().map(view).collect()
}

fn filter(params: &mut Params) -> ApiResult<Filter> {
    Ok(Filter {
        session_id: params.text("session_id")?,
        agent_id: params.text("agent_id")?,
        campaign_id: params.text("campaign_id")?,
        question_key: params.text("question_key")?,
    })
}

/// GET /v1/answers
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<AnswerView>>> {
    let page = params.page()?;
    let filter = filter(&mut params)?;
    params.finish()?;
    let owner = (caller.tenant_id(), caller.env());
    let listed = store::list(&state.deps.db.read, owner, &filter, page).await?;
    Ok(web::Json(List::of(listed, |row| row.id.0, AnswerView::from)))
}

/// GET /v1/sessions/{id}/answers
pub async fn of_session(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    params: Params,
) -> ApiResult<web::Json<List<AnswerView>>> {
    // At most 50, so that one page holds them.
    params.finish()?;
    let db = &state.deps.db.read;
    entities::session::load(db, caller.own(id)).await?;
    let rows = store::of_session(db, id).await?;
    Ok(web::Json(List::whole(rows.into_iter().map(AnswerView::from).collect())))
}

const COLUMNS: [&str; 10] = [
    "answer_id",
    "session_id",
    "agent_id",
    "campaign_id",
    "contact_id",
    "question_key",
    "question",
    "value",
    "source",
    "created_at",
];

/// Answers looked at at once.
const PAGE: u64 = 500;

/// GET /v1/answers.csv: made while it is sent. Calls whose recording is kept only until its purge are left out.
pub async fn export(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<HttpResponse> {
    let filter = filter(&mut params)?;
    params.finish()?;
    let begin = Export {
        _permit: state.bulkheads.report(caller.tenant_id())?,
        deps: state.deps.clone(),
        owner: (caller.tenant_id(), caller.env()),
        filter,
        after: None,
        header: true,
        ended: false,
    };
    let body = stream::unfold(begin, |mut export| async move {
        if export.ended {
            return None;
        }
        let page = export.page().await.map_err(|error| {
            tracing::warn!(%error, "an export broke off");
            export.ended = true;
            // The client sees the file break off.
            std::io::Error::other(error.to_string())
        });
        Some((page, export))
    });
    Ok(HttpResponse::Ok()
        .content_type("text/csv; charset=utf-8")
        .insert_header(("Content-Disposition", "attachment; filename=\"answers.csv\""))
        .streaming(body))
}

struct Export {
    _permit: Permit,
    deps: Deps,
    owner: (TenantId, Env),
    filter: Filter,
    after: Option<AnswerId>,
    header: bool,
    ended: bool,
}

impl Export {
    async fn page(&mut self) -> Result<Bytes> {
        let db = &self.deps.db.reports;
        let (rows, next) = store::next(db, self.owner, &self.filter, self.after, PAGE).await?;
        self.ended = next.is_none();
        self.after = next;
        let sessions: Vec<SessionId> = rows.iter().map(|row| row.session_id).collect();
        let hidden = recording::opted_out(db, &sessions).await?;
        let mut writer = csv_cell::writer();
        let broken = |error: csv::Error| Error::Internal(error.to_string());
        if std::mem::take(&mut self.header) {
            writer.write_record(COLUMNS).map_err(broken)?;
        }
        for row in rows.into_iter().filter(|row| !hidden.contains(&row.session_id)) {
            writer.write_record(record(row)).map_err(broken)?;
        }
        let bytes = writer
            .into_inner()
            .map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Bytes::from(bytes))
    }
}

fn record(row: Model) -> [String; 10] {
    let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    let value = match row.value {
        serde_json::Value::String(text) => text,
        value => value.to_string(),
    };
    [
        row.id.to_string(),
        row.session_id.to_string(),
        row.agent_id.to_string(),
        id(row.campaign_id.map(Into::into)),
        id(row.contact_id.map(Into::into)),
        csv_cell::plain(&row.question_key),
        csv_cell::plain(&row.question),
        csv_cell::plain(&value),
        report::word(row.source),
        row.created_at.to_string(),
    ]
}
