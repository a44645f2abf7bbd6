//! Campaigns: lists of contacts that are worked through.
pub mod actor;
pub mod outlook;
pub mod review;
