//! Whose number is whose, for live use.
use crate::{columns::*, schema::Schema};
use sea_orm::{DbErr, sea_query::{Alias, Table}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let claims = Table::create()
        .table(Alias::new("number_claims"))
        .col(text("phone_number").primary_key())
        .col(uuid("tenant_id"))
        .col(text("source"))
        .col(big_integer("claimed_at"))
        .to_owned();
    schema.apply(Vec::new(), vec![claims], &STATEMENTS).await
}

const STATEMENTS: [&str; 2] = [
    "CREATE INDEX number_claims_tenant ON number_claims (tenant_id)",
    // Only codes that came to the number prove whose it is: a test key is shown its code, and the operator's `verify-number`
    // opens a number to test calls. Of several workspaces the one whose code came last has it.
    "INSERT INTO number_claims (phone_number, tenant_id, source, claimed_at) \
     SELECT phone_number, tenant_id, 'code', COALESCE(verified_at, created_at) FROM verified_numbers AS proven \
     WHERE status = 'verified' AND env = 'live' AND NOT EXISTS (SELECT 1 FROM verified_numbers AS later \
     WHERE later.phone_number = proven.phone_number AND later.status = 'verified' AND later.env = 'live' \
     AND (COALESCE(later.verified_at, later.created_at) > COALESCE(proven.verified_at, proven.created_at) \
     OR (COALESCE(later.verified_at, later.created_at) = COALESCE(proven.verified_at, proven.created_at) \
     AND later.id > proven.id)))",
];
