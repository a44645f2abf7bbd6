//! Sound: made from words and mixed, or spooled from a line; and kept sealed in a store.
mod header;
pub mod mark;
pub mod messages;
pub mod mix;
pub mod spool;
pub mod vault;
pub mod voice;
