//! What every actor is given: the database, time and chance, the writer, and the doors to the outside.
use crate::{
    calls::Calls,
    carrier::Carriers,
    clock::Clock,
    delivery::{machine::Schedule, prune::Retention, recovery::Running},
    ids::Ids,
    keyring::Keyring,
    mail::Post,
    outbound::Outbound,
    tree::Tree,
    writer::Writer,
};
use entities::db::Db;
use std::{
    ops::Deref,
    sync::{
        Arc, OnceLock,
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
    pub calls: Calls,
    pub carriers: Carriers,
    pub keyring: Keyring,
    pub outbound: Outbound,
    /// Where e-mails go.
    pub post: Post,
    /// Recoveries that are being worked off.
    pub recoveries: Running,
    pub limits: Limits,
    /// Where this service's own links start, without a slash at the end.
    pub base_url: Arc<str>,
    /// Where deliveries and calls run, apart from the actors' threads.
    pub runtime: tokio::runtime::Handle,
    pub tree: OnceLock<Tree>,
    pub draining: AtomicBool,
}

/// The operator's limits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Calls started per second, by one tenant.
    pub max_calls_per_second: f64,
    /// Calls at once, by one tenant in one env.
    pub max_concurrency: i32,
    pub schedule: Schedule,
    /// Live deliveries that end failed in a row, until their endpoint is suspended.
    pub suspend_after: i32,
    pub retention: Retention,
}

impl Deps {
    pub fn new(shared: Shared) -> Self {
        Deps(Arc::new(shared))
    }

    /// The actors; `None` while they are being started.
    pub fn tree(&self) -> Option<&Tree> {
        self.0.tree.get()
    }

    /// Is the service on its way down? Then nothing new is dialled.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::SeqCst)
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
