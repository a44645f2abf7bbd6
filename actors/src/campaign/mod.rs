//! Campaigns: lists of contacts that are worked through.
pub mod actor;
pub mod letter;
pub mod machine;
pub mod outlook;
pub mod patch;
pub mod review;
