//! Contacts, in all of the workspace's campaigns: as the API removes each.
use super::{AT_ONCE, Job};
use crate::contact::edit::{self, Target};
use entities::{
    Result,
    contact::{self, Model},
    erasure::Wait,
    ids::TenantScoped,
};
use rules::effect::Hint;

impl Job<'_> {
    pub(super) async fn contacts(&mut self) -> Result<()> {
        let (owner, by) = (self.owner(), self.by());
        let mut after = None;
        loop {
            let (rows, next) = contact::of_person(&self.deps.db.reports, owner, &by, after).await?;
            self.those(rows).await?;
            after = next;
            if after.is_none() {
                break;
            }
            self.rest().await;
        }
        let mut after = None;
        loop {
            let rows = contact::given_with(&self.deps.db.reports, owner, &by, after, AT_ONCE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.id);
            self.those(rows).await?;
            self.rest().await;
        }
    }

    /// One that is being called, or written to, is waited for.
    async fn those(&mut self, rows: Vec<Model>) -> Result<()> {
        let before = self.row.erased.contacts;
        for row in rows {
            let target = Target {
                contact: row.key(),
                campaign: row.campaign_id,
            };
            let removed = edit::remove(self.deps, target).await;
            if self.judge(removed, Wait::Call)? {
                self.row.erased.contacts += 1;
                let campaign = TenantScoped::new(row.tenant_id, row.env, row.campaign_id);
                let hints = vec![
                    Hint::ContactsChanged(campaign).into(),
                    Hint::CheckDrained(campaign).into(),
                ];
                self.deps.router.perform(hints);
            }
        }
        if self.row.erased.contacts > before {
            self.note().await?;
        }
        Ok(())
    }
}
