//! Who makes clones of voices, and the voices that need none.
pub mod builtin;
pub mod elevenlabs;
pub mod examine;
pub mod provider;
