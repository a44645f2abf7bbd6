//! Who belongs to which workspace, as what.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    error::{Error, Result},
    ids::{TenantId, UserId},
    page::{self, Listed, Page},
    tenant, user,
    values::Role,
};
use sea_orm::{QuerySelect, QueryTrait, entity::prelude::*, sea_query::Expr};

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
#[boxed]
pub async fn of_user(db: &Connection, user: UserId) -> Result<Vec<(tenant::Model, Role)>> {
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
#[boxed]
pub async fn owners(db: &Connection, tenant: TenantId) -> Result<Vec<String>> {
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

/// A workspace's members with their roles, by when they became users.
#[boxed]
pub async fn list(db: &Connection, tenant: TenantId, page: Page) -> Result<Listed<(user::Model, Role)>> {
    let members = Entity::find()
        .select_only()
        .column(Column::UserId)
        .filter(Column::TenantId.eq(tenant))
        .into_query();
    let select = user::Entity::find().filter(user::Column::Id.in_subquery(members));
    let listed = page::fetch(db, select, user::Column::Id, user::Column::CreatedAt, page).await?;
    let rows = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::UserId.is_in(listed.rows.iter().map(|user| user.id)))
        .all(db)
        .await?;
    let role_of = |user: &user::Model| rows.iter().find(|row| row.user_id == user.id).map(|row| row.role);
    let with_role = |user: user::Model| role_of(&user).map(|role| (user, role));
    Ok(Listed {
        rows: listed.rows.into_iter().filter_map(with_role).collect(),
        has_more: listed.has_more,
    })
}

/// Nobody else changes who belongs to the workspace until the transaction's end. (On SQLite there is one writer anyway.)
#[boxed]
pub async fn lock(db: &Connection, tenant: TenantId) -> Result<()> {
    let found = tenant::Entity::find_by_id(tenant).lock_exclusive().one(db).await?;
    found.map(drop).ok_or(Error::NotFound("workspace"))
}

#[boxed]
pub async fn role_of(db: &Connection, tenant: TenantId, user: UserId) -> Result<Option<Role>> {
    Ok(Entity::find_by_id((user, tenant)).one(db).await?.map(|row| row.role))
}

/// How many others own the workspace.
#[boxed]
pub async fn other_owners(db: &Connection, tenant: TenantId, user: UserId) -> Result<u64> {
    let others = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Role.eq(Role::Owner))
        .filter(Column::UserId.ne(user));
    Ok(others.count(db).await?)
}

#[boxed]
pub async fn add(db: &Connection, row: Model) -> Result<()> {
    bulk::save(db, &[row], OnConflict::Fail).await.map(drop)
}

#[boxed]
pub async fn set_role(db: &Connection, tenant: TenantId, user: UserId, role: Role) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::Role, Expr::value(role))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::UserId.eq(user));
    update.exec(db).await?;
    Ok(())
}

#[boxed]
pub async fn remove(db: &Connection, tenant: TenantId, user: UserId) -> Result<()> {
    Entity::delete_by_id((user, tenant)).exec(db).await?;
    Ok(())
}
