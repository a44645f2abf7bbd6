//! Sessions: calls.
pub mod command;
pub mod log;
pub mod machine;
pub mod row;
pub mod settings;
