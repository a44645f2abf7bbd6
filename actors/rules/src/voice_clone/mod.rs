//! Clones of voices: the life of one.
pub mod machine;
