//! Access that can be taken back: when a session's password was last given, and a log of who changed whose access.
use super::steps;
use sea_orm_migration::{prelude::*, schema::*};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let authenticated = big_integer("authenticated_at").default(0).to_owned();
        steps::apply(manager, vec![("logins", authenticated)], vec![audit_log()], &STATEMENTS).await
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        steps::no_way_back()
    }
}

fn audit_log() -> TableCreateStatement {
    Table::create()
        .table(Alias::new("audit_log"))
        .col(uuid("id").primary_key())
        .col(uuid_null("tenant_id"))
        .col(text("actor"))
        .col(uuid_null("user_id"))
        .col(text_null("user_email"))
        .col(text("action"))
        .col(text("subject"))
        .col(json_binary("details"))
        .col(big_integer("at"))
        .to_owned()
}

const STATEMENTS: [&str; 4] = [
    // A sign-in was when the password was given.
    "UPDATE logins SET authenticated_at = created_at",
    // All sessions of a user end at once; members are listed by workspace.
    "CREATE INDEX logins_user ON logins (user_id)",
    "CREATE INDEX memberships_tenant ON memberships (tenant_id)",
    "CREATE INDEX audit_log_tenant ON audit_log (tenant_id, id)",
];
