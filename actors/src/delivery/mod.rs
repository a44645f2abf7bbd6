//! Delivery: events on their way to endpoints. One lane per endpoint.
pub mod attempt;
pub mod lane;
pub mod recovery;
pub mod replay;
mod rows;
pub mod settling;
