//! The mail server of the service.
pub mod post;
pub mod smtp;
