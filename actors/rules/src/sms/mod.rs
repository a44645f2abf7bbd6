//! SMS: the life of one, how long it is, and what its words mean.
pub mod machine;
pub mod segments;
pub mod text;
pub mod words;
