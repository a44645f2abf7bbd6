//! Delivery: events on their way to endpoints. One lane per endpoint.
pub mod attempt;
pub mod failure;
pub mod lane;
pub mod machine;
pub mod prune;
mod queue;
pub mod recovery;
pub mod replay;
pub mod report;
mod rows;
mod settle;
pub mod settling;
mod width;
