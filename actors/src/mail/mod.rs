//! E-mails of the service to its users. The rows are the outbox: one is written with what it tells of, and sent after.
mod mailer;

pub use mailer::{Mailer, Wake};
