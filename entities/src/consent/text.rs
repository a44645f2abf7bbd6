//! The words of a consent: what was asked, as it was shown or read out, and what was answered or signed. Beside the consents, which are
//! looked up with each dial.
use crate::{boxed, connection::Connection, error::Result, ids::ConsentId};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "consent_texts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub consent_id: ConsentId,
    pub request_copy: Option<String>,
    pub consent_copy: Option<String>,
}
impl ActiveModelBehavior for ActiveModel {}

/// None: it has no words.
#[boxed]
pub async fn of(db: &Connection, consent: ConsentId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(consent).one(db).await?)
}

#[boxed]
pub(super) async fn remove(db: &Connection, consent: ConsentId) -> Result<()> {
    Entity::delete_by_id(consent).exec(db).await?;
    Ok(())
}
