//! SMS and e-mails: those that wait are canceled, and of all what they said goes.
use super::{Job, first_page};
use crate::router::Mailbox;
use entities::{
    Error, Result, email_message,
    erasure::Wait,
    ids::TenantScoped,
    sms_message::{self, Direction},
    values::E164,
};
use rules::{
    barred::Whom,
    message::{machine::Command, outgoing::Outgoing},
};

impl Job<'_> {
    pub(super) async fn messages(&mut self) -> Result<()> {
        match self.whom.clone() {
            Whom::Number(number) => {
                self.texts(filter(Direction::Outbound, &number)).await?;
                self.texts(filter(Direction::Inbound, &number)).await
            }
            Whom::Email(email) => self.mails(email).await,
        }
    }

    async fn texts(&mut self, filter: sms_message::Filter) -> Result<()> {
        use sms_message::Phase::{Queued, Scheduled};
        let (owner, mut page) = (self.owner(), first_page());
        loop {
            let listed = sms_message::list(&self.deps.db, owner, filter.clone(), page).await?;
            let before = self.row.erased.sms;
            for row in &listed.rows {
                let waits = matches!(row.phase, Scheduled | Queued);
                let forgotten = forget(self.deps.router.sms(), row.key(), waits).await;
                let is_erased = self.judge(forgotten, Wait::Message)?;
                self.row.erased.sms += i64::from(is_erased);
            }
            if self.row.erased.sms > before {
                self.note().await?;
            }
            match listed.rows.last() {
                Some(last) if listed.has_more => page.after = Some(last.id.0),
                Some(_) | None => return Ok(()),
            }
            self.rest().await;
        }
    }

    async fn mails(&mut self, to: String) -> Result<()> {
        use email_message::Phase::{Deferred, Queued, Scheduled};
        let filter = email_message::Filter {
            to: Some(to),
            ..email_message::Filter::default()
        };
        let (owner, mut page) = (self.owner(), first_page());
        loop {
            let listed = email_message::list(&self.deps.db, owner, filter.clone(), page).await?;
            let before = self.row.erased.emails;
            for row in &listed.rows {
                let waits = matches!(row.phase, Scheduled | Queued | Deferred);
                let forgotten = forget(self.deps.router.emails(), row.key(), waits).await;
                let is_erased = self.judge(forgotten, Wait::Message)?;
                self.row.erased.emails += i64::from(is_erased);
            }
            if self.row.erased.emails > before {
                self.note().await?;
            }
            match listed.rows.last() {
                Some(last) if listed.has_more => page.after = Some(last.id.0),
                Some(_) | None => return Ok(()),
            }
            self.rest().await;
        }
    }
}

fn filter(direction: Direction, number: &E164) -> sms_message::Filter {
    let (to_number, from_number) = match direction {
        Direction::Outbound => (Some(number.clone()), None),
        Direction::Inbound => (None, Some(number.clone())),
    };
    sms_message::Filter {
        status: None,
        direction: Some(direction),
        to_number,
        from_number,
    }
}

/// `InvalidState`: it is being handed over.
async fn forget<M: Outgoing>(mailbox: &dyn Mailbox<M>, key: TenantScoped<M::Id>, waits: bool) -> Result<()> {
    if waits {
        match mailbox.request(key, Command::Cancel).await {
            // If it has left meanwhile, it can be erased all the same.
            Ok(_) | Err(Error::InvalidState { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    mailbox.request(key, Command::Delete).await.map(drop)
}
