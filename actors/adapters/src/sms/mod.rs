//! SMS: what goes out, what comes in. One message is a row with a state machine; a provider hands it over.
pub mod doors;
pub mod provider;
pub mod sandbox;
pub mod signature;
pub mod twilio;
