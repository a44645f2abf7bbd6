//! What people have taken back, of whatever they once gave.
use super::{Address, Column, Entity, Withdrawals, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::{ConsentId, TenantId},
    page,
    values::{E164, Env},
};
use sea_orm::{QuerySelect, entity::prelude::*, sea_query::Expr};
use std::collections::HashSet;

/// Of which sellers' consents any of these people has taken something back, and who.
#[boxed]
pub async fn who_took_back(
    db: &Connection,
    owner: (TenantId, Env),
    people: &[Address],
) -> Result<HashSet<(Address, String)>> {
    let (mut numbers, mut emails) = (Vec::new(), Vec::new());
    for person in people {
        match person {
            Address::Number(number) => numbers.push(number.clone()),
            Address::Email(email) => emails.push(email.clone()),
        }
    }
    let mut found = HashSet::new();
    for chunk in bulk::padded(&numbers) {
        let select = withdrawn(owner)
            .select_only()
            .columns([Column::PhoneNumber, Column::SellerKey])
            .filter(Expr::cust("phone_number IS NOT NULL"))
            .filter(Column::PhoneNumber.is_in(chunk))
            .distinct();
        let rows: Vec<(E164, String)> = select.into_tuple().all(db).await?;
        found.extend(
            rows.into_iter()
                .map(|(number, seller)| (Address::Number(number), seller)),
        );
    }
    for chunk in bulk::padded(&emails) {
        let select = withdrawn(owner)
            .select_only()
            .columns([Column::Email, Column::SellerKey])
            .filter(Expr::cust("email IS NOT NULL"))
            .filter(Column::Email.is_in(chunk))
            .distinct();
        let rows: Vec<(String, String)> = select.into_tuple().all(db).await?;
        found.extend(rows.into_iter().map(|(email, seller)| (Address::Email(email), seller)));
    }
    Ok(found)
}

/// Rows that [`taken_back`] reads at once.
pub const TAKEN_BACK_AT_ONCE: u64 = 500;

/// What was taken back of each consent of this person to that seller of which anything was, in the order in which they were written down,
/// a page at a time. However old: what was taken back later may be of other channels.
#[boxed]
pub async fn taken_back(
    db: &Connection,
    owner: (TenantId, Env),
    (person, seller_key): (&Address, &str),
    after: Option<ConsentId>,
) -> Result<Vec<(ConsentId, Withdrawals)>> {
    let of_seller = withdrawn(owner)
        .select_only()
        .columns([Column::Id, Column::Withdrawals])
        .filter(Column::SellerKey.eq(seller_key));
    let theirs = match person {
        Address::Number(number) => of_seller
            .filter(Expr::cust("phone_number IS NOT NULL"))
            .filter(Column::PhoneNumber.eq(number.clone())),
        Address::Email(email) => of_seller
            .filter(Expr::cust("email IS NOT NULL"))
            .filter(Column::Email.eq(email.as_str())),
    };
    let select = page::next(theirs, Column::Id, after, TAKEN_BACK_AT_ONCE);
    Ok(select.into_tuple().all(db).await?)
}

/// Those of which something was taken back.
fn withdrawn(owner: (TenantId, Env)) -> sea_orm::Select<Entity> {
    owned(owner.0, owner.1).filter(Expr::cust("revoked_seq IS NOT NULL"))
}
