//! Campaigns: lists of contacts that are worked through.
pub mod letter;
pub mod machine;
pub mod patch;
pub mod plan;
pub mod row;
