//! What is said in a call, and what an agent may do about it.
pub mod claims;
pub mod disclosure;
pub mod guard;
pub mod phrases;
pub mod pieces;
pub mod schema;
pub mod spoken;
pub mod stock_phrases;
pub mod tools;
