//! Contacts of all of a workspace's campaigns, as somebody looks for one.
use super::{Column, Entity, Model};
use crate::{
    boxed, bulk, campaign,
    connection::Connection,
    db::Db,
    error::Result,
    ids::{CampaignId, ContactId, TenantId},
    names,
    page::{self, Listed, Page},
    values::Env,
};
use sea_orm::{Condition, QueryOrder, QuerySelect, Select, entity::prelude::*, sea_query::Expr};
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
/// Campaigns that one step of [`of_person`] looks through.
const STEP: u64 = 512;

/// `limit` at most, those of the newest campaign first.
#[boxed]
pub async fn find(db: &Db, tenant: TenantId, env: Env, by: &By, limit: u64) -> Result<Listed<Model>> {
    let campaigns = campaign::newest(&db.read, tenant, env, CAMPAIGNS).await?;
    let (known, beside) = match by {
        By::Name(name) => return named(db, &campaigns, &is_named(name), limit).await,
        By::Number(_) | By::Email(_) | By::ExternalId(_) => conditions(by),
    };
    // In each campaign once, where its own index knows it: one look for each, whatever the lists' lengths.
    let mut rows = Vec::new();
    for chunk in bulk::padded(&campaigns) {
        rows.extend(of_campaigns(&db.read, chunk, &known).await?);
        if rows.len() as u64 > limit {
            break;
        }
    }
    if let Some(beside) = beside {
        let select = given(tenant, env, beside).order_by_desc(Column::Id).limit(limit + 1);
        rows.extend(select.all(&*db.read).await?);
    }
    rows.sort_by_key(|row: &Model| Reverse((row.campaign_id, row.id)));
    rows.dedup_by_key(|row| row.id);
    let has_more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Listed { rows, has_more })
}

/// One person's contacts in some of a workspace's campaigns, and behind which campaign the next are; `None`: that was all. Whoever
/// asks until then has seen all campaigns, however many they are.
#[boxed]
pub async fn of_person(
    db: &Connection,
    owner: (TenantId, Env),
    by: &By,
    after: Option<CampaignId>,
) -> Result<(Vec<Model>, Option<CampaignId>)> {
    let campaigns = campaign::ids_after(db, owner, after, STEP).await?;
    let next = campaigns.last().copied().filter(|_| campaigns.len() as u64 == STEP);
    let (known, _) = conditions(by);
    let mut rows = Vec::new();
    for chunk in bulk::padded(&campaigns) {
        rows.extend(of_campaigns(db, chunk, &known).await?);
    }
    Ok((rows, next))
}

/// Contacts that are reached otherwise, and with whom the number or the address was given, behind `after`.
#[boxed]
pub async fn given_with(
    db: &Connection,
    (tenant, env): (TenantId, Env),
    by: &By,
    after: Option<ContactId>,
    limit: u64,
) -> Result<Vec<Model>> {
    match conditions(by) {
        (_, Some(beside)) => page::behind(db, given(tenant, env, beside), Column::Id, after, limit).await,
        (_, None) => Ok(Vec::new()),
    }
}

/// What is asked of a campaign's contacts, where its own index knows it; and of those who are reached otherwise.
fn conditions(by: &By) -> (Condition, Option<Condition>) {
    let all = Condition::all;
    match by {
        By::Number(number) => {
            // Who is written to may have been given with a number.
            let written = Expr::cust("channel = 'email' AND phone_number <> ''");
            let beside = all().add(written).add(Column::PhoneNumber.eq(number));
            (all().add(Column::Address.eq(number)), Some(beside))
        }
        By::Email(spellings) => (
            all().add(Column::Address.is_in(spellings)),
            Some(names::is_email(Column::Email, spellings)),
        ),
        By::ExternalId(external_id) => (all().add(Column::ExternalId.eq(external_id)), None),
        // No index knows it.
        By::Name(name) => (is_named(name), None),
    }
}

async fn of_campaigns(db: &Connection, campaigns: Vec<CampaignId>, known: &Condition) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(Column::CampaignId.is_in(campaigns))
        .filter(known.clone());
    Ok(select.all(db).await?)
}

fn given(tenant: TenantId, env: Env, beside: Condition) -> Select<Entity> {
    // A campaign that was deleted loses its contacts bit by bit.
    let is_there = "EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = campaign_id AND campaigns.deleted_at IS NULL)";
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(beside)
        .filter(Expr::cust(is_there))
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
