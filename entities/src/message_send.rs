//! Every intent to write to somebody: to whom, by what, when, and in which order. The caps are counted from it.
use crate::{
    boxed, bulk,
    connection::Connection,
    dnc::DncChannel,
    error::Result,
    ids::{CampaignId, TenantId},
    values::{Env, Moment},
};
use sea_orm::{
    DeriveActiveEnum, EnumIter, Order, QueryOrder, QuerySelect, Statement, Value,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
pub enum Channel {
    Sms,
    Email,
}

impl Channel {
    /// As the do-not-call list calls it.
    pub fn dnc(self) -> DncChannel {
        match self {
            Channel::Sms => DncChannel::Sms,
            Channel::Email => DncChannel::Email,
        }
    }
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "message_sends")]
pub struct Model {
    // The table's own key begins with these four, so that what somebody was sent lies together.
    pub tenant_id: TenantId,
    pub env: Env,
    pub channel: Channel,
    /// A number in E.164, or an e-mail address in lower case.
    pub address: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: Uuid,
    /// 1, and more where the provider did not take the message and was asked again.
    #[sea_orm(primary_key, auto_increment = false)]
    pub n: i32,
    pub campaign_id: Option<CampaignId>,
    pub sent_at: Moment,
    /// Its place among all commits; the writer gives it.
    pub seq: i64,
}
impl ActiveModelBehavior for ActiveModel {}

/// A message to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    pub at: Moment,
    pub message_id: Uuid,
}

/// The messages after `since` to each of `addresses`, in order. One that was tried again counts once.
#[boxed]
pub async fn recent(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    channel: Channel,
    addresses: &[String],
    since: Moment,
) -> Result<HashMap<String, Vec<Sent>>> {
    let mut found: HashMap<String, Vec<Sent>> = HashMap::new();
    for chunk in bulk::padded(addresses) {
        let backend = db.get_database_backend();
        let mut text = String::from("SELECT address, message_id, MAX(sent_at) FROM message_sends WHERE address");
        let mut values = bulk::among(&mut text, backend, &chunk);
        for (clause, value) in [
            (" AND tenant_id = ", Value::from(tenant)),
            (" AND env = ", env.into()),
            (" AND channel = ", channel.into()),
            (" AND sent_at > ", since.into()),
        ] {
            values.push(value);
            text.push_str(clause);
            bulk::placeholder(&mut text, backend, values.len());
        }
        text.push_str(" GROUP BY address, message_id");
        for row in db
            .query_all_raw(Statement::from_sql_and_values(backend, text, values))
            .await?
        {
            let address: String = row.try_get_by_index(0)?;
            let message_id = row.try_get_by_index(1)?;
            let at = row.try_get_by_index(2)?;
            found.entry(address).or_default().push(Sent { at, message_id });
        }
    }
    for sent in found.values_mut() {
        sent.sort();
    }
    Ok(found)
}

/// All intents of one message, in order.
#[boxed]
pub async fn of_message(db: &Connection, message: Uuid, address: (TenantId, Env, Channel, &str)) -> Result<Vec<Model>> {
    let (tenant, env, channel, address) = address;
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Channel.eq(channel))
        .filter(Column::Address.eq(address))
        .filter(Column::MessageId.eq(message));
    let mut rows = select.all(db).await?;
    rows.sort_by_key(|row| row.n);
    Ok(rows)
}

/// All intents of all tenants, a page at a time, in the order of the table's own key: for the audit.
pub async fn all_after(db: &Connection, after: Option<Model>, limit: u64) -> Result<Vec<Model>> {
    const KEY: [Column; 6] = [
        Column::TenantId,
        Column::Env,
        Column::Channel,
        Column::Address,
        Column::MessageId,
        Column::N,
    ];
    let mut select = Entity::find();
    if let Some(row) = after {
        let last = [
            Expr::val(row.tenant_id),
            Expr::val(row.env),
            Expr::val(row.channel),
            Expr::val(row.address.as_str()),
            Expr::val(row.message_id),
            Expr::val(row.n),
        ];
        select = select.filter(Expr::tuple(KEY.map(Expr::col)).gt(Expr::tuple(last)));
    }
    for column in KEY {
        select = select.order_by(column, Order::Asc);
    }
    Ok(select.limit(limit).all(db).await?)
}

/// The last place among all commits that an intent was given.
#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let select = Entity::find()
        .select_only()
        .column_as(Expr::cust("CAST(COALESCE(MAX(seq), 0) AS BIGINT)"), "last");
    Ok(select.into_tuple().one(db).await?.unwrap_or(0))
}

/// Removes the intents of these messages to these addresses. No cap counts them any more.
pub async fn remove<I: Copy + Into<Value>>(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    channel: Channel,
    messages: &[(I, String)],
) -> Result<()> {
    let key = |(message, address): &(I, String)| -> Vec<Value> {
        vec![
            tenant.into(),
            env.into(),
            channel.into(),
            address.clone().into(),
            (*message).into(),
        ]
    };
    let rows: Vec<_> = messages.iter().map(key).collect();
    bulk::remove_by_key(
        db,
        "message_sends",
        &["tenant_id", "env", "channel", "address", "message_id"],
        &rows,
    )
    .await
}
