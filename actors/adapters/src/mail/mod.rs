//! E-mails of the service to its users. The rows are the outbox: one is written with what it tells of, and sent after.
pub mod post;
pub mod smtp;
