//! Sessions as they are asked for: one, some, a list.
use super::{Column, Direction, Entity, Model, Status, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{CampaignId, ContactId, RoomId, SessionId, TenantId, TenantScoped},
    page::{self, Listed, Page},
    values::Env,
};
use sea_orm::{Condition, entity::prelude::*};

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

/// What a list of sessions is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub campaign_id: Option<CampaignId>,
    pub contact_id: Option<ContactId>,
    pub direction: Option<Direction>,
    pub room_id: Option<RoomId>,
}

impl Filter {
    /// Does an index know which sessions it lets through?
    pub fn is_indexed(&self) -> bool {
        self.status.is_none() && self.contact_id.is_none() && self.direction.is_none() && self.room_id.is_none()
    }
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, env: Env, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let mut all = owned(tenant, env);
    // A campaign's have an index of their own.
    if let Some(campaign) = filter.campaign_id {
        all = all.filter(Column::CampaignId.eq(campaign));
    }
    let wanted = Condition::all()
        .add_option(filter.status.map(|status| Column::Status.eq(status)))
        .add_option(filter.contact_id.map(|contact| Column::ContactId.eq(contact)))
        .add_option(filter.direction.map(|direction| Column::Direction.eq(direction)))
        .add_option(filter.room_id.map(|room| Column::RoomId.eq(room)));
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
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
