//! Who the workspace is by law, and the erasure of people.
use entities::{
    erasure::{self, Erased, Kept, Status, Wait},
    ids::ErasureId,
    legal_identity::{self, Registrations},
    values::{E164, Moment},
};
use schemars::JsonSchema;
use serde::Serialize;

/// Who calls and writes, as the law asks for it; null: not said.
#[derive(Serialize, JsonSchema)]
pub struct IdentityView {
    /// As it is registered.
    pub registered_name: Option<String>,
    pub trade_name: Option<String>,
    pub callback_number: Option<E164>,
    pub toll_free_number: Option<E164>,
    pub postal_address: Option<String>,
    pub registrations: Registrations,
    /// A member's address, or an API key's name and how it begins; null: the operator, or nobody yet.
    pub updated_by: Option<String>,
    /// Null: nothing was ever said.
    pub updated_at: Option<Moment>,
}

impl From<legal_identity::Model> for IdentityView {
    fn from(row: legal_identity::Model) -> Self {
        IdentityView {
            registered_name: row.registered_name,
            trade_name: row.trade_name,
            callback_number: row.callback_number,
            toll_free_number: row.toll_free_number,
            postal_address: row.postal_address,
            registrations: row.registrations,
            updated_by: row.updated_by,
            updated_at: (row.version > 0).then_some(row.updated_at),
        }
    }
}

/// The erasure of one person, and what came of it.
#[derive(Serialize, JsonSchema)]
pub struct ErasureView {
    pub id: ErasureId,
    pub status: Status,
    /// Whom it is about; null once it has ended: from then on `whom_hash` alone tells people apart.
    pub phone_number: Option<E164>,
    pub email: Option<String>,
    /// A keyed hash of the number or the address.
    pub whom_hash: String,
    /// What went, so far.
    pub erased: Erased,
    /// What stays, and why; told at the end.
    pub kept: Vec<Kept>,
    /// What is in use, and is erased when it is not any more.
    pub waits_for: Option<Wait>,
    /// Why some of it could not be erased.
    pub error: Option<String>,
    /// A member's address, or an API key's name and how it begins.
    pub created_by: String,
    pub created_at: Moment,
    pub finished_at: Option<Moment>,
}

impl From<erasure::Model> for ErasureView {
    fn from(row: erasure::Model) -> Self {
        ErasureView {
            id: row.id,
            status: row.status,
            phone_number: row.phone_number,
            email: row.email,
            whom_hash: row.whom_hash,
            erased: row.erased,
            kept: row.kept.0,
            waits_for: row.waits_for,
            error: row.error,
            created_by: row.created_by,
            created_at: row.created_at,
            finished_at: row.finished_at,
        }
    }
}
