//! What the law asks of calls and messages: its rules, what they would say, who the workspace is by law; and the record of attempts, for
//! whoever has to show what was done.
pub mod attempts;
pub mod check;
pub mod exports;
pub mod heads;
pub mod identity;
pub mod law_rules;
pub mod outcomes;
