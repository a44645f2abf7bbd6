//! Sessions as they are asked for: one, some, a list.
use super::{Column, Direction, Entity, Model, Options, Status, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{AgentId, CampaignId, ContactId, RoomId, SessionId, TenantId, TenantScoped},
    names,
    page::{self, Listed, Page},
    values::{E164, Env, TraceContext},
};
use sea_orm::{ActiveEnum, Condition, Iterable, QuerySelect, Select, entity::prelude::*, sea_query::Expr};
use std::slice;

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<SessionId>) -> Result<Model> {
    owned(key.tenant_id, key.env)
        .filter(Column::Id.eq(key.id))
        .one(db)
        .await?
        .ok_or(Error::NotFound("session"))
}

/// For what follows a session that was deleted meanwhile.
#[boxed]
pub async fn load_even_deleted(db: &Connection, key: TenantScoped<SessionId>) -> Result<Model> {
    let found = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    found.one(db).await?.ok_or(Error::NotFound("session"))
}

/// Of which request's trace a session is a part, deleted or not; none if it is of its own, or unknown.
#[boxed]
pub async fn trace(db: &Connection, key: TenantScoped<SessionId>) -> Result<Option<TraceContext>> {
    let found = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env))
        .select_only()
        .column(Column::Options);
    let options: Option<Options> = found.into_tuple().one(db).await?;
    Ok(options.and_then(|options| options.trace))
}

/// What a list of sessions is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// One of them; none: any.
    pub statuses: Vec<Status>,
    /// The other side's.
    pub phone_number: Option<E164>,
    /// Of the person, in lower case; each is a spelling.
    pub email: Vec<String>,
    pub agent_id: Option<AgentId>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub direction: Option<Direction>,
    /// In a room, or on the phone.
    pub is_room: Option<bool>,
    pub room_id: Option<RoomId>,
    pub disposition_code: Option<String>,
    pub client_reference_id: Option<String>,
}

impl Filter {
    /// Do indexes know which sessions it lets through? Each of the first is a list of its own, in its order, and they have no session in
    /// common; the second has to be looked for in them.
    fn plan(&self) -> (Vec<Condition>, Condition) {
        let narrow = Condition::all;
        // From what lets few through to what lets many.
        let mut all = Vec::new();
        let mut wanted = narrow();
        let others = [
            self.client_reference_id
                .as_ref()
                .map(|reference| vec![narrow().add(Column::ClientReferenceId.eq(reference))]),
            self.phone_number.as_ref().map(|number| {
                let with = |direction: Direction, column: Column| {
                    // Word for word what the index is for: by a value that is bound later nobody can tell.
                    let said = format!("direction = '{}'", direction.to_value());
                    narrow().add(Expr::cust(said)).add(column.eq(number.clone()))
                };
                vec![
                    with(Direction::Outbound, Column::ToNumber),
                    with(Direction::Inbound, Column::FromNumber),
                ]
            }),
            Some(&self.email)
                .filter(|spellings| !spellings.is_empty())
                .map(|spellings| {
                    // A list for each, which an index knows in its order; nobody is in two.
                    let known = |one| names::is_email(Column::Email, slice::from_ref(one));
                    spellings.iter().map(known).collect()
                }),
            self.disposition_code
                .as_ref()
                .map(|code| vec![narrow().add(Column::DispositionCode.eq(code))]),
            self.campaign_id
                .map(|campaign| vec![narrow().add(Column::CampaignId.eq(campaign))]),
            self.agent_id.map(|agent| vec![narrow().add(Column::AgentId.eq(agent))]),
            Some(&self.statuses)
                .filter(|statuses| !statuses.is_empty())
                .map(|statuses| {
                    // In the order of a life: what moves on while they are read is found in the next one.
                    let asked = Status::iter().filter(|status| statuses.contains(status));
                    asked.map(|status| narrow().add(Column::Status.eq(status))).collect()
                }),
        ];
        for ways in others.into_iter().flatten() {
            if all.is_empty() {
                all = ways;
            } else {
                wanted = wanted.add(ways.into_iter().fold(Condition::any(), Condition::add));
            }
        }
        let wanted = wanted
            .add_option(self.contact_id.map(|contact| Column::ContactId.eq(contact)))
            .add_option(self.direction.map(|direction| Column::Direction.eq(direction)))
            .add_option(self.room_id.map(|room| Column::RoomId.eq(room)))
            .add_option(self.is_room.map(|is_room| match is_room {
                true => Column::RoomId.is_not_null(),
                false => Column::RoomId.is_null(),
            }));
        if all.is_empty() {
            all.push(narrow());
        }
        (all, wanted)
    }

    /// Does it have to look through sessions that it does not let through?
    pub fn searches(&self) -> bool {
        !self.plan().1.is_empty()
    }

    /// The lists that indexes know, each in its order.
    pub fn lists(&self, tenant: TenantId, env: Env) -> Vec<Select<Entity>> {
        let (lists, _) = self.plan();
        lists.into_iter().map(|list| owned(tenant, env).filter(list)).collect()
    }
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, env: Env, filter: &Filter, page: Page) -> Result<Listed<Model>> {
    let (_, wanted) = filter.plan();
    let mut found = Vec::new();
    for all in filter.lists(tenant, env) {
        found.push(page::search(db, all, wanted.clone(), Column::Id, Column::CreatedAt, page).await?);
    }
    Ok(page::merge(found, |session| session.id.0, page))
}

/// Calls with a number, those that were deleted, too.
#[boxed]
pub async fn count_of_number(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<i64> {
    let filter = Filter {
        phone_number: Some(number.clone()),
        ..Filter::default()
    };
    let mut count = 0;
    for calls in filter.plan().0 {
        let all = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Env.eq(env));
        count += all.filter(calls).count(db).await?;
    }
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// These sessions, in no order.
#[boxed]
pub async fn of_ids(db: &Connection, ids: &[SessionId]) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(ids) {
        found.extend(Entity::find().filter(Column::Id.is_in(chunk)).all(db).await?);
    }
    Ok(found)
}

/// All sessions of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<SessionId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}
