//! Who a workspace is by law: what is said at the start of its calls and stands under its mails. Both envs share it. Without a row
//! nothing is known.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    checks::Checks,
    connection::Connection,
    error::Result,
    ids::TenantId,
    values::{E164, Moment, Text},
};
use schemars::JsonSchema;
use sea_orm::{FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who calls and writes, as the law asks for it; null: not said. What a rule needs and is not here bars the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LegalIdentity")]
pub struct Identity {
    /// As it is registered. The service says it at the start of each live call.
    #[serde(default)]
    pub registered_name: Option<Text<1, 200>>,
    /// By which people know it, if that is another.
    #[serde(default)]
    pub trade_name: Option<Text<1, 200>>,
    /// Who calls it reaches somebody who takes opt-outs in business hours.
    #[serde(default)]
    pub callback_number: Option<E164>,
    /// The same, free of charge: what is said on voicemail in the United States.
    #[serde(default)]
    pub toll_free_number: Option<E164>,
    /// Where letters reach it; stands under marketing mails.
    #[serde(default)]
    pub postal_address: Option<Text<1, 500>>,
    /// Licences and registers of those who sell by telephone, such as `us-tx`: a name, and the number that was given.
    #[serde(default)]
    pub registrations: Registrations,
}

/// By name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Registrations(pub BTreeMap<String, String>);

impl Registrations {
    pub const MAX: usize = 50;
    /// Characters of a name, and of what stands under it.
    pub const LONGEST_NAME: usize = 40;
    pub const LONGEST_VALUE: usize = 200;

    fn check(&self, checks: &mut Checks) {
        let many = self.0.len();
        if many > Self::MAX {
            checks.refuse(
                "registrations",
                format!("has {many} entries, at most {} are allowed", Self::MAX),
            );
        }
        for (name, value) in self.0.iter().take(Self::MAX) {
            let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            if name.is_empty() || name.len() > Self::LONGEST_NAME || !name.chars().all(is_name) {
                let most = Self::LONGEST_NAME;
                checks.refuse(
                    "registrations",
                    format!("`{name}` must have 1 to {most} letters a-z, digits and hyphens, as us-tx"),
                );
                continue;
            }
            let field = format!("registrations.{name}");
            let length = value.trim().chars().count();
            if !(1..=Self::LONGEST_VALUE).contains(&length) {
                let most = Self::LONGEST_VALUE;
                checks.refuse(field, format!("must have 1 to {most} characters, not {length}"));
            } else if value.chars().any(char::is_control) {
                checks.refuse(field, NO_CONTROL);
            }
        }
    }
}

const NO_CONTROL: &str = "must not contain line breaks or other control characters";

impl Identity {
    /// Beyond what their types say: all that is wrong, at once.
    pub fn check(&self) -> Result<()> {
        let mut checks = Checks::default();
        let lines = [
            ("registered_name", &self.registered_name),
            ("trade_name", &self.trade_name),
        ];
        for (field, text) in lines {
            if text.as_ref().is_some_and(|text| text.chars().any(char::is_control)) {
                checks.refuse(field, NO_CONTROL);
            }
        }
        // An address has lines.
        let is_odd = |letter: char| letter.is_control() && letter != '\n';
        if self
            .postal_address
            .as_ref()
            .is_some_and(|text| text.chars().any(is_odd))
        {
            checks.refuse(
                "postal_address",
                "must not contain control characters other than line breaks (\\n)",
            );
        }
        let numbers = [
            ("callback_number", &self.callback_number),
            ("toll_free_number", &self.toll_free_number),
        ];
        for (field, number) in numbers {
            // Nobody could call it, and it would be told to people.
            if number.as_ref().is_some_and(E164::is_sandbox) {
                checks.refuse(field, "is a number of the sandbox: give one that can be called");
            }
        }
        self.registrations.check(&mut checks);
        checks.end()
    }
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "legal_identities")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: TenantId,
    pub registered_name: Option<String>,
    pub trade_name: Option<String>,
    pub callback_number: Option<E164>,
    pub toll_free_number: Option<E164>,
    pub postal_address: Option<String>,
    #[sea_orm(column_type = "JsonBinary")]
    pub registrations: Registrations,
    /// A member's address, or an API key's name and how it begins; none: the operator.
    pub updated_by: Option<String>,
    /// 0: it is in no row yet.
    pub version: i32,
    pub updated_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Of a workspace that has said nothing.
    pub fn empty(tenant_id: TenantId, now: Moment) -> Self {
        Model {
            tenant_id,
            registered_name: None,
            trade_name: None,
            callback_number: None,
            toll_free_number: None,
            postal_address: None,
            registrations: Registrations::default(),
            updated_by: None,
            version: 0,
            updated_at: now,
        }
    }

    pub fn identity(&self) -> Identity {
        Identity {
            registered_name: stored(self.registered_name.as_deref()),
            trade_name: stored(self.trade_name.as_deref()),
            callback_number: self.callback_number.clone(),
            toll_free_number: self.toll_free_number.clone(),
            postal_address: stored(self.postal_address.as_deref()),
            registrations: self.registrations.clone(),
        }
    }

    /// Its next version.
    pub fn changed(&self, to: &Identity, by: Option<String>, now: Moment) -> Self {
        Model {
            tenant_id: self.tenant_id,
            registered_name: to.registered_name.clone().map(Text::into_string),
            trade_name: to.trade_name.clone().map(Text::into_string),
            callback_number: to.callback_number.clone(),
            toll_free_number: to.toll_free_number.clone(),
            postal_address: to.postal_address.clone().map(Text::into_string),
            registrations: to.registrations.clone(),
            updated_by: by,
            version: self.version + 1,
            updated_at: now,
        }
    }
}

/// What does not fit was not written by us.
fn stored<const MIN: usize, const MAX: usize>(text: Option<&str>) -> Option<Text<MIN, MAX>> {
    text.and_then(|text| Text::parse(text).ok())
}

/// A workspace's own.
#[boxed]
pub async fn of(db: &Connection, tenant: TenantId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(tenant).one(db).await?)
}

/// Writes the next version. `Stale`: somebody else has changed it since it was read.
#[boxed]
pub async fn set(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}

/// Is it as it was known (0: in no row)? Asked inside the transaction of what was decided by it.
#[boxed]
pub async fn is_current(db: &Connection, tenant: TenantId, version: i32) -> Result<bool> {
    let found = Entity::find_by_id(tenant).one(db).await?;
    Ok(found.map_or(0, |row| row.version) == version)
}

#[cfg(test)]
#[path = "legal_identity_tests.rs"]
mod tests;
