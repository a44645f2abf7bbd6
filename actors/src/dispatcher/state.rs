//! What a dispatcher knows: the snapshot that its rounds are decided from, and whether the rows still say the same.
use super::{dial::Known, opening};
use crate::{deps::Deps, holds, holds::state::Hold};
use entities::{
    Result, boxed, campaign as campaigns,
    campaign::Channel,
    dispatch_block,
    ids::TenantId,
    ledger, session as sessions,
    values::{Env, Moment, Zone},
};
use rules::{
    dispatch::{
        concurrency::{Concurrency, Slot},
        fair::RoundRobin,
        funds::{Funds, Purse},
        last_second::LastSecondLimiter,
        limiting::LimitingFactor,
        pace::Pace,
        per_env::PerEnv,
        snapshot::Snapshot,
        trunk::Trunk,
    },
    effect::DispatchHint,
};
use std::{collections::BTreeMap, sync::Arc};

/// Rebuilt from the rows whenever in doubt.
pub struct State {
    pub known: Known,
    /// The workspace's.
    pub zone: Zone,
    pub snapshot: Snapshot,
    pub limiter: Arc<LastSecondLimiter>,
    /// Are there sessions in the queue that were not looked at?
    pub queued: bool,
    /// The rows must be read again.
    pub outdated: bool,
}

impl State {
    /// Reads the tenant, its campaigns and its live calls; paces of campaigns that run on do too.
    #[boxed]
    pub async fn read(deps: &Deps, tenant: TenantId, known: Option<State>) -> Result<State> {
        let db = &deps.db.read;
        // Of a pause that began a moment ago a dial is told only that something has changed.
        holds::look(deps).await?;
        let row = entities::tenant::load(db, tenant).await?;
        let running = campaigns::dispatchable(db, tenant).await?;
        let live = sessions::live(db, tenant).await?;
        let most = deps.limits.max_calls_per_second;
        let (mut old, pace, limiter, trunks, mut ring) = match known {
            Some(State { snapshot, limiter, .. }) => (
                snapshot.campaigns,
                snapshot.pace,
                limiter,
                snapshot.trunks,
                snapshot.ring,
            ),
            None => (
                BTreeMap::new(),
                Pace::new(most),
                Arc::new(LastSecondLimiter::new(most)),
                PerEnv::new(|_| Trunk::new(most)),
                RoundRobin::default(),
            ),
        };
        let mut campaigns = BTreeMap::new();
        for campaign in running.into_iter().filter(|campaign| has_sender(deps, campaign)) {
            let id = campaign.id;
            let queue = opening::open(deps, campaign, old.remove(&id), row.timezone).await?;
            // It waits, and it alone.
            if queue.lacks_caller() {
                deps.pacing_report.limited(id, LimitingFactor::Trunk);
            } else {
                campaigns.insert(id, queue);
            }
        }
        for gone in old.into_keys() {
            deps.pacing_report.forget(gone);
        }
        ring.keep(campaigns.keys().copied());
        limiter.keep(|id| campaigns.contains_key(id), deps.clock.now());
        Ok(State {
            known: Known {
                tenant,
                version: row.version,
            },
            zone: row.timezone,
            limiter,
            snapshot: Snapshot {
                concurrency: Concurrency::of(&row, &deps.limits),
                terms: deps.limits.credits.clone(),
                pace,
                trunks,
                blocks: dispatch_block::of(db, tenant).await?,
                funds: funds(deps, tenant).await?,
                campaigns,
                ring,
                live: live.into_iter().map(|live| (live.id, Slot::from(live))).collect(),
            },
            queued: true,
            outdated: false,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.snapshot.campaigns.is_empty() && self.snapshot.live.is_empty() && !self.queued
    }

    /// Notes what has happened.
    pub fn hinted(&mut self, hint: DispatchHint, now: Moment) {
        match hint {
            DispatchHint::CampaignsChanged => (self.outdated, self.queued) = (true, true),
            DispatchHint::SessionQueued => self.queued = true,
            DispatchHint::SlotFreed(_) | DispatchHint::MessageEnded(_) | DispatchHint::TrunkCongested(_) => {
                self.snapshot.hinted(hint, now);
            }
        }
    }

    /// Who lifts a block may be another process, which sends no hints.
    #[boxed]
    pub async fn sees_lifted(&mut self, deps: &Deps) -> Result<bool> {
        let known = &mut self.snapshot.blocks;
        if known.is_empty() {
            return Ok(false);
        }
        let blocks = dispatch_block::of(&deps.db.read, self.known.tenant).await?;
        Ok(std::mem::replace(known, blocks) != *known)
    }

    /// Nothing leaves, whoever's turn it is.
    pub fn held(&mut self, deps: &Deps, hold: Hold) {
        for queue in self.snapshot.campaigns.values_mut() {
            queue.held();
            deps.pacing_report.limited(queue.id, hold.into());
        }
    }
}

/// What the tenant's calls and messages may set aside.
#[boxed]
pub async fn funds(deps: &Deps, tenant: TenantId) -> Result<Funds> {
    let purse = async |env| {
        let opening = |tenant, env| deps.limits.credits.opening(tenant, env);
        let account = ledger::load(&deps.db.read, (tenant, env), opening).await?;
        Ok::<_, entities::Error>(Purse::new(account.available(), account.balance_cents))
    };
    let (live, test) = (purse(Env::Live).await?, purse(Env::Test).await?);
    Ok(Funds::new(|env| match env {
        Env::Live => live,
        Env::Test => test,
    }))
}

/// Is there who hands over what it writes? The operator may have taken the provider away: the campaign waits, and it alone.
fn has_sender(deps: &Deps, campaign: &campaigns::Model) -> bool {
    let sender = match campaign.plan.channel {
        Channel::Phone => Ok(()),
        Channel::Sms => crate::sms::check_configured(deps, campaign.env),
        Channel::Email => crate::email::check_configured(deps, campaign.env),
    };
    sender.is_ok()
}
