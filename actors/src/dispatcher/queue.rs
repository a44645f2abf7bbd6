//! What one running campaign has to dispatch: a small window of its contacts, and its rate.
use crate::{clock::Clock, deps::Deps};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, Model as Row, Plan},
    contact::{self, Model as Contact},
    ids::CampaignId,
    values::{E164, Env, Moment},
};
use governor::{
    Quota, RateLimiter,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};
use std::{collections::VecDeque, num::NonZeroU32, sync::Arc, time::Duration};

pub type Limiter = RateLimiter<NotKeyed, InMemoryState, Clock, NoOpMiddleware<Nanos>>;

/// A limiter on our clock. Its burst is so small that no second holds more than the rate and this burst. Source: CONTRACT §5.
pub fn limiter(per_second: f64, clock: &Clock) -> Limiter {
    let period = Duration::from_secs_f64(1.0 / per_second.max(0.001));
    // At most a fiftieth of the rate; at least one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number, at most some hundreds"
    )]
    let burst = NonZeroU32::new((per_second / 50.0) as u32).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(period)
        .unwrap_or_else(|| unreachable!("a period is never zero"))
        .allow_burst(burst);
    RateLimiter::direct_with_clock(quota, clock.clone())
}

/// Takes a token, or says when there will be one.
pub fn take(limiter: &Limiter, clock: &Clock) -> Result<(), Moment> {
    limiter.check().map_err(|not_yet| {
        let wait = not_yet.wait_time_from(governor::clock::Clock::now(clock));
        // Up to the next millisecond: the clock's own step.
        clock.now().plus_millis(
            i64::try_from(wait.as_micros().div_ceil(1000))
                .unwrap_or(i64::MAX)
                .max(1),
        )
    })
}

/// Contacts read at once: memory does not grow with the list.
const WINDOW: u64 = 128;

pub struct Queue {
    pub id: CampaignId,
    pub env: Env,
    pub plan: Plan,
    pub agent: Arc<AgentSnapshot>,
    pub weight: i64,
    pub max_concurrency: Option<i32>,
    limiter: Limiter,
    /// A token that was taken and not used.
    pub token: bool,
    /// No token before this.
    not_before: Option<Moment>,
    window: VecDeque<Contact>,
    /// No contact is left that was never called.
    exhausted: bool,
    /// When the next waiting contact is due, as far as is known.
    next_due_at: Option<Moment>,
    /// A call has ended, so a contact may have begun to wait.
    look_for_waiting: bool,
    next_from: usize,
}

impl Queue {
    /// `old` is the same campaign's queue before: its rate runs on.
    pub fn of(row: Row, old: Option<Queue>, deps: &Deps) -> Result<Self> {
        let rate = row.plan.pacing.calls_per_second.get();
        let same_rate = old.filter(|old| old.plan.pacing.calls_per_second.get() == rate);
        let (limiter, token, not_before, next_from) = match same_rate {
            Some(old) => (old.limiter, old.token, old.not_before, old.next_from),
            None => (limiter(rate, &deps.clock), false, None, 0),
        };
        let missing = || Error::Corrupt {
            table: "campaigns",
            column: "agent",
            id: row.id.to_string(),
        };
        let agent = row.agent.clone().ok_or_else(missing)?;
        Ok(Queue {
            id: row.id,
            env: row.env,
            weight: i64::from(row.plan.pacing.weight.get()),
            max_concurrency: row.plan.pacing.max_concurrency.map(|max| max.get()),
            plan: row.plan,
            agent: Arc::new(agent),
            limiter,
            token,
            not_before,
            window: VecDeque::new(),
            exhausted: false,
            next_due_at: None,
            look_for_waiting: true,
            next_from,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }
    pub fn peek(&self) -> Option<&Contact> {
        self.window.front()
    }
    pub fn pop(&mut self) -> Option<Contact> {
        self.window.pop_front()
    }
    /// A contact is at hand and the rate allows it.
    pub fn is_ready(&self, now: Moment) -> bool {
        !self.is_empty() && (self.token || self.not_before.is_none_or(|at| at <= now))
    }

    /// When this campaign may have something to dispatch that it has not now.
    pub fn wake_at(&self) -> Option<Moment> {
        if self.is_empty() {
            self.next_due_at
        } else {
            self.not_before
        }
    }

    pub fn take_token(&mut self, clock: &Clock) -> bool {
        if !self.token {
            match take(&self.limiter, clock) {
                Ok(()) => {
                    self.token = true;
                    self.not_before = None;
                }
                Err(at) => self.not_before = Some(at),
            }
        }
        self.token
    }

    pub fn one_ended(&mut self) {
        self.look_for_waiting = true;
    }

    /// Reads the next contacts if none are at hand: retries that are due, then fresh ones.
    pub async fn refill(&mut self, deps: &Deps, now: Moment) -> Result<()> {
        if !self.window.is_empty() {
            return Ok(());
        }
        let db = &deps.db.read;
        if self.look_for_waiting || self.next_due_at.is_some_and(|at| at <= now) {
            // A campaign without retries never has one waiting.
            if self.plan.retry.max_attempts.get() > 1 {
                self.window.extend(contact::due(db, self.id, now, WINDOW).await?);
                self.next_due_at = if self.window.is_empty() {
                    contact::next_due_at(db, self.id).await?
                } else {
                    Some(now)
                };
            }
            self.look_for_waiting = false;
        }
        if self.window.is_empty() && !self.exhausted {
            self.window.extend(contact::fresh(db, self.id, WINDOW).await?);
            self.exhausted = self.window.is_empty();
        }
        Ok(())
    }

    /// The caller ids take turns.
    pub fn next_from_number(&mut self) -> Option<E164> {
        let numbers = &self.plan.from_numbers;
        if numbers.is_empty() {
            return None;
        }
        self.next_from = (self.next_from + 1) % numbers.len();
        numbers.get(self.next_from).cloned()
    }
}
