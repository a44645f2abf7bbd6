//! Access that can be taken back: when a session's password was last given, and a log of who changed whose access.
use crate::{columns::*, schema::Schema};
use sea_orm::{DbErr, sea_query::{Alias, Table, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let authenticated = big_integer("authenticated_at").default(0).to_owned();
    schema.apply(vec![("logins", authenticated)], vec![audit_log()], &STATEMENTS).await
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
