//! Which node has a workspace: it alone writes, dials and sends for it. Only the node itself gives it up while it lives; the
//! workspaces of one that was ended are free.
//!
//! The row of nobody's id is the installation's: who has it does what there is only once (tidying, e-mails to users, sign-ins).
use crate::{
    boxed, bulk,
    bulk::OnConflict,
    connection::{Connection, Transaction},
    error::Result,
    ids::{NodeId, TenantId},
    node::{self, NOW_MS},
    tenant,
    values::Moment,
};
use sea_orm::{
    Condition, FromQueryResult, JoinType, Order, QueryOrder, QuerySelect, QueryTrait, RelationDef,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait, LockBehavior, LockType},
};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "workspace_leases")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    pub node_id: Option<NodeId>,
    /// Grows each time that a node takes it.
    pub epoch: i64,
    /// Whom the node that gave it up had in mind, and until when others leave it to that one, by the database's clock.
    pub wanted_by: Option<NodeId>,
    pub wanted_until_ms: Option<i64>,
    /// When the node before was last known to carry its calls, by that node's clock.
    pub last_seen_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

/// The installation's own.
pub const INSTALLATION: TenantId = TenantId(Uuid::nil());

/// Whose workspaces are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All there are: one process serves the database.
    Whole,
    /// Those that the node has.
    Of(NodeId),
}

impl Share {
    /// Rows of those workspaces only; `tenant` says whose a row is.
    pub fn of(self, tenant: impl ColumnTrait) -> Condition {
        match self {
            Share::Whole => Condition::all(),
            Share::Of(node) => {
                let held = Entity::find().select_only().column(Column::TenantId);
                let held = held.filter(Column::NodeId.eq(node)).into_query();
                Condition::all().add(tenant.in_subquery(held))
            }
        }
    }
}

/// Rows of these workspaces; `None`: of all.
pub fn any_of(tenant: impl ColumnTrait, of: Option<&[TenantId]>) -> Condition {
    match of {
        None => Condition::all(),
        Some(of) => Condition::all().add(tenant.is_in(of.iter().copied())),
    }
}

/// A workspace that was taken, and when the node before was last known to carry its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub tenant_id: TenantId,
    /// No node has ever had it.
    pub is_new: bool,
    pub last_seen_at: Option<Moment>,
}

impl From<Model> for Taken {
    fn from(row: Model) -> Self {
        Taken {
            tenant_id: row.tenant_id,
            is_new: row.epoch == 0,
            last_seen_at: row.last_seen_at,
        }
    }
}

/// Makes the rows of workspaces that have none, of which there are few.
#[boxed]
pub async fn open(db: &Connection) -> Result<()> {
    let known = Entity::find().select_only().column(Column::TenantId).into_query();
    let select = tenant::Entity::find().select_only().column(tenant::Column::Id);
    let new = select.filter(tenant::Column::Id.not_in_subquery(known)).limit(1_000);
    let mut new: Vec<TenantId> = new.into_tuple().all(db).await?;
    new.push(INSTALLATION);
    let rows: Vec<Model> = new.into_iter().map(free).collect();
    bulk::save(db, &rows, OnConflict::Keep).await.map(drop)
}

fn free(tenant_id: TenantId) -> Model {
    Model {
        tenant_id,
        node_id: None,
        epoch: 0,
        wanted_by: None,
        wanted_until_ms: None,
        last_seen_at: None,
    }
}

/// How many nobody has.
#[boxed]
pub async fn count_free(db: &Connection) -> Result<u64> {
    Ok(Entity::find().filter(Column::NodeId.is_null()).count(db).await?)
}

/// Not meant for another living node, or no longer.
fn is_open_to(node: NodeId) -> Condition {
    let others = node::Entity::find().select_only().column(node::Column::Id);
    let others = others
        .filter(Expr::cust("ended_ms IS NULL AND NOT draining"))
        .filter(node::Column::Id.ne(node))
        .into_query();
    Condition::any()
        .add(Column::WantedBy.is_null())
        .add(Expr::cust(format!("wanted_until_ms < {NOW_MS}")))
        .add(Column::WantedBy.not_in_subquery(others))
}

/// So long a workspace is left to the node that it was meant for.
const WANTED_FOR_MS: i64 = 5_000;

/// Takes free ones for the node, first those that were meant for it, at most `limit`; none that is meant for another living one.
#[boxed]
pub async fn take(db: &Transaction, node: NodeId, limit: u64) -> Result<Vec<Taken>> {
    let is_open = is_open_to(node);
    let select = Entity::find()
        .filter(Column::NodeId.is_null())
        .filter(is_open)
        .order_by(Expr::cust(format!("(wanted_by = '{node}'::uuid) IS TRUE")), Order::Desc)
        .limit(limit)
        // Another node that takes some at this moment takes others.
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    take_all(db, node, select.all(&**db).await?).await
}

/// Takes this one, if it is free and meant for no other living node.
#[boxed]
pub async fn take_one(db: &Transaction, node: NodeId, tenant: TenantId) -> Result<Vec<Taken>> {
    bulk::save(db, &[free(tenant)], OnConflict::Keep).await?;
    let select = Entity::find_by_id(tenant)
        .filter(Column::NodeId.is_null())
        .filter(is_open_to(node));
    let found = select.lock_exclusive().one(&**db).await?;
    take_all(db, node, found.into_iter().collect()).await
}

async fn take_all(db: &Transaction, node: NodeId, rows: Vec<Model>) -> Result<Vec<Taken>> {
    let tenants: Vec<TenantId> = rows.iter().map(|row| row.tenant_id).collect();
    for some in bulk::padded(&tenants) {
        Entity::update_many()
            .col_expr(Column::NodeId, Expr::value(node))
            .col_expr(Column::WantedBy, Expr::value(None::<NodeId>))
            .col_expr(Column::Epoch, Expr::col(Column::Epoch).add(1))
            .filter(Column::TenantId.is_in(some))
            .exec(&**db)
            .await?;
    }
    Ok(rows.into_iter().map(Taken::from).collect())
}

/// All that the node has.
#[boxed]
pub async fn of(db: &Connection, node: NodeId) -> Result<Vec<Taken>> {
    let rows = Entity::find().filter(Column::NodeId.eq(node)).all(db).await?;
    Ok(rows.into_iter().map(Taken::from).collect())
}

/// How many it has.
#[boxed]
pub async fn count_of(db: &Connection, node: NodeId) -> Result<u64> {
    Ok(Entity::find().filter(Column::NodeId.eq(node)).count(db).await?)
}

/// The node gives these up. Nothing of them was cut off, so nobody needs to know until when they were carried.
#[boxed]
pub async fn give_up(db: &Transaction, node: NodeId, tenants: &[TenantId], wanted_by: Option<NodeId>) -> Result<()> {
    for some in bulk::padded(tenants) {
        Entity::update_many()
            .col_expr(Column::NodeId, Expr::value(None::<NodeId>))
            .col_expr(Column::WantedBy, Expr::value(wanted_by))
            .col_expr(Column::WantedUntilMs, Expr::cust(format!("{NOW_MS} + {WANTED_FOR_MS}")))
            .col_expr(Column::LastSeenAt, Expr::value(None::<Moment>))
            .filter(Column::TenantId.is_in(some))
            .filter(Column::NodeId.eq(node))
            .exec(&**db)
            .await?;
    }
    Ok(())
}

/// All that the node had are free.
#[boxed]
pub(crate) async fn free_all(db: &Transaction, node: NodeId, last_seen_at: Option<Moment>) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::NodeId, Expr::value(None::<NodeId>))
        .col_expr(Column::LastSeenAt, Expr::value(last_seen_at))
        .filter(Column::NodeId.eq(node))
        .exec(&**db)
        .await?;
    Ok(())
}

/// Who has a workspace, and where.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct Owner {
    pub id: NodeId,
    pub name: String,
    pub address: String,
    pub sip_address: Option<String>,
}

/// `None`: nobody has it.
#[boxed]
pub async fn owner(db: &Connection, tenant: TenantId) -> Result<Option<Owner>> {
    let nodes: RelationDef = Entity::belongs_to(node::Entity)
        .from(Column::NodeId)
        .to(node::Column::Id)
        .into();
    let select = Entity::find_by_id(tenant)
        .select_only()
        .column_as(node::Column::Id, "id")
        .column_as(node::Column::Name, "name")
        .column_as(node::Column::Address, "address")
        .column_as(node::Column::SipAddress, "sip_address")
        .join(JoinType::InnerJoin, nodes);
    Ok(select.into_model().one(db).await?)
}
