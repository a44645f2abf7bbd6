//! How the rows of a table are found that belong to somebody: the same for each such table, and nobody else's among them.
//!
//! Macros and not generic functions, so that each table's is compiled once, here, with the table. They name what the file that
//! calls them imports.

/// For rows of a tenant and an env: `Model::key`, `owned` and `load`. `$what` is what a row is called in "no such …".
macro_rules! of_tenant_and_env {
    ($id:ident, $what:literal) => {
        impl Model {
            pub fn key(&self) -> TenantScoped<$id> {
                TenantScoped::new(self.tenant_id, self.env, self.id)
            }
        }

        fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
            Entity::find()
                .filter(Column::TenantId.eq(tenant))
                .filter(Column::Env.eq(env))
        }

        #[boxed]
        pub async fn load(db: &Connection, key: TenantScoped<$id>) -> Result<Model> {
            let found = owned(key.tenant_id, key.env).filter(Column::Id.eq(key.id));
            found.one(db).await?.ok_or(Error::NotFound($what))
        }
    };
}

/// For rows of a tenant that both its envs share, and that leave a row behind when they are deleted: `owned`, `load` and `list`.
macro_rules! of_tenant {
    ($id:ident, $what:literal) => {
        fn owned(tenant: TenantId) -> sea_orm::Select<Entity> {
            Entity::find()
                .filter(Column::TenantId.eq(tenant))
                .filter(Column::DeletedAt.is_null())
        }

        #[boxed]
        pub async fn load(db: &Connection, tenant: TenantId, id: $id) -> Result<Model> {
            let found = owned(tenant).filter(Column::Id.eq(id)).one(db).await?;
            found.ok_or(Error::NotFound($what))
        }

        #[boxed]
        pub async fn list(db: &Connection, tenant: TenantId, page: Page) -> Result<Listed<Model>> {
            page::fetch(db, owned(tenant), Column::Id, Column::CreatedAt, page).await
        }
    };
}

pub(crate) use {of_tenant, of_tenant_and_env};
