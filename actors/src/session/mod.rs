//! Sessions: calls.
pub mod actor;
pub mod caller_id;
pub mod intake;
