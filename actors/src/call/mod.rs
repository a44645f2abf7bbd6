//! Calls: what this process has in hand of them.
pub mod in_hand;
pub mod leg;
pub mod voice;
