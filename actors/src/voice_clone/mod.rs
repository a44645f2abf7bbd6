//! Clones of voices: uploaded samples are examined, a provider makes the voice, and it is erased there when nobody wants it.
mod actor;
pub mod cloning;
pub mod samples;
mod train;

pub use adapters::voice_clone::provider::{Cloner, Copy, Order, Recording, Refused, Sandbox};
pub use train::{erase, train};
