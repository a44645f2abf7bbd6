//! What every actor is given: the database, time and chance, the writer, and the doors to the outside.
use crate::{
    attempts::exports::at_work::Exports,
    call::in_hand::Calls,
    carrier::carriers::Carriers,
    conversation::{judgements::Judgements, latencies::Latencies, listeners::Listeners},
    credits::processor::Payments,
    dispatcher::pacing_report::PacingReport,
    email::door::Emails,
    evaluate::evaluations::Evaluations,
    fence::Fence,
    heartbeat,
    holds::state::Holds,
    leases::{Of, Since, Stay},
    quiet::Quiet,
    recording::sounds::Studio,
    registers::lookup::Registers,
    router::Router,
    traces::Traces,
    trunk::board::TrunkBoard,
    voice::standbys::Standbys,
    voice_clone::cloning::Cloning,
    writer::Writer,
};
use adapters::{brain::Providers, mail::post::Post, outbound::Outbound, sms::doors::Sms};
use entities::{
    Result, boxed,
    db::Db,
    ids::{CampaignId, ImportId, RecoveryId, TenantId},
    values::Moment,
    workspace_lease::Share,
};
use rules::{law::Law, limits::Limits};
use runtime::{
    clock::Clock,
    ids::Ids,
    job::{Jobs, Running},
    keyring::Keyring,
    link_keys::LinkKeys,
};
use std::{
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

/// Cloning is cheap.
#[derive(Clone)]
pub struct Deps(Arc<Shared>);

pub struct Shared {
    pub db: Db,
    pub clock: Clock,
    pub ids: Arc<Ids>,
    pub writer: Writer,
    /// Is the database still ours? Asked before each deed outside: see [`Deps::pass`].
    pub fence: Arc<Fence>,
    pub calls: Calls,
    /// Until when the calls of the process before were carried.
    pub heartbeat: Since,
    pub carriers: Carriers,
    pub keyring: Arc<Keyring>,
    /// What proves links of ours.
    pub links: LinkKeys,
    pub outbound: Outbound,
    /// Where e-mails go.
    pub post: Post,
    /// Who hands SMS over.
    pub sms: Sms,
    /// How e-mails to people outside are handed over.
    pub email: Emails,
    /// What is worked off in the background.
    pub jobs: Jobs,
    /// Recoveries that are being worked off.
    pub recoveries: Running<RecoveryId>,
    /// Imports that are being worked off.
    pub imports: Running<ImportId>,
    /// Exports of the record that are being written.
    pub exports: Exports,
    /// Campaigns whose contacts are being put away.
    pub closings: Running<CampaignId>,
    /// Workspaces whose campaigns' contacts are judged anew.
    pub reviews: Running<TenantId>,
    /// Workspaces in which people are being erased.
    pub erasures: Running<TenantId>,
    /// Workspaces of which it is put away what may have run before a restore.
    pub restores: Running<TenantId>,
    /// Talks that are being classified.
    pub evaluations: Evaluations,
    /// Who takes the money for credits.
    pub payments: Payments,
    /// What agents think with.
    pub providers: Providers,
    /// Where recordings are made and kept.
    pub studio: Studio,
    /// Messages that stand ready for people whom no agent takes in time.
    pub standbys: Standbys,
    /// Who makes clones of voices.
    pub cloning: Cloning,
    /// Who listens to live calls.
    pub listeners: Listeners,
    /// How soon the talks of now have answered.
    pub latencies: Latencies,
    /// What the model for opt-outs is being asked.
    pub judgements: Judgements,
    /// What holds each campaign up.
    pub pacing_report: PacingReport,
    /// What is told of calls to a collector.
    pub traces: Traces,
    /// How each trunk stands.
    pub trunks: TrunkBoard,
    /// Lists of numbers that must not be called, and what is known of reassigned ones.
    pub registers: Registers,
    /// What holds everybody up.
    pub holds: Holds,
    /// Whether the rows have to be looked at again.
    pub quiet: Quiet,
    pub limits: Limits,
    /// The rules of calling.
    pub law: Arc<Law>,
    /// Where this service's own links start, without a slash at the end.
    pub base_url: Arc<str>,
    /// Where deliveries and calls run, apart from the actors' threads.
    pub runtime: tokio::runtime::Handle,
    /// Whom a message can reach.
    pub router: Arc<dyn Router>,
    pub draining: AtomicBool,
}

impl Deps {
    /// Of what holds these itself, and so must not keep them alive.
    pub fn new_cyclic(make: impl FnOnce(&Weak<Shared>) -> Shared) -> Self {
        Deps(Arc::new_cyclic(make))
    }

    /// For what must not keep these alive.
    pub fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    /// `None`: the service has ended.
    pub fn upgrade(shared: &Weak<Shared>) -> Option<Self> {
        shared.upgrade().map(Deps)
    }

    /// Resolves when it is known of every commit that was handed in before whether it stands: after one that does, nothing older
    /// can land any more.
    #[boxed]
    pub async fn decided(&self) {
        let mut tries = 0;
        while let Err(error) = self.writer.commit_nothing().await {
            if self.is_draining() {
                return tracing::warn!(%error, "what became of a commit is found out at the next start");
            }
            tries += 1;
            self.clock.back_off(tries).await;
        }
    }

    /// Is the service on its way down? Then nothing new is dialled.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::SeqCst)
    }

    /// Whose workspaces this process serves.
    pub fn share(&self) -> Share {
        self.fence.leases().share()
    }

    /// May this be done outside, now? The one question before each deed there, right before it: see [`Fence::pass`].
    pub async fn pass(&self, of: impl Into<Of>) -> Result<()> {
        self.fence.pass(&self.db, of.into()).await
    }

    /// Keeps a workspace on this node while work is done for it whose outcome would be lost else.
    pub fn stay(&self, tenant: TenantId) -> Option<Stay> {
        self.fence.leases().keep(tenant)
    }

    /// When a call of the workspace that began then, and that nobody carries, was last known to be carried.
    pub fn last_seen(&self, tenant: TenantId, call_began: Moment) -> Moment {
        let mut since = self.fence.leases().since(tenant).unwrap_or(self.heartbeat);
        // Of one process that had them all before there were nodes.
        since.last_seen = since.last_seen.or(self.heartbeat.last_seen);
        heartbeat::last_seen(since, call_began, self.clock.now())
    }

    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::SeqCst);
    }
}

impl Deref for Deps {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}
