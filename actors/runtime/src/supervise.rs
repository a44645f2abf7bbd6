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
use tokio::task::JoinError;

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
    /// It panicked too often; holds what the last panic said.
    Escalated(&'static str),
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

/// What a panic said, if that stands in the source: what was put together as it ran may hold what people said.
pub fn panic_text(panic: &(dyn Any + Send)) -> &'static str {
    panic.downcast_ref::<&'static str>().copied().unwrap_or("panic")
}

/// Why a task came to no result. `JoinError` itself prints all that a panic said.
pub fn join_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("a panic: {}", panic_text(&*panic)),
        Err(error) => error.to_string(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_only_what_stands_in_the_source() {
        let number = "+12025550123";
        let in_the_source = catch_unwind(|| panic!("as it stands here")).unwrap_err();
        let put_together = catch_unwind(|| panic!("said to {number}")).unwrap_err();
        assert_eq!(panic_text(&*in_the_source), "as it stands here");
        assert_eq!(panic_text(&*put_together), "panic");
    }

    #[test]
    fn a_task_that_panicked_tells_no_more() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended = |number: Option<&'static str>| {
            let ended = runtime.block_on(runtime.spawn(say(number)));
            join_text(ended.unwrap_err())
        };
        assert_eq!(ended(None), "a panic: as it stands here");
        assert_eq!(ended(Some("+12025550123")), "a panic: panic");
    }

    async fn say(number: Option<&'static str>) {
        match number {
            Some(number) => panic!("said to {number}"),
            None => panic!("as it stands here"),
        }
    }
}
