//! What SMS and e-mails have in common: how many are handed over at once, and where they belong to a campaign, when they may
//! still be sent, and what their end means to their contact.
use crate::{
    contact::machine::{Attempt, Ending},
    deps::Deps,
    effect::{DispatchHint, Effect, Fact, Hint},
    sms::machine::{Bar, Block},
};
use entities::{
    Error, Result,
    campaign::{self, Status},
    ids::{CampaignId, ContactId, DeliveryRowId, Owned, TenantId},
    values::{Cents, Env, Moment},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many messages are handed over at once: by all, and by one workspace, so that nobody waits behind somebody else's list.
pub struct Permits {
    all: Arc<Semaphore>,
    /// Of them, for one workspace.
    share: usize,
    of_tenants: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// Lets one message be handed over; given back when it is dropped.
#[derive(Debug)]
pub struct Permit {
    _of_tenant: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Permits {
    pub fn new(at_once: usize) -> Self {
        Permits {
            all: Arc::new(Semaphore::new(at_once)),
            share: (at_once / 2).max(1),
            of_tenants: Mutex::default(),
        }
    }

    fn of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut all = self.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(tenant)
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)))
            .clone()
    }

    /// Waits for its turn; the workspace's own messages first wait for each other.
    pub async fn take(&self, tenant: TenantId) -> Result<Permit> {
        let closed = |_| Error::Unavailable("the service is shutting down".into());
        Ok(Permit {
            _of_tenant: self.of(tenant).acquire_owned().await.map_err(closed)?,
            _of_all: self.all.clone().acquire_owned().await.map_err(closed)?,
        })
    }

    /// `None`: as many as may be are on their way.
    pub fn take_now(&self, tenant: TenantId) -> Option<Permit> {
        Some(Permit {
            _of_tenant: self.of(tenant).try_acquire_owned().ok()?,
            _of_all: self.all.clone().try_acquire_owned().ok()?,
        })
    }
}

/// A message at its end.
pub struct Ended {
    pub owner: (TenantId, Env),
    pub campaign: Option<(CampaignId, ContactId)>,
    pub row: DeliveryRowId,
    /// When it was handed over first; `None`: never.
    pub first_sent_at: Option<Moment>,
    pub ending: Ending,
    pub cost: Cents,
}

/// What its end means to its campaign's contact; nothing for a message of its own.
pub fn finish_attempt(ended: Ended) -> Vec<Effect> {
    let (tenant, env) = ended.owner;
    let Some((campaign, contact)) = ended.campaign else {
        return Vec::new();
    };
    let arrived = ended.ending == Ending::Arrived;
    let attempt = Attempt {
        row: ended.row,
        dialed_at: ended.first_sent_at,
        answered: arrived,
        ending: ended.ending,
        reached: arrived,
        disposition_code: None,
        duration_seconds: 0,
        actual_cost_cents: ended.cost,
    };
    let contact = Owned::new(tenant, env, contact);
    let mut effects = vec![Fact::FinishAttempt { contact, attempt }.into()];
    if !arrived {
        effects.push(Hint::ContactWaits(contact).into());
    }
    effects.push(Hint::MessageEnded(Owned::new(tenant, env, campaign)).into());
    effects
}

/// The code of a message that waits again because its hours were over when it was to be handed over.
pub const TOO_LATE: &str = "too_late";

/// The code of one that waits again because it was not known whether the intent to send it stood.
pub const UNDECIDED: &str = "not_decided_in_time";

/// The code of one that could not be made.
pub const INVALID_MESSAGE: &str = "invalid_message";

/// Failures after which nobody is written to again: it may have arrived, or never will, or is not wanted.
pub fn is_final(code: &str) -> bool {
    const FINAL: [&str; 6] = [
        "unknown_outcome",
        "invalid_number",
        "recipient_opted_out",
        "recipient_on_dnc",
        "canceled",
        INVALID_MESSAGE,
    ];
    FINAL.contains(&code)
}

/// What keeps a campaign's message from being handed over once more.
pub enum Obstacle {
    Bar(Bar),
    Wait(Block),
}

/// A message that was not taken at first goes by its campaign's state, and only while its contact's hours are open.
pub async fn of_campaign(
    deps: &Deps,
    (tenant, env): (TenantId, Env),
    campaign: Option<CampaignId>,
    send_by: Option<Moment>,
) -> Result<Option<Obstacle>> {
    let Some(id) = campaign else { return Ok(None) };
    if send_by.is_some_and(|at| deps.clock.times().later() > at) {
        return Ok(Some(Obstacle::Bar(Bar::TooLate)));
    }
    let row = match campaign::load_even_deleted(&deps.db.read, Owned::new(tenant, env, id)).await {
        Err(Error::NotFound(_)) => return Ok(Some(Obstacle::Bar(Bar::CampaignOver))),
        found => found?,
    };
    Ok(match (row.status, row.cancel_requested_at) {
        (Status::Completed, _) | (_, Some(_)) => Some(Obstacle::Bar(Bar::CampaignOver)),
        (Status::Paused, None) => Some(Obstacle::Wait(Block::Pause)),
        (Status::Running | Status::Draft, None) => None,
    })
}

/// There is room for one more of the campaign's messages. A hint.
pub fn freed(deps: &Deps, tenant: TenantId, campaign: Option<CampaignId>) {
    if let Some(campaign) = campaign {
        deps.router.dispatcher(tenant, DispatchHint::MessageEnded(campaign));
    }
}
