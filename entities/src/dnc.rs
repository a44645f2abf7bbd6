//! The do-not-call list: numbers and addresses that a tenant must not use. What is removed stays, with who wanted it and why.
use crate::{
    boxed, bulk,
    connection::{Connection, Transaction},
    db::Db,
    error::{Error, Result},
    ids::{DncId, SessionId, TenantId, TenantScoped},
    page::{self, Listed, Page},
    values::{E164, Env, Moment},
};
use schemars::JsonSchema;
use sea_orm::{
    Condition, DeriveActiveEnum, EnumIter, ExprTrait, FromJsonQueryResult, QuerySelect, Statement, TryGetable, Value,
    entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, hash::Hash};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "A way to reach somebody.")]
pub enum DncChannel {
    Phone,
    Sms,
    Email,
}

/// What is barred, without repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Channels(pub Vec<DncChannel>);

impl Channels {
    pub fn of(mut channels: Vec<DncChannel>) -> Self {
        channels.sort();
        channels.dedup();
        Channels(channels)
    }
    pub fn contain(&self, channel: DncChannel) -> bool {
        self.0.contains(&channel)
    }
}

/// Who put it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The person said so in a call.
    OptOutVoice,
    SmsStop,
    Unsubscribe,
    Manual,
    Import,
}

impl Source {
    /// Has the person said so to the service itself?
    pub fn is_own_wish(self) -> bool {
        match self {
            Source::OptOutVoice | Source::SmsStop | Source::Unsubscribe => true,
            Source::Manual | Source::Import => false,
        }
    }
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "dnc_entries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: DncId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub channels: Channels,
    pub reason: Option<String>,
    pub source: Source,
    pub session_id: Option<SessionId>,
    /// When the person asked for it, as whoever added it says.
    pub requested_at: Option<Moment>,
    /// When the person has last said it to the service itself, whoever else had put them on the list before.
    pub opted_out_at: Option<Moment>,
    /// Who has added it; none: the person it is about.
    pub created_by: Option<String>,
    /// Its place among all commits; the writer gives it.
    pub added_seq: i64,
    pub removed_at: Option<Moment>,
    pub removed_reason: Option<String>,
    pub removed_by: Option<String>,
    pub removed_seq: Option<i64>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// When the person has last opted out; none: others have put them on the list.
    pub fn own_wish_at(&self) -> Option<Moment> {
        // Entries from before that was kept say it by their source.
        let by_source = self.source.is_own_wish().then_some(self.created_at);
        self.opted_out_at.or(by_source)
    }

    /// When the person has last said no, to the service or, as whoever added it says, elsewhere; none: nobody knows that they did.
    pub fn said_no_at(&self) -> Option<Moment> {
        Ord::max(self.own_wish_at(), self.requested_at)
    }
}

/// That somebody on the list has said it again. What the entry bars stays as it is, and so does its place among all commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub tenant_id: TenantId,
    pub entry: DncId,
    pub opted_out_at: Option<Moment>,
    pub requested_at: Option<Moment>,
}

impl Wish {
    /// What a row says of it.
    pub fn of(row: &Model) -> Self {
        Wish {
            tenant_id: row.tenant_id,
            entry: row.id,
            opted_out_at: row.opted_out_at,
            requested_at: row.requested_at,
        }
    }
}

/// Notes them. Whoever has decided by the entry as it was decides anew.
#[boxed]
pub async fn note(db: &Transaction, wishes: &[Wish]) -> Result<()> {
    for wish in wishes {
        Entity::update_many()
            .col_expr(Column::OptedOutAt, Expr::value(wish.opted_out_at))
            .col_expr(Column::RequestedAt, Expr::value(wish.requested_at))
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .filter(Column::Id.eq(wish.entry))
            .filter(Column::TenantId.eq(wish.tenant_id))
            .filter(is_barred())
            .exec(&**db)
            .await?;
    }
    Ok(())
}

/// Written out, not bound: only so do the databases see that the small indexes of what is barred serve.
fn is_barred() -> Expr {
    Expr::cust("removed_at IS NULL")
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(is_barred())
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<DncId>) -> Result<Model> {
    let found = owned(key.tenant_id, key.env).filter(Column::Id.eq(key.id));
    found.one(db).await?.ok_or(Error::NotFound("do-not-call entry"))
}

/// What a list is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    pub source: Option<Source>,
    /// Those that were taken off, in place of those that are on it.
    pub removed: bool,
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let all = if filter.removed {
        Entity::find()
            .filter(Column::TenantId.eq(owner.0))
            .filter(Column::Env.eq(owner.1))
            .filter(Expr::cust("removed_at IS NOT NULL"))
    } else {
        owned(owner.0, owner.1)
    };
    let mut wanted = Condition::all().add_option(filter.source.map(|source| Column::Source.eq(source)));
    let of_one = Condition::all()
        .add_option(filter.phone_number.map(|number| Column::PhoneNumber.eq(number)))
        .add_option(filter.email.map(|email| Column::Email.eq(email)));
    // Of those that are on it an index knows each.
    let all = if filter.removed {
        wanted = wanted.add(of_one);
        all
    } else {
        all.filter(of_one)
    };
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// The entry of a number.
#[boxed]
pub async fn of_number(db: &Connection, (tenant, env): (TenantId, Env), number: &E164) -> Result<Option<Model>> {
    let found = owned(tenant, env)
        .filter(Expr::cust("phone_number IS NOT NULL"))
        .filter(Column::PhoneNumber.eq(number.clone()));
    Ok(found.one(db).await?)
}

/// The entry of an address, which is compared in lower case.
#[boxed]
pub async fn of_email(db: &Connection, (tenant, env): (TenantId, Env), email: &str) -> Result<Option<Model>> {
    let found = owned(tenant, env)
        .filter(Expr::cust("email IS NOT NULL"))
        .filter(Column::Email.eq(email));
    Ok(found.one(db).await?)
}

/// Those of `addresses` (numbers, or e-mail addresses in lower case) that must not be reached by that channel.
pub async fn barred<A>(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    channel: DncChannel,
    addresses: &[A],
) -> Result<HashSet<A>>
where
    A: Clone + Eq + Hash + Into<Value> + TryGetable,
{
    let column = match channel {
        DncChannel::Phone | DncChannel::Sms => "phone_number",
        DncChannel::Email => "email",
    };
    let mut found = HashSet::new();
    for chunk in bulk::padded(addresses) {
        let backend = db.get_database_backend();
        let mut text = format!(
            "SELECT {column}, channels FROM dnc_entries WHERE removed_at IS NULL AND {column} IS NOT NULL AND {column}"
        );
        let mut values = bulk::among(&mut text, backend, &chunk);
        for (clause, value) in [(" AND tenant_id = ", Value::from(tenant)), (" AND env = ", env.into())] {
            values.push(value);
            text.push_str(clause);
            bulk::placeholder(&mut text, backend, values.len());
        }
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let channels: Channels = row.try_get_by_index(1)?;
            if channels.contain(channel) {
                found.insert(row.try_get_by_index(0)?);
            }
        }
    }
    Ok(found)
}

/// Every entry that ever was, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<DncId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// The last place among all commits that an entry was given.
#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let select = Entity::find().select_only().column_as(
        Expr::cust(
            "CAST(COALESCE(MAX(CASE WHEN removed_seq > added_seq THEN removed_seq ELSE added_seq END), 0) AS BIGINT)",
        ),
        "last",
    );
    Ok(select.into_tuple().one(db).await?.unwrap_or(0))
}
