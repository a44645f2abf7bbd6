//! People who sign in to the dashboard.
use crate::{error::Result, ids::UserId, values::Moment};
use sea_orm::entity::prelude::*;

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

pub async fn by_email(db: &impl ConnectionTrait, email: &str) -> Result<Option<Model>> {
    Ok(Entity::find()
        .filter(Column::Email.eq(email.to_lowercase()))
        .one(db)
        .await?)
}

pub async fn exist(db: &impl ConnectionTrait) -> Result<bool> {
    Ok(Entity::find().one(db).await?.is_some())
}
