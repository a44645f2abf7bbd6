//! E-mails to people outside, as they are written.
pub mod link;
pub mod message;
