//! What a dispatcher knows: the snapshot that its rounds are decided from, and whether the rows still say the same.
use super::{brakes, dial::Known, moved, opening, trunks};
use crate::{deps::Deps, holds, holds::state::Hold, legal::Workspace};
use entities::{
    Result, api_key, boxed, campaign as campaigns,
    campaign::Channel,
    dispatch_block,
    ids::{ApiKeyId, SessionId, TenantId},
    ledger, session as sessions, sip_trunk,
    values::{Env, Moment, Zone},
};
use rules::{
    dispatch::{
        concurrency::{Concurrency, Slot},
        fair::RoundRobin,
        funds::{Funds, Purse},
        key_limits::KeyLimits,
        last_second::{LastSecondLimiter, Paced},
        limiting::LimitingFactor,
        pace::Pace,
        snapshot::Snapshot,
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
    /// The last of them that was looked at, if those behind it are next.
    pub looked_until: Option<SessionId>,
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
        let outdated = moved::follow(deps, tenant).await?;
        let running = campaigns::dispatchable(db, tenant).await?;
        let live = sessions::live(db, tenant).await?;
        let most = deps.limits.max_calls_per_second;
        let (mut old, pace, limiter, old_trunks, mut ring) = match known {
            Some(State { snapshot, limiter, .. }) => (
                snapshot.campaigns,
                snapshot.pace,
                limiter,
                Some(snapshot.trunks),
                snapshot.ring,
            ),
            None => (
                BTreeMap::new(),
                Pace::new(most),
                Arc::new(LastSecondLimiter::new(most)),
                None,
                RoundRobin::default(),
            ),
        };
        let workspace = Workspace::of(db, &row).await?;
        let mut campaigns = BTreeMap::new();
        for campaign in running.into_iter().filter(|campaign| has_sender(deps, campaign)) {
            let id = campaign.id;
            let queue = opening::open(deps, campaign, old.remove(&id), &workspace).await?;
            // It waits, and it alone.
            if queue.lacks_caller() {
                deps.pacing_report.limited(id, LimitingFactor::Trunk);
            } else {
                campaigns.insert(id, queue);
            }
        }
        old.into_keys().for_each(|gone| deps.pacing_report.forget(gone));
        brakes::tell(deps, tenant, &campaigns).await?;
        ring.keep(campaigns.keys().copied());
        let trunks = trunks::of_rows(sip_trunk::all_of(db, tenant).await?, old_trunks, most);
        let is_left = |paced: &Paced| match paced {
            Paced::Campaign(id) => campaigns.contains_key(id),
            Paced::Trunk(id) => trunks.live.contains_key(id),
        };
        limiter.keep(is_left, deps.clock.now());
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
                keys: KeyLimits::default(),
                campaigns,
                ring,
                live: live.into_iter().map(|live| (live.id, Slot::from(live))).collect(),
            },
            queued: true,
            looked_until: None,
            outdated,
        })
    }

    /// As it is known, or read again, if the rows may say something else.
    #[boxed]
    pub async fn current(deps: &Deps, tenant: TenantId, known: Option<State>) -> Result<State> {
        match known {
            Some(state) if !state.outdated => Ok(state),
            known => State::read(deps, tenant, known).await,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.snapshot.campaigns.is_empty() && self.snapshot.live.is_empty() && !self.queued
    }

    /// Notes what has happened.
    pub fn hinted(&mut self, hint: DispatchHint, now: Moment) {
        match hint {
            DispatchHint::CampaignsChanged => (self.outdated, self.queued) = (true, true),
            DispatchHint::SessionQueued => self.queued = true,
            DispatchHint::SlotFreed(_)
            | DispatchHint::MessageEnded(_)
            | DispatchHint::TrunkCongested(_)
            | DispatchHint::NoRoom => {
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

/// Reads what those keys have used of their limits, if it is not known yet.
#[boxed]
pub async fn learn_keys(deps: &Deps, known: &mut KeyLimits, mut keys: Vec<ApiKeyId>, now: Moment) -> Result<()> {
    keys.retain(|key| !known.knows(*key));
    keys.sort_unstable();
    keys.dedup();
    for key in api_key::of_ids(&deps.db.read, &keys).await? {
        let used = sessions::key_use(&deps.db.read, &key, now, &[]).await?;
        known.learn(key, used);
    }
    Ok(())
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
