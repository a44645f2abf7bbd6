//! Attempts as they are on record.
use super::outcomes::{ComplianceOutcomeView, last_of_each, read};
use crate::{
    http::{
        caller::Caller,
        dnc,
        error::ApiResult,
        extract::{Id, Params},
        views::List,
    },
    state::State,
};
use actix_web::web::{self, Data};
use actors::attempts::person;
use entities::{
    Error, Result,
    attempt::{self, Filter, Model, NPage, RecordKind},
    dnc::DncChannel,
    ids::{AgentId, AttemptId, CampaignId, ContactId},
    law::{Audience, Purpose},
    page::{Listed, Page},
    values::{E164, Moment, Place, Zone},
};
use rules::{
    barred::Whom,
    law::{
        self, Asked, Judgement,
        record::{AttemptBody, Person},
    },
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// An attempt to reach somebody, as it was written down before anything left.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceAttemptView {
    /// The id of the session or of the message.
    pub id: AttemptId,
    /// Its place in the record.
    pub n: i64,
    /// Which intent of that session or message it was.
    pub dial_n: i32,
    /// When it was written down.
    pub recorded_at: Moment,
    /// For when it was judged.
    pub judged_at: Moment,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    /// Where the person may be: the rules of all of them hold.
    pub places: Vec<Place>,
    /// The clocks that count there.
    pub zones: Vec<Zone>,
    /// For whom it was made.
    pub seller: Option<String>,
    /// What it was about.
    pub subject_matter: Option<String>,
    /// Null: an e-mail, or it was erased.
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    /// What named the person was erased.
    pub is_erased: bool,
    /// The number that was shown.
    pub from_number: Option<E164>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub agent_id: Option<AgentId>,
    pub agent_version: Option<i32>,
    /// The version of the law pack by which it was judged.
    pub law_version: String,
    /// The verdicts were computed and barred nothing: an attempt of the sandbox.
    pub is_observed: bool,
    /// The rules that did not say yes.
    pub objections: Vec<Asked>,
    /// What came of the call or the message; null: that is not known yet.
    pub outcome: Option<ComplianceOutcomeView>,
    /// SHA-256, hex, of this row and all before it.
    pub hash: String,
}

/// A rule that was asked.
#[derive(Serialize, JsonSchema)]
pub struct AttemptRuleView {
    /// With what it said.
    pub asked: Asked,
    pub title: Option<String>,
    /// Where the rule stands.
    pub source: Option<String>,
}

/// One row of the record.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceRecordView {
    pub n: i64,
    pub kind: RecordKind,
    pub dial_n: i32,
    pub recorded_at: Moment,
    /// What it says. Its bytes, as they were hashed, are in an export.
    pub record: Value,
    /// What it says of a person; null: nothing, or it was erased.
    pub personal: Option<Value>,
    pub content_sha256: Option<String>,
    pub prev_hash: String,
    pub hash: String,
}

/// An attempt with all that is on record of it.
#[derive(Serialize, JsonSchema)]
pub struct AttemptProofView {
    pub attempt: ComplianceAttemptView,
    /// Every rule that concerned it, in the order of asking.
    pub rules: Vec<AttemptRuleView>,
    /// The attempt, what came of it, and wishes that were told in it, in order.
    pub records: Vec<ComplianceRecordView>,
}

impl ComplianceAttemptView {
    fn of(row: &Model, outcome: Option<ComplianceOutcomeView>) -> Result<(Self, Vec<Asked>)> {
        let body: AttemptBody = read(row, &row.body)?;
        let person: Person = match &row.content {
            Some(content) => read(row, content)?,
            None => Person::default(),
        };
        let facts = body.facts;
        let judgement = Judgement { asked: body.asked };
        let view = ComplianceAttemptView {
            id: row.attempt_id,
            n: row.n,
            dial_n: row.dial_n,
            recorded_at: row.at,
            judged_at: facts.at,
            channel: facts.channel,
            purpose: facts.purpose,
            audience: facts.audience,
            places: facts.places,
            zones: facts.zones,
            seller: facts.seller,
            subject_matter: facts.subject,
            phone_number: person.phone_number,
            email: person.email,
            is_erased: row.is_blanked(),
            from_number: facts.caller.map(|caller| caller.number),
            campaign_id: row.campaign_id,
            contact_id: body.contact_id,
            agent_id: body.agent_id,
            agent_version: body.agent_version,
            law_version: body.law,
            is_observed: body.observed,
            objections: judgement.noes().cloned().collect(),
            outcome,
            hash: row.hash.clone(),
        };
        Ok((view, judgement.asked))
    }
}

impl ComplianceRecordView {
    fn of(row: &Model) -> Result<Self> {
        Ok(ComplianceRecordView {
            n: row.n,
            kind: row.kind,
            dial_n: row.dial_n,
            recorded_at: row.at,
            record: read(row, &row.body)?,
            personal: row.content.as_ref().map(|content| read(row, content)).transpose()?,
            content_sha256: row.content_sha256.clone(),
            prev_hash: row.prev_hash.clone(),
            hash: row.hash.clone(),
        })
    }
}

/// GET /v1/compliance/attempts
pub async fn list(
    state: Data<State>,
    caller: Caller,
    mut params: Params,
) -> ApiResult<web::Json<List<ComplianceAttemptView>>> {
    let page = params.page()?;
    let mut filter = Filter {
        attempt_id: params.text("session_id")?,
        campaign_id: params.text("campaign_id")?,
        since: page.created_after,
        until: page.created_before,
        ..Filter::default()
    };
    if let Some(whom) = dnc::whom(&state, &caller, &mut params).await? {
        filter.hashes = vec![hash_of(&state, &caller, &whom)];
    }
    params.finish()?;
    let _permit = state.bulkheads.search(caller.tenant_id())?;
    let (rows, has_more) = attempt::list(&state.deps.db.read, caller.owner(), filter, by_place(page)).await?;
    let ids: Vec<AttemptId> = rows.iter().map(|row| row.attempt_id).collect();
    let outcomes = last_of_each(&attempt::of_attempts(&state.deps.db.read, caller.owner(), &ids).await?)?;
    let view = |row: &Model| ComplianceAttemptView::of(row, outcomes.get(&row.attempt_id).cloned());
    let views = rows.iter().map(|row| Ok(view(row)?.0));
    let views = views.collect::<Result<Vec<_>>>()?;
    let listed = Listed { rows, has_more };
    Ok(web::Json(List::made(&listed, |row| cursor(row.n), views)))
}

/// Under what a person is found.
pub fn hash_of(state: &State, caller: &Caller, whom: &Whom) -> String {
    let address = match whom {
        Whom::Number(number) => number.as_str(),
        Whom::Email(email) => email,
    };
    person::hash(&person::key(&state.deps.links), caller.tenant_id(), address)
}

/// Pages of the record go by places, not by ids.
fn by_place(page: Page) -> NPage {
    NPage {
        limit: page.limit,
        after: page
            .after
            .map(|after| i64::try_from(after.as_u128()).unwrap_or(i64::MAX)),
        newest_first: page.newest_first,
    }
}

fn cursor(n: i64) -> Uuid {
    Uuid::from_u128(u128::from(n.unsigned_abs()))
}

/// GET /v1/compliance/attempts/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<AttemptId>) -> ApiResult<web::Json<AttemptProofView>> {
    let rows = attempt::of_attempt(&state.deps.db.read, caller.own(id)).await?;
    let opening = rows.iter().find(|row| row.kind == RecordKind::Attempt);
    // A wish that was told elsewhere has an id, too, and is no attempt.
    let opening = opening.ok_or(Error::NotFound("attempt"))?;
    let (view, asked) = ComplianceAttemptView::of(opening, last_of_each(&rows)?.remove(&id))?;
    let pack = law::of_version(&view.law_version);
    let rule = |asked: Asked| {
        let known = pack.and_then(|pack| pack.rule(&asked.rule));
        AttemptRuleView {
            title: known.map(|rule| rule.title.clone()),
            source: known.map(|rule| rule.source.clone()),
            asked,
        }
    };
    Ok(web::Json(AttemptProofView {
        rules: asked.into_iter().map(rule).collect(),
        records: rows.iter().map(ComplianceRecordView::of).collect::<Result<_>>()?,
        attempt: view,
    }))
}
