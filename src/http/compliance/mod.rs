//! What the law asks of calls and messages: its rules, what they would say, who the workspace is by law.
pub mod check;
pub mod identity;
pub mod law_rules;
