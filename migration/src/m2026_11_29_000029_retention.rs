//! How long a workspace keeps what it has done, and how far that was carried out.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &["CREATE TABLE retentions (
        tenant_id uuid NOT NULL PRIMARY KEY,
        sessions_days integer,
        transcripts_days integer,
        contacts_days integer,
        messages_days integer,
        imports_days integer,
        sessions_until bigint,
        contacts_until bigint,
        messages_until bigint,
        silent_live uuid,
        silent_test uuid,
        version integer NOT NULL,
        updated_at bigint NOT NULL
    )"];
