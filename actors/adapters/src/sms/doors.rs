//! Who hands SMS over.
use super::{
    provider::{Door, Provider},
    sandbox::Sandbox,
    twilio::Twilio,
};
use entities::{
    Error, Result,
    ids::SmsId,
    values::{E164, Env},
};
use runtime::job::Running;
use std::sync::Arc;

/// Who hands messages over, and what the operator has decided about them.
pub struct Sms {
    live: Option<Door>,
    sandbox: Door,
    /// Set when live messages go by a Twilio-shaped service: checks what it reports.
    pub twilio: Option<Arc<Twilio>>,
    /// What HELP is answered with; empty: nothing.
    pub help_text: String,
    /// Messages that are being handed over.
    pub running: Running<SmsId>,
}

/// Handed over at once, by one provider.
const AT_ONCE: usize = 32;

impl Sms {
    pub fn new(twilio: Option<Twilio>, help_text: String) -> Self {
        let twilio = twilio.map(Arc::new);
        let live = twilio.clone().map(|twilio| Door::new(twilio, AT_ONCE));
        Sms {
            live,
            sandbox: Door::new(Arc::new(Sandbox), AT_ONCE),
            twilio,
            help_text,
            running: Running::default(),
        }
    }

    /// `None`: messages of that env cannot be sent; the operator has configured no provider.
    pub fn of(&self, env: Env) -> Option<&Door> {
        match env {
            Env::Live => self.live.as_ref(),
            Env::Test => Some(&self.sandbox),
        }
    }

    /// Does that number belong to the installation, so that no workspace can have it?
    pub fn is_shared(&self, number: &E164) -> bool {
        let of_live = self.live.as_ref().and_then(|door| door.provider.default_from());
        of_live == Some(number) || self.sandbox.provider.default_from() == Some(number)
    }

    pub fn provider(&self, env: Env) -> Result<&dyn Provider> {
        let door = self.of(env).ok_or_else(|| {
            Error::NotConfigured(
                "no SMS provider is configured for live messages; use a test key for sandbox messages".into(),
            )
        })?;
        Ok(&*door.provider)
    }
}
