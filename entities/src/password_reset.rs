//! Links by which a user who has lost the password sets another one. The row holds the link's hash.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::Result,
    ids::UserId,
    values::Moment,
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "password_resets")]
pub struct Model {
    /// SHA-256 of the link's token, hex.
    #[sea_orm(primary_key, auto_increment = false)]
    pub token_hash: String,
    pub user_id: UserId,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn add(db: &Connection, row: Model) -> Result<()> {
    bulk::save(db, &[row], OnConflict::Fail).await.map(drop)
}

/// Links of a user that were made later than that.
#[boxed]
pub async fn count_since(db: &Connection, user: UserId, since: Moment) -> Result<u64> {
    let select = Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::CreatedAt.gt(since));
    Ok(select.count(db).await?)
}

/// The user behind a link that was made later than that.
#[boxed]
pub async fn user_of(db: &Connection, token_hash: &str, since: Moment) -> Result<Option<UserId>> {
    let found = Entity::find_by_id(token_hash.to_owned()).one(db).await?;
    Ok(found.filter(|row| row.created_at > since).map(|row| row.user_id))
}

/// Takes a link away; `false`: it is spent.
#[boxed]
pub async fn take(db: &Connection, token_hash: &str) -> Result<bool> {
    let taken = Entity::delete_by_id(token_hash.to_owned()).exec(db).await?;
    Ok(taken.rows_affected == 1)
}

/// No link of the user's opens anything any more.
#[boxed]
pub async fn void(db: &Connection, user: UserId) -> Result<()> {
    Entity::delete_many().filter(Column::UserId.eq(user)).exec(db).await?;
    Ok(())
}

/// No link of anybody's opens anything any more.
#[boxed]
pub async fn void_all(db: &Connection) -> Result<()> {
    Entity::delete_many().exec(db).await?;
    Ok(())
}

#[boxed]
pub async fn prune(db: &Connection, created_before: Moment) -> Result<()> {
    Entity::delete_many()
        .filter(Column::CreatedAt.lt(created_before))
        .exec(db)
        .await?;
    Ok(())
}
