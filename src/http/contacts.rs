//! A campaign's contacts. One number is in a campaign once, however it was typed.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Csv, Id, Json, Nothing, Params},
    imports::ImportView,
    views::{ContactView, EligibilityView, List},
};
use crate::state::State;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data},
};
use actors::{
    contact::{
        edit::{self, Target},
        intake::{self, Added, Given},
    },
    import,
};
use entities::{
    Error, campaign,
    contact::{self as store, By},
    ids::{CampaignId, ContactId},
    import::Kind,
    tenant,
    values::{E164, Text},
};
use rules::{barred, effect::Hint};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

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
) -> ApiResult<web::Json<Added>> {
    if asked.contacts.is_empty() || asked.contacts.len() > 1_000 {
        return Err(ApiError::validation(
            "contacts",
            format!("has {} entries; 1 to 1000 are allowed", asked.contacts.len()),
        ));
    }
    let deps = &state.deps;
    let key = caller.own(id);
    let plan = campaign::load(&deps.db.read, key).await?.plan;
    let country = tenant::country(&deps.db.read, caller.tenant_id()).await?;
    let reading = intake::Reading::of(&plan, country)?;
    let sorted = Arc::new(intake::sort(deps, key, &reading, asked.contacts));
    let added = deps.writer.run(caller.tenant_id(), move |db| {
        let sorted = sorted.clone();
        Box::pin(async move { intake::insert(db, key, &sorted).await })
    });
    let added = added.await?;
    deps.router.perform(vec![Hint::ContactsChanged(key).into()]);
    Ok(web::Json(added))
}

/// POST /v1/campaigns/{id}/contacts/import
pub async fn import(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    Csv(body): Csv<{ 10 * MIB }>,
) -> ApiResult<HttpResponse> {
    let key = caller.own(id);
    campaign::load(&state.deps.db.read, key).await?;
    let new = import::New {
        id: caller.new_id(&state.deps.ids),
        kind: Kind::Contacts,
        campaign: Some(id),
        created_by: caller.name(),
        body,
    };
    let job = import::start(&state.deps, key, new).await?;
    Ok(HttpResponse::Accepted().json(ImportView::from(job)))
}

/// What a contact is reached at: `phone_number` or `email`.
fn address(params: &mut Params) -> ApiResult<Option<String>> {
    let number: Option<E164> = params.text("phone_number")?;
    let email: Option<Text<3, 254>> = params.text("email")?;
    match (number, email) {
        (Some(_), Some(_)) => Err(ApiError::validation("email", "give this or `phone_number`, not both")),
        (Some(number), None) => Ok(Some(number.as_str().into())),
        // As they are stored: in one spelling, or as they were typed if they could not be read.
        (None, email) => Ok(email.map(|email| barred::email(&email).unwrap_or_else(|_| email.into_string()))),
    }
}

/// An address as somebody may have typed it into a list, and in its one spelling.
pub fn spellings(params: &mut Params) -> ApiResult<Option<Vec<String>>> {
    let email: Option<Text<3, 254>> = params.text("email")?;
    Ok(email.map(|email| {
        let mut all = vec![email.to_lowercase()];
        all.extend(barred::email(&email).ok().filter(|email| *email != all[0]));
        all
    }))
}

/// GET /v1/contacts
pub async fn find(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<ContactView>>> {
    let limit = params.page()?.limit;
    let number: Option<E164> = params.text("phone_number")?;
    let by = [
        number.map(|number| By::Number(number.as_str().into())),
        spellings(&mut params)?.map(By::Email),
        params
            .text::<Text<1, 200>>("external_id")?
            .map(|id| By::ExternalId(id.into_string())),
        params
            .text::<Text<1, 200>>("name")?
            .map(|name| By::Name(name.trim().into())),
    ];
    params.finish()?;
    let mut by = by.into_iter().flatten();
    let (Some(by), None) = (by.next(), by.next()) else {
        let why = "give one of `phone_number`, `email`, `external_id` and `name`";
        return Err(ApiError::validation("", why));
    };
    let _permit = state.bulkheads.search(caller.tenant_id())?;
    let found = store::find(&state.deps.db, caller.tenant_id(), caller.env(), &by, limit).await?;
    Ok(web::Json(List {
        has_more: found.has_more,
        // Whoever has not found it says more.
        next_cursor: None,
        data: found.rows.into_iter().map(ContactView::from).collect(),
    }))
}

/// GET /v1/contacts/{id}
pub async fn of_id(state: Data<State>, caller: Caller, Id(id): Id<ContactId>) -> ApiResult<web::Json<ContactView>> {
    Ok(web::Json(
        store::load(&state.deps.db.read, caller.own(id)).await?.into(),
    ))
}

/// GET /v1/campaigns/{id}/contacts
pub async fn list(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    mut params: Params,
) -> ApiResult<web::Json<List<ContactView>>> {
    let page = params.page()?;
    let filter = store::Filter {
        status: params.text("status")?,
        address: address(&mut params)?,
        external_id: params.text::<Text<1, 200>>("external_id")?.map(Text::into_string),
    };
    params.finish()?;
    let db = &state.deps.db.read;
    campaign::load(db, caller.own(id)).await?;
    let contacts = store::list(db, caller.own(id), &filter, page).await?;
    Ok(web::Json(List::of(contacts, |contact| contact.id.0, ContactView::from)))
}

/// GET /v1/campaigns/{id}/contacts/{contact_id}
pub async fn get(state: Data<State>, target: Named, caller: Caller) -> ApiResult<web::Json<ContactView>> {
    let contact = target.of(&caller).load(&state.deps.db.read).await?;
    Ok(web::Json(contact.into()))
}

/// PATCH /v1/campaigns/{id}/contacts/{contact_id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    target: Named,
    caller: Caller,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<ContactView>> {
    let (deps, target) = (&state.deps, target.of(&caller));
    let before = target.load(&deps.db.read).await?;
    let given: Given = extract::merged(edit::given(&before), patch)?;
    let country = tenant::country(&deps.db.read, caller.tenant_id()).await?;
    let after = edit::change(deps, target, given, country).await?;
    let campaign = caller.own(target.campaign);
    deps.router.perform(vec![Hint::ContactsChanged(campaign).into()]);
    Ok(web::Json(after.into()))
}

/// DELETE /v1/campaigns/{id}/contacts/{contact_id}
pub async fn delete(state: Data<State>, target: Named, caller: Caller) -> ApiResult<HttpResponse> {
    let target = target.of(&caller);
    edit::remove(&state.deps, target).await?;
    let campaign = caller.own(target.campaign);
    let effects = vec![
        Hint::ContactsChanged(campaign).into(),
        Hint::CheckDrained(campaign).into(),
    ];
    state.deps.router.perform(effects);
    Ok(HttpResponse::NoContent().finish())
}

/// POST /v1/campaigns/{id}/contacts/{contact_id}/retry
pub async fn retry(state: Data<State>, target: Named, caller: Caller, _: Nothing) -> ApiResult<web::Json<ContactView>> {
    let target = target.of(&caller);
    let contact = edit::retry(&state.deps, target).await?;
    state
        .deps
        .router
        .perform(vec![Hint::ContactsChanged(caller.own(target.campaign)).into()]);
    Ok(web::Json(contact.into()))
}

/// GET /v1/campaigns/{id}/contacts/{contact_id}/eligibility
pub async fn eligibility(state: Data<State>, target: Named, caller: Caller) -> ApiResult<web::Json<EligibilityView>> {
    let target = target.of(&caller);
    let found = edit::eligibility(&state.deps, target).await?;
    Ok(web::Json(EligibilityView::of(found, state.deps.clock.now())))
}

/// The campaign and the contact of a path.
pub struct Named(CampaignId, ContactId);

impl Named {
    fn of(&self, caller: &Caller) -> Target {
        Target {
            campaign: self.0,
            contact: caller.own(self.1),
        }
    }
}

impl actix_web::FromRequest for Named {
    type Error = ApiError;
    type Future = std::future::Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
        let part = |name: &str| request.match_info().get(name).map(str::to_owned);
        let campaign = part("id").and_then(|text| text.parse().ok());
        let contact = part("contact_id").and_then(|text| text.parse().ok());
        let named = campaign
            .zip(contact)
            .map(|(campaign, contact)| Named(campaign, contact));
        std::future::ready(named.ok_or(Error::NotFound("contact").into()))
    }
}
