//! Numbers that prove whose they are: a code is made, comes to the number, and is said back. Each step is one transaction of
pub mod machine;
