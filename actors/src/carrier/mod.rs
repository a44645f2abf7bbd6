//! Who connects calls. One trait; the sandbox is its implementation for test keys.
mod callee;
pub mod carriers;
pub mod lines;
mod log;
mod sandbox;

use crate::{
    call::leg::{Control, Leg},
    carrier::carriers::Carriers,
};
pub use lines::{Options as SandboxOptions, Sandbox};

use crate::deps::Deps;
use entities::{
    Error, Result,
    ids::{SessionId, TenantScoped},
    values::Env,
};
use std::sync::Arc;

/// Places calls and reports what becomes of them as commands to their sessions.
pub trait Carrier: Send + Sync {
    /// Returns at once. Called once for a session, and again only after it said that it had no room for it.
    fn place(&self, deps: &Deps, leg: Arc<Leg>);
    /// Ends a call, if it is still there. Reports nothing to its session.
    fn hang_up(&self, session: SessionId);
    /// `false`: there is no such call, or it has been told too much already.
    fn control(&self, deps: &Deps, session: SessionId, control: Control) -> bool;
}

impl Carriers {
    /// `None`: calls of that env cannot be placed; the operator has configured no carrier.
    pub fn of(&self, env: Env) -> Option<&dyn Carrier> {
        match env {
            Env::Live => self.phones.as_ref().map(|phones| phones as &dyn Carrier),
            Env::Test => Some(&self.sandbox),
        }
    }

    /// Live calls need a carrier that the operator has configured.
    pub fn check(&self, env: Env) -> Result<()> {
        match self.of(env) {
            Some(_) => Ok(()),
            None => Err(Error::NotConfigured(
                "no carrier is configured for live calls; use a test key for sandbox calls".into(),
            )),
        }
    }

    /// Takes a call that has come in and was given a slot.
    pub fn take(&self, deps: &Deps, leg: Arc<Leg>) {
        match (leg.call.room_id, leg.call.env, &self.phones) {
            // Who joins a room is there already.
            (Some(_), ..) => {}
            (None, Env::Live, Some(phones)) => phones.take(deps, leg),
            (None, Env::Test, _) | (None, Env::Live, None) => self.sandbox.carry(deps, leg),
        }
    }

    /// `false`: there is no such call, or it has been told too much already.
    pub fn control(&self, deps: &Deps, session: TenantScoped<SessionId>, control: Control) -> bool {
        match self.rooms.control(session.id, control.clone()) {
            Some(told) => told,
            None => self
                .of(session.env)
                .is_some_and(|carrier| carrier.control(deps, session.id, control)),
        }
    }
}
