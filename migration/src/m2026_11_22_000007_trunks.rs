//! SIP trunks, numbers that prove whose they are by a code, slots kept free for calls that come in, why a workspace is
//! suspended.
use sea_orm_migration::{prelude::*, schema::*};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in columns() {
            // One change per statement: SQLite takes no more.
            let change = Table::alter().table(Alias::new(table)).add_column(column).to_owned();
            manager.alter_table(change).await?;
        }
        for table in tables() {
            manager.create_table(table).await?;
        }
        for statement in STATEMENTS {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration("go back to a copy of the database instead".into()))
    }
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("tenants", integer("inbound_reserve").default(0).to_owned()),
        // The operator opened those that are there: they stay open.
        ("verified_numbers", text("status").default("verified").to_owned()),
        ("verified_numbers", text("method").default("sms").to_owned()),
        ("verified_numbers", text_null("label").to_owned()),
        // Whose key asked for the code.
        ("verified_numbers", text("env").default("test").to_owned()),
        ("verified_numbers", text_null("code_hash").to_owned()),
        ("verified_numbers", text_null("sealed_code").to_owned()),
        ("verified_numbers", integer("wrong_tries").default(0).to_owned()),
        ("verified_numbers", big_integer_null("expires_at").to_owned()),
        ("verified_numbers", big_integer_null("verified_at").to_owned()),
        ("verified_numbers", integer("version").default(1).to_owned()),
    ]
}

/// Name, columns; the primary key is the first column.
fn table(name: &'static str, columns: Vec<ColumnDef>) -> TableCreateStatement {
    let mut table = Table::create().table(Alias::new(name)).to_owned();
    let mut primary_key = Index::create().to_owned();
    for (index, column) in columns.into_iter().enumerate() {
        if index == 0 {
            primary_key.col(Alias::new(column.get_column_name()));
        }
        table.col(column);
    }
    table.primary_key(&mut primary_key);
    table
}

fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "sip_trunks",
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                json_binary("definition").to_owned(),
                text_null("sealed_password").to_owned(),
                text("status").to_owned(),
                big_integer_null("tested_at").to_owned(),
                integer("version").to_owned(),
                big_integer("created_at").to_owned(),
                big_integer("updated_at").to_owned(),
                big_integer_null("deleted_at").to_owned(),
            ],
        ),
        // Codes that were made, for an hour: a number that is deleted and asked for again is not told more often.
        table(
            "verification_codes",
            vec![
                uuid("id").to_owned(),
                uuid("tenant_id").to_owned(),
                text("phone_number").to_owned(),
                big_integer("created_at").to_owned(),
            ],
        ),
        table(
            "suspensions",
            vec![
                uuid("tenant_id").to_owned(),
                text_null("reason").to_owned(),
                big_integer("since").to_owned(),
            ],
        ),
    ]
}

const STATEMENTS: [&str; 5] = [
    "CREATE INDEX sip_trunks_tenant ON sip_trunks (tenant_id, id)",
    "CREATE INDEX numbers_trunk ON numbers (trunk_id) WHERE deleted_at IS NULL",
    "CREATE INDEX verification_codes_tenant ON verification_codes (tenant_id, created_at)",
    "UPDATE verified_numbers SET verified_at = created_at",
    // Suspensions of before have no reason.
    "INSERT INTO suspensions (tenant_id, reason, since) SELECT tenant_id, NULL, MIN(since) FROM dispatch_blocks WHERE reason = 'suspension' GROUP BY tenant_id",
];
