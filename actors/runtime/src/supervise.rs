//! Supervision that survives panics and keeps the mailbox.
//!
//! actix's own `Supervisor` restarts what wants to stop and buries what panicked. `ContextFut` owns the actor with its
//! mailbox and timers, and its `restart()` keeps the mailbox; so a `catch_unwind` around its `poll`, a back-off and a
//! limit on restarts are all that is missing.
use crate::clock::{Busy, Clock};
use actix::{dev::ContextFut, prelude::*};
use entities::values::Moment;
use std::{
    any::Any,
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Poll, ready},
    time::Duration,
};

/// How often an actor may panic before it is given up.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// More panics than this within `within` park the actor.
    pub max_restarts: usize,
    pub within: Duration,
    /// Doubles with every panic in the window.
    pub backoff_min: Duration,
    pub backoff_max: Duration,
}
impl Default for Policy {
    fn default() -> Self {
        Policy {
            max_restarts: 5,
            within: Duration::from_secs(30),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
        }
    }
}

/// Why an actor is no more.
#[derive(Debug, Clone, PartialEq)]
pub enum Exit {
    /// It stopped itself: final.
    Normal,
    /// It panicked too often; holds the last panic's text.
    Escalated(String),
    /// Its thread ended.
    Dropped,
}

struct Supervision<A: Actor<Context = Context<A>> + Supervised> {
    future: Pin<Box<ContextFut<A, Context<A>>>>,
    backing_off: Option<Pin<Box<dyn Future<Output = Busy>>>>,
    recent: VecDeque<Moment>,
    policy: Policy,
    clock: Clock,
    name: String,
    on_exit: Option<Box<dyn FnOnce(Exit)>>,
}

impl<A: Actor<Context = Context<A>> + Supervised> Supervision<A> {
    fn finish(&mut self, exit: Exit) -> Poll<()> {
        if let Some(on_exit) = self.on_exit.take() {
            on_exit(exit);
        }
        Poll::Ready(())
    }

    /// Prepares a restart, or says that there were too many.
    fn panicked(&mut self, panic: &(dyn Any + Send)) -> Result<(), Exit> {
        let text = panic_text(panic);
        // Disarms the destructor of `ContextFut`: it would poll the half-panicked actor again, and a second panic aborts.
        self.future.ctx().terminate();
        metrics::counter!("callboard_actor_panics_total").increment(1);
        let now = self.clock.now();
        self.recent.push_back(now);
        while self
            .recent
            .front()
            .is_some_and(|at| now.since(*at) > self.policy.within)
        {
            self.recent.pop_front();
        }
        let panics = self.recent.len();
        if panics > self.policy.max_restarts {
            tracing::error!(actor = self.name, panic = text, "actor parked: it panicked too often");
            return Err(Exit::Escalated(text));
        }
        let doubled = self.policy.backoff_min.saturating_mul(1 << (panics - 1).min(16));
        let wait = doubled.min(self.policy.backoff_max);
        tracing::error!(
            actor = self.name,
            panic = text,
            restart = panics,
            wait_ms = wait.as_millis(),
            "actor panicked and is restarted"
        );
        let clock = self.clock.clone();
        self.backing_off = Some(Box::pin(async move { clock.sleep(wait).await }));
        Ok(())
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".into())
}

impl<A: Actor<Context = Context<A>> + Supervised> Drop for Supervision<A> {
    fn drop(&mut self) {
        let _ = self.finish(Exit::Dropped);
    }
}

impl<A: Actor<Context = Context<A>> + Supervised> Unpin for Supervision<A> {}

impl<A: Actor<Context = Context<A>> + Supervised> Future for Supervision<A> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            if let Some(wait) = &mut this.backing_off {
                let _busy = ready!(wait.as_mut().poll(cx));
                this.backing_off = None;
                // `restarting` is the actor's own code: it may panic too.
                match catch_unwind(AssertUnwindSafe(|| this.future.restart())) {
                    Ok(true) => {}
                    Ok(false) => return this.finish(Exit::Normal),
                    Err(panic) => match this.panicked(&*panic) {
                        Ok(()) => continue,
                        Err(exit) => return this.finish(exit),
                    },
                }
            }
            match catch_unwind(AssertUnwindSafe(|| this.future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => return this.finish(Exit::Normal),
                Err(panic) => {
                    if let Err(exit) = this.panicked(&*panic) {
                        return this.finish(exit);
                    }
                }
            }
        }
    }
}

/// Starts what `make` makes on a thread under supervision. The address stays valid over restarts.
pub fn start_in<A>(
    arbiter: &ArbiterHandle,
    name: String,
    policy: Policy,
    clock: Clock,
    make: impl FnOnce() -> Option<A> + Send + 'static,
    on_exit: impl FnOnce(Exit) + Send + 'static,
) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    // The capacity bounds nothing in actix; admission is counted where work enters.
    let (sender, receiver) = actix::dev::channel::channel(16);
    arbiter.spawn_fn(move || {
        let Some(actor) = make() else {
            return on_exit(Exit::Dropped);
        };
        let context = Context::with_receiver(receiver);
        let future = Box::pin(context.into_future(actor));
        actix_rt::spawn(Supervision {
            future,
            backing_off: None,
            recent: VecDeque::new(),
            policy,
            clock,
            name,
            on_exit: Some(Box::new(on_exit)),
        });
    });
    Addr::new(sender)
}
