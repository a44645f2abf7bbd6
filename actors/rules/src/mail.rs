//! A mail to users of the service.
use entities::{
    ids::{MailId, TenantId},
    mail::{Model as Row, Status},
    values::Moment,
};

/// A mail that is to be written to somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// The event's type, as `webhook.endpoint_disabled_notice`.
    pub kind: &'static str,
    pub subject: String,
    pub body: String,
}

impl Mail {
    /// For somebody of a workspace, to be sent at once.
    pub fn row(&self, id: MailId, tenant_id: TenantId, recipient: String, now: Moment) -> Row {
        Row {
            id,
            tenant_id,
            recipient,
            kind: self.kind.to_owned(),
            subject: self.subject.clone(),
            body: self.body.clone(),
            status: Status::Queued,
            attempts: 0,
            next_attempt_at: Some(now),
            last_error: None,
            created_at: now,
            ended_at: None,
        }
    }
}
