//! One registry per kind of actor: starts them on demand, finds, parks and stops them. Never two of one id.
//!
//! Every message to a child passes through the registry's lock, so that none falls between a child's last look at its
//! mailbox and its end: while a child stops, messages wait and go to its successor.
use crate::{
    clock::Clock,
    supervise::{Exit, Policy, start_in},
};
use actix::{
    dev::{MessageResponse, ToEnvelope},
    prelude::*,
};
use entities::{Error, Result, values::Moment};
use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    fmt::Debug,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

/// Sent to a child by its registry.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
#[rtype(result = "()")]
pub enum Stop {
    /// It said that it has nothing to do. If that has changed, it calls [`Link::stay`] instead of stopping.
    Idle,
    /// The service ends: flush, then stop.
    Shutdown,
}

/// An actor that a registry can hold.
pub trait Child: Actor<Context = Context<Self>> + Supervised + Handler<Stop> {
    type Id: Copy + Eq + Hash + Debug + Send + Unpin + 'static;
    const KIND: &'static str;
}

/// A message to itself, behind all that has come until now, and handled alone as they are.
///
/// `ctx.notify` does not do: a message whose answer takes time shuts the mailbox only, and what was notified is handled beside it.
pub fn tell_itself<A, M>(ctx: &Context<A>, message: M)
where
    A: Handler<M> + Actor<Context = Context<A>>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    ctx.address().do_send(message);
}

/// An actor that panicked too often and is left alone for a while.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Parked {
    pub kind: &'static str,
    pub id: String,
    pub panic: &'static str,
    pub until: Moment,
}

/// How long a parked actor is left alone.
const PARKED_FOR: Duration = Duration::from_secs(300);

pub struct Registry<A: Child>(Arc<Shared<A>>);
impl<A: Child> Clone for Registry<A> {
    fn clone(&self) -> Self {
        Registry(self.0.clone())
    }
}

type Waiting<A> = Box<dyn FnOnce(Result<&Addr<A>>) + Send>;
/// May a child of that id be spoken with? Its fault, if not.
type Gate<A> = Box<dyn Fn(&<A as Child>::Id) -> Result<()> + Send + Sync>;
/// `None` when the service has ended meanwhile.
type Make<A> = Box<dyn Fn(Link<A>) -> Option<A> + Send + Sync>;

struct Shared<A: Child> {
    make: Arc<Make<A>>,
    gate: Gate<A>,
    arbiters: Vec<ArbiterHandle>,
    policy: Policy,
    clock: Clock,
    slots: Mutex<Slots<A>>,
    ended: Notify,
}

struct Slots<A: Child> {
    by_id: HashMap<A::Id, Slot<A>>,
    next_generation: u64,
    closed: bool,
}

enum Slot<A: Child> {
    Running {
        addr: Addr<A>,
        generation: u64,
    },
    /// Stopping; what is sent meanwhile waits for the successor.
    Stopping {
        addr: Addr<A>,
        generation: u64,
        waiting: Vec<Waiting<A>>,
    },
    Parked(Parked),
}

/// What a child gets to talk back to its registry.
pub struct Link<A: Child> {
    pub id: A::Id,
    generation: u64,
    registry: Registry<A>,
}

impl<A: Child> Clone for Link<A> {
    fn clone(&self) -> Self {
        Link {
            id: self.id,
            generation: self.generation,
            registry: self.registry.clone(),
        }
    }
}

impl<A: Child> Link<A> {
    /// "I have nothing to do": answered by [`Stop::Idle`], behind everything sent before.
    pub fn rest(&self) {
        let mut slots = self.registry.lock();
        if let Some(slot) = slots.by_id.get_mut(&self.id)
            && let Slot::Running { addr, generation } = slot
            && *generation == self.generation
        {
            addr.do_send(Stop::Idle);
            *slot = Slot::Stopping {
                addr: addr.clone(),
                generation: self.generation,
                waiting: Vec::new(),
            };
        }
    }

    /// "I have something to do after all": takes back a `rest`.
    pub fn stay(&self) {
        let mut slots = self.registry.lock();
        if let Some(slot) = slots.by_id.get_mut(&self.id)
            && let Slot::Stopping {
                addr,
                generation,
                waiting,
            } = slot
            && *generation == self.generation
        {
            let (addr, waiting) = (addr.clone(), std::mem::take(waiting));
            *slot = Slot::Running {
                addr: addr.clone(),
                generation: self.generation,
            };
            for send in waiting {
                send(Ok(&addr));
            }
        }
    }
}

impl<A: Child> Registry<A> {
    pub fn new(
        arbiters: Vec<ArbiterHandle>,
        clock: Clock,
        gate: impl Fn(&A::Id) -> Result<()> + Send + Sync + 'static,
        make: impl Fn(Link<A>) -> Option<A> + Send + Sync + 'static,
    ) -> Self {
        let slots = Mutex::new(Slots {
            by_id: HashMap::new(),
            next_generation: 0,
            closed: false,
        });
        let make: Arc<Make<A>> = Arc::new(Box::new(make));
        Registry(Arc::new(Shared {
            make,
            gate: Box::new(gate),
            arbiters,
            policy: Policy::default(),
            clock,
            slots,
            ended: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Slots<A>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Sends and awaits the answer. The child is started if it is not there.
    pub async fn send<M>(&self, id: A::Id, message: M) -> Result<M::Result>
    where
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let (answer, answered) = oneshot::channel();
        self.with(id, move |child| {
            let _ = answer.send(child.map(|addr| addr.send(message)));
        });
        let gone = || Error::Unavailable(format!("the {} is restarting", A::KIND));
        let request = answered.await.map_err(|_| gone())??;
        request.await.map_err(|_| gone())
    }

    /// Sends a hint; what cannot be delivered is dropped.
    pub fn tell<M>(&self, id: A::Id, message: M)
    where
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
        M: Message + Send + 'static,
        M::Result: Send + MessageResponse<A, M>,
    {
        self.with(id, move |child| {
            if let Ok(addr) = child {
                addr.do_send(message);
            }
        });
    }

    fn with(&self, id: A::Id, send: impl FnOnce(Result<&Addr<A>>) + Send + 'static) {
        let mut slots = self.lock();
        if slots.closed {
            return send(Err(Error::Unavailable("the service is shutting down".into())));
        }
        // Under the lock: whoever shuts it finds all that passed before.
        if let Err(error) = (self.0.gate)(&id) {
            return send(Err(error));
        }
        match slots.by_id.get_mut(&id) {
            Some(Slot::Running { addr, .. }) => send(Ok(addr)),
            Some(Slot::Stopping { waiting, .. }) => waiting.push(Box::new(send)),
            Some(Slot::Parked(parked)) if parked.until > self.0.clock.now() => {
                send(Err(Error::Unavailable(format!(
                    "this {} failed repeatedly and is parked until {}",
                    A::KIND,
                    parked.until
                ))));
            }
            Some(Slot::Parked(_)) | None => send(Ok(&self.spawn(&mut slots, id))),
        }
    }

    fn spawn(&self, slots: &mut Slots<A>, id: A::Id) -> Addr<A> {
        slots.next_generation += 1;
        let generation = slots.next_generation;
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let arbiter = &self.0.arbiters[usize::try_from(hasher.finish() % self.0.arbiters.len() as u64).unwrap_or(0)];
        let link = Link {
            id,
            generation,
            registry: self.clone(),
        };
        let (make, registry) = (self.0.make.clone(), self.clone());
        let addr = start_in(
            arbiter,
            format!("{} {id:?}", A::KIND),
            self.0.policy,
            self.0.clock.clone(),
            move || make(link),
            move |exit| registry.exited(id, generation, exit),
        );
        slots.by_id.insert(
            id,
            Slot::Running {
                addr: addr.clone(),
                generation,
            },
        );
        addr
    }

    fn exited(&self, id: A::Id, of: u64, exit: Exit) {
        let mut slots = self.lock();
        let waiting = match slots.by_id.get_mut(&id) {
            Some(Slot::Running { generation, .. }) if *generation == of => Vec::new(),
            Some(Slot::Stopping {
                generation, waiting, ..
            }) if *generation == of => std::mem::take(waiting),
            _ => return,
        };
        slots.by_id.remove(&id);
        if let Exit::Escalated(panic) = exit {
            metrics::counter!("callboard_actors_parked_total", "kind" => A::KIND).increment(1);
            let parked = Parked {
                kind: A::KIND,
                id: format!("{id:?}"),
                panic,
                until: self.0.clock.now().plus(PARKED_FOR),
            };
            slots.by_id.insert(id, Slot::Parked(parked));
        } else if !waiting.is_empty() && !slots.closed {
            if let Err(error) = (self.0.gate)(&id) {
                for send in waiting {
                    send(Err(error.clone()));
                }
                return self.0.ended.notify_waiters();
            }
            let addr = self.spawn(&mut slots, id);
            for send in waiting {
                send(Ok(&addr));
            }
        }
        drop(slots);
        self.0.ended.notify_waiters();
    }

    /// Actors that run or are stopping.
    pub fn count(&self) -> usize {
        self.lock()
            .by_id
            .values()
            .filter(|slot| !matches!(slot, Slot::Parked(_)))
            .count()
    }

    pub fn is_running(&self, id: A::Id) -> bool {
        matches!(
            self.lock().by_id.get(&id),
            Some(Slot::Running { .. } | Slot::Stopping { .. })
        )
    }

    pub fn parked(&self) -> Vec<Parked> {
        let now = self.0.clock.now();
        let slots = self.lock();
        let parked = slots.by_id.values().filter_map(|slot| {
            if let Slot::Parked(parked) = slot {
                Some(parked.clone())
            } else {
                None
            }
        });
        parked.filter(|parked| parked.until > now).collect()
    }

    /// Stops those children, to which the gate is shut, and waits for them, `limit` at most. Answers those that have not ended.
    pub async fn stop(&self, which: impl Fn(&A::Id) -> bool, limit: Duration) -> Vec<A::Id> {
        {
            let mut slots = self.lock();
            slots
                .by_id
                .retain(|id, slot| !(matches!(slot, Slot::Parked(_)) && which(id)));
            for (_, slot) in slots.by_id.iter_mut().filter(|(id, _)| which(id)) {
                match slot {
                    Slot::Running { addr, generation } => {
                        addr.do_send(Stop::Shutdown);
                        // What is said meanwhile waits for a successor, should there be one.
                        *slot = Slot::Stopping {
                            addr: addr.clone(),
                            generation: *generation,
                            waiting: Vec::new(),
                        };
                    }
                    Slot::Stopping { addr, .. } => addr.do_send(Stop::Shutdown),
                    Slot::Parked(_) => {}
                }
            }
        }
        let left = || -> Vec<A::Id> { self.lock().by_id.keys().copied().filter(&which).collect() };
        let _ = tokio::time::timeout(limit, self.until(|| left().is_empty())).await;
        left()
    }

    /// Waits for ends of children until that holds.
    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if holds() {
                return;
            }
            ended.await;
        }
    }

    /// Stops all children and waits for them, `limit` at most. No new ones start.
    pub async fn shutdown(&self, limit: Duration) {
        {
            let mut slots = self.lock();
            slots.closed = true;
            for slot in slots.by_id.values() {
                if let Slot::Running { addr, .. } = slot {
                    addr.do_send(Stop::Shutdown);
                }
            }
        }
        let all_gone = self.until(|| self.count() == 0);
        if tokio::time::timeout(limit, all_gone).await.is_err() {
            tracing::warn!(kind = A::KIND, left = self.count(), "actors did not stop in time");
        }
    }
}
