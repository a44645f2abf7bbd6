//! The supervision tree: one file, drawn, then built in the same order.
//!
//! ```text
//! Root
//! ├── Writer           one: group commit
//! └── Registry         one per kind: starts, finds, revives and parks the actors
//!     ├── Dispatcher*  per tenant: paces contact dispatch; rests when no campaign runs
//!     ├── Campaign*    while it runs
//!     ├── Session*     from its creation to its end
//!     ├── Room*        from its creation to its end
//!     ├── Recording*   from the call's end until its sound is stored, and while it is erased
//!     ├── Sms*         from its order until its provider has it or will not have it
//!     ├── Email*       the same, with the mail server
//!     ├── Voice*       per cloned voice: while it is trained, and while it is erased
//!     ├── Endpoint*    per webhook endpoint: its settings, while they change
//!     ├── Lane*        per webhook endpoint: delivery and retry queue, while there is something to send
//!     ├── Trunk*       per SIP trunk that registers or that a number uses: speaks with its peer
//!     └── Mailer       one: e-mails to users, while there is one to send
//! ```
use crate::{
    campaign::actor::check_drained,
    delivery::lane::{Hinted as LaneHinted, Lane},
    deps::{Deps, Shared},
    dispatcher::{Admit, Dispatcher, Hinted, TakeTurn},
    leases::{Leases, Of},
    mail::{Mailer, Wake as MailWake},
    perform::perform,
    router::{Admitted, Arrival, LaneHint, Mailbox, Router, Turn},
    shell::Shell,
    trunk::actor::{Look as TrunkLook, Trunk},
    writer::AfterCommit,
};
use actix::ArbiterHandle;
use entities::{
    Result, boxed, delivery,
    email_message::Model as Email,
    ids::{CampaignId, EndpointId, TenantId, TenantScoped, TrunkId},
    recording::Model as Recording,
    sms_message::Model as Sms,
    values::Moment,
    webhook_endpoint::Model as Endpoint,
    workspace_lease::INSTALLATION,
};
use futures_util::future::BoxFuture;
use rules::{
    campaign::machine::Campaign,
    commit::Committed,
    effect::{DispatchHint, Effect},
    room::machine::Room,
    session::{command::Command as SessionCommand, machine::Session},
    voice_clone::machine::Voice,
};
use runtime::{
    clock::Clock,
    registry::{Child, Link, Parked, Registry},
};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

/// One field per line of the drawing.
pub struct Tree {
    deps: Weak<Shared>,
    dispatchers: Registry<Dispatcher>,
    campaigns: Registry<Shell<Campaign>>,
    sessions: Registry<Shell<Session>>,
    rooms: Registry<Shell<Room>>,
    recordings: Registry<Shell<Recording>>,
    sms: Registry<Shell<Sms>>,
    emails: Registry<Shell<Email>>,
    voices: Registry<Shell<Voice>>,
    endpoints: Registry<Shell<Endpoint>>,
    lanes: Registry<Lane>,
    trunks: Registry<Trunk>,
    mailer: Registry<Mailer>,
}

/// What every actor is given, and the actors: each is made with the other. `make` is given whom messages go to.
pub fn plant(
    arbiters: &[ArbiterHandle],
    clock: &Clock,
    leases: &Arc<Leases>,
    make: impl FnOnce(Arc<dyn Router>) -> Shared,
) -> (Deps, Arc<Tree>) {
    let mut planted = None;
    let deps = Deps::new_cyclic(|deps| {
        let tree = Arc::new(Tree::new(deps, arbiters, clock, leases));
        planted = Some(tree.clone());
        make(tree)
    });
    let tree = planted.unwrap_or_else(|| unreachable!("the tree is planted before this returns"));
    (deps, tree)
}

impl Tree {
    /// One line per line of the drawing. Actors start when they are needed; boot is the first `reconcile`.
    fn new(deps: &Weak<Shared>, arbiters: &[ArbiterHandle], clock: &Clock, leases: &Arc<Leases>) -> Self {
        let of = Planting {
            deps,
            arbiters,
            clock,
            leases,
        };
        Tree {
            deps: deps.clone(),
            dispatchers: of.dispatchers(),
            campaigns: of.registry(of_tenant, Shell::new),
            sessions: of.registry(of_tenant, Shell::new),
            rooms: of.registry(of_tenant, Shell::new),
            recordings: of.registry(of_tenant, Shell::new),
            sms: of.registry(of_tenant, Shell::new),
            emails: of.registry(of_tenant, Shell::new),
            voices: of.registry(of_tenant, Shell::new),
            endpoints: of.registry(of_tenant, Shell::new),
            lanes: of.registry(of_tenant, Lane::new),
            trunks: of.registry(|(tenant, _)| Of::Workspace(*tenant), Trunk::new),
            mailer: of.registry(|()| Of::Installation, Mailer::new),
        }
    }

    pub fn parked(&self) -> Vec<Parked> {
        let mut all = self.dispatchers.parked();
        all.extend(self.campaigns.parked());
        all.extend(self.sessions.parked());
        all.extend(self.rooms.parked());
        all.extend(self.recordings.parked());
        all.extend(self.sms.parked());
        all.extend(self.emails.parked());
        all.extend(self.voices.parked());
        all.extend(self.endpoints.parked());
        all.extend(self.lanes.parked());
        all.extend(self.trunks.parked());
        all.extend(self.mailer.parked());
        all
    }

    /// Nothing is dialled in these workspaces any more. Answers those of which the dispatcher has not ended in time.
    pub async fn stop_dispatching(&self, tenants: &[TenantId], limit: Duration) -> HashSet<TenantId> {
        let left = self.dispatchers.stop(|tenant| tenants.contains(tenant), limit).await;
        left.into_iter().collect()
    }

    /// Stops all actors of these workspaces, which are about to be given up, within that time. Answers those in which some have not ended.
    pub async fn leave(&self, tenants: &[TenantId], limit: Duration) -> HashSet<TenantId> {
        let tenants: HashSet<TenantId> = tenants.iter().copied().collect();
        let has = |tenant: &TenantId| tenants.contains(tenant);
        macro_rules! stop { ($($kind:ident),*) => {
            tokio::join!($(self.$kind.stop(|id| has(&id.tenant_id), limit)),*)
        } }
        let dispatchers = self.dispatchers.stop(has, limit);
        let trunks = self.trunks.stop(|(tenant, _)| has(tenant), limit);
        let mailer = self.mailer.stop(|()| has(&INSTALLATION), limit);
        // Together: they have one deadline.
        let (dispatchers, trunks, mailer, others) = tokio::join!(dispatchers, trunks, mailer, async {
            stop!(
                sessions, rooms, recordings, campaigns, sms, emails, voices, endpoints, lanes
            )
        });
        let mut left: HashSet<TenantId> = dispatchers.into_iter().collect();
        left.extend(trunks.into_iter().map(|(tenant, _)| tenant));
        left.extend(mailer.into_iter().map(|()| INSTALLATION));
        let (sessions, rooms, recordings, campaigns, sms, emails, voices, endpoints, lanes) = others;
        left.extend(sessions.iter().map(|id| id.tenant_id));
        left.extend(rooms.iter().map(|id| id.tenant_id));
        left.extend(recordings.iter().map(|id| id.tenant_id));
        left.extend(campaigns.iter().map(|id| id.tenant_id));
        left.extend(sms.iter().map(|id| id.tenant_id));
        left.extend(emails.iter().map(|id| id.tenant_id));
        left.extend(voices.iter().map(|id| id.tenant_id));
        left.extend(endpoints.iter().map(|id| id.tenant_id));
        left.extend(lanes.iter().map(|id| id.tenant_id));
        left
    }

    /// Running actors by kind.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("dispatcher", self.dispatchers.count()),
            ("campaign", self.campaigns.count()),
            ("session", self.sessions.count()),
            ("room", self.rooms.count()),
            ("recording", self.recordings.count()),
            ("sms", self.sms.count()),
            ("email", self.emails.count()),
            ("voice", self.voices.count()),
            ("endpoint", self.endpoints.count()),
            ("lane", self.lanes.count()),
            ("trunk", self.trunks.count()),
            ("mailer", self.mailer.count()),
        ])
    }
}

/// What registries are made with.
struct Planting<'a> {
    deps: &'a Weak<Shared>,
    arbiters: &'a [ArbiterHandle],
    clock: &'a Clock,
    leases: &'a Arc<Leases>,
}

fn of_tenant<I>(id: &TenantScoped<I>) -> Of {
    Of::Workspace(id.tenant_id)
}

impl Planting<'_> {
    /// They begin something by themselves: none is spoken with in a workspace that is about to leave.
    fn dispatchers(&self) -> Registry<Dispatcher> {
        let (deps, leases) = (self.deps.clone(), self.leases.clone());
        let gate = move |tenant: &TenantId| leases.check_serves(*tenant);
        Registry::new(self.arbiters.to_vec(), self.clock.clone(), gate, move |link| {
            Some(Dispatcher::new(Deps::upgrade(&deps)?, link))
        })
    }

    /// The tree is one of what its actors are given, so it holds that weakly: else none would ever be freed.
    ///
    /// Nobody of a workspace that another node has is spoken with.
    fn registry<A: Child>(
        &self,
        of: impl Fn(&A::Id) -> Of + Send + Sync + 'static,
        make: impl Fn(Deps, Link<A>) -> A + Send + Sync + 'static,
    ) -> Registry<A> {
        let (deps, leases) = (self.deps.clone(), self.leases.clone());
        let gate = move |id: &A::Id| leases.check(of(id));
        Registry::new(self.arbiters.to_vec(), self.clock.clone(), gate, move |link| {
            Some(make(Deps::upgrade(&deps)?, link))
        })
    }
}

impl Router for Tree {
    fn campaigns(&self) -> &dyn Mailbox<Campaign> {
        &self.campaigns
    }
    fn sessions(&self) -> &dyn Mailbox<Session> {
        &self.sessions
    }
    fn rooms(&self) -> &dyn Mailbox<Room> {
        &self.rooms
    }
    fn recordings(&self) -> &dyn Mailbox<Recording> {
        &self.recordings
    }
    fn sms(&self) -> &dyn Mailbox<Sms> {
        &self.sms
    }
    fn emails(&self) -> &dyn Mailbox<Email> {
        &self.emails
    }
    fn voices(&self) -> &dyn Mailbox<Voice> {
        &self.voices
    }
    fn endpoints(&self) -> &dyn Mailbox<Endpoint> {
        &self.endpoints
    }
    fn dispatcher(&self, tenant: TenantId, hint: DispatchHint) {
        self.dispatchers
            .tell(tenant, Hinted::new(hint, self.dispatchers.clock()));
    }
    fn admit(&self, tenant: TenantId, arrival: Arrival) -> BoxFuture<'_, Result<Admitted>> {
        let admit = Admit::new(arrival, self.dispatchers.clock());
        Box::pin(async move { self.dispatchers.send(tenant, admit).await? })
    }
    fn turn(&self, tenant: TenantId, trunk: TrunkId, by: Moment) -> BoxFuture<'_, Result<Option<Turn>>> {
        let take = TakeTurn::new(trunk, by, self.dispatchers.clock());
        Box::pin(async move { self.dispatchers.send(tenant, take).await? })
    }
    fn lane(&self, endpoint: TenantScoped<EndpointId>, hint: LaneHint) {
        self.lanes.tell(endpoint, LaneHinted::new(hint, self.lanes.clock()));
    }
    fn trunk(&self, tenant: TenantId, trunk: TrunkId) {
        let look = TrunkLook::new(self.trunks.clock());
        self.trunks.tell((tenant, trunk), look);
    }
    fn mailer(&self) {
        self.mailer.tell((), MailWake::new(self.mailer.clock()));
    }
    fn any_parked(&self) -> bool {
        !self.parked().is_empty()
    }
    fn perform(&self, effects: Vec<Effect>) {
        if let Some(deps) = Deps::upgrade(&self.deps) {
            perform(&deps, effects);
        }
    }
}

/// In which the last BYEs are answered, or not: then the next process ends those calls.
const HANGING_UP: Duration = Duration::from_secs(2);

/// Stops in order: nothing new is dialled, calls may end for `drain`, what is left is ended with a reason, actors flush.
#[boxed]
pub async fn shut_down(deps: &Deps, tree: &Tree, drain: Duration) {
    deps.drain();
    tree.dispatchers.shutdown(Duration::from_secs(5)).await;
    let until = deps.clock.now().plus(drain);
    while deps.calls.count() > 0 && deps.clock.now() < until {
        let _busy = deps.clock.sleep(Duration::from_millis(50)).await;
    }
    let left = deps.calls.sessions();
    if !left.is_empty() {
        tracing::warn!(calls = left.len(), "calls still live at the end of the drain are ended");
    }
    // The answers are awaited so that the ends are committed before the writer stops.
    let ends = left
        .into_iter()
        .map(|session| tree.sessions.request(session, SessionCommand::Shutdown));
    for error in futures_util::future::join_all(ends)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::warn!(%error, "a call could not be ended; the next start closes it");
    }
    if let Some(phones) = &deps.carriers.phones {
        phones.settle(HANGING_UP).await;
    }
    // What was said at their ends counts. Each question has a limit; the first of these is for commits that stall.
    if tokio::time::timeout(Duration::from_secs(5), deps.judgements.done())
        .await
        .is_err()
    {
        tracing::warn!("what the model for opt-outs makes of somebody's last words is not awaited any longer");
    }
    // What was heard of a call that was cut off is spooled: the next start makes its recording, if there is no time for it now.
    let flushed = tokio::time::timeout(Duration::from_secs(5), deps.studio.spools.flush()).await;
    if let Err(why) = flushed.unwrap_or_else(|_| Err("the disk does not answer".to_owned())) {
        tracing::warn!(why, "the sound of the last second may be missing in recordings");
    }
    // What is being handed over gets its answer: without it nobody knows what became of it.
    let until = deps.clock.now().plus(drain.max(Duration::from_secs(5)));
    while !(deps.sms.running.is_empty() && deps.email.running.is_empty()) && deps.clock.now() < until {
        let _busy = deps.clock.sleep(Duration::from_millis(20)).await;
    }
    tree.sessions.shutdown(Duration::from_secs(5)).await;
    tree.rooms.shutdown(Duration::from_secs(5)).await;
    tree.recordings.shutdown(Duration::from_secs(5)).await;
    tree.campaigns.shutdown(Duration::from_secs(5)).await;
    tree.sms.shutdown(Duration::from_secs(5)).await;
    tree.emails.shutdown(Duration::from_secs(5)).await;
    tree.voices.shutdown(Duration::from_secs(5)).await;
    tree.endpoints.shutdown(Duration::from_secs(5)).await;
    tree.lanes.shutdown(Duration::from_secs(5)).await;
    // Calls are over by now: registrars are told that none can come.
    tree.trunks.shutdown(Duration::from_secs(5)).await;
    tree.mailer.shutdown(Duration::from_secs(5)).await;
    deps.writer.close();
}

/// What follows each commit, told by the writer.
#[derive(Default)]
pub struct AfterCommits {
    /// Set when everything is there; what was to be told before that is found in the rows by the first reconcile.
    pub deps: OnceLock<Deps>,
}

impl AfterCommit for AfterCommits {
    fn deliveries(&self, endpoint: TenantScoped<EndpointId>, new: Vec<(delivery::Model, Committed)>) {
        if let Some(deps) = self.deps.get() {
            deps.router.lane(endpoint, LaneHint::Arrived(new));
        }
    }
    fn drained(&self, campaign: TenantScoped<CampaignId>) {
        if let Some(deps) = self.deps.get() {
            check_drained(deps.clone(), campaign);
        }
    }
    fn credited(&self, tenant: TenantId) {
        if let Some(deps) = self.deps.get() {
            deps.router.dispatcher(tenant, DispatchHint::CampaignsChanged);
        }
    }
}
