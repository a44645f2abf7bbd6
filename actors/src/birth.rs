//! The one door through which entities come into being: what a birth causes becomes rows of its commit, its first row is added,
//! the commit is written, its effects are performed, and its actor is told.
//!
//! A birth stands as a whole or not at all. A commit that is in doubt is answered as what it is; what it may have left is found
//! by the same id, when the request is repeated, and by the reconcile.
use crate::{
    deps::Deps,
    facts,
    router::{Admitted, Arrival, Mailbox},
    shell::Stored,
};
use entities::{Error, Result, boxed, connection::Transaction, ids::TenantId, webhook_endpoint};
use futures_util::future::BoxFuture;
use rules::{
    campaign::machine::Campaign, commit::Commit, effect::Effect, room::machine::Room, session::machine::Session,
    voice_clone::machine::Voice,
};
use std::sync::Arc;

/// A kind of entity that is made here. What is made by another's effect, as a recording, is a fact of that one.
pub trait Born: Stored {
    /// Adds its first row.
    fn insert(&self, commit: &mut Commit);
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self>;
}

/// An entity that is about to be, and what its birth causes.
pub struct Birth<M> {
    pub state: M,
    pub effects: Vec<Effect>,
    /// What else stands or falls with it.
    pub commit: Commit,
}

impl<M: Born> Birth<M> {
    pub fn of(state: M, effects: Vec<Effect>) -> Self {
        Birth {
            state,
            effects,
            commit: Commit::default(),
        }
    }

    /// The same, with its facts and its first row in its commit.
    pub async fn written(mut self, deps: &Deps) -> Result<Self> {
        let owner = self.state.owner();
        facts::add(deps, owner, &self.effects, &mut self.commit).await?;
        self.state.insert(&mut self.commit);
        Ok(self)
    }
}

/// [`Error::Stale`]: one of that id is there already.
pub async fn create<M: Born>(deps: &Deps, birth: Birth<M>) -> Result<M> {
    let Birth { state, effects, commit } = birth.written(deps).await?;
    deps.writer.commit(state.owner().tenant_id.into(), commit).await?;
    begin(deps, &state, effects);
    Ok(state)
}

/// The same, for a request that may be repeated: the one that a crash, or doubt, cut off after its commit has made it, and it
/// is answered as it stands.
pub async fn create_or_find<M: Born>(deps: &Deps, birth: Birth<M>) -> Result<M> {
    let Birth { state, effects, commit } = birth.written(deps).await?;
    let state = match deps.writer.commit(state.owner().tenant_id.into(), commit).await {
        Ok(()) => state,
        Err(Error::Stale) => M::load(deps, state.owner()).await?,
        Err(error) => return Err(error),
    };
    begin(deps, &state, effects);
    Ok(state)
}

/// The same as [`create`], for what is decided inside the transaction. `job` may run more than once.
pub async fn create_within<M, F>(deps: &Deps, tenant: TenantId, job: F) -> Result<M>
where
    M: Born,
    F: for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<Birth<M>>> + Send + Sync + 'static,
{
    let (its, job) = (deps.clone(), Arc::new(job));
    let born = deps.writer.run(tenant, move |db| {
        let (deps, job) = (its.clone(), job.clone());
        Box::pin(async move {
            let birth = job(db).await?;
            let Birth { state, effects, commit } = birth.written(&deps).await?;
            Ok(((state, effects), commit))
        })
    });
    let (state, effects) = born.await?;
    begin(deps, &state, effects);
    Ok(state)
}

/// A call that is there already, by telephone or in a room: the dispatcher writes what is to be written together with its slot,
/// and tells its actor; or there is none, and nothing is written.
#[boxed]
pub async fn admit(deps: &Deps, tenant: TenantId, arrival: Arrival, effects: Vec<Effect>) -> Result<Admitted> {
    let admitted = deps.router.admit(tenant, arrival).await?;
    if admitted == Admitted::Yes {
        deps.router.perform(effects);
    }
    Ok(admitted)
}

/// After the commit. The actor sets its alarm; one that would have nothing to wait for is not woken.
fn begin<M: Born>(deps: &Deps, state: &M, effects: Vec<Effect>) {
    deps.router.perform(effects);
    if !state.is_at_rest() {
        M::mailbox(deps).tell(state.owner(), M::TICK);
    }
}

impl Born for Campaign {
    fn insert(&self, commit: &mut Commit) {
        commit.changes.campaigns.push(self.row());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.campaigns()
    }
}

impl Born for Session {
    fn insert(&self, commit: &mut Commit) {
        commit.changes.sessions.push(self.row());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.sessions()
    }
}

impl Born for Room {
    fn insert(&self, commit: &mut Commit) {
        commit.changes.rooms.push(self.row());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.rooms()
    }
}

impl Born for Voice {
    fn insert(&self, commit: &mut Commit) {
        commit.changes.voices.push(self.row.clone());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.voices()
    }
}

impl Born for webhook_endpoint::Model {
    fn insert(&self, commit: &mut Commit) {
        commit.changes.endpoints.push(self.clone());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.endpoints()
    }
}
