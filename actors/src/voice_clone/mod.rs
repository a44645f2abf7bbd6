//! Clones of voices: uploaded samples are examined, a provider makes the voice, and it is erased there when nobody wants it.
mod actor;
pub mod cloning;
mod create;
pub mod samples;
mod train;

pub use adapters::voice_clone::provider::{Cloner, Copy, Order, Recording, Refused, Sandbox};
pub use create::{New, create};
pub use train::{erase, train};
