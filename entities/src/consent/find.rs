//! Looking consents up: of the people who are to be reached, by those who keep them, and inside the transaction of a dial.
use super::{Address, Column, Entity, Model, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    db::Db,
    error::Result,
    ids::{ConsentId, RecordingId, TenantId, TenantScoped},
    law::{ConsentTier, Purpose},
    page::{self, Listed, Page},
    values::{E164, Env, Moment, Times},
};
use schemars::JsonSchema;
use sea_orm::{Condition, ExprTrait, Order, QueryOrder, QuerySelect, Statement, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Written out, not bound: only so do the databases see that the small indexes of what stands serve.
fn of_numbers(owner: (TenantId, Env), numbers: Vec<E164>) -> sea_orm::Select<Entity> {
    owned(owner.0, owner.1)
        .filter(Expr::cust("revoked_at IS NULL"))
        .filter(Expr::cust("phone_number IS NOT NULL"))
        .filter(Column::PhoneNumber.is_in(numbers))
}

fn of_emails(owner: (TenantId, Env), emails: Vec<String>) -> sea_orm::Select<Entity> {
    owned(owner.0, owner.1)
        .filter(Expr::cust("revoked_at IS NULL"))
        .filter(Expr::cust("email IS NOT NULL"))
        .filter(Column::Email.is_in(emails))
}

/// The consents of each of these people that nobody has revoked as a whole, by the number or the address that was asked for, oldest
/// first. What has expired, or was taken back for a channel, is among them: see [`Model::stands`].
#[boxed]
pub async fn of_people(
    db: &Connection,
    owner: (TenantId, Env),
    people: &[Address],
) -> Result<HashMap<String, Vec<Model>>> {
    let (mut numbers, mut emails) = (HashSet::new(), HashSet::new());
    for person in people {
        match person {
            Address::Number(number) => drop(numbers.insert(number.clone())),
            Address::Email(email) => drop(emails.insert(email.clone())),
        }
    }
    let mut found: HashMap<String, Vec<Model>> = HashMap::new();
    let numbers: Vec<E164> = numbers.into_iter().collect();
    for chunk in bulk::padded(&numbers) {
        for row in of_numbers(owner, chunk).all(db).await? {
            if let Some(number) = row.phone_number.clone() {
                found.entry(number.as_str().to_owned()).or_default().push(row);
            }
        }
    }
    let emails: Vec<String> = emails.into_iter().collect();
    for chunk in bulk::padded(&emails) {
        for row in of_emails(owner, chunk).all(db).await? {
            if let Some(email) = row.email.clone() {
                found.entry(email).or_default().push(row);
            }
        }
    }
    for consents in found.values_mut() {
        consents.sort_by_key(|row| row.id);
    }
    Ok(found)
}

/// Are all of these as they were known, and does none of them end by either clock? Asked inside the transaction of a dial. A
/// withdrawal, of whatever channel, makes a new version.
#[boxed]
pub async fn still_stand(db: &Connection, known: &[(ConsentId, i32)], now: Times) -> Result<bool> {
    let wanted: HashMap<ConsentId, i32> = known.iter().copied().collect();
    // One that was known in two versions cannot be both.
    if known.iter().any(|(id, version)| wanted.get(id) != Some(version)) {
        return Ok(false);
    }
    let ids: Vec<ConsentId> = wanted.keys().copied().collect();
    let mut standing = HashSet::new();
    for chunk in bulk::padded(&ids) {
        let select = Entity::find()
            .select_only()
            .columns([Column::Id, Column::Version])
            .filter(Column::Id.is_in(chunk))
            .filter(Expr::cust("revoked_at IS NULL"))
            .filter(
                Condition::any()
                    .add(Column::ExpiresAt.is_null())
                    .add(Column::ExpiresAt.gt(now.later())),
            );
        let rows: Vec<(ConsentId, i32)> = select.into_tuple().all(db).await?;
        standing.extend(rows.into_iter().filter(|(id, version)| wanted.get(id) == Some(version)));
    }
    Ok(standing.len() == wanted.len())
}

/// What a list is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    /// As sellers are compared.
    pub seller_key: Option<String>,
    pub tier: Option<ConsentTier>,
    pub purpose: Option<Purpose>,
    pub status: Option<ConsentStatus>,
    /// By which `status` is judged.
    pub at: Option<Moment>,
}

/// How a consent is, for whoever looks for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Does the consent stand?")]
pub enum ConsentStatus {
    /// Some channel of it stands.
    Valid,
    Expired,
    Revoked,
}

impl Filter {
    /// Is there anything that no index knows?
    pub fn is_a_search(&self) -> bool {
        self.seller_key.is_some() || self.tier.is_some() || self.purpose.is_some() || self.status.is_some()
    }

    fn wanted(&self) -> Condition {
        let at = self.at.unwrap_or(Moment::from_millis(i64::MAX));
        let of_status = self.status.map(|status| match status {
            ConsentStatus::Revoked => Condition::all().add(Column::RevokedAt.is_not_null()),
            ConsentStatus::Expired => Condition::all()
                .add(Column::RevokedAt.is_null())
                .add(Column::ExpiresAt.lte(at)),
            ConsentStatus::Valid => Condition::all().add(Column::RevokedAt.is_null()).add(
                Condition::any()
                    .add(Column::ExpiresAt.is_null())
                    .add(Column::ExpiresAt.gt(at)),
            ),
        });
        Condition::all()
            .add_option(
                self.seller_key
                    .as_ref()
                    .map(|seller| Column::SellerKey.eq(seller.as_str())),
            )
            .add_option(self.tier.map(|tier| Column::Tier.eq(tier)))
            .add_option(self.purpose.map(names))
            .add_option(of_status)
    }
}

/// Its list of purposes has that one.
fn names(purpose: Purpose) -> Expr {
    Expr::cust("CAST(purposes AS TEXT)").like(format!("%\"{}\"%", purpose.to_value()))
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), filter: Filter, page: Page) -> Result<Listed<Model>> {
    let wanted = filter.wanted();
    let mut all = owned(owner.0, owner.1);
    if let Some(number) = filter.phone_number {
        all = all
            .filter(Expr::cust("phone_number IS NOT NULL"))
            .filter(Column::PhoneNumber.eq(number));
    }
    if let Some(email) = filter.email {
        all = all
            .filter(Expr::cust("email IS NOT NULL"))
            .filter(Column::Email.eq(email));
    }
    page::search(db, all, wanted, Column::Id, Column::CreatedAt, page).await
}

/// Those that have one of these fingerprints, whatever has become of them.
#[boxed]
pub async fn known(db: &Connection, owner: (TenantId, Env), fingerprints: &[String]) -> Result<HashMap<String, Model>> {
    let mut found = HashMap::new();
    for chunk in bulk::padded(fingerprints) {
        let select = owned(owner.0, owner.1).filter(Column::Fingerprint.is_in(chunk));
        let rows = select.all(db).await?;
        found.extend(rows.into_iter().map(|row| (row.fingerprint.clone(), row)));
    }
    Ok(found)
}

/// Consents that are looked at, of however many one recording proves.
const LATEST: u64 = 100;

/// Those that name this recording as their proof, the newest hundred.
#[boxed]
pub async fn proved_by(db: &Connection, recording: TenantScoped<RecordingId>) -> Result<Vec<Model>> {
    let select = owned(recording.tenant_id, recording.env)
        .filter(Expr::cust("recording_id IS NOT NULL"))
        .filter(Column::RecordingId.eq(recording.id))
        .order_by(Column::GivenAt, Order::Desc)
        .limit(LATEST);
    Ok(select.all(db).await?)
}

/// When somebody was last reached by it: so long the law wants it kept. By the record of attempts, whose rows name the consent that
/// each rested on.
#[boxed]
pub async fn last_used(db: &Connection, key: TenantScoped<ConsentId>) -> Result<Option<Moment>> {
    let backend = db.get_database_backend();
    let mut text = String::from("SELECT MAX(at) FROM attempt_records WHERE consent_id IS NOT NULL AND consent_id = ");
    let mut values: Vec<Value> = vec![key.id.into()];
    bulk::placeholder(&mut text, backend, 1);
    for (clause, value) in [
        (" AND tenant_id = ", Value::from(key.tenant_id)),
        (" AND env = ", key.env.into()),
    ] {
        values.push(value);
        text.push_str(clause);
        bulk::placeholder(&mut text, backend, values.len());
    }
    let row = db
        .query_one_raw(Statement::from_sql_and_values(backend, text, values))
        .await?;
    match row {
        Some(row) => Ok(row.try_get_by_index(0)?),
        None => Ok(None),
    }
}

/// Those of all workspaces that nobody has revoked as a whole.
#[boxed]
pub async fn count_standing(db: &Connection) -> Result<u64> {
    let standing = Entity::find().filter(Expr::cust("revoked_at IS NULL"));
    Ok(standing.count(db).await?)
}

/// Every consent that ever was, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<ConsentId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// The last place among all commits that one was given, or a withdrawal.
#[boxed]
pub async fn last_seq(db: &Connection) -> Result<i64> {
    let given: Option<i64> = Entity::find()
        .select_only()
        .column(Column::GivenSeq)
        .order_by(Column::GivenSeq, Order::Desc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    let revoked: Option<i64> = Entity::find()
        .select_only()
        .column(Column::RevokedSeq)
        .filter(Expr::cust("revoked_seq IS NOT NULL"))
        .order_by(Column::RevokedSeq, Order::Desc)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    let (given, revoked) = (given.unwrap_or(0), revoked.unwrap_or(0));
    Ok(Ord::max(given, revoked))
}
