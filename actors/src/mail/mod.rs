//! E-mails of the service to its users. The rows are the outbox: one is written with what it tells of, and sent after.
mod mailer;
pub mod post;
pub mod smtp;

pub use mailer::{Mailer, Wake};
pub use post::Post;

/// A mail that is to be written to somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// The event's type, as `webhook.endpoint_disabled_notice`.
    pub kind: &'static str,
    pub subject: String,
    pub body: String,
}
