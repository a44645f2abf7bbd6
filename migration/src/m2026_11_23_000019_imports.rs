//! What parts the cells of a list.
use super::steps;
use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let statement = "ALTER TABLE imports ADD COLUMN delimiter text NOT NULL DEFAULT 'comma'";
        manager.get_connection().execute_unprepared(statement).await.map(drop)
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        steps::no_way_back()
    }
}
