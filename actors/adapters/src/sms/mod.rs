//! Who hands SMS over.
pub mod doors;
pub mod provider;
pub mod sandbox;
pub mod signature;
pub mod twilio;
