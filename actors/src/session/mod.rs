//! Sessions: calls.
pub mod actor;
pub mod caller_id;
mod create;
mod erase;
pub mod intake;

pub use create::{New, create};
pub use erase::erase;
