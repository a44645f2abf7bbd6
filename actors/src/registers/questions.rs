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
    collections::{BTreeMap, HashMap},
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
pub trait Answer: Sized + Send + Sync + 'static {
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
        some
    }

    /// They wait to be written down; of that workspace nothing else is asked before they are.
    pub fn answered(&self, tenant: TenantId, answers: Vec<A>) {
        let mut waiting = self.lock();
        let of_tenant = waiting.entry(tenant).or_default();
        of_tenant.unsaved = Some(Arc::new(answers));
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
mod tests {
    use super::*;
    use adapters::{
        reassigned::{Failure, Question},
        register_api,
    };
    use entities::{reassigned::ReassignedAnswer, values::Env};
    use uuid::Uuid;

    struct Nobody;

    impl Database for Nobody {
        fn ask<'a>(&'a self, _: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>> {
            Box::pin(async { Err(Failure("nobody is there".into())) })
        }
    }

    impl RegisterApi for Nobody {
        fn ask<'a>(
            &'a self,
            _: &'a [E164],
            _: Moment,
        ) -> BoxFuture<'a, Result<register_api::Answers, register_api::Failure>> {
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

    fn asked(most_of_day: usize) -> OfReassigned {
        let nobody: Arc<dyn Database> = Arc::new(Nobody);
        Questions::new(Some(nobody), Duration::from_secs(1), most_of_day)
    }

    fn register_asked(most_of_day: usize) -> OfRegister {
        let nobody: Arc<dyn RegisterApi> = Arc::new(Nobody);
        Questions::new(Some(nobody), Duration::from_secs(1), most_of_day)
    }

    /// Can these be asked now?
    fn add<S: ?Sized, A: Answer>(
        questions: &Questions<S, A>,
        tenant: TenantId,
        all: impl IntoIterator<Item = (E164, A::Asked)>,
        now: Moment,
    ) -> bool {
        questions.add(tenant, all, now) == Added::Now
    }

    #[test]
    fn each_number_waits_once_and_is_taken_once() {
        let questions = asked(1_000);
        assert!(!add(&questions, tenant(1), [], at(0)), "nothing waits");
        assert!(add(&questions, tenant(1), (0..300).map(|n| (number(n), at(5))), at(0)));
        assert!(add(&questions, tenant(1), [(number(7), at(9))], at(0)));
        assert!(questions.take(tenant(2), at(0)).is_empty());
        let (first, rest) = (questions.take(tenant(1), at(0)), questions.take(tenant(1), at(0)));
        assert_eq!((first.len(), rest.len()), (AT_ONCE, 300 - AT_ONCE));
        assert!(questions.take(tenant(1), at(0)).is_empty());
        let seventh = first.iter().find(|(asked, _)| *asked == number(7));
        assert_eq!(seventh.map(|(_, since)| *since), Some(at(9)), "as it was asked last");
    }

    #[test]
    fn after_a_failure_nothing_is_asked_for_a_while_and_longer_after_each() {
        let questions = asked(1_000);
        let ask = |now| add(&questions, tenant(1), [(number(1), at(0))], at(now));
        assert!(ask(0));
        assert!(add(&questions, tenant(2), [(number(2), at(0))], at(0)));
        questions.failed(tenant(1), 0, at(0));
        assert!(
            questions.take(tenant(1), at(0)).is_empty(),
            "it is asked for again by whoever waits"
        );
        assert_eq!((ask(29), ask(30)), (false, true));
        assert!(add(&questions, tenant(2), [], at(0)), "nobody else is held up");
        assert_eq!(questions.take(tenant(2), at(0)).len(), 1);
        questions.failed(tenant(1), 0, at(30));
        assert_eq!((ask(89), ask(90)), (false, true));
        for _ in 0..100 {
            questions.failed(tenant(1), 0, at(90));
        }
        assert_eq!((ask(689), ask(690)), (false, true));
        questions.answered(tenant(1), Vec::new());
        questions.saved(tenant(1), &[]);
        assert!(ask(91));
    }

    #[test]
    fn no_workspace_asks_for_more_in_a_day_than_it_may() {
        let questions = asked(300);
        let (day, next) = (at(86_400), at(2 * 86_400));
        let all = || (0..400).map(|n| (number(n), at(0)));
        assert!(add(&questions, tenant(1), all(), day));
        let taken = [0; 3].map(|_| questions.take(tenant(1), day).len());
        assert_eq!(taken, [AT_ONCE, 300 - AT_ONCE, 0]);
        let more = [0; 2].map(|_| questions.add(tenant(1), all(), day));
        assert_eq!(more, [Added::NoMoreToday, Added::Later], "it is told once");
        assert!(add(&questions, tenant(2), all(), day), "each has its own");
        assert!(!add(&questions, tenant(1), all(), at(0)), "a clock that is set back");
        assert!(add(&questions, tenant(1), all(), next));
        assert_eq!(questions.take(tenant(1), next).len(), AT_ONCE);
    }

    /// A provider that is down all day does not use up what may be asked for once it is back.
    #[test]
    fn what_nobody_answers_does_not_count() {
        let questions = asked(300);
        let all = || (0..400).map(|n| (number(n), at(0)));
        for time in 0..100 {
            let now = at(86_400 + time * 660);
            assert!(add(&questions, tenant(1), all(), now), "{time}");
            let taken = questions.take(tenant(1), now).len();
            assert_eq!(taken, AT_ONCE);
            questions.failed(tenant(1), taken, now);
        }
        let back = at(86_400 + 100 * 660);
        assert!(add(&questions, tenant(1), all(), back));
        let first = questions.take(tenant(1), back).len();
        questions.answered(tenant(1), Vec::new());
        questions.saved(tenant(1), &[]);
        let second = questions.take(tenant(1), back).len();
        assert_eq!((first, second), (AT_ONCE, 300 - AT_ONCE));
        // The first batch was answered, and stays counted.
        questions.failed(tenant(1), second, back);
        let later = back.plus_seconds(30);
        assert!(add(&questions, tenant(1), all(), later));
        assert_eq!(questions.take(tenant(1), later).len(), 300 - AT_ONCE);
        // Of a day that has ended.
        let next = at(2 * 86_400);
        assert!(add(&questions, tenant(1), [], next));
        questions.failed(tenant(1), 300 - AT_ONCE, next);
        let next = next.plus_seconds(60);
        assert!(add(&questions, tenant(1), all(), next));
        let taken = [0; 3].map(|_| questions.take(tenant(1), next).len());
        assert_eq!(taken, [AT_ONCE, 300 - AT_ONCE, 0]);
    }

    fn reassigned_answer(n: usize, since: i64) -> reassigned::Model {
        reassigned::Model {
            tenant_id: tenant(1),
            env: Env::Live,
            phone_number: number(n),
            since: at(since),
            answer: ReassignedAnswer::No,
            checked_at: at(100),
        }
    }

    fn register_answer(n: usize) -> answer::Model {
        answer::Model {
            tenant_id: tenant(1),
            env: Env::Live,
            phone_number: number(n),
            name: "uk_tps".into(),
            id: Uuid::from_u128(n as u128).into(),
            is_listed: false,
            listed_on: None,
            as_of: at(90),
            asked_at: at(100),
        }
    }

    /// Of a queue whose day has room for two.
    fn keeps_what_was_paid_for<S: ?Sized, A: Answer>(
        questions: &Questions<S, A>,
        both: impl Fn() -> [(E164, A::Asked); 2],
        answers: Vec<A>,
    ) {
        let day = |seconds| at(86_400 + seconds);
        assert!(add(questions, tenant(1), both(), day(0)));
        assert_eq!(questions.take(tenant(1), day(0)).len(), 2);
        questions.answered(tenant(1), answers);
        // Whoever waits for them asks again, while they are on their way.
        assert!(add(questions, tenant(1), both(), day(1)), "they can be written down");
        questions.failed(tenant(1), 0, day(1));
        let again = [30, 31].map(|seconds| questions.add(tenant(1), both(), day(seconds)));
        assert_eq!(
            again,
            [Added::Later, Added::Now],
            "after a pause, though no more may be asked for that day"
        );
        let unsaved = questions.unsaved(tenant(1)).unwrap();
        assert_eq!(unsaved.len(), 2);
        assert!(questions.unsaved(tenant(2)).is_none());
        questions.saved(tenant(1), &unsaved);
        assert!(questions.unsaved(tenant(1)).is_none());
        assert_eq!(
            questions.add(tenant(1), [], day(32)),
            Added::Later,
            "nobody waits any more"
        );
        let one_more = both().into_iter().take(1);
        assert_eq!(
            questions.add(tenant(1), one_more, day(33)),
            Added::NoMoreToday,
            "told when nothing is left to be written down"
        );
    }

    /// Each is paid for, so none is asked for again because the database was away when it came.
    #[test]
    fn answers_that_cannot_be_written_down_are_kept_and_come_first() {
        keeps_what_was_paid_for(
            &asked(2),
            || [(number(1), at(5)), (number(2), at(5))],
            vec![reassigned_answer(1, 5), reassigned_answer(2, 5)],
        );
        keeps_what_was_paid_for(
            &register_asked(2),
            || [(number(1), ()), (number(2), ())],
            vec![register_answer(1), register_answer(2)],
        );
    }

    /// While somebody is asked, those who wait for the answer ask for it again.
    #[test]
    fn nobody_pays_twice_for_what_was_answered_meanwhile() {
        let questions = asked(1_000);
        questions.add(tenant(1), [(number(1), at(5)), (number(2), at(5))], at(6));
        assert_eq!(questions.take(tenant(1), at(6)).len(), 2);
        // By a later consent, which that answer serves; by an earlier one, which it does not; and for somebody else.
        let meanwhile = [(number(1), at(7)), (number(2), at(4)), (number(3), at(5))];
        questions.add(tenant(1), meanwhile, at(7));
        let answers = vec![reassigned_answer(1, 5), reassigned_answer(2, 5)];
        questions.answered(tenant(1), answers.clone());
        questions.saved(tenant(1), &answers);
        let left = questions.take(tenant(1), at(8));
        assert_eq!(left, [(number(2), at(4)), (number(3), at(5))]);

        // A register is asked the same of a number whoever asks.
        let questions = register_asked(1_000);
        questions.add(tenant(1), [(number(1), ()), (number(2), ())], at(6));
        assert_eq!(questions.take(tenant(1), at(6)).len(), 2);
        questions.add(tenant(1), [1, 2, 3].map(|n| (number(n), ())), at(7));
        let answers = vec![register_answer(1), register_answer(2)];
        questions.answered(tenant(1), answers.clone());
        questions.saved(tenant(1), &answers);
        assert_eq!(questions.take(tenant(1), at(8)), [(number(3), ())]);
    }

    #[test]
    fn without_a_database_nothing_waits() {
        let questions = OfReassigned::new(None, Duration::from_secs(1), 1_000);
        assert!(!add(&questions, tenant(1), [(number(1), at(0))], at(0)));
        assert!(questions.take(tenant(1), at(0)).is_empty());
    }

    #[test]
    fn no_workspace_fills_the_memory() {
        let questions = asked(1_000);
        let many = (0..MOST + 500).map(|n| (format!("+1202{n:07}").parse().unwrap(), at(0)));
        questions.add(tenant(1), many, at(0));
        assert_eq!(questions.lock()[&tenant(1)].numbers.len(), MOST);
    }
}
