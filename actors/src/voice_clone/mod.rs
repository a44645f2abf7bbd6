//! Clones of voices: uploaded samples are examined, a provider makes the voice, and it is erased there when nobody wants it.
mod actor;
pub mod builtin;
pub mod cloning;
pub mod elevenlabs;
pub mod examine;
pub mod machine;
mod provider;
pub mod samples;
mod train;

pub use provider::{Cloner, Copy, Order, Recording, Refused, Sandbox};
pub use train::{erase, train};
