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
    let known = match by {
        By::Number(number) => Column::Address.eq(number),
        By::Email(spellings) => {
            let known = names::is_email(Column::Email, spellings);
            return of_person(db, (tenant, env), &campaigns, known, limit).await;
        }
        By::ExternalId(external_id) => Column::ExternalId.eq(external_id),
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
    // Who is written to may have been given with a number, too.
    if let By::Number(number) = by {
        let known = Condition::all()
            .add(Expr::cust("channel = 'email' AND phone_number <> ''"))
            .add(Column::PhoneNumber.eq(number));
        rows.extend(of_person(db, (tenant, env), &campaigns, known, limit).await?.rows);
    }
    rows.sort_by_key(|row: &Model| Reverse(row.campaign_id));
    let has_more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Listed { rows, has_more })
}

/// Those that an index knows in all campaigns.
async fn of_person(
    db: &Db,
    (tenant, env): (TenantId, Env),
    campaigns: &[CampaignId],
    known: Condition,
    limit: u64,
) -> Result<Listed<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(known)
        .order_by_desc(Column::Id)
        .limit(limit + 1);
    let mut rows = select.all(&*db.read).await?;
    let has_more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    // A campaign that was deleted loses its contacts bit by bit.
    rows.retain(|row| campaigns.contains(&row.campaign_id));
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
