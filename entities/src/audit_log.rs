//! Who changed whose access: passwords, members, roles, keys, a workspace's settings. Rows are added, in the transaction of
//! the act that they tell of, and forgotten when their time is over; none is ever changed, but for
//! the answer to a request.
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::Connection,
    db::Db,
    error::Result,
    ids::{AuditLogId, TenantId, UserId},
    page::{self, Listed, Page},
    values::Moment,
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, FromJsonQueryResult,
    entity::prelude::*,
    sea_query::{Expr, StringLen},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_log")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AuditLogId,
    /// None: an act on an account that belongs to no workspace.
    pub tenant_id: Option<TenantId>,
    pub actor: Actor,
    /// The user who did it; none for the operator.
    pub user_id: Option<UserId>,
    /// The address that this user had then.
    pub user_email: Option<String>,
    pub action: Action,
    /// Whom or what it was done to: an e-mail address, an API key's id, a workspace's slug.
    pub subject: String,
    /// Never a secret.
    #[sea_orm(column_type = "JsonBinary")]
    pub details: Details,
    pub at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AuditActor")]
pub enum Actor {
    /// Somebody signed in to the dashboard.
    User,
    /// Somebody at the server's command line.
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(32))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AuditAction")]
pub enum Action {
    MemberAdded,
    RoleChanged,
    MemberRemoved,
    /// A link was made by which somebody may become a member.
    Invited,
    InvitationWithdrawn,
    /// A link for a new password was made, by the operator.
    PasswordResetMade,
    /// By a link that was sent to the user.
    PasswordReset,
    /// By the user, who knew the old one.
    PasswordChanged,
    /// By the operator.
    PasswordSet,
    SignedOutEverywhere,
    /// One of the user's own, in another browser or this one.
    SessionEnded,
    KeyCreated,
    KeyRevoked,
    WorkspaceChanged,
    /// Something that may change what the workspace has, or a recording, in the console.
    Requested,
}

/// Further details of an act: names and values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
#[schemars(rename = "AuditDetails")]
pub struct Details(pub BTreeMap<String, serde_json::Value>);

#[boxed]
pub async fn add(db: &Connection, rows: &[Model]) -> Result<()> {
    bulk::save(db, rows, OnConflict::Fail).await.map(drop)
}

/// What a request was answered stands in its details; a row is added before that is known.
#[boxed]
pub async fn answered(db: &Connection, id: AuditLogId, details: Details) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::Details, Expr::value(details))
        .filter(Column::Id.eq(id));
    update.exec(db).await?;
    Ok(())
}

/// What the log is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In lower case.
    pub user_email: Option<String>,
    pub action: Option<Action>,
}

/// What was done in a workspace.
#[boxed]
pub async fn list(db: &Db, tenant: TenantId, filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = Entity::find().filter(Column::TenantId.eq(tenant));
    let wanted = Condition::all()
        .add_option(filter.user_email.map(|email| Column::UserEmail.eq(email)))
        .add_option(filter.action.map(|action| Column::Action.eq(action)));
    page::search(db, all, wanted, Column::Id, Column::At, page).await
}

/// All rows, oldest first, a page at a time.
pub async fn all_after(db: &Connection, after: Option<AuditLogId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Forgets what is older.
#[boxed]
pub async fn prune(db: &Connection, before: Moment) -> Result<()> {
    let over = Column::Id.lt(AuditLogId::floor(before));
    Entity::delete_many().filter(over).exec(db).await?;
    Ok(())
}
