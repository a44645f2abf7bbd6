//! Sessions: calls.
pub mod actor;
pub mod machine;
mod row;
pub mod intake;
