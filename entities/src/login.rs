//! Dashboard sessions: the cookie holds a random token, the row its hash.
use crate::{boxed, connection::Connection, error::Result, ids::UserId, user, values::Moment};
use sea_orm::{ExprTrait, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "logins")]
pub struct Model {
    /// SHA-256 of the cookie's token, hex.
    #[sea_orm(primary_key, auto_increment = false)]
    pub token_hash: String,
    pub user_id: UserId,
    pub created_at: Moment,
    pub last_seen_at: Moment,
    /// When the password was last given: at the sign-in, or again since.
    pub authenticated_at: Moment,
    /// What the browser says it is.
    pub user_agent: Option<String>,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn find(db: &Connection, token_hash: &str) -> Result<Option<(Model, user::Model)>> {
    let Some(login) = Entity::find_by_id(token_hash.to_owned()).one(db).await? else {
        return Ok(None);
    };
    let user = user::Entity::find_by_id(login.user_id).one(db).await?;
    Ok(user.map(|user| (login, user)))
}

#[boxed]
pub async fn touch(db: &Connection, token_hash: &str, now: Moment) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::LastSeenAt, Expr::value(now))
        .filter(Column::TokenHash.eq(token_hash));
    update.exec(db).await?;
    Ok(())
}

/// The password was given again; `false`: the session is over.
#[boxed]
pub async fn authenticate(db: &Connection, token_hash: &str, now: Moment) -> Result<bool> {
    let update = Entity::update_many()
        .col_expr(Column::AuthenticatedAt, Expr::value(now))
        .filter(Column::TokenHash.eq(token_hash));
    Ok(update.exec(db).await?.rows_affected == 1)
}

/// The user's sessions, newest first.
#[boxed]
pub async fn of_user(db: &Connection, user: UserId, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::UserId.eq(user));
    Ok(select
        .order_by(Column::CreatedAt, Order::Desc)
        .limit(limit)
        .all(db)
        .await?)
}

/// Ends the user's sessions, all but the one that is kept; answers how many.
#[boxed]
pub async fn remove_of(db: &Connection, user: UserId, keep: Option<&str>) -> Result<u64> {
    let mut delete = Entity::delete_many().filter(Column::UserId.eq(user));
    if let Some(keep) = keep {
        delete = delete.filter(Column::TokenHash.ne(keep));
    }
    Ok(delete.exec(db).await?.rows_affected)
}

#[boxed]
pub async fn remove(db: &Connection, token_hash: &str) -> Result<()> {
    Entity::delete_many()
        .filter(Column::TokenHash.eq(token_hash))
        .exec(db)
        .await?;
    Ok(())
}

/// Ends all sessions of all users.
#[boxed]
pub async fn remove_all(db: &Connection) -> Result<()> {
    Entity::delete_many().exec(db).await?;
    Ok(())
}

/// Forgets the sessions that ended by time.
#[boxed]
pub async fn prune(db: &Connection, created_before: Moment, seen_before: Moment) -> Result<()> {
    let over = Column::CreatedAt
        .lt(created_before)
        .or(Column::LastSeenAt.lt(seen_before));
    Entity::delete_many().filter(over).exec(db).await?;
    Ok(())
}
