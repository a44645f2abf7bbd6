//! E-mails to people outside: the life of one.
pub mod machine;
