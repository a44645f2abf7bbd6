//! What is to be asked of the service for reassigned numbers, in memory only: whoever waits for an answer asks again.
use adapters::reassigned::{AT_ONCE, Database, Question};
use entities::{
    ids::TenantId,
    reassigned::Model,
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
    /// Of one workspace and one day of UTC: each is paid for.
    most_of_day: usize,
    /// The workspaces for which it is being asked.
    pub asking: Running<TenantId>,
    /// Requests that are under way, of all workspaces: taken in turn, one batch at a time.
    pub at_once: Semaphore,
    waiting: Mutex<HashMap<TenantId, Waiting>>,
}

/// Of one workspace. What goes wrong with its numbers holds up nobody else's.
#[derive(Default)]
struct Waiting {
    /// Each number with the day of the consent.
    numbers: BTreeMap<E164, Moment>,
    /// Answers that do not stand in the database yet, of one batch: they are paid for.
    unsaved: Option<Arc<Vec<Model>>>,
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

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Questions(asked: {})", self.database.is_some())
    }
}

impl Waiting {
    /// How many more may be asked for today. A clock that is set back begins no day anew.
    fn left(&mut self, most: usize, now: Moment) -> usize {
        let today = now.millis().div_euclid(DAY_MS);
        if today > self.day {
            (self.day, self.asked, self.is_told) = (today, 0, false);
        }
        most.saturating_sub(self.asked)
    }
}

impl Questions {
    /// Without a database nothing is ever answered. `most_of_day`: numbers that are asked for, of one workspace.
    pub fn new(database: Option<Arc<dyn Database>>, max_age: Duration, most_of_day: usize) -> Self {
        Questions {
            database,
            max_age,
            most_of_day,
            asking: Running::default(),
            at_once: Semaphore::new(REQUESTS),
            waiting: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, Waiting>> {
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
        let of_tenant = waiting.entry(tenant).or_default();
        for (number, since) in questions {
            if of_tenant.numbers.len() < MOST || of_tenant.numbers.contains_key(&number) {
                of_tenant.numbers.insert(number, since);
            }
        }
        let has_unsaved = of_tenant.unsaved.is_some();
        if of_tenant.numbers.is_empty() && !has_unsaved {
            return false;
        }
        let has_room = of_tenant.left(self.most_of_day, now) > 0;
        if !has_room && !std::mem::replace(&mut of_tenant.is_told, true) {
            let most = self.most_of_day;
            tracing::warn!(%tenant, most, "no more reassigned numbers are looked up today: calls that need it are held back");
            metrics::counter!("callboard_reassigned_lookups_total", "result" => "limited").increment(1);
        }
        (has_room || has_unsaved) && of_tenant.not_before.is_none_or(|at| now >= at)
    }

    /// Some that wait, as many as may still be asked for today; they wait no longer.
    pub fn take(&self, tenant: TenantId, now: Moment) -> Vec<Question> {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.get_mut(&tenant) else {
            return Vec::new();
        };
        let most = of_tenant.left(self.most_of_day, now).min(AT_ONCE);
        let some = std::iter::from_fn(|| of_tenant.numbers.pop_first()).take(most);
        let some: Vec<Question> = some.map(|(number, since)| Question { number, since }).collect();
        of_tenant.asked += some.len();
        some
    }

    /// They wait to be written down; of that workspace nothing else is asked before they are.
    pub fn answered(&self, tenant: TenantId, answers: Vec<Model>) {
        let mut waiting = self.lock();
        let of_tenant = waiting.entry(tenant).or_default();
        of_tenant.unsaved = Some(Arc::new(answers));
    }

    pub fn unsaved(&self, tenant: TenantId) -> Option<Arc<Vec<Model>>> {
        self.lock().get(&tenant)?.unsaved.clone()
    }

    /// They stand in the database. Whoever has asked for the same meanwhile finds them there: nobody pays for them twice.
    pub fn saved(&self, tenant: TenantId, answers: &[Model]) {
        let mut waiting = self.lock();
        let Some(of_tenant) = waiting.get_mut(&tenant) else {
            return;
        };
        for answer in answers {
            let number = &answer.phone_number;
            if of_tenant
                .numbers
                .get(number)
                .is_some_and(|since| answer.answers(*since))
            {
                of_tenant.numbers.remove(number);
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
    use adapters::reassigned::Failure;
    use entities::{reassigned::ReassignedAnswer, values::Env};
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

    fn asked(most_of_day: usize) -> Questions {
        Questions::new(Some(Arc::new(Nobody)), Duration::from_secs(1), most_of_day)
    }

    #[test]
    fn each_number_waits_once_and_is_taken_once() {
        let questions = asked(1_000);
        assert!(!questions.add(tenant(1), [], at(0)), "nothing waits");
        assert!(questions.add(tenant(1), (0..300).map(|n| (number(n), at(5))), at(0)));
        assert!(questions.add(tenant(1), [(number(7), at(9))], at(0)));
        assert!(questions.take(tenant(2), at(0)).is_empty());
        let (first, rest) = (questions.take(tenant(1), at(0)), questions.take(tenant(1), at(0)));
        assert_eq!((first.len(), rest.len()), (AT_ONCE, 300 - AT_ONCE));
        assert!(questions.take(tenant(1), at(0)).is_empty());
        let seventh = first.iter().find(|question| question.number == number(7));
        assert_eq!(
            seventh.map(|question| question.since),
            Some(at(9)),
            "as it was asked last"
        );
    }

    #[test]
    fn after_a_failure_nothing_is_asked_for_a_while_and_longer_after_each() {
        let questions = asked(1_000);
        let ask = |now| questions.add(tenant(1), [(number(1), at(0))], at(now));
        assert!(ask(0));
        assert!(questions.add(tenant(2), [(number(2), at(0))], at(0)));
        questions.failed(tenant(1), 0, at(0));
        assert!(
            questions.take(tenant(1), at(0)).is_empty(),
            "it is asked for again by whoever waits"
        );
        assert_eq!((ask(29), ask(30)), (false, true));
        assert!(questions.add(tenant(2), [], at(0)), "nobody else is held up");
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
        assert!(questions.add(tenant(1), all(), day));
        let taken = [0; 3].map(|_| questions.take(tenant(1), day).len());
        assert_eq!(taken, [AT_ONCE, 300 - AT_ONCE, 0]);
        assert!(!questions.add(tenant(1), all(), day));
        assert!(questions.add(tenant(2), all(), day), "each has its own");
        assert!(!questions.add(tenant(1), all(), at(0)), "a clock that is set back");
        assert!(questions.add(tenant(1), all(), next));
        assert_eq!(questions.take(tenant(1), next).len(), AT_ONCE);
    }

    /// A provider that is down all day does not use up what may be asked for once it is back.
    #[test]
    fn what_nobody_answers_does_not_count() {
        let questions = asked(300);
        let all = || (0..400).map(|n| (number(n), at(0)));
        for time in 0..100 {
            let now = at(86_400 + time * 660);
            assert!(questions.add(tenant(1), all(), now), "{time}");
            let taken = questions.take(tenant(1), now).len();
            assert_eq!(taken, AT_ONCE);
            questions.failed(tenant(1), taken, now);
        }
        let back = at(86_400 + 100 * 660);
        assert!(questions.add(tenant(1), all(), back));
        let first = questions.take(tenant(1), back).len();
        questions.answered(tenant(1), Vec::new());
        questions.saved(tenant(1), &[]);
        let second = questions.take(tenant(1), back).len();
        assert_eq!((first, second), (AT_ONCE, 300 - AT_ONCE));
        // The first batch was answered, and stays counted.
        questions.failed(tenant(1), second, back);
        let later = back.plus_seconds(30);
        assert!(questions.add(tenant(1), all(), later));
        assert_eq!(questions.take(tenant(1), later).len(), 300 - AT_ONCE);
        // Of a day that has ended.
        let next = at(2 * 86_400);
        assert!(questions.add(tenant(1), [], next));
        questions.failed(tenant(1), 300 - AT_ONCE, next);
        let next = next.plus_seconds(60);
        assert!(questions.add(tenant(1), all(), next));
        let taken = [0; 3].map(|_| questions.take(tenant(1), next).len());
        assert_eq!(taken, [AT_ONCE, 300 - AT_ONCE, 0]);
    }

    fn answer(n: usize, since: i64) -> Model {
        Model {
            tenant_id: tenant(1),
            env: Env::Live,
            phone_number: number(n),
            since: at(since),
            answer: ReassignedAnswer::No,
            checked_at: at(100),
        }
    }

    /// Each is paid for, so none is asked for again because the database was away when it came.
    #[test]
    fn answers_that_cannot_be_written_down_are_kept_and_come_first() {
        let questions = asked(2);
        let both = || [(number(1), at(5)), (number(2), at(5))];
        let day = |seconds: i64| at(86_400 + seconds);
        assert!(questions.add(tenant(1), both(), day(0)));
        assert_eq!(questions.take(tenant(1), day(0)).len(), 2);
        questions.answered(tenant(1), vec![answer(1, 5), answer(2, 5)]);
        // Whoever waits for them asks again, while they are on their way.
        assert!(questions.add(tenant(1), both(), day(1)), "they can be written down");
        questions.failed(tenant(1), 0, day(1));
        assert_eq!(
            (
                questions.add(tenant(1), both(), day(30)),
                questions.add(tenant(1), both(), day(31))
            ),
            (false, true),
            "after a pause, though no more may be asked for that day"
        );
        let unsaved = questions.unsaved(tenant(1)).unwrap();
        assert_eq!((unsaved.len(), questions.unsaved(tenant(2))), (2, None));
        questions.saved(tenant(1), &unsaved);
        assert_eq!(questions.unsaved(tenant(1)), None);
        assert!(!questions.add(tenant(1), [], day(32)), "nobody waits any more");
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
        let answers = vec![answer(1, 5), answer(2, 5)];
        questions.answered(tenant(1), answers.clone());
        questions.saved(tenant(1), &answers);
        let left = questions.take(tenant(1), at(8)).into_iter();
        let left: Vec<(E164, Moment)> = left.map(|question| (question.number, question.since)).collect();
        assert_eq!(left, [(number(2), at(4)), (number(3), at(5))]);
    }

    #[test]
    fn without_a_database_nothing_waits() {
        let questions = Questions::new(None, Duration::from_secs(1), 1_000);
        assert!(!questions.add(tenant(1), [(number(1), at(0))], at(0)));
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
