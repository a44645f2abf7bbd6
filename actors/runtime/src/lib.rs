//! How things live, of whatever product: time and chance, keys, registries of supervised actors, jobs.
pub mod at_rest;
pub mod bulkhead;
pub mod clock;
pub mod ids;
pub mod job;
pub mod keyring;
pub mod link_keys;
pub mod permits;
pub mod registry;
pub mod signing;
pub mod supervise;
pub mod tracer;
