//! A campaign's contacts. One number is in a campaign once, however it was typed.
use super::{
    campaigns::country,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, MIB, Params},
    gate::Caller,
    views::{ContactView, ContactsAddedView, List, RejectedView},
};
use crate::app::State;
use actix_web::{
    HttpRequest,
    web::{self, Data},
};
use actors::{
    deps::Deps,
    effect::{self, Effect},
    writer::Commit,
};
use entities::{
    Error, campaign,
    contact::{self as store, Model, Status},
    ids::{CampaignId, ContactId, Owned},
    values::{Bounded, Country, E164, Text, Variables},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::HashMap, sync::Arc};

/// One person to call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// However it is typed; without `+` it is read in the workspace's country. What is no number will be skipped as `invalid`.
    pub phone_number: Text<1, 40>,
    /// Your own id for the person; in a campaign once.
    #[serde(default)]
    pub external_id: Option<Text<1, 200>>,
    #[serde(default)]
    pub email: Option<Text<0, 254>>,
    #[serde(default)]
    pub first_name: Option<Text<0, 200>>,
    #[serde(default)]
    pub last_name: Option<Text<0, 200>>,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    /// Higher ones are called first.
    #[serde(default = "zero")]
    pub priority: Bounded<-1000, 1000>,
}
fn zero() -> Bounded<-1000, 1000> {
    Bounded::new(0).unwrap_or_else(|_| unreachable!("a constant"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// 1 to 1,000.
    #[schemars(with = "Vec<Given>")]
    pub contacts: Vec<serde_json::Value>,
}

/// POST /v1/campaigns/{id}/contacts
pub async fn add(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    Json(asked): Json<Add, { 10 * MIB }>,
) -> ApiResult<web::Json<ContactsAddedView>> {
    if asked.contacts.is_empty() || asked.contacts.len() > 1_000 {
        return Err(ApiError::validation(
            "contacts",
            format!("has {} entries; 1 to 1000 are allowed", asked.contacts.len()),
        ));
    }
    let deps = state.deps.clone();
    let key = caller.own(id);
    campaign::load(&deps.db.read, key).await?;
    let sorted = sort(&deps, key, country(&state, &caller).await?, asked.contacts);
    let rows = Arc::new(sorted.rows);
    let added = deps.writer.run(move |db| {
        let rows = rows.clone();
        Box::pin(async move { insert(db, key, &rows).await })
    });
    let Inserted { accepted, taken } = added.await?;
    effect::perform(&deps, vec![Effect::CampaignsChanged(caller.tenant_id())]).await;
    let mut rejected = sorted.rejected;
    let mut duplicates = sorted.duplicates;
    for (row, index) in sorted.positions {
        if taken.contains(&row) {
            let message = "this external_id is in the campaign with another number".into();
            rejected.push(RejectedView {
                index,
                code: "already_exists",
                param: Some("external_id".into()),
                message,
            });
        }
    }
    duplicates += sorted.count - accepted - taken.len() as u64;
    rejected.sort_by_key(|rejected| rejected.index);
    Ok(web::Json(ContactsAddedView {
        accepted,
        duplicates,
        rejected,
    }))
}

struct Inserted {
    accepted: u64,
    /// Rows whose `external_id` belongs to another number of the campaign.
    taken: Vec<ContactId>,
}

/// Inside the transaction: what is new is added, and counted.
async fn insert(
    db: &sea_orm::DatabaseTransaction,
    key: Owned<CampaignId>,
    rows: &[Model],
) -> entities::Result<(Inserted, Commit)> {
    let row = campaign::load(db, key).await?;
    if row.status == campaign::Status::Completed || row.cancel_requested_at.is_some() {
        let state = if row.status == campaign::Status::Completed {
            "completed"
        } else {
            "canceling"
        };
        return Err(Error::InvalidState {
            kind: "campaign",
            state,
            command: "take contacts",
            hint: "create a new campaign",
        });
    }
    let external_ids: Vec<_> = rows.iter().filter_map(|row| row.external_id.clone()).collect();
    let known = store::with_external_ids(db, key.id, &external_ids).await?;
    let known: HashMap<_, _> = known
        .into_iter()
        .map(|row| (row.external_id, row.phone_number))
        .collect();
    let is_taken = |row: &Model| {
        row.external_id.is_some()
            && known
                .get(&row.external_id)
                .is_some_and(|number| *number != row.phone_number)
    };
    let (taken, free): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(is_taken);
    let accepted = store::add(db, &free).await?;
    let mut commit = Commit::default();
    let tally = commit.changes.tally(key);
    tally.total += i64::try_from(accepted).unwrap_or(i64::MAX);
    tally.pending += i64::try_from(accepted).unwrap_or(i64::MAX);
    Ok((
        Inserted {
            accepted,
            taken: taken.into_iter().map(|row| row.id).collect(),
        },
        commit,
    ))
}

/// Contacts as they were handed in, read, merged and ready to be stored.
pub struct Sorted {
    pub rows: Vec<Model>,
    pub count: u64,
    pub duplicates: u64,
    pub rejected: Vec<RejectedView>,
    /// Where in the request each row came from.
    pub positions: Vec<(ContactId, usize)>,
}

pub fn sort(deps: &Deps, key: Owned<CampaignId>, country: Country, given: Vec<serde_json::Value>) -> Sorted {
    let mut sorted = Sorted {
        rows: Vec::new(),
        count: 0,
        duplicates: 0,
        rejected: Vec::new(),
        positions: Vec::new(),
    };
    let mut by_number: HashMap<String, usize> = HashMap::new();
    let mut by_external_id: HashMap<String, usize> = HashMap::new();
    for (index, value) in given.into_iter().enumerate() {
        let given: Given = match extract::parse_value(value) {
            Ok(given) => given,
            Err(ApiError::Frame(_, code, message, param)) => {
                sorted.rejected.push(RejectedView {
                    index,
                    code,
                    param: param.filter(|param| !param.is_empty()),
                    message,
                });
                continue;
            }
            Err(other) => {
                sorted.rejected.push(RejectedView {
                    index,
                    code: "validation_failed",
                    param: None,
                    message: other.to_string(),
                });
                continue;
            }
        };
        let row = row(deps, key, country, given);
        let same_number = by_number.get(&row.phone_number).copied();
        if let Some(external_id) = &row.external_id {
            if by_external_id
                .get(external_id)
                .is_some_and(|at| Some(*at) != same_number)
            {
                let message = "this external_id was given before, with another number".into();
                sorted.rejected.push(RejectedView {
                    index,
                    code: "already_exists",
                    param: Some("external_id".into()),
                    message,
                });
                continue;
            }
            let at = same_number.unwrap_or(sorted.rows.len());
            // A duplicate brings its id along only where the first one has none.
            if same_number.is_none_or(|at| sorted.rows[at].external_id.is_none()) {
                by_external_id.insert(external_id.clone(), at);
            }
        }
        if let Some(at) = same_number {
            merge(&mut sorted.rows[at], row);
            sorted.duplicates += 1;
            continue;
        }
        by_number.insert(row.phone_number.clone(), sorted.rows.len());
        sorted.positions.push((row.id, index));
        sorted.rows.push(row);
    }
    sorted.count = sorted.rows.len() as u64;
    sorted
}

fn row(deps: &Deps, key: Owned<CampaignId>, country: Country, given: Given) -> Model {
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let number = E164::parse(&given.phone_number, country).map(|number| number.as_str().to_owned());
    Model {
        id: deps.ids.next(),
        tenant_id: key.tenant_id,
        env: key.env,
        campaign_id: key.id,
        external_id: given.external_id.map(Text::into_string),
        // What cannot be read is kept as it was typed, and skipped with a reason when its turn comes.
        phone_number: number.unwrap_or_else(|_| given.phone_number.into_string()),
        email: text(given.email.map(Text::into_string)),
        first_name: text(given.first_name.map(Text::into_string)),
        last_name: text(given.last_name.map(Text::into_string)),
        variables: given.variables,
        priority: given.priority.get(),
        status: Status::Pending,
        wait_reason: None,
        attempts: 0,
        last_session_id: None,
        next_attempt_at: None,
        skip_reason: None,
        version: 1,
        created_at: deps.clock.now(),
    }
}

/// The first one stays; what it lacks comes from the second.
fn merge(first: &mut Model, second: Model) {
    first.external_id = first.external_id.take().or(second.external_id);
    first.email = first.email.take().or(second.email);
    first.first_name = first.first_name.take().or(second.first_name);
    first.last_name = first.last_name.take().or(second.last_name);
    for (name, value) in second.variables.0 {
        if first.variables.0.len() < Variables::MAX {
            first.variables.0.entry(name).or_insert(value);
        }
    }
}

/// GET /v1/campaigns/{id}/contacts
pub async fn list(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    mut params: Params,
) -> ApiResult<web::Json<List<ContactView>>> {
    let page = params.page()?;
    let status = params.text("status")?;
    params.finish()?;
    let db = &state.deps.db.read;
    campaign::load(db, caller.own(id)).await?;
    let contacts = store::list(db, caller.own(id), status, page).await?;
    Ok(web::Json(List::of(contacts, |contact| contact.id.0, ContactView::from)))
}

/// GET /v1/campaigns/{id}/contacts/{contact_id}
pub async fn get(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    request: HttpRequest,
) -> ApiResult<web::Json<ContactView>> {
    let contact = request
        .match_info()
        .get("contact_id")
        .and_then(|text| text.parse::<ContactId>().ok())
        .ok_or(Error::NotFound("contact"))?;
    let contact = store::load(&state.deps.db.read, caller.own(contact)).await?;
    if contact.campaign_id == id {
        Ok(web::Json(contact.into()))
    } else {
        Err(Error::NotFound("contact").into())
    }
}
