//! Campaigns whose rules have changed, so that who waits is judged anew; and what a retry by hand grants, as a fact of its own.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "ALTER TABLE campaigns ADD COLUMN rules_version integer NOT NULL DEFAULT 0",
    "ALTER TABLE campaigns ADD COLUMN review_of integer",
    "CREATE INDEX campaigns_review ON campaigns (tenant_id, id) WHERE review_of IS NOT NULL",
    "ALTER TABLE contacts ADD COLUMN attempt_limit integer",
    "UPDATE contacts SET attempt_limit = attempts + CASE WHEN status = 'dispatched' THEN 0 ELSE 1 END \
     WHERE granted_attempts <> 0 AND status IN ('pending', 'waiting', 'dispatched')",
    "ALTER TABLE contacts DROP COLUMN granted_attempts",
    // Read in this order, however many wait for the same moment.
    "DROP INDEX contacts_due",
    "CREATE INDEX contacts_due ON contacts (campaign_id, next_attempt_at, id) WHERE next_attempt_at IS NOT NULL",
];
