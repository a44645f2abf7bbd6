//! E-mails to people outside. One message is a row with a state machine; the mail server of the service takes it.
pub mod link;
pub mod message;
