//! Campaigns: lists of contacts that are worked through.
pub mod machine;
pub mod message_template;
pub mod patch;
pub mod plan;
pub mod row;
