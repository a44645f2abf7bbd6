//! Delivery: events on their way to endpoints. One lane per endpoint.
pub mod attempt;
pub mod lane;
pub mod machine;
pub mod prune;
mod queue;
pub mod recovery;
pub mod replay;
mod rows;
mod settle;
mod width;
