//! What parts the cells of a list.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let statement = "ALTER TABLE imports ADD COLUMN delimiter text NOT NULL DEFAULT 'comma'";
    schema.execute(statement).await.map(drop)
}
