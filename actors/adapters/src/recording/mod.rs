//! Sound: made from words, mixed, and kept sealed in a store.
pub mod mix;
pub mod vault;
pub mod voice;
