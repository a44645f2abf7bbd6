//! Prepaid credits: what each movement does to an account, and its booking in the writer's transaction; and top-ups, by
pub mod chain;
pub mod machine;
pub mod terms;
pub mod topup;
