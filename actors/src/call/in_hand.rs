//! The calls that this process has placed, or is about to. What is live in the database and not here was cut off by a crash.
use super::leg::Leg;
use chrono_tz::Tz;
use entities::{
    campaign::Retry,
    contact,
    ids::{CampaignId, SessionId},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

#[derive(Default)]
pub struct Calls(Mutex<HashMap<SessionId, InHand>>);

struct InHand {
    call: Call,
    /// The carrier has it.
    placed: bool,
}

/// A call in hand, with what its end will need.
#[derive(Clone)]
pub struct Call {
    pub leg: Arc<Leg>,
    /// Saves reading it at the end.
    pub contact: Option<Kept>,
}

/// What a campaign's call needs at its end.
#[derive(Clone)]
pub struct Kept {
    /// The contact's row after the dispatch.
    pub contact: contact::Model,
    /// Its campaign's plan of retries, and the version of its rules.
    pub retry: Retry,
    pub rules_version: i32,
    /// Its campaign's.
    pub zone: Tz,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, InHand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Before the intent is committed, so that nobody mistakes the call for a lost one.
    pub fn insert(&self, session: SessionId, call: Call) {
        self.lock().insert(session, InHand { call, placed: false });
    }
    pub fn remove(&self, session: SessionId) {
        self.lock().remove(&session);
    }
    pub fn contains(&self, session: SessionId) -> bool {
        self.lock().contains_key(&session)
    }
    pub fn count(&self) -> usize {
        self.lock().len()
    }
    pub fn sessions(&self) -> Vec<entities::ids::TenantScoped<SessionId>> {
        self.lock().values().map(|held| held.call.leg.session()).collect()
    }
    /// Places a call that is still in hand, once. Nobody takes it out of hand meanwhile: whoever ends it hangs up after.
    pub fn place(&self, session: SessionId, place: impl FnOnce(Arc<Leg>)) {
        let mut calls = self.lock();
        if let Some(held) = calls.get_mut(&session)
            && !held.placed
        {
            held.placed = true;
            place(held.call.leg.clone());
        }
    }
    pub fn leg(&self, session: SessionId) -> Option<Arc<Leg>> {
        self.lock().get(&session).map(|held| held.call.leg.clone())
    }
    pub fn is_placed(&self, session: SessionId) -> bool {
        self.lock().get(&session).is_some_and(|held| held.placed)
    }
    pub fn contact(&self, session: SessionId) -> Option<Kept> {
        self.lock().get(&session).and_then(|held| held.call.contact.clone())
    }
    /// A campaign's plan has changed: that of its calls in hand is old.
    pub fn forget_contacts_of(&self, campaign: CampaignId) {
        for held in self.lock().values_mut() {
            held.call.contact.take_if(|kept| kept.contact.campaign_id == campaign);
        }
    }
    /// The kept row has turned out to be old.
    pub fn forget_contact(&self, session: SessionId) {
        if let Some(held) = self.lock().get_mut(&session) {
            held.call.contact = None;
        }
    }
}
