//! Contacts: the people in a campaign's list, and what became of each.
mod find;
mod queue;

pub use find::{By, find, given_with, of_person};
pub use queue::{
    Canceled, cancel, due, due_zones, fresh, fresh_of_all_zones, fresh_zones, next_due_at, unfinished, waiting_after,
    waiting_by_zone,
};

use crate::{
    boxed,
    bulk::{self, OnConflict, batch::Batch},
    campaign::Channel,
    connection::Connection,
    error::{Error, Result},
    ids::{CampaignId, ConsentId, ContactId, DeliveryRowId, SessionId, TenantId, TenantScoped},
    law::LegalPerson,
    page::{self, Listed, Page},
    values::{Country, E164, Env, Moment, Place, Variables, Zone},
};
use schemars::JsonSchema;
use sea_orm::{Condition, DeriveActiveEnum, EnumIter, QuerySelect, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not called yet.
    Pending,
    /// Called without success; waits for its next attempt.
    Waiting,
    /// Being called.
    Dispatched,
    Completed,
    Failed,
    Skipped,
    Canceled,
}

/// Why a contact was not called at all. Source: specification, "Campaign events".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Why a contact was not called at all.")]
pub enum SkipReason {
    Invalid,
    DncBlocked,
    DailyCapReached,
    QuietHoursExpired,
    ConcurrencyFull,
    TenantSuspended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Called without success; its next attempt is due at `next_attempt_at`.
    Retry,
    /// Its own `not_before`.
    NotBefore,
    /// Its number was called so often that a cap holds it back until `next_attempt_at`.
    Cap,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "contacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ContactId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub campaign_id: CampaignId,
    pub external_id: Option<String>,
    /// By what it is reached: its campaign's.
    pub channel: Channel,
    /// Where it is reached; in a campaign once. A number or an address where it could be read, else what was typed.
    pub address: String,
    /// E.164 where it could be read, else what was typed (it will be skipped as `invalid`); empty: none was given.
    pub phone_number: String,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Variables,
    /// Where the person is, if it was said.
    pub timezone: Option<Zone>,
    /// In which country, or part of one, if it was said: the laws of that place hold beside those of the number's.
    pub region: Option<Place>,
    /// The consent that was named for it; none: the strongest that covers it.
    pub consent_id: Option<ConsentId>,
    /// The zones whose hours count for it, as one name: contacts of one name keep the same hours. Empty: unknown;
    /// [`UNCALLABLE`]: there is nothing to call.
    pub zone: String,
    /// Not called before this.
    pub not_before: Option<Moment>,
    /// Higher ones are called first.
    pub priority: i32,
    pub status: Status,
    pub wait_reason: Option<WaitReason>,
    pub attempts: i32,
    /// What it was dispatched into last.
    #[sea_orm(column_name = "last_session_id")]
    pub last_row_id: Option<DeliveryRowId>,
    /// It was to be called once more by hand: so many attempts, whatever its campaign's rules say.
    pub attempt_limit: Option<i32>,
    /// Not called before this, for `wait_reason`.
    pub next_attempt_at: Option<Moment>,
    pub skip_reason: Option<SkipReason>,
    /// The rule of the law behind that, by its id; none: it was not one of the law's.
    pub skip_rule: Option<String>,
    /// How its last talk was classified.
    pub disposition_code: Option<String>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Where somebody is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    Number(E164),
    /// In lower case.
    Email(String),
}

impl Address {
    pub fn as_str(&self) -> &str {
        match self {
            Address::Number(number) => number.as_str(),
            Address::Email(email) => email,
        }
    }
}

/// The `zone` of a contact whose number is none, or none that may be called.
pub const UNCALLABLE: &str = "!";

/// What names somebody. It can be changed until the contact is called, and is erased at the end.
const NAMES: &[&str] = &[
    "tenant_id",
    "env",
    "campaign_id",
    "external_id",
    "channel",
    "address",
    "phone_number",
    "email",
    "created_at",
];

/// Each a new one, or the next version of the stored one.
#[boxed]
pub async fn advance(batch: &mut Batch<'_>, rows: &[&Model]) -> Result<()> {
    let may_be_named_anew = |row: &&Model| matches!(row.status, Status::Pending | Status::Waiting) || row.is_erased();
    let (whole, same): (Vec<&Model>, Vec<&Model>) = rows.iter().copied().partition(may_be_named_anew);
    batch.save(&whole, OnConflict::ReplacePredecessor).await?;
    batch.save(&same, OnConflict::Advance(NAMES)).await
}

impl Model {
    /// What [`advance`] leaves as it is stored.
    pub fn names(&self) -> Vec<Value> {
        bulk::of_columns(self, NAMES)
    }
    pub fn key(&self) -> TenantScoped<ContactId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
    /// The address of one that was erased: its own, for in a campaign each is there once. Nobody can type it: what is typed loses its
    /// blanks.
    pub fn erased_address(&self) -> String {
        format!(" erased:{}", self.id)
    }
    /// Who it was is not known any more; what became of it is.
    pub fn is_erased(&self) -> bool {
        self.address == self.erased_address()
    }
    /// The session of its last call.
    pub fn last_session_id(&self) -> Option<SessionId> {
        let row = self.last_row_id.filter(|_| self.channel == Channel::Phone)?;
        Some(SessionId(row.0))
    }
    /// What the law's rules ask of it beside the number.
    pub fn legal_person(&self) -> LegalPerson {
        LegalPerson {
            region: self.region.clone(),
            consent_id: self.consent_id,
        }
    }
    /// As it is told; `None`: it has no number.
    pub fn number(&self) -> Option<String> {
        Some(self.phone_number.clone()).filter(|number| !number.is_empty())
    }
    /// Where it is reached, if that can be.
    pub fn reachable_at(&self) -> Option<Address> {
        match self.channel {
            Channel::Phone | Channel::Sms => self.e164().map(Address::Number),
            Channel::Email => Some(Address::Email(self.address.clone())).filter(|_| self.zone != UNCALLABLE),
        }
    }
    /// What a template finds under that name: the contact's own variables, under its fields' names its fields. Blank is none.
    pub fn value_of(&self, name: &str) -> Option<serde_json::Value> {
        let own = self.variables.0.get(name).filter(|value| !value.is_null()).cloned();
        let field = match name {
            "first_name" => self.first_name.clone(),
            "last_name" => self.last_name.clone(),
            "email" => self.email.clone(),
            "phone_number" => self.number(),
            _ => None,
        };
        own.or(field.map(Into::into))
            .filter(|value: &serde_json::Value| value.as_str().is_none_or(|text| !text.trim().is_empty()))
    }
    /// The number, if it is one.
    pub fn e164(&self) -> Option<E164> {
        // Read anew: what could not be read when it came in was kept as it was typed, and may look like a number.
        E164::parse(&self.phone_number, Country::US)
            .ok()
            .filter(|number| number.as_str() == self.phone_number)
    }
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<ContactId>) -> Result<Model> {
    let select = Entity::find_by_id(key.id)
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    select.one(db).await?.ok_or(Error::NotFound("contact"))
}

/// What a list of contacts is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    /// A number, or an address in lower case: in a campaign once.
    pub address: Option<String>,
    /// In a campaign once.
    pub external_id: Option<String>,
}

/// An index of the campaign's knows each of them.
#[boxed]
pub async fn list(
    db: &Connection,
    campaign: TenantScoped<CampaignId>,
    filter: &Filter,
    page: Page,
) -> Result<Listed<Model>> {
    let known = Condition::all()
        .add_option(filter.status.map(|status| Column::Status.eq(status)))
        .add_option(filter.address.as_ref().map(|address| Column::Address.eq(address)))
        .add_option(filter.external_id.as_ref().map(|id| Column::ExternalId.eq(id)));
    let all = Entity::find()
        .filter(Column::CampaignId.eq(campaign.id))
        .filter(Column::TenantId.eq(campaign.tenant_id))
        .filter(known);
    page::fetch(db, all, Column::Id, Column::CreatedAt, page).await
}

/// Adds new contacts; answers how many were new. One number, and one `external_id`, is in a campaign once.
#[boxed]
pub async fn add(db: &Connection, rows: &[Model]) -> Result<u64> {
    bulk::save(db, rows, OnConflict::Keep).await
}

/// Those of `external_ids` that the campaign holds with another number than the one given.
#[boxed]
pub async fn with_external_ids(db: &Connection, campaign: CampaignId, external_ids: &[String]) -> Result<Vec<Model>> {
    let mut found = Vec::new();
    for chunk in bulk::padded(external_ids) {
        let select = Entity::find()
            .filter(Column::CampaignId.eq(campaign))
            .filter(Column::ExternalId.is_in(chunk));
        found.extend(select.all(db).await?);
    }
    Ok(found)
}

/// Those of them that are there.
#[boxed]
pub async fn of_ids(db: &Connection, ids: &[ContactId]) -> Result<Vec<Model>> {
    let select = Entity::find().filter(Column::Id.is_in(ids.iter().copied()));
    Ok(select.all(db).await?)
}

/// The campaign's contacts in the order of their ids, a page at a time.
pub async fn after(db: &Connection, campaign: CampaignId, after: Option<ContactId>, limit: u64) -> Result<Vec<Model>> {
    let contacts = Entity::find().filter(Column::CampaignId.eq(campaign));
    page::behind(db, contacts, Column::Id, after, limit).await
}

/// Removes one that was never called.
#[boxed]
pub async fn remove(db: &Connection, id: ContactId) -> Result<()> {
    Entity::delete_by_id(id).exec(db).await?;
    Ok(())
}

/// Removes at most `limit` contacts of a campaign that was deleted, or is over.
#[boxed]
pub async fn remove_some(db: &Connection, campaign: CampaignId, limit: u64) -> Result<u64> {
    let ids: Vec<ContactId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::CampaignId.eq(campaign))
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?;
    let removed = Entity::delete_many().filter(Column::Id.is_in(ids)).exec(db).await?;
    Ok(removed.rows_affected)
}

/// Contacts that wait and lack a value for one of these variables; the names of those who lack one of the contact's own
/// fields are among them: `first_name`, `last_name`, `email`, `phone_number`.
#[boxed]
pub async fn first_without(
    db: &Connection,
    campaign: CampaignId,
    names: &[String],
) -> Result<Option<(ContactId, String)>> {
    const PAGE: u64 = 500;
    let mut last = None;
    loop {
        let page = after(db, campaign, last, PAGE).await?;
        for contact in &page {
            if let Some(name) = names.iter().find(|name| contact.value_of(name).is_none()) {
                return Ok(Some((contact.id, name.clone())));
            }
        }
        last = page.last().map(|contact| contact.id);
        if (page.len() as u64) < PAGE {
            return Ok(None);
        }
    }
}

/// The campaign's contact with this number, or address.
#[boxed]
pub async fn at_address(db: &Connection, campaign: CampaignId, address: &str) -> Result<Option<Model>> {
    let select = Entity::find()
        .filter(Column::CampaignId.eq(campaign))
        .filter(Column::Address.eq(address));
    Ok(select.one(db).await?)
}

/// How a contact's last call was classified, after its end.
#[boxed]
pub async fn set_disposition(db: &Connection, id: ContactId, session: SessionId, code: &str) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::DispositionCode, Expr::value(code))
        .filter(Column::Id.eq(id))
        .filter(Column::LastRowId.eq(DeliveryRowId(session.0)))
        .exec(db)
        .await?;
    Ok(())
}
