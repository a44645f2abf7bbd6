//! The shell's bindings for webhook endpoints.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{EndpointId, TenantScoped},
    webhook_endpoint::Model as Endpoint,
};
use rules::commit::Commit;

impl Stored for Endpoint {
    async fn load(deps: &Deps, id: TenantScoped<EndpointId>) -> Result<Self> {
        entities::webhook_endpoint::load(&deps.db.read, id).await
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.endpoints.push(self.clone());
    }
}
