//! People who sign in to the dashboard.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    error::{Error, Result},
    ids::UserId,
    page,
    values::Moment,
};
use sea_orm::{QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: UserId,
    /// In lower case.
    #[sea_orm(unique)]
    pub email: String,
    /// Argon2id, in PHC form.
    pub password_hash: String,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

#[boxed]
pub async fn by_email(db: &Connection, email: &str) -> Result<Option<Model>> {
    Ok(Entity::find()
        .filter(Column::Email.eq(email.to_lowercase()))
        .one(db)
        .await?)
}

#[boxed]
pub async fn exist(db: &Connection) -> Result<bool> {
    Ok(Entity::find().one(db).await?.is_some())
}

#[boxed]
pub async fn load(db: &Connection, id: UserId) -> Result<Model> {
    Entity::find_by_id(id).one(db).await?.ok_or(Error::NotFound("user"))
}

/// Oldest first, a page at a time.
pub async fn all_after(db: &Connection, after: Option<UserId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Is this still the user's password? Until the transaction's end nobody else changes it.
#[boxed]
pub async fn still_has(db: &Connection, id: UserId, password_hash: &str) -> Result<bool> {
    let found = Entity::find_by_id(id).lock_exclusive().one(db).await?;
    Ok(found.is_some_and(|user| user.password_hash == password_hash))
}

#[boxed]
pub async fn set_password(db: &Connection, id: UserId, password_hash: &str) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::PasswordHash, Expr::value(password_hash))
        .filter(Column::Id.eq(id));
    match update.exec(db).await?.rows_affected {
        0 => Err(Error::NotFound("user")),
        _ => Ok(()),
    }
}

#[boxed]
pub async fn add(db: &Connection, user: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(user), OnConflict::Fail)
        .await
        .map(drop)
}
