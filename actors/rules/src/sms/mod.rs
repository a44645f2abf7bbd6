//! SMS: what goes out, what comes in. One message is a row with a state machine; a provider hands it over.
pub mod machine;
pub mod segments;
pub mod words;
