//! Deliveries: the life of one, what an endpoint's answers make of it, and the queue of a lane.
pub mod concurrency;
pub mod failure;
pub mod lane;
pub mod machine;
pub mod queue;
pub mod report;
pub mod settle;

#[cfg(test)]
#[path = "samples_tests.rs"]
mod samples;
