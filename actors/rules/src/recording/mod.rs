//! Recordings: the life of one.
pub mod machine;
