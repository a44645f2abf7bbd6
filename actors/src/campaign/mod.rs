//! Campaigns: lists of contacts that are worked through.
pub mod actor;
pub mod machine;
pub mod outlook;
