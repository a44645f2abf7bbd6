//! What is known of a top-up's refunds: the last sum that was told, and those that failed.
use super::steps;
use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (json, object) = match manager.get_database_backend() {
            DbBackend::Postgres => ("jsonb", "jsonb_build_object"),
            _ => ("jsonb_text", "json_object"),
        };
        for statement in [
            format!("ALTER TABLE topups ADD COLUMN refunds {json} NOT NULL DEFAULT '{{}}'"),
            format!("UPDATE topups SET refunds = {object}('told_cents', refunded_cents) WHERE refunded_cents > 0"),
        ] {
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        steps::no_way_back()
    }
}
