//! What is to be asked of the service for reassigned numbers, in memory only: whoever waits for an answer asks again.
use adapters::reassigned::{AT_ONCE, Database, Question};
use entities::{
    ids::TenantId,
    values::{E164, Moment},
};
use runtime::job::Running;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;

pub struct Questions {
    database: Option<Arc<dyn Database>>,
    /// An answer that is older is asked for again.
    pub max_age: Duration,
    /// The workspaces for which it is being asked.
    pub asking: Running<TenantId>,
    /// Requests that are under way, of all workspaces.
    pub at_once: Semaphore,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Each number with the day of the consent.
    by_tenant: HashMap<TenantId, BTreeMap<E164, Moment>>,
    /// Failures in a row, and until when nothing is asked because of them.
    failures: u32,
    not_before: Option<Moment>,
}

/// Questions of one workspace that wait; who asks for more asks again later.
const MOST: usize = 10_000;
const REQUESTS: usize = 2;
/// After a failure; doubled with each that follows.
const PAUSE_SECONDS: i64 = 30;
const LONGEST_PAUSE_SECONDS: i64 = 600;

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Questions(asked: {})", self.database.is_some())
    }
}

impl Questions {
    /// Without a database nothing is ever answered.
    pub fn new(database: Option<Arc<dyn Database>>, max_age: Duration) -> Self {
        Questions {
            database,
            max_age,
            asking: Running::default(),
            at_once: Semaphore::new(REQUESTS),
            waiting: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn database(&self) -> Option<&Arc<dyn Database>> {
        self.database.as_ref()
    }

    /// Is to be asked for. Answers whether it can be now.
    pub fn add(&self, tenant: TenantId, questions: impl IntoIterator<Item = (E164, Moment)>, now: Moment) -> bool {
        if self.database.is_none() {
            return false;
        }
        let mut waiting = self.lock();
        let of_tenant = waiting.by_tenant.entry(tenant).or_default();
        for (number, since) in questions {
            if of_tenant.len() < MOST || of_tenant.contains_key(&number) {
                of_tenant.insert(number, since);
            }
        }
        let any = !of_tenant.is_empty();
        any && waiting.not_before.is_none_or(|at| now >= at)
    }

    /// Some that wait; they wait no longer.
    pub fn take(&self, tenant: TenantId) -> Vec<Question> {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.by_tenant.get_mut(&tenant) else {
            return Vec::new();
        };
        let some = std::iter::from_fn(|| of_tenant.pop_first()).take(AT_ONCE);
        let some = some.map(|(number, since)| Question { number, since }).collect();
        if of_tenant.is_empty() {
            waiting.by_tenant.remove(&tenant);
        }
        some
    }

    pub fn answered(&self) {
        let mut waiting = self.lock();
        (waiting.failures, waiting.not_before) = (0, None);
    }

    /// Nobody answers: nothing is asked for a while, and nothing is kept until then.
    pub fn failed(&self, now: Moment) {
        let mut waiting = self.lock();
        let pause = PAUSE_SECONDS << waiting.failures.min(10);
        waiting.failures += 1;
        waiting.not_before = Some(now.plus_seconds(pause.min(LONGEST_PAUSE_SECONDS)));
        waiting.by_tenant.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters::reassigned::Failure;
    use entities::reassigned::ReassignedAnswer;
    use futures_util::future::BoxFuture;
    use uuid::Uuid;

    struct Nobody;

    impl Database for Nobody {
        fn ask<'a>(&'a self, _: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>> {
            Box::pin(async { Err(Failure("nobody is there".into())) })
        }
    }

    fn at(seconds: i64) -> Moment {
        Moment::from_millis(0).plus_seconds(seconds)
    }

    fn number(n: usize) -> E164 {
        format!("+1202555{n:04}").parse().unwrap()
    }

    fn tenant(n: u128) -> TenantId {
        Uuid::from_u128(n).into()
    }

    #[test]
    fn each_number_waits_once_and_is_taken_once() {
        let questions = Questions::new(Some(Arc::new(Nobody)), Duration::from_secs(1));
        assert!(!questions.add(tenant(1), [], at(0)), "nothing waits");
        assert!(questions.add(tenant(1), (0..300).map(|n| (number(n), at(5))), at(0)));
        assert!(questions.add(tenant(1), [(number(7), at(9))], at(0)));
        assert!(questions.take(tenant(2)).is_empty());
        let (first, rest) = (questions.take(tenant(1)), questions.take(tenant(1)));
        assert_eq!((first.len(), rest.len()), (AT_ONCE, 300 - AT_ONCE));
        assert!(questions.take(tenant(1)).is_empty());
        let seventh = first.iter().find(|question| question.number == number(7));
        assert_eq!(
            seventh.map(|question| question.since),
            Some(at(9)),
            "as it was asked last"
        );
        assert!(questions.lock().by_tenant.is_empty());
    }

    #[test]
    fn after_a_failure_nothing_is_asked_for_a_while_and_longer_after_each() {
        let questions = Questions::new(Some(Arc::new(Nobody)), Duration::from_secs(1));
        let ask = |now| questions.add(tenant(1), [(number(1), at(0))], at(now));
        assert!(ask(0));
        questions.failed(at(0));
        assert!(
            questions.take(tenant(1)).is_empty(),
            "it is asked for again by whoever waits"
        );
        assert_eq!((ask(29), ask(30)), (false, true));
        questions.failed(at(30));
        assert_eq!((ask(89), ask(90)), (false, true));
        for _ in 0..100 {
            questions.failed(at(90));
        }
        assert_eq!((ask(689), ask(690)), (false, true));
        questions.answered();
        assert!(ask(91));
    }

    #[test]
    fn without_a_database_nothing_waits() {
        let questions = Questions::new(None, Duration::from_secs(1));
        assert!(!questions.add(tenant(1), [(number(1), at(0))], at(0)));
        assert!(questions.take(tenant(1)).is_empty());
    }

    #[test]
    fn no_workspace_fills_the_memory() {
        let questions = Questions::new(Some(Arc::new(Nobody)), Duration::from_secs(1));
        let many = (0..MOST + 500).map(|n| (format!("+1202{n:07}").parse().unwrap(), at(0)));
        questions.add(tenant(1), many, at(0));
        assert_eq!(questions.lock().by_tenant[&tenant(1)].len(), MOST);
    }
}
