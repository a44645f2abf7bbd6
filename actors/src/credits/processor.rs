//! Who takes the money.
use adapters::stripe::{Stripe, signature::Secrets};
use entities::ids::TopupId;
use runtime::job::Running;

/// Who takes the money, and within which limits.
pub struct Payments {
    pub stripe: Option<Stripe>,
    /// Of Stripe's webhook to us; none: its notices are not taken.
    pub notice_secrets: Secrets,
    /// Cents of one top-up.
    pub amounts: std::ops::RangeInclusive<i64>,
    /// Top-ups that the processor is being asked about.
    pub asking: Running<TopupId>,
}
