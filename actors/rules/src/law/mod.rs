//! The law as data: which rules hold for a call or a message, and what each says of it.
//!
//! A [`Pack`] holds the rules of many places, each with the days between which it holds and its source. [`judge`] asks all of those that
//! concern one attempt, from its [`Facts`] alone: the record of an attempt keeps the facts and the pack's version, so that
//! anybody can ask again years later and hears the same.
pub mod abandonment;
pub mod caller;
pub mod facts;
pub mod notices;

pub use facts::Facts;
