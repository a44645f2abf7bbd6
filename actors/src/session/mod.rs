//! Sessions: calls.
pub mod actor;
pub mod caller_id;
mod create;
pub mod intake;

pub use create::{New, create};
