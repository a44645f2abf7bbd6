//! Who belongs to which workspace, as what.
use crate::{
    error::Result,
    ids::{TenantId, UserId},
    tenant, user,
    values::Role,
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "memberships")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: UserId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    pub role: Role,
}
impl ActiveModelBehavior for ActiveModel {}

/// The user's workspaces with the role in each, by slug.
pub async fn of_user(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<(tenant::Model, Role)>> {
    let rows = Entity::find().filter(Column::UserId.eq(user)).all(db).await?;
    let tenants = tenant::Entity::find()
        .filter(tenant::Column::Id.is_in(rows.iter().map(|row| row.tenant_id)))
        .all(db)
        .await?;
    let mut found: Vec<_> = tenants
        .into_iter()
        .filter_map(|tenant| {
            rows.iter()
                .find(|row| row.tenant_id == tenant.id)
                .map(|row| (tenant, row.role))
        })
        .collect();
    found.sort_by(|a, b| a.0.slug.cmp(&b.0.slug));
    Ok(found)
}

/// The e-mail addresses of the workspace's owners.
pub async fn owners(db: &impl ConnectionTrait, tenant: TenantId) -> Result<Vec<String>> {
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Role.eq(Role::Owner))
        .all(db)
        .await?;
    let users = user::Entity::find()
        .filter(user::Column::Id.is_in(rows.iter().map(|row| row.user_id)))
        .all(db)
        .await?;
    Ok(users.into_iter().map(|user| user.email).collect())
}
