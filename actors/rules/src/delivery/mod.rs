//! Delivery: events on their way to endpoints. One lane per endpoint.
pub mod failure;
pub mod machine;
pub mod queue;
pub mod report;
pub mod settle;
pub mod width;
