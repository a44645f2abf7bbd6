//! What is to be asked of a service that numbers are looked up at (the one for reassigned numbers, a register over an API), in memory
//! only: whoever waits for an answer asks again. What was answered is paid for, so it is kept until it stands in the database.
use adapters::{
    reassigned::{AT_ONCE, Database},
    register_api::RegisterApi,
};
use entities::{
    Result,
    connection::Connection,
    ids::TenantId,
    reassigned,
    register::answer,
    values::{E164, Moment},
};
use futures_util::future::BoxFuture;
use runtime::job::Running;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;

/// Those of the service for reassigned numbers, each with the day of the consent.
pub type OfReassigned = Questions<dyn Database, reassigned::Model>;
/// Those of one register that is asked over an API.
pub type OfRegister = Questions<dyn RegisterApi, answer::Model>;

/// What a service has said of a number, as it is written down.
pub trait Answer: Clone + Send + Sync + 'static {
    /// What is asked of a number, beside itself.
    type Asked: Send;

    fn number(&self) -> &E164;

    /// Is it an answer to that question about its number, too?
    fn serves(&self, asked: &Self::Asked) -> bool;

    /// What was answered last stays.
    fn save<'a>(db: &'a Connection, answers: &'a [Self]) -> BoxFuture<'a, Result<()>>;
}

impl Answer for reassigned::Model {
    /// The day of the consent.
    type Asked = Moment;

    fn number(&self) -> &E164 {
        &self.phone_number
    }

    fn serves(&self, since: &Moment) -> bool {
        self.answers(*since)
    }

    fn save<'a>(db: &'a Connection, answers: &'a [Self]) -> BoxFuture<'a, Result<()>> {
        reassigned::save(db, answers)
    }
}

impl Answer for answer::Model {
    type Asked = ();

    fn number(&self) -> &E164 {
        &self.phone_number
    }

    fn serves(&self, (): &()) -> bool {
        true
    }

    fn save<'a>(db: &'a Connection, answers: &'a [Self]) -> BoxFuture<'a, Result<()>> {
        answer::save(db, answers)
    }
}

/// `S`: who is asked. `A`: what is answered.
pub struct Questions<S: ?Sized, A: Answer> {
    service: Option<Arc<S>>,
    /// An answer that is older is asked for again.
    pub max_age: Duration,
    /// Of one workspace and one day of UTC: each is paid for.
    most_of_day: usize,
    /// The workspaces for which it is being asked.
    pub asking: Running<TenantId>,
    /// Requests that are under way, of all workspaces: taken in turn, one batch at a time.
    pub at_once: Semaphore,
    waiting: Mutex<HashMap<TenantId, Waiting<A>>>,
}

/// What becomes of questions that are to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// They can be asked now, or answers to others be written down, which comes before.
    Now,
    /// Not now: the service has failed, no more are asked in this day, or there is none.
    Later,
    /// The same; no more are asked in this day, of which the log has not been told.
    NoMoreToday,
}

/// Of one workspace. What goes wrong with its numbers holds up nobody else's.
struct Waiting<A: Answer> {
    numbers: BTreeMap<E164, A::Asked>,
    /// Those that are being asked for, of one batch: what is answered of others is nobody's business any more.
    under_way: BTreeSet<E164>,
    /// Answers that do not stand in the database yet, of one batch: they are paid for.
    unsaved: Option<Arc<Vec<A>>>,
    /// Failures in a row, and until when nothing is asked because of them.
    failures: u32,
    not_before: Option<Moment>,
    /// The day, counted from 1970, and how many were asked for in it; those that nobody has answered are not among them.
    day: i64,
    asked: usize,
    /// It is in the log that no more are asked for in that day.
    is_told: bool,
}

/// Questions of one workspace that wait; who asks for more asks again later.
const MOST: usize = 10_000;
const REQUESTS: usize = 2;
/// After a failure; doubled with each that follows.
const PAUSE_SECONDS: i64 = 30;
const LONGEST_PAUSE_SECONDS: i64 = 600;
const DAY_MS: i64 = 24 * 3_600_000;

impl<S: ?Sized, A: Answer> fmt::Debug for Questions<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Questions(asked: {})", self.service.is_some())
    }
}

impl<A: Answer> Default for Waiting<A> {
    fn default() -> Self {
        Waiting {
            numbers: BTreeMap::new(),
            under_way: BTreeSet::new(),
            unsaved: None,
            failures: 0,
            not_before: None,
            day: 0,
            asked: 0,
            is_told: false,
        }
    }
}

impl<A: Answer> Waiting<A> {
    /// How many more may be asked for today. A clock that is set back begins no day anew.
    fn left(&mut self, most: usize, now: Moment) -> usize {
        let today = now.millis().div_euclid(DAY_MS);
        if today > self.day {
            (self.day, self.asked, self.is_told) = (today, 0, false);
        }
        most.saturating_sub(self.asked)
    }
}

impl<S: ?Sized, A: Answer> Questions<S, A> {
    /// Without a service nothing is ever answered. `most_of_day`: numbers that are asked for, of one workspace.
    pub fn new(service: Option<Arc<S>>, max_age: Duration, most_of_day: usize) -> Self {
        Questions {
            service,
            max_age,
            most_of_day,
            asking: Running::default(),
            at_once: Semaphore::new(REQUESTS),
            waiting: Mutex::new(HashMap::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, Waiting<A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn service(&self) -> Option<&Arc<S>> {
        self.service.as_ref()
    }

    /// Numbers that are asked for, of one workspace in a day.
    pub fn most_of_day(&self) -> usize {
        self.most_of_day
    }

    /// These are to be asked.
    pub fn add(&self, tenant: TenantId, questions: impl IntoIterator<Item = (E164, A::Asked)>, now: Moment) -> Added {
        if self.service.is_none() {
            return Added::Later;
        }
        let mut waiting = self.lock();
        let of_tenant = waiting.entry(tenant).or_default();
        for (number, what) in questions {
            if of_tenant.numbers.len() < MOST || of_tenant.numbers.contains_key(&number) {
                of_tenant.numbers.insert(number, what);
            }
        }
        let has_unsaved = of_tenant.unsaved.is_some();
        if of_tenant.numbers.is_empty() && !has_unsaved {
            return Added::Later;
        }
        if of_tenant.left(self.most_of_day, now) == 0 && !has_unsaved {
            return match std::mem::replace(&mut of_tenant.is_told, true) {
                true => Added::Later,
                false => Added::NoMoreToday,
            };
        }
        match of_tenant.not_before {
            Some(at) if now < at => Added::Later,
            Some(_) | None => Added::Now,
        }
    }

    /// Some that wait, as many as may still be asked for today; they wait no longer.
    pub fn take(&self, tenant: TenantId, now: Moment) -> Vec<(E164, A::Asked)> {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.get_mut(&tenant) else {
            return Vec::new();
        };
        let most = of_tenant.left(self.most_of_day, now).min(AT_ONCE);
        let some = std::iter::from_fn(|| of_tenant.numbers.pop_first()).take(most);
        let some: Vec<(E164, A::Asked)> = some.collect();
        of_tenant.asked += some.len();
        of_tenant.under_way = some.iter().map(|(number, _)| number.clone()).collect();
        some
    }

    /// They wait to be written down; of that workspace nothing else is asked before they are.
    pub fn answered(&self, tenant: TenantId, mut answers: Vec<A>) {
        let mut waiting = self.lock();
        let of_tenant = waiting.entry(tenant).or_default();
        let under_way = std::mem::take(&mut of_tenant.under_way);
        answers.retain(|answer| under_way.contains(answer.number()));
        of_tenant.unsaved = Some(Arc::new(answers));
    }

    /// Nobody asks for that number any more, and what was answered of it is not written down.
    pub fn forget(&self, tenant: TenantId, number: &E164) {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.get_mut(&tenant) else {
            return;
        };
        of_tenant.numbers.remove(number);
        of_tenant.under_way.remove(number);
        if let Some(unsaved) = &mut of_tenant.unsaved {
            let rest = unsaved.iter().filter(|answer| answer.number() != number);
            *unsaved = Arc::new(rest.cloned().collect());
        }
    }

    pub fn unsaved(&self, tenant: TenantId) -> Option<Arc<Vec<A>>> {
        self.lock().get(&tenant)?.unsaved.clone()
    }

    /// They stand in the database. Whoever has asked for the same meanwhile finds them there: nobody pays for them twice.
    pub fn saved(&self, tenant: TenantId, answers: &[A]) {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.get_mut(&tenant) else {
            return;
        };
        for answer in answers {
            let asked = of_tenant.numbers.get(answer.number());
            if asked.is_some_and(|asked| answer.serves(asked)) {
                of_tenant.numbers.remove(answer.number());
            }
        }
        (of_tenant.unsaved, of_tenant.failures, of_tenant.not_before) = (None, 0, None);
    }

    /// Nobody answers so many questions, which do not count, or nobody can write the answers down: for that workspace nothing is asked for
    /// a while, and no question is kept until then.
    pub fn failed(&self, tenant: TenantId, count: usize, now: Moment) {
        let mut waiting = self.lock();
        let of_tenant = waiting.entry(tenant).or_default();
        let pause = PAUSE_SECONDS << of_tenant.failures.min(10);
        of_tenant.failures += 1;
        of_tenant.not_before = Some(now.plus_seconds(pause.min(LONGEST_PAUSE_SECONDS)));
        of_tenant.numbers.clear();
        // Where a day has begun meanwhile nothing was asked for in it yet: of a workspace one batch at a time is under way.
        of_tenant.asked = of_tenant.asked.saturating_sub(count);
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
