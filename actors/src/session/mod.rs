//! Sessions: calls.
pub mod actor;
pub mod caller_id;
pub mod command;
pub mod intake;
pub mod log;
pub mod machine;
mod row;
pub mod settings;
