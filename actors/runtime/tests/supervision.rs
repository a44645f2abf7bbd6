//! Supervision and registry, with actors made for it: what survives a panic, what is parked, what is never lost.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ::runtime::{
    clock::Clock,
    registry::{Child, Link, Registry, Stop},
};
use actix::prelude::*;
use entities::{Error, values::Moment};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

struct Counter {
    link: Link<Self>,
    count: usize,
    starts: Arc<AtomicUsize>,
}
impl Actor for Counter {
    type Context = Context<Self>;
    fn started(&mut self, _: &mut Context<Self>) {
        self.starts.fetch_add(1, Ordering::SeqCst);
    }
}
impl Supervised for Counter {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.count = 0;
    }
}
impl Child for Counter {
    type Id = u32;
    const KIND: &'static str = "counter";
}
impl Handler<Stop> for Counter {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        // One that counted to three has something to do after all.
        if stop == Stop::Idle && self.count == 3 {
            self.link.stay()
        } else {
            ctx.stop()
        }
    }
}

#[derive(Message)]
#[rtype(result = "usize")]
struct Count;
impl Handler<Count> for Counter {
    type Result = usize;
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> usize {
        self.count += 1;
        self.count
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Poison;
impl Handler<Poison> for Counter {
    type Result = ();
    fn handle(&mut self, _: Poison, _: &mut Context<Self>) {
        panic!("poisoned on purpose");
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Rest;
impl Handler<Rest> for Counter {
    type Result = ();
    fn handle(&mut self, _: Rest, _: &mut Context<Self>) {
        self.link.rest();
    }
}

struct World {
    clock: Clock,
    registry: Registry<Counter>,
    starts: Arc<AtomicUsize>,
    arbiter: Arbiter,
}

impl World {
    fn new() -> Self {
        let clock = Clock::manual(Moment::from_millis(0));
        let (arbiter, starts) = (Arbiter::new(), Arc::new(AtomicUsize::new(0)));
        let of_children = starts.clone();
        let registry = Registry::new(
            vec![arbiter.handle()],
            clock.clone(),
            |_| Ok(()),
            move |link| {
                Some(Counter {
                    link,
                    count: 0,
                    starts: of_children.clone(),
                })
            },
        );
        World {
            clock,
            registry,
            starts,
            arbiter,
        }
    }
    async fn count(&self, id: u32) -> entities::Result<usize> {
        self.registry.send(id, Count).await
    }
    /// Poisons it, and lets the back-off pass.
    async fn poison(&self, id: u32) {
        assert!(self.registry.send(id, Poison).await.is_err());
        self.past_backoff(Duration::from_secs(4)).await;
    }
    /// After the answer to a poisoned message. The alarm of the back-off is set in the same turn of the actors' thread as
    /// that answer, so it stands once another actor of that thread has answered a question asked afterwards.
    async fn past_backoff(&self, wait: Duration) {
        self.count(u32::MAX).await.unwrap();
        self.clock.advance(wait).await;
    }
}

fn run(test: impl AsyncFnOnce(&World)) {
    System::new().block_on(async {
        let world = World::new();
        // A test that waits for what never comes must fail, not hang.
        tokio::time::timeout(Duration::from_secs(60), test(&world))
            .await
            .unwrap();
        world.arbiter.stop();
    });
}

#[test]
fn a_panic_fails_its_message_only_and_the_mailbox_survives() {
    run(async |world| {
        assert_eq!(world.count(1).await.unwrap(), 1);
        assert_eq!(world.count(1).await.unwrap(), 2);
        assert_eq!(world.count(2).await.unwrap(), 1);
        let poisoned = world.registry.send(1, Poison);
        let behind = world.registry.send(1, Count);
        let (poisoned, behind) = futures_util::future::join(
            async {
                let poisoned = poisoned.await;
                world.past_backoff(Duration::from_secs(1)).await;
                poisoned
            },
            behind,
        )
        .await;
        assert!(matches!(poisoned, Err(Error::Unavailable(_))));
        assert_eq!(
            behind.unwrap(),
            1,
            "handled by the restarted actor, whose memory was thrown away"
        );
        assert_eq!(world.count(2).await.unwrap(), 2, "the neighbour was not touched");
    });
}

#[test]
fn one_that_always_panics_is_parked_visible_and_harms_nobody() {
    run(async |world| {
        for _ in 0..5 {
            world.poison(1).await;
            assert_eq!(world.count(1).await.unwrap(), 1, "restarted");
        }
        assert!(world.registry.parked().is_empty());
        world.poison(1).await;
        let parked = world.registry.parked();
        assert_eq!(
            (parked.len(), parked[0].kind, parked[0].id.as_str(), parked[0].panic),
            (1, "counter", "1", "poisoned on purpose")
        );
        assert!(matches!(world.count(1).await, Err(Error::Unavailable(_))));
        assert_eq!(world.count(2).await.unwrap(), 1);
        // After a while it gets another chance.
        world.clock.advance(Duration::from_secs(300)).await;
        assert_eq!(world.count(1).await.unwrap(), 1);
        assert!(world.registry.parked().is_empty());
    });
}

#[test]
fn panics_far_apart_are_no_reason_to_park() {
    run(async |world| {
        for _ in 0..12 {
            world.poison(1).await;
            world.clock.advance(Duration::from_secs(10)).await;
        }
        assert_eq!(world.count(1).await.unwrap(), 1);
        assert!(world.registry.parked().is_empty());
    });
}

#[test]
fn an_idle_actor_goes_and_nothing_sent_to_it_is_lost() {
    run(async |world| {
        for round in 1..=1000 {
            world.registry.tell(1, Rest);
            let counts = futures_util::future::join_all((0..3).map(|_| world.count(1))).await;
            assert!(counts.iter().all(Result::is_ok), "round {round}: {counts:?}");
        }
        assert!(world.starts.load(Ordering::SeqCst) > 1, "it did go now and then");
        assert!(world.registry.count() <= 1, "never two of one id");
    });
}

#[test]
fn one_that_found_something_to_do_stays() {
    run(async |world| {
        for _ in 0..3 {
            world.count(1).await.unwrap();
        }
        world.registry.tell(1, Rest);
        assert_eq!(world.count(1).await.unwrap(), 4, "the same one, with its memory");
        assert_eq!(world.starts.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_shutdown_waits_for_all_and_starts_no_more() {
    run(async |world| {
        for id in 0..50 {
            world.count(id).await.unwrap();
        }
        world.registry.shutdown(Duration::from_secs(5)).await;
        assert_eq!(world.registry.count(), 0);
        assert!(matches!(world.count(1).await, Err(Error::Unavailable(_))));
    });
}
