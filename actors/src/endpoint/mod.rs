//! Webhook endpoints: their settings and whether they receive. Deliveries are [`crate::delivery`]'s.
pub mod actor;
