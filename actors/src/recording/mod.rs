//! Recordings: what was said in a call, as sound, from the end of the call until it is erased.
pub mod actor;
pub mod sounds;
pub mod studio;
