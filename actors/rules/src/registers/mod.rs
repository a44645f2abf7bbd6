//! Registers of numbers that must not be called: what is known of each, how its files are read, when one takes another's place, and
//! when its owners are told that it ages. Whether one is fresh enough for a call is said by the law's rules alone.
pub mod aging;
pub mod day;
pub mod known;
pub mod lines;
pub mod notice;
pub mod number;
pub mod version;
