//! Prices, credits and payments.
use super::{
    Settings,
    check::{BadSetting, within},
};
use actors::credits::processor::Payments;
use adapters::stripe::{Stripe, signature::Secrets};
use entities::values::Cents;
use rules::credits::terms;
use std::ops::RangeInclusive;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.payments()?;
    settings.credits().map(drop)
}

impl Settings {
    /// Who takes the money for credits.
    pub fn payments(&self) -> Result<Payments, BadSetting> {
        let key = self.stripe_secret_key.given();
        let stripe = key.map(|key| Stripe::new(&self.stripe_url, key).map_err(BadSetting));
        let notice_secrets = Secrets::parse(self.stripe_webhook_secret.expose());
        let least = within("topup_min_cents", self.topup_min_cents, STRIPE_CENTS)?;
        let most = within("topup_max_cents", self.topup_max_cents, STRIPE_CENTS)?;
        if most < least {
            return Err(BadSetting(format!(
                "topup_max_cents: {most} must not be less than topup_min_cents, which is {least}"
            )));
        }
        Ok(Payments {
            stripe: stripe.transpose()?,
            notice_secrets: notice_secrets.map_err(|why| BadSetting(format!("stripe_webhook_secret: {why}")))?,
            amounts: least..=most,
            asking: Default::default(),
        })
    }

    /// The terms of prepaid credits.
    pub fn credits(&self) -> Result<terms::Terms, BadSetting> {
        within("credit_hold_seconds", self.credit_hold_seconds, 0..=7200)?;
        let threshold = self.credit_warning_threshold_cents;
        let threshold = within("credit_warning_threshold_cents", threshold, 0..=MAX_CENTS)?;
        let opening = within("test_credits_cents", self.test_credits_cents, 0..=MAX_CENTS)?;
        if self.currency.len() != 3 || !self.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(BadSetting(format!(
                "currency: `{}` is not an ISO 4217 code; write USD",
                self.currency
            )));
        }
        Ok(terms::Terms {
            test_opening: Cents(opening),
            warning_threshold: (threshold > 0).then_some(Cents(threshold)),
            currency: self.currency.clone(),
            hold_seconds: self.credit_hold_seconds,
        })
    }
}

/// The most of any amount: 100 million of the currency.
const MAX_CENTS: i64 = 10_000_000_000;
/// Stripe's own limits of a payment.
const STRIPE_CENTS: RangeInclusive<i64> = 50..=99_999_999;
