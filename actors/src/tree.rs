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
//!     └── Mailer       one: e-mails to users, while there is one to send
//! ```
use crate::{
    campaign::machine::Campaign,
    delivery::lane::{Arrived, Lane, Wake as LaneWake},
    deps::Deps,
    dispatcher::{Dispatcher, Wake},
    holds,
    mail::{Mailer, Wake as MailWake},
    registry::{Parked, Registry},
    room::machine::{Command as RoomCommand, Room},
    session::machine::{Command as SessionCommand, Session},
    shell::{Do, Shell, Stored},
    voice_clone::{self, machine::Voice},
    writer::{AfterCommit, Commit, Committed},
};
use actix::ArbiterHandle;
use entities::{
    Error, Result, delivery,
    email_message::Model as Email,
    ids::{CampaignId, EndpointId, Owned, TenantId},
    mail,
    recording::Model as Recording,
    recovery,
    sms_message::Model as Sms,
    webhook_endpoint::{self, Model as Endpoint},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// One field per line of the drawing.
pub struct Tree {
    pub dispatchers: Registry<Dispatcher>,
    pub campaigns: Registry<Shell<Campaign>>,
    pub sessions: Registry<Shell<Session>>,
    pub rooms: Registry<Shell<Room>>,
    pub recordings: Registry<Shell<Recording>>,
    pub sms: Registry<Shell<Sms>>,
    pub emails: Registry<Shell<Email>>,
    pub voices: Registry<Shell<Voice>>,
    pub endpoints: Registry<Shell<Endpoint>>,
    pub lanes: Registry<Lane>,
    pub mailer: Registry<Mailer>,
}

/// One line per line of the drawing. Actors start when they are needed; boot is the first [`reconcile`].
pub fn start(deps: &Deps, arbiters: &[ArbiterHandle]) {
    let arbiters = || arbiters.to_vec();
    let tree = Tree {
        dispatchers: deps.registry(arbiters(), Dispatcher::new),
        campaigns: deps.registry(arbiters(), Shell::new),
        sessions: deps.registry(arbiters(), Shell::new),
        rooms: deps.registry(arbiters(), Shell::new),
        recordings: deps.registry(arbiters(), Shell::new),
        sms: deps.registry(arbiters(), Shell::new),
        emails: deps.registry(arbiters(), Shell::new),
        voices: deps.registry(arbiters(), Shell::new),
        endpoints: deps.registry(arbiters(), Shell::new),
        lanes: deps.registry(arbiters(), Lane::new),
        mailer: deps.registry(arbiters(), Mailer::new),
    };
    // Set once, by the one who starts.
    let _ = deps.tree.set(tree);
}

/// How long a request waits for an entity.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

impl Tree {
    /// Sends a command to an entity and awaits what became of it. For HTTP; entities speak by rows and hints.
    pub async fn ask<M: Stored>(
        &self,
        registry: &Registry<Shell<M>>,
        deps: &Deps,
        id: Owned<M::Key>,
        command: M::Command,
    ) -> Result<M> {
        // An actor that waits for the database keeps others waiting: a caller is told so in time.
        let answer = tokio::time::timeout(ASK_TIMEOUT, registry.send(id, Do::ask(command, &deps.clock))).await;
        answer.map_err(|_| Error::Unavailable(format!("the {} is busy", M::KIND)))??
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
        all.extend(self.mailer.parked());
        all
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
            ("mailer", self.mailer.count()),
        ])
    }
}

/// What another process was at when it ended, nobody is at any more: its leases are let go. Once, before the first
/// [`reconcile`].
pub async fn take_over(deps: &Deps) -> Result<()> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            Box::pin(async move {
                entities::recording::let_go(db, now).await?;
                entities::voice::let_go(db, now).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// Starts the actors that the rows say should be at work, and repairs what a crash or a lost hint has left. Run at boot and
/// every 30 seconds: both are the same.
pub async fn reconcile(deps: &Deps) -> Result<()> {
    let Some(tree) = deps.tree() else { return Ok(()) };
    // One that fails does not keep the others from their work.
    let outcomes = [
        lanes(deps, tree).await,
        endpoints(deps, tree).await,
        recoveries(deps).await,
        imports(deps).await,
        recordings(deps, tree).await,
        messages(deps, tree).await,
        voices(deps, tree).await,
        voice_clone::samples::sweep(deps).await,
        evaluations(deps).await,
        crate::credits::payments::reconcile(deps).await,
        mails(deps, tree).await,
        crate::credits::grants::book(deps).await,
        sessions(deps, tree).await,
        rooms(deps, tree).await,
        campaigns(deps, tree).await,
        reviews(deps).await,
        dispatchers(deps, tree).await,
    ];
    outcomes.into_iter().collect()
}

async fn lanes(deps: &Deps, tree: &Tree) -> Result<()> {
    for endpoint in delivery::endpoints_at_work(&deps.db.read).await? {
        tree.lanes.tell(endpoint, LaneWake::new(&deps.clock));
    }
    Ok(())
}

async fn endpoints(deps: &Deps, tree: &Tree) -> Result<()> {
    for endpoint in webhook_endpoint::in_overlap(&deps.db.read).await? {
        tree.endpoints.tell(endpoint, Do::tell(Endpoint::TICK, &deps.clock));
    }
    Ok(())
}

async fn recoveries(deps: &Deps) -> Result<()> {
    for job in recovery::running(&deps.db.read).await? {
        crate::delivery::recovery::run(deps, job.id, job.endpoint());
    }
    Ok(())
}

async fn imports(deps: &Deps) -> Result<()> {
    for job in entities::import::running(&deps.db.read).await? {
        crate::import::run(deps, job);
    }
    Ok(())
}

/// Recordings that wait to be stored, or whose time has come: by both clocks, for what is erased does not come back.
async fn recordings(deps: &Deps, tree: &Tree) -> Result<()> {
    for recording in entities::recording::due(&deps.db.read, deps.clock.times().earlier(), 1000).await? {
        tree.recordings.tell(recording, Do::tell(Recording::TICK, &deps.clock));
    }
    Ok(())
}

/// Messages whose time has come. Far more than are handed over in 30 seconds; the rest follows then. While nothing may leave they
/// wait as rows.
async fn messages(deps: &Deps, tree: &Tree) -> Result<()> {
    const AT_ONCE: u64 = 5_000;
    if holds::look(deps).await?.is_some() {
        return Ok(());
    }
    let now = deps.clock.now();
    for message in entities::sms_message::due(&deps.db.read, now, AT_ONCE).await? {
        tree.sms.tell(message, Do::tell(Sms::TICK, &deps.clock));
    }
    for message in entities::email_message::due(&deps.db.read, now, AT_ONCE).await? {
        tree.emails.tell(message, Do::tell(Email::TICK, &deps.clock));
    }
    Ok(())
}

/// Voices that wait for their training, whose training was interrupted, or that are to be erased.
async fn voices(deps: &Deps, tree: &Tree) -> Result<()> {
    for voice in entities::voice::due(&deps.db.read, deps.clock.now(), 1000).await? {
        tree.voices.tell(voice, Do::tell(Voice::TICK, &deps.clock));
    }
    Ok(())
}

async fn evaluations(deps: &Deps) -> Result<()> {
    for job in entities::evaluation::pending(&deps.db.read, 1000).await? {
        crate::evaluate::run(deps, job);
    }
    Ok(())
}

async fn mails(deps: &Deps, tree: &Tree) -> Result<()> {
    if mail::next_due_at(&deps.db.read).await?.is_some() {
        tree.mailer.tell((), MailWake::new(&deps.clock));
    }
    Ok(())
}

async fn sessions(deps: &Deps, tree: &Tree) -> Result<()> {
    let mut after = None;
    loop {
        let open = entities::session::open(&deps.db.read, after, 1000).await?;
        let Some(last) = open.last() else { return Ok(()) };
        after = Some(last.id);
        for session in open {
            tree.sessions.tell(session, Do::tell(SessionCommand::Tick, &deps.clock));
        }
    }
}

/// Rooms whose time has come, or comes before the next look; and those that are out of step with their session.
async fn rooms(deps: &Deps, tree: &Tree) -> Result<()> {
    const AT_ONCE: u64 = 1_000;
    let (db, soon) = (&deps.db.read, deps.clock.now().plus_seconds(60));
    for room in entities::room::due(db, soon, AT_ONCE).await? {
        tree.rooms.tell(room, Do::tell(RoomCommand::Tick, &deps.clock));
    }
    for (room, session) in entities::room::behind(db, AT_ONCE).await? {
        let follow = RoomCommand::Follow(Box::new(session));
        tree.rooms.tell(room, Do::tell(follow, &deps.clock));
    }
    for room in entities::room::ahead(db, AT_ONCE).await? {
        let session = room.session();
        match Room::from_row(room).map(|room| room.parting()) {
            Ok(Some(command)) => tree.sessions.tell(session, Do::tell(command, &deps.clock)),
            Ok(None) => {}
            // One that cannot be read does not keep the others out of step.
            Err(error) => tracing::error!(%error, "an ended room cannot be read"),
        }
    }
    Ok(())
}

async fn campaigns(deps: &Deps, tree: &Tree) -> Result<()> {
    // Until the next look their actors keep their alarms.
    let soon = deps.clock.now().plus_seconds(60);
    for campaign in entities::campaign::unattended(&deps.db.read, soon).await? {
        tree.campaigns.tell(campaign, Do::tell(Campaign::TICK, &deps.clock));
        crate::campaign::actor::check_drained(deps.clone(), campaign);
    }
    Ok(())
}

async fn reviews(deps: &Deps) -> Result<()> {
    for tenant in entities::campaign::tenants_to_review(&deps.db.read).await? {
        crate::campaign::review::begin(deps, tenant);
    }
    Ok(())
}

async fn dispatchers(deps: &Deps, tree: &Tree) -> Result<()> {
    let mut tenants = entities::campaign::tenants_at_work(&deps.db.read).await?;
    tenants.extend(entities::session::tenants_in_queue(&deps.db.read).await?);
    tenants.sort();
    tenants.dedup();
    for tenant in tenants {
        tree.dispatchers.tell(tenant, Wake::campaigns(&deps.clock));
    }
    Ok(())
}

/// Stops in order: nothing new is dialled, calls may end for `drain`, what is left is ended with a reason, actors flush.
pub async fn shut_down(deps: &Deps, drain: Duration) {
    deps.drain();
    let Some(tree) = deps.tree() else { return };
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
        .map(|session| tree.ask(&tree.sessions, deps, session, SessionCommand::Shutdown));
    for error in futures_util::future::join_all(ends)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::warn!(%error, "a call could not be ended; the next start closes it");
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
    tree.mailer.shutdown(Duration::from_secs(5)).await;
    deps.writer.close();
}

/// What follows each commit, told by the writer.
pub struct Hints {
    /// Filled when everything is there; hints before that find their rows at the first reconcile.
    pub deps: Arc<OnceLock<Deps>>,
}

impl AfterCommit for Hints {
    fn deliveries(&self, endpoint: Owned<EndpointId>, new: Vec<(delivery::Model, Committed)>) {
        if let Some(deps) = self.deps.get()
            && let Some(tree) = deps.tree()
        {
            tree.lanes.tell(endpoint, Arrived::new(new, &deps.clock));
        }
    }
    fn drained(&self, campaign: Owned<CampaignId>) {
        if let Some(deps) = self.deps.get() {
            crate::campaign::actor::check_drained(deps.clone(), campaign);
        }
    }
    fn credited(&self, tenant: TenantId) {
        if let Some(deps) = self.deps.get()
            && let Some(tree) = deps.tree()
        {
            tree.dispatchers.tell(tenant, Wake::campaigns(&deps.clock));
        }
    }
}
