//! Lists of attempts without a filter: what lies between them, such as a long list of opt-outs that was read in, is not looked through.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] =
    &["CREATE INDEX attempt_records_openings ON attempt_records (tenant_id, env, n) WHERE kind = 'attempt'"];
