//! The record of attempts, for whoever has to show what was done: attempts, exports, and where the chain stood each day.
pub mod attempts;
pub mod exports;
pub mod heads;
