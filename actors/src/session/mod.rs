//! Sessions: calls.
pub mod actor;
pub mod intake;
pub mod machine;
mod row;
