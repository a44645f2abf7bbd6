//! Contacts: one person in one campaign. Moved by the dispatcher and by their sessions; too many to be actors.
pub mod machine;
