//! Who receives what: kept in step by the writer, which alone changes endpoints.
use entities::{
    Result, boxed,
    connection::Connection,
    event as stored,
    ids::{EndpointId, TenantId, TenantScoped},
    values::Env,
    webhook_endpoint as endpoint,
    workspace_lease::Share,
};
use std::{collections::HashMap, sync::Arc};

#[derive(Clone, Default)]
pub(super) struct Subscriptions(pub HashMap<(TenantId, Env), Vec<Receiver>>);

/// An endpoint for which deliveries are made.
#[derive(Clone)]
pub(super) struct Receiver {
    pub key: TenantScoped<EndpointId>,
    event_types: Arc<endpoint::Patterns>,
    /// Its deliveries are held.
    pub suspended: bool,
}

impl Receiver {
    pub fn wants(&self, event: &stored::Model) -> bool {
        // That an endpoint was suspended is told to the others.
        let own_notice = event.event_type == NOTICE && event.subject_id == self.key.id.0;
        self.event_types.matches(&event.event_type) && !own_notice
    }
}

const NOTICE: &str = "webhook.endpoint_disabled_notice";

impl Subscriptions {
    #[boxed]
    pub async fn load(db: &Connection, share: Share) -> Result<Self> {
        const PAGE: u64 = 500;
        let (mut all, mut after) = (Subscriptions::default(), None);
        loop {
            let page = endpoint::receiving(db, share, after, PAGE).await?;
            after = page.last().map(|row| row.id);
            let ends = (page.len() as u64) < PAGE;
            for row in page {
                all.add(row);
            }
            if ends {
                return Ok(all);
            }
        }
    }

    pub fn apply(&mut self, row: &endpoint::Model) {
        let of_tenant = self.0.entry((row.tenant_id, row.env)).or_default();
        of_tenant.retain(|known| known.key.id != row.id);
        if row.deleted_at.is_none() {
            self.add(row.subscriber());
        }
    }

    fn add(&mut self, row: endpoint::Subscriber) {
        let suspended = match row.status {
            endpoint::Status::Active => false,
            endpoint::Status::Suspended => true,
            endpoint::Status::Disabled => return,
        };
        self.0.entry((row.tenant_id, row.env)).or_default().push(Receiver {
            key: TenantScoped::new(row.tenant_id, row.env, row.id),
            event_types: Arc::new(row.event_types),
            suspended,
        });
    }
}
