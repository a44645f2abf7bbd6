//! Contacts of all of a workspace's campaigns, as somebody looks for one.
use super::{Column, Entity, Model};
use crate::{
    boxed, bulk, campaign,
    db::Db,
    error::Result,
    ids::{CampaignId, TenantId},
    names,
    page::{self, Listed, Page},
    values::Env,
};
use sea_orm::{Condition, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};
use std::cmp::Reverse;

/// By what a contact is looked for.
#[derive(Clone, Debug)]
pub enum By {
    Number(String),
    /// In lower case; each is a spelling.
    Email(Vec<String>),
    ExternalId(String),
    /// How the first or the last name begins, or both.
    Name(String),
}

/// The newest ones are looked through; whoever has more says which.
const CAMPAIGNS: u64 = 10_000;
/// The same for names, which no index knows: each campaign is a list to be looked through.
const CAMPAIGNS_BY_NAME: usize = 1_000;

/// `limit` at most, those of the newest campaign first.
#[boxed]
pub async fn find(db: &Db, tenant: TenantId, env: Env, by: &By, limit: u64) -> Result<Listed<Model>> {
    let campaigns = campaign::newest(&db.read, tenant, env, CAMPAIGNS).await?;
    let (known, beside) = match by {
        By::Number(number) => {
            // Who is written to may have been given with a number.
            let written = Expr::cust("channel = 'email' AND phone_number <> ''");
            let beside = Condition::all().add(written).add(Column::PhoneNumber.eq(number));
            (Column::Address.eq(number), Some(beside))
        }
        By::Email(spellings) => (
            Column::Address.is_in(spellings),
            Some(names::is_email(Column::Email, spellings)),
        ),
        By::ExternalId(external_id) => (Column::ExternalId.eq(external_id), None),
        By::Name(name) => return named(db, &campaigns, &is_named(name), limit).await,
    };
    // In each campaign once, where its own index knows it: one look for each, whatever the lists' lengths.
    let mut rows = Vec::new();
    for chunk in bulk::padded(&campaigns) {
        let select = Entity::find()
            .filter(Column::CampaignId.is_in(chunk))
            .filter(known.clone());
        rows.extend(select.all(&*db.read).await?);
        if rows.len() as u64 > limit {
            break;
        }
    }
    if let Some(beside) = beside {
        // A campaign that was deleted loses its contacts bit by bit.
        let is_there =
            "EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = campaign_id AND campaigns.deleted_at IS NULL)";
        let select = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Env.eq(env))
            .filter(beside)
            .filter(Expr::cust(is_there))
            .order_by_desc(Column::Id)
            .limit(limit + 1);
        rows.extend(select.all(&*db.read).await?);
    }
    rows.sort_by_key(|row: &Model| Reverse((row.campaign_id, row.id)));
    rows.dedup_by_key(|row| row.id);
    let has_more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Listed { rows, has_more })
}

/// `Zo`, `Mil` or `Zoë Mil`.
fn is_named(typed: &str) -> Condition {
    let (first, last) = (Expr::col(Column::FirstName), Expr::col(Column::LastName));
    let either = Condition::any()
        .add(names::begins(&first, typed))
        .add(names::begins(&last, typed));
    let Some((one, other)) = typed.split_once(' ') else {
        return either;
    };
    let both = Condition::all()
        .add(names::begins(&first, one))
        .add(names::begins(&last, other.trim_start()));
    either.add(both)
}

/// No index knows names: every contact may be looked at for one that nobody has.
async fn named(db: &Db, campaigns: &[CampaignId], is_named: &Condition, limit: u64) -> Result<Listed<Model>> {
    let mut rows = Vec::new();
    // Only the first is as quick as others' reads.
    let mut connection = &*db.read;
    for campaign in campaigns.iter().take(CAMPAIGNS_BY_NAME) {
        let missing = limit - rows.len() as u64;
        let all = Entity::find().filter(Column::CampaignId.eq(*campaign));
        let page = Page {
            limit: missing,
            ..Page::default()
        };
        let wanted = is_named.clone();
        let found = page::search_from(db, connection, all, wanted, Column::Id, Column::CreatedAt, page).await?;
        connection = &db.reports;
        rows.extend(found.rows);
        if found.has_more || rows.len() as u64 == limit {
            return Ok(Listed { rows, has_more: true });
        }
    }
    Ok(Listed { rows, has_more: false })
}
