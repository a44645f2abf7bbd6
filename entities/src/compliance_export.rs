//! Exports of the record of attempts: stored jobs that write sealed files, part by part, and at the end a signed manifest.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::{Error, Result},
    ids::{CampaignId, ComplianceExportId, TenantId, TenantScoped},
    keys,
    owned::of_tenant_and_env,
    page::{self, Listed, Page},
    values::{Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How far an export is.")]
pub enum ExportStatus {
    Running,
    Completed,
    /// It could not go on; `error` says why.
    Failed,
    /// It was deleted, or somebody who is in it was erased: nobody finds it any more, and its files are being removed.
    Expired,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "How the files of an export are written.")]
pub enum ExportFormat {
    /// JSON lines: what `callboard compliance verify` and `prove` read.
    #[default]
    Jsonl,
    /// For spreadsheets.
    Csv,
}

impl ExportFormat {
    pub const fn extension(self) -> &'static str {
        match self {
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Csv => "csv",
        }
    }
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportFile {
    /// 1, 2, 3, …
    pub part: i32,
    pub bytes: i64,
    /// In hex.
    pub sha256: String,
    pub rows: i64,
    /// Places in the chain.
    pub first_n: i64,
    pub last_n: i64,
    /// Versions of the law pack that its attempts were judged by.
    #[serde(default)]
    pub laws: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct ExportFiles(pub Vec<ExportFile>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "compliance_exports")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ComplianceExportId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub status: ExportStatus,
    pub format: ExportFormat,
    /// Keyed hash of the number or address that it is about.
    pub number_hash: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    /// What it looks through: as the chain was when it was asked for.
    pub first_n: i64,
    pub last_n: i64,
    /// Where the next part begins.
    pub next_n: i64,
    /// How often rows were blanked that it has yet to write: a part that was begun before is made again.
    pub blanked: i32,
    pub row_count: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub files: ExportFiles,
    /// Of all files.
    pub bytes: i64,
    /// JSON, as it was signed; `None`: not made yet.
    #[sea_orm(column_type = "Text", nullable)]
    pub manifest: Option<String>,
    pub signature: Option<String>,
    pub public_key: Option<String>,
    pub error: Option<String>,
    pub created_by: Option<String>,
    pub created_at: Moment,
    pub ended_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant_and_env!(ComplianceExportId, "export");

/// Of one tenant in one env, but for those that have expired.
#[boxed]
pub async fn list(db: &Connection, owner: (TenantId, Env), page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1).filter(Column::Status.ne(ExportStatus::Expired));
    page::fetch(db, all, Column::Id, Column::CreatedAt, page).await
}

/// How many the tenant has, and the bytes of their files.
#[boxed]
pub async fn kept(db: &Connection, tenant: TenantId) -> Result<(i64, i64)> {
    let all = Entity::find()
        .select_only()
        .column_as(Expr::cust("CAST(COUNT(*) AS BIGINT)"), "exports")
        .column_as(Expr::cust("CAST(COALESCE(SUM(bytes), 0) AS BIGINT)"), "bytes")
        .filter(Column::TenantId.eq(tenant));
    Ok(all.into_tuple().one(db).await?.unwrap_or_default())
}

/// Those that have looked through some of these places of the chain, or will, and have not expired.
#[boxed]
pub async fn holding(db: &Connection, owner: (TenantId, Env), (first, last): (i64, i64)) -> Result<Vec<Model>> {
    let all = owned(owner.0, owner.1)
        .filter(Column::Status.ne(ExportStatus::Expired))
        .filter(Column::FirstN.lte(last))
        .filter(Column::LastN.gte(first));
    Ok(all.all(db).await?)
}

/// Those of the workspaces that this process has whose files are to be removed, a few.
#[boxed]
pub async fn expired(db: &Connection, share: Share, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust("status = 'expired'"))
        .limit(limit);
    Ok(select.all(db).await?)
}

#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::Replace)
        .await
        .map(drop)
}

/// All of all tenants, a page at a time.
pub async fn all_after(db: &Connection, after: Option<ComplianceExportId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Exports that are not through, of the workspaces that this process has.
#[boxed]
pub async fn running(db: &Connection, share: Share) -> Result<Vec<TenantScoped<ComplianceExportId>>> {
    let select = Entity::find()
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust("status = 'running'"));
    keys::of(db, select, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Jobs of the tenant that are not through.
#[boxed]
pub async fn count_running(db: &Connection, tenant: TenantId) -> Result<u64> {
    let select = Entity::find()
        .filter(Expr::cust("status = 'running'"))
        .filter(Column::TenantId.eq(tenant));
    Ok(select.count(db).await?)
}

/// Those of the workspaces that this process has that ended before then, a few.
#[boxed]
pub async fn ended_before(db: &Connection, share: Share, before: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(share.of(Column::TenantId))
        .filter(Column::EndedAt.lt(before))
        .limit(limit);
    Ok(select.all(db).await?)
}

#[boxed]
pub async fn remove(db: &Connection, ids: &[ComplianceExportId]) -> Result<()> {
    keys::remove(db, Entity, Column::Id, ids).await
}
