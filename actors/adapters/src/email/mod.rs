//! E-mails to people outside, as they are written.
pub mod footer;
pub mod link;
pub mod message;
