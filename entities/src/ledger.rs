//! Prepaid credits: one double-entry ledger per tenant and env, append-only, and the state of its account.
//!
//! An entry moves cents from one book to another, so the sum over all books is always zero. What the tenant has is the
//! sum of `available` and `held`. Each entry holds the hash of the one before: a changed row is found.
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::{LedgerEntryId, TenantId},
    page::{self, Listed, Page},
    values::{Cents, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

/// Where cents can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Book {
    /// The tenant's, free to be used.
    Available,
    /// The tenant's, set aside for calls and messages under way.
    Held,
    /// What was used.
    Revenue,
    /// The payment processor.
    Processor,
    /// The operator, who grants and corrects.
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Paid in.
    Topup,
    /// Set aside for a call or a message: when it is sent off, and again while a call lasts longer than that pays for.
    Hold,
    /// What was set aside and not used.
    Release,
    /// What a call or a message cost.
    Charge,
    /// Paid back by the processor.
    Refund,
    /// A refund that failed: its credits are back.
    RefundFailed,
    /// Given or corrected by the operator.
    Adjustment,
}

/// One line of a ledger.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "ledger_entries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub env: Env,
    /// 1, 2, 3, …: its place in this ledger.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i64,
    pub id: LedgerEntryId,
    pub kind: Kind,
    pub from_book: Book,
    pub to_book: Book,
    /// More than zero.
    pub cents: Cents,
    /// The session, message or top-up that it is about.
    pub subject_id: Option<Uuid>,
    /// The processor's payment, or the operator's words.
    pub note: Option<String>,
    pub balance_after_cents: Cents,
    pub held_after_cents: Cents,
    /// SHA-256, in hex, of the entry before and this one.
    pub hash: String,
    /// Its place among all commits; the writer gives it.
    pub seq: i64,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// What it adds to the balance: what is held is the tenant's still.
    pub fn amount(&self) -> Cents {
        let of_tenant = |book: Book| i64::from(matches!(book, Book::Available | Book::Held));
        Cents(self.cents.0 * (of_tenant(self.to_book) - of_tenant(self.from_book)))
    }
}

/// What is to happen to an account. Applied by the writer, in order, in the transaction that it is handed in with.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    pub tenant_id: TenantId,
    pub env: Env,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    TopUp {
        topup_id: Uuid,
        cents: Cents,
        payment_intent_id: String,
    },
    /// Nothing of the commit is written when less than that is available.
    Hold {
        subject: Uuid,
        cents: Cents,
    },
    /// Ends a hold: `cost` is charged, what is left of `held` released. A cost above the hold is charged too.
    Settle {
        subject: Uuid,
        held: Cents,
        cost: Cents,
    },
    Refund {
        topup_id: Uuid,
        cents: Cents,
    },
    /// So much of a refund came back.
    RefundFailed {
        topup_id: Uuid,
        cents: Cents,
    },
    /// Positive: given; negative: taken.
    Adjust {
        cents: Cents,
        note: String,
    },
    /// Below that balance the tenant is warned; `None`: never.
    Warn {
        below: Option<Cents>,
    },
    /// Something that waits costs that much. Moves nothing; when even the whole balance is less, the tenant is told.
    Short {
        cents: Cents,
    },
}

impl Movement {
    fn new((tenant_id, env): (TenantId, Env), what: What) -> Self {
        Movement { tenant_id, env, what }
    }
    pub fn top_up(owner: (TenantId, Env), topup_id: Uuid, cents: Cents, payment_intent_id: String) -> Self {
        let what = What::TopUp {
            topup_id,
            cents,
            payment_intent_id,
        };
        Self::new(owner, what)
    }
    pub fn hold(owner: (TenantId, Env), subject: Uuid, cents: Cents) -> Self {
        Self::new(owner, What::Hold { subject, cents })
    }
    pub fn settle(owner: (TenantId, Env), subject: Uuid, held: Cents, cost: Cents) -> Self {
        Self::new(owner, What::Settle { subject, held, cost })
    }
    pub fn refund(owner: (TenantId, Env), topup_id: Uuid, cents: Cents) -> Self {
        Self::new(owner, What::Refund { topup_id, cents })
    }
    pub fn refund_failed(owner: (TenantId, Env), topup_id: Uuid, cents: Cents) -> Self {
        Self::new(owner, What::RefundFailed { topup_id, cents })
    }
    pub fn adjust(owner: (TenantId, Env), cents: Cents, note: String) -> Self {
        Self::new(owner, What::Adjust { cents, note })
    }
    pub fn warn(owner: (TenantId, Env), below: Option<Cents>) -> Self {
        Self::new(owner, What::Warn { below })
    }
    pub fn short(owner: (TenantId, Env), cents: Cents) -> Self {
        Self::new(owner, What::Short { cents })
    }
}

fn owned((tenant, env): (TenantId, Env)) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
}

/// What a list of entries is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub kind: Option<Kind>,
    pub subject_id: Option<Uuid>,
}

/// A tenant's entries in one env.
#[boxed]
pub async fn list(db: &Connection, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let mut select = owned(owner);
    if let Some(kind) = filter.kind {
        select = select.filter(Column::Kind.eq(kind));
    }
    if let Some(subject) = filter.subject_id {
        select = select.filter(Column::SubjectId.eq(subject));
    }
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// The entries of one ledger after its `n`th, in their order: for the audit.
pub async fn entries_after(db: &Connection, owner: (TenantId, Env), n: i64, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, owned(owner), Column::N, Some(n), limit).await
}

/// The account as it stands; one that nothing ever moved is as `opening` says.
pub async fn load(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    opening: impl FnOnce(TenantId, Env) -> account::Model,
) -> Result<account::Model> {
    let found = account::Entity::find_by_id((tenant, env)).one(db).await?;
    Ok(found.unwrap_or_else(|| opening(tenant, env)))
}

/// The last place among all commits that an entry was given.
#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let select = account::Entity::find()
        .select_only()
        .column_as(Expr::cust("CAST(COALESCE(MAX(last_seq), 0) AS BIGINT)"), "last");
    Ok(select.into_tuple().one(db).await?.unwrap_or(0))
}

/// What a tenant has in one env: the sum of its ledger, kept in step by the transactions that write it.
pub mod account {
    use super::*;
    use crate::boxed;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "credit_accounts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub tenant_id: TenantId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub env: Env,
        /// What is available and what is held.
        pub balance_cents: Cents,
        pub held_cents: Cents,
        pub warning_threshold_cents: Option<Cents>,
        /// Since when nothing more can be paid for; null while something can.
        pub depleted_at: Option<Moment>,
        /// Entries in its ledger.
        pub entries: i64,
        pub last_hash: String,
        pub last_seq: i64,
        pub version: i32,
        pub updated_at: Moment,
    }
    impl ActiveModelBehavior for ActiveModel {}

    impl Model {
        /// What new calls and messages may use.
        pub fn available(&self) -> Cents {
            Cents(self.balance_cents.0 - self.held_cents.0)
        }
    }

    /// All accounts of all tenants: for the audit.
    #[boxed]
    pub async fn all(db: &Connection) -> Result<Vec<Model>> {
        let select = Entity::find().order_by(Column::TenantId, Order::Asc);
        Ok(select.order_by(Column::Env, Order::Asc).all(db).await?)
    }

    #[boxed]
    pub async fn of(db: &Connection, owners: &[(TenantId, Env)]) -> Result<Vec<Model>> {
        let mut found = Vec::new();
        let mut tenants: Vec<TenantId> = owners.iter().map(|(tenant, _)| *tenant).collect();
        tenants.sort();
        tenants.dedup();
        for chunk in bulk::padded(&tenants) {
            found.extend(Entity::find().filter(Column::TenantId.is_in(chunk)).all(db).await?);
        }
        Ok(found)
    }
}

/// What the operator has given or taken, until it is in the ledger: the command line writes it, the running service books it.
pub mod grant {
    use super::*;
    use crate::{boxed, ids::GrantId, workspace_lease::Share};

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "credit_grants")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: GrantId,
        pub tenant_id: TenantId,
        pub env: Env,
        pub cents: Cents,
        pub note: String,
        pub created_at: Moment,
    }
    impl ActiveModelBehavior for ActiveModel {}

    #[boxed]
    pub async fn add(db: &Connection, row: Model) -> Result<()> {
        bulk::save(db, &[row], bulk::OnConflict::Fail).await.map(drop)
    }

    #[boxed]
    pub async fn waiting(db: &Connection, share: Share, limit: u64) -> Result<Vec<Model>> {
        let mine = Entity::find().filter(share.of(Column::TenantId));
        let select = mine.order_by(Column::Id, Order::Asc).limit(limit);
        Ok(select.all(db).await?)
    }

    #[boxed]
    pub async fn waits(db: &Connection, id: GrantId) -> Result<bool> {
        Ok(Entity::find_by_id(id).one(db).await?.is_some())
    }

    /// Those of `ids` that were still there; they are booked in the same transaction.
    #[boxed]
    pub async fn take(db: &Connection, ids: &[GrantId]) -> Result<Vec<Model>> {
        let rows = Entity::find()
            .filter(Column::Id.is_in(ids.iter().copied()))
            .all(db)
            .await?;
        Entity::delete_many()
            .filter(Column::Id.is_in(ids.iter().copied()))
            .exec(db)
            .await?;
        Ok(rows)
    }
}
