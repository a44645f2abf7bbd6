//! Numbers that are verified by a code.
pub mod machine;
