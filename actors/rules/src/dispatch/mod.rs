//! Who is dispatched next, and when: rates, shares, slots, caps and hours, and the plan of one round that is made of them.
pub mod candidate;
pub mod concurrency;
pub mod fair;
pub mod funds;
mod group;
pub mod key_limits;
pub mod last_second;
pub mod limiting;
pub mod pace;
pub mod per_env;
pub mod plan;
pub mod queue;
pub mod round;
pub mod route;
#[cfg(test)]
pub(crate) mod samples;
pub mod slots;
pub mod snapshot;
pub mod trunk;
pub mod usage;
pub mod waiting;
