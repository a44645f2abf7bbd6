//! Prepaid credits: what each movement does to an account, what it is booked by, and top-ups.
pub mod chain;
pub mod machine;
pub mod terms;
pub mod topup;
