//! Campaigns: lists of contacts that are worked through.
pub mod actor;
mod create;
pub mod outlook;
pub mod plan;
pub mod review;

pub use create::{Run, create, duplicate, run};
