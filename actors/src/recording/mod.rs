//! Recordings: what was said in a call, as sound, from the end of the call until it is erased. What goes over a line is spooled
//! before that, while it is heard.
pub mod actor;
pub mod lines;
mod origin;
pub mod sounds;
pub mod spooling;
pub mod studio;
