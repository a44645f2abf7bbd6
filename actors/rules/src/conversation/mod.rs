//! What is said in a call, and what an agent may do about it.
pub mod guard;
pub mod lines;
pub mod phrases;
pub mod schema;
pub mod tools;
