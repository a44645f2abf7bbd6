//! Sessions: calls.
pub mod command;
pub mod latency;
pub mod log;
pub mod machine;
pub mod row;
pub mod settings;
pub mod sip_outcome;
