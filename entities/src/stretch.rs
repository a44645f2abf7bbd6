//! A campaign's list in parts: a list may be long, and what counts it whole would keep a connection, and the database's log,
//! for as long. So each statement looks at a stretch of it, and whoever has waited for the answer may leave in between.
use crate::{
    contact::{Column, Entity},
    dnc::DncChannel,
    error::Result,
    ids::{CampaignId, ContactId, TenantId},
    message_send,
    values::{Env, Moment},
};
use sea_orm::{Order, QueryOrder, QuerySelect, Statement, Value, entity::prelude::*, sea_query::Expr};

/// A part of a campaign's list, by the order of ids: what one statement looks at of a list that may be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    campaign: CampaignId,
    /// The contacts behind this one,
    after: ContactId,
    /// and this one, at most.
    until: ContactId,
}

impl Stretch {
    const FIRST: ContactId = ContactId(Uuid::nil());
    const LAST: ContactId = ContactId(Uuid::max());

    /// What follows it; `None` behind the list's end.
    pub async fn next(self, db: &impl ConnectionTrait, contacts: u64) -> Result<Option<Stretch>> {
        if self.until == Self::LAST {
            return Ok(None);
        }
        behind(db, self.campaign, self.until, contacts).await.map(Some)
    }
}

/// The first so many contacts of a list.
pub async fn first(db: &impl ConnectionTrait, campaign: CampaignId, contacts: u64) -> Result<Stretch> {
    behind(db, campaign, Stretch::FIRST, contacts).await
}

async fn behind(db: &impl ConnectionTrait, campaign: CampaignId, after: ContactId, contacts: u64) -> Result<Stretch> {
    let ids: Vec<ContactId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CampaignId.eq(campaign))
        .filter(Column::Id.gt(after))
        .order_by(Column::Id, Order::Asc)
        .limit(contacts)
        .into_tuple()
        .all(db)
        .await?;
    let ends = ids.last().filter(|_| ids.len() as u64 >= contacts);
    Ok(Stretch {
        campaign,
        after,
        // Fewer are left: to the end, and whoever is added meanwhile is among them.
        until: ends.copied().unwrap_or(Stretch::LAST),
    })
}

/// Contacts of a stretch that wait, by zone.
pub async fn count_by_zone(db: &impl ConnectionTrait, part: Stretch) -> Result<Vec<(String, i64)>> {
    let select = Entity::find()
        .select_only()
        .column(Column::Zone)
        .column_as(Expr::cust("COUNT(*)"), "contacts")
        .filter(Column::CampaignId.eq(part.campaign))
        .filter(Column::Id.gt(part.after))
        .filter(Column::Id.lte(part.until))
        .filter(Expr::cust("status IN ('pending', 'waiting')"))
        .group_by(Column::Zone);
    Ok(select.into_tuple().all(db).await?)
}

/// Contacts of a stretch of a test campaign that wait, whose number is neither of the sandbox nor verified.
pub async fn count_unverified(db: &impl ConnectionTrait, tenant: TenantId, part: Stretch) -> Result<i64> {
    const TEXT: &str = "SELECT COUNT(*) FROM contacts WHERE campaign_id = $1 AND id > $2 AND id <= $3 \
        AND status IN ('pending', 'waiting') AND zone <> '!' \
        AND NOT (phone_number LIKE '+1500%' AND LENGTH(phone_number) = 12 AND SUBSTR(phone_number, 6, 1) BETWEEN '2' AND '9') \
        AND NOT EXISTS (SELECT 1 FROM verified_numbers WHERE tenant_id = $4 \
        AND verified_numbers.phone_number = contacts.phone_number AND verified_numbers.status = 'verified')";
    count(db, TEXT, part, [tenant.into()]).await
}

/// Contacts of a stretch with a number of the sandbox, which a live campaign does not call.
pub async fn count_sandbox(db: &impl ConnectionTrait, part: Stretch) -> Result<i64> {
    const TEXT: &str = "SELECT COUNT(*) FROM contacts WHERE campaign_id = $1 AND id > $2 AND id <= $3 \
        AND status IN ('pending', 'waiting') AND zone <> '!' \
        AND phone_number LIKE '+1500%' AND LENGTH(phone_number) = 12 AND SUBSTR(phone_number, 6, 1) BETWEEN '2' AND '9'";
    count(db, TEXT, part, []).await
}

/// Contacts of a stretch that wait and must not be reached by that channel.
pub async fn count_barred(
    db: &impl ConnectionTrait,
    (tenant, env): (TenantId, Env),
    part: Stretch,
    channel: DncChannel,
) -> Result<i64> {
    let (column, word) = match channel {
        DncChannel::Phone => ("phone_number", "phone"),
        DncChannel::Sms => ("phone_number", "sms"),
        DncChannel::Email => ("email", "email"),
    };
    let text = format!(
        "SELECT COUNT(*) FROM contacts WHERE campaign_id = $1 AND id > $2 AND id <= $3 \
         AND status IN ('pending', 'waiting') AND EXISTS \
         (SELECT 1 FROM dnc_entries WHERE removed_at IS NULL AND dnc_entries.{column} IS NOT NULL AND tenant_id = $4 \
         AND env = $5 AND dnc_entries.{column} = contacts.address AND CAST(channels AS TEXT) LIKE '%{word}%')"
    );
    count(db, &text, part, [tenant.into(), env.into()]).await
}

/// Contacts of a stretch whose number was dialled at least `cap` times since then.
pub async fn count_capped(
    db: &impl ConnectionTrait,
    (tenant, env): (TenantId, Env),
    part: Stretch,
    (cap, since): (i32, Moment),
) -> Result<i64> {
    const TEXT: &str = "SELECT COUNT(*) FROM contacts WHERE campaign_id = $1 AND id > $2 AND id <= $3 \
        AND status IN ('pending', 'waiting') AND \
        (SELECT COUNT(*) FROM dials WHERE dials.tenant_id = $4 AND dials.env = $5 \
        AND dials.phone_number = contacts.phone_number AND dialed_at > $6) >= $7";
    let cap = i64::from(cap);
    count(db, TEXT, part, [tenant.into(), env.into(), since.into(), cap.into()]).await
}

/// Contacts of a stretch who were written at least `cap` times since then, by that channel.
pub async fn count_written(
    db: &impl ConnectionTrait,
    (tenant, env): (TenantId, Env),
    part: Stretch,
    channel: message_send::Channel,
    (cap, since): (i32, Moment),
) -> Result<i64> {
    const TEXT: &str = "SELECT COUNT(*) FROM contacts WHERE campaign_id = $1 AND id > $2 AND id <= $3 \
        AND status IN ('pending', 'waiting') AND \
        (SELECT COUNT(DISTINCT message_id) FROM message_sends WHERE message_sends.tenant_id = $4 \
        AND message_sends.env = $5 AND message_sends.channel = $6 AND message_sends.address = contacts.address \
        AND sent_at > $7) >= $8";
    let cap = i64::from(cap);
    let more = [tenant.into(), env.into(), channel.into(), since.into(), cap.into()];
    count(db, TEXT, part, more).await
}

/// What a text counts in a stretch, which is its first three values.
async fn count<const N: usize>(db: &impl ConnectionTrait, text: &str, part: Stretch, more: [Value; N]) -> Result<i64> {
    let stretch: [Value; 3] = [part.campaign.into(), part.after.into(), part.until.into()];
    let values = stretch.into_iter().chain(more);
    let statement = Statement::from_sql_and_values(db.get_database_backend(), text, values);
    let row = db.query_one_raw(statement).await?;
    Ok(row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0))
}
