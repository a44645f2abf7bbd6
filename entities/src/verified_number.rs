//! Numbers outside the sandbox block that a tenant's test keys may call, once they are verified. Shared by its two envs.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{TenantId, VerificationCodeId, VerifiedNumberId},
    page::{self, Listed, Page},
    values::{E164, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A code was made, and not confirmed yet.
    Pending,
    /// Test keys may call it.
    Verified,
}

/// How the code reaches the number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Method {
    #[default]
    Sms,
    /// It is spoken.
    Call,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "verified_numbers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: VerifiedNumberId,
    pub tenant_id: TenantId,
    pub phone_number: E164,
    pub created_at: Moment,
    pub status: Status,
    pub method: Method,
    pub label: Option<String>,
    /// Of the key that asked for the code.
    pub env: Env,
    /// Of the code that is waited for, with its salt.
    pub code_hash: Option<String>,
    /// That code, where it is shown instead of sent.
    pub sealed_code: Option<String>,
    /// Of that code.
    pub wrong_tries: i32,
    pub expires_at: Option<Moment>,
    pub verified_at: Option<Moment>,
    pub version: i32,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// A number that the operator vouches for.
    pub fn vouched(id: VerifiedNumberId, tenant_id: TenantId, phone_number: E164, now: Moment) -> Self {
        Model {
            id,
            tenant_id,
            phone_number,
            created_at: now,
            status: Status::Verified,
            method: Method::default(),
            label: None,
            env: Env::Test,
            code_hash: None,
            sealed_code: None,
            wrong_tries: 0,
            expires_at: None,
            verified_at: Some(now),
            version: 1,
        }
    }
}

fn owned(tenant: TenantId) -> sea_orm::Select<Entity> {
    Entity::find().filter(Column::TenantId.eq(tenant))
}

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, id: VerifiedNumberId) -> Result<Model> {
    let found = owned(tenant).filter(Column::Id.eq(id)).one(db).await?;
    found.ok_or(Error::NotFound("verified number"))
}

#[boxed]
pub async fn list(db: &Db, tenant: TenantId, status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = owned(tenant).apply_if(status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

#[boxed]
pub async fn of_number(db: &Connection, tenant: TenantId, number: &E164) -> Result<Option<Model>> {
    let found = owned(tenant).filter(Column::PhoneNumber.eq(number.clone()));
    Ok(found.one(db).await?)
}

/// May the tenant's test keys call it?
#[boxed]
pub async fn contains(db: &Connection, tenant: TenantId, number: &E164) -> Result<bool> {
    let found = owned(tenant)
        .filter(Column::PhoneNumber.eq(number.clone()))
        .filter(Column::Status.eq(Status::Verified));
    Ok(found.count(db).await? > 0)
}

/// The operator vouches for it. A second time changes nothing; a code that is waited for is waited for no longer.
#[boxed]
pub async fn add(db: &Connection, row: Model) -> Result<()> {
    match of_number(db, row.tenant_id, &row.phone_number).await? {
        Some(known) if known.status == Status::Verified => Ok(()),
        Some(known) => {
            let vouched = Model {
                id: known.id,
                created_at: known.created_at,
                label: known.label,
                version: known.version + 1,
                ..row
            };
            save(db, &vouched).await
        }
        None => save(db, &row).await,
    }
}

/// Inserts version 1, else replaces the predecessor.
#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}

#[boxed]
pub async fn delete(db: &Connection, tenant: TenantId, id: VerifiedNumberId) -> Result<()> {
    let mine = Entity::delete_many().filter(Column::TenantId.eq(tenant));
    let deleted = mine.filter(Column::Id.eq(id)).exec(db).await?;
    match deleted.rows_affected {
        0 => Err(Error::NotFound("verified number")),
        _ => Ok(()),
    }
}

/// Those of `numbers` that are verified.
#[boxed]
pub async fn among(db: &Connection, tenant: TenantId, numbers: &[E164]) -> Result<Vec<E164>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(numbers) {
        let select = owned(tenant)
            .select_only()
            .column(Column::PhoneNumber)
            .filter(Column::Status.eq(Status::Verified))
            .filter(Column::PhoneNumber.is_in(chunk));
        found.extend(select.into_tuple::<E164>().all(db).await?);
    }
    Ok(found)
}

/// All with a sealed code, a page at a time: to seal them anew.
pub async fn sealed_after(db: &Connection, after: Option<VerifiedNumberId>, limit: u64) -> Result<Vec<Model>> {
    let with_code = Entity::find().filter(Column::SealedCode.is_not_null());
    page::behind(db, with_code, Column::Id, after, limit).await
}

#[boxed]
pub async fn reseal(db: &Connection, id: VerifiedNumberId, sealed_code: String) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::SealedCode, Expr::value(sealed_code))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}

/// The codes that were made lately, so that nobody is pestered: kept when their number is deleted.
pub mod codes {
    use super::*;
    use crate::boxed;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "verification_codes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: VerificationCodeId,
        pub tenant_id: TenantId,
        pub phone_number: E164,
        pub created_at: Moment,
    }
    impl ActiveModelBehavior for ActiveModel {}

    /// When codes for this number were made, and when codes for any number of the tenant; since then, the oldest first.
    #[boxed]
    pub async fn since(
        db: &Connection,
        tenant: TenantId,
        number: &E164,
        since: Moment,
    ) -> Result<(Vec<Moment>, Vec<Moment>)> {
        let recent = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::CreatedAt.gt(since));
        let rows = recent.order_by(Column::CreatedAt, Order::Asc).all(db).await?;
        let of_number = rows.iter().filter(|row| row.phone_number == *number);
        let of_number = of_number.map(|row| row.created_at).collect();
        Ok((of_number, rows.into_iter().map(|row| row.created_at).collect()))
    }

    /// Notes a code that is made, and forgets those of that moment and before.
    #[boxed]
    pub async fn note(db: &Connection, row: Model, forget: Moment) -> Result<()> {
        let old = Entity::delete_many().filter(Column::TenantId.eq(row.tenant_id));
        old.filter(Column::CreatedAt.lte(forget)).exec(db).await?;
        bulk::save(db, &[row], OnConflict::Fail).await.map(drop)
    }
}
