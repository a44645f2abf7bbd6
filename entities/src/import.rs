//! Imports: lists that are read in as stored jobs, which go on after a crash where they were.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{CampaignId, ImportId, TenantId, TenantScoped},
    keys,
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DbBackend, DeriveActiveEnum, EnumIter, FromJsonQueryResult, Iterable, QuerySelect, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Contacts of a campaign.
    Contacts,
    /// Numbers and addresses for the do-not-call list.
    Dnc,
    /// That people agreed to be called or written to.
    Consents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far an import is.")]
pub enum ImportStatus {
    Running,
    Completed,
    /// It could not go on; `error` says why. Rows imported before that stay.
    Failed,
}

/// What separates the cells of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Delimiter {
    Comma,
    Semicolon,
    Tab,
}

impl Delimiter {
    pub fn byte(self) -> u8 {
        match self {
            Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
        }
    }
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// The line of the file on which the row begins, from 1.
    pub line: u64,
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub param: Option<String>,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Rejections(pub Vec<Rejection>);

impl Rejections {
    /// Refused rows that are kept to be read; beyond that they are only counted.
    pub const MAX: usize = 1_000;
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "imports")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ImportId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
    pub kind: Kind,
    pub delimiter: Delimiter,
    pub status: ImportStatus,
    pub bytes: i64,
    /// Everything before this byte is dealt with.
    pub bytes_done: i64,
    pub rows_done: i64,
    pub accepted: i64,
    pub duplicates: i64,
    pub rejected: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub rejections: Rejections,
    pub error: Option<String>,
    pub created_by: Option<String>,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn key(&self) -> TenantScoped<ImportId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
}

/// What is read in; gone when it is.
mod body {
    use crate::ids::ImportId;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "import_bodies")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub import_id: ImportId,
        pub body: String,
    }
    impl ActiveModelBehavior for ActiveModel {}
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<ImportId>) -> Result<Model> {
    let select = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    select.one(db).await?.ok_or(Error::NotFound("import"))
}

/// What a list of imports is narrowed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub kind: Option<Kind>,
    pub status: Option<ImportStatus>,
    pub campaign_id: Option<CampaignId>,
}

/// Without the refused rows, which may be long: they are read with each one.
#[boxed]
pub async fn list(db: &Db, tenant: TenantId, env: Env, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let none = match db.read.get_database_backend() {
        DbBackend::Postgres => "'[]'::jsonb",
        DbBackend::Sqlite | DbBackend::MySql | _ => "'[]'",
    };
    let columns = Column::iter().filter(|column| !matches!(column, Column::Rejections));
    let all = Entity::find()
        .select_only()
        .columns(columns)
        .column_as(Expr::cust(none), Column::Rejections)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env));
    let wanted = Condition::all()
        .add_option(filter.kind.map(|kind| Column::Kind.eq(kind)))
        .add_option(filter.status.map(|status| Column::Status.eq(status)))
        .add_option(filter.campaign_id.map(|campaign| Column::CampaignId.eq(campaign)));
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

#[boxed]
pub async fn begin(db: &Connection, row: Model, body: String) -> Result<()> {
    let text = body::Model {
        import_id: row.id,
        body,
    };
    bulk::save(db, &[row], OnConflict::Fail).await?;
    bulk::save(db, &[text], OnConflict::Fail).await.map(drop)
}

/// Stores how far it is; what was read in is dropped at the end.
#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::Replace).await?;
    if row.status != ImportStatus::Running {
        body::Entity::delete_by_id(row.id).exec(db).await?;
    }
    Ok(())
}

#[boxed]
pub async fn body(db: &Connection, id: ImportId) -> Result<String> {
    let row = body::Entity::find_by_id(id).one(db).await?;
    row.map(|row| row.body).ok_or(Error::NotFound("import"))
}

#[boxed]
pub async fn running(db: &Connection, share: Share) -> Result<Vec<TenantScoped<ImportId>>> {
    let select = Entity::find()
        .select_only()
        .columns([Column::TenantId, Column::Env, Column::Id])
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust("status = 'running'"));
    let rows: Vec<(TenantId, Env, ImportId)> = select.into_tuple().all(db).await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, env, id)| TenantScoped::new(tenant, env, id))
        .collect())
}

/// Ends all that read in whom to call, or why they may be called, of all tenants. Lists of whom not to call are read to their end.
#[boxed]
pub async fn give_up_contacts(db: &Connection, why: &str, now: Moment) -> Result<u64> {
    let ended = Entity::update_many()
        .col_expr(Column::Status, Expr::value(ImportStatus::Failed))
        .col_expr(Column::Error, Expr::value(why))
        .col_expr(Column::EndedAt, Expr::value(now))
        .filter(Expr::cust("status = 'running'"))
        .filter(Column::Kind.is_in([Kind::Contacts, Kind::Consents]))
        .exec(db)
        .await?;
    let running = Expr::cust("import_id NOT IN (SELECT id FROM imports WHERE status = 'running')");
    body::Entity::delete_many().filter(running).exec(db).await?;
    Ok(ended.rows_affected)
}

/// Jobs of the tenant that are not through.
#[boxed]
pub async fn count_running(db: &Connection, tenant: TenantId) -> Result<u64> {
    let select = Entity::find()
        .filter(Expr::cust("status = 'running'"))
        .filter(Column::TenantId.eq(tenant));
    Ok(select.count(db).await?)
}

/// Is one not through that was begun by then?
#[boxed]
pub async fn any_running_by(db: &Connection, (tenant, env): (TenantId, Env), by: Moment) -> Result<bool> {
    let select = Entity::find()
        .filter(Expr::cust("status = 'running'"))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::CreatedAt.lte(by));
    Ok(select.count(db).await? > 0)
}

/// The tenant's jobs that ended before then.
#[boxed]
pub async fn ended_before(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    before: Moment,
    limit: u64,
) -> Result<Vec<ImportId>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::EndedAt.lt(before))
        .select_only()
        .column(Column::Id);
    Ok(page::next(select, Column::Id, None::<ImportId>, limit)
        .into_tuple()
        .all(db)
        .await?)
}

#[boxed]
pub async fn remove(db: &Connection, ids: &[ImportId]) -> Result<()> {
    keys::remove(db, Entity, Column::Id, ids).await
}
