//! Prices, credits and payments.
use super::{BadSetting, Settings};
use actors::credits::processor::Payments;
use adapters::stripe::{Stripe, signature::Secrets};
use entities::values::Cents;
use rules::credits::terms;

impl Settings {
    /// Who takes the money for credits.
    pub fn payments(&self) -> Result<Payments, BadSetting> {
        let key = Some(&self.stripe_secret_key.0).filter(|key| !key.is_empty());
        let stripe = key.map(|key| Stripe::new(&self.stripe_url, key).map_err(BadSetting));
        let notice_secrets = Secrets::parse(&self.stripe_webhook_secret.0);
        let (least, most) = (self.topup_min_cents, self.topup_max_cents);
        // Stripe's own limits.
        if !(50..=99_999_999).contains(&least) {
            return Err(BadSetting(format!(
                "topup_min_cents: {least} must be between 50 and 99999999"
            )));
        }
        if !(least..=99_999_999).contains(&most) {
            return Err(BadSetting(format!(
                "topup_max_cents: {most} must be between topup_min_cents and 99999999"
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
        let within = |name: &str, value: i64, most: i64| {
            let fits = (0..=most).contains(&value);
            let why = || BadSetting(format!("{name}: {value} must be between 0 and {most}"));
            fits.then_some(value).ok_or_else(why)
        };
        within("credit_hold_seconds", self.credit_hold_seconds.into(), 7200)?;
        let threshold = self.credit_warning_threshold_cents;
        let threshold = within("credit_warning_threshold_cents", threshold, MAX_CENTS)?;
        let opening = within("test_credits_cents", self.test_credits_cents, MAX_CENTS)?;
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
pub(super) const MAX_CENTS: i64 = 10_000_000_000;
