//! Contacts: the people in a campaign's list.
pub mod edit;
pub mod intake;
