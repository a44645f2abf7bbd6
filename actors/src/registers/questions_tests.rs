//! What waits, what is taken, and what is paid for, of either kind of service.
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
    let day = |seconds: i64| at(86_400 + seconds);
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

/// Whoever is erased is not put back by an answer that comes later.
#[test]
fn what_is_forgotten_is_neither_asked_nor_written_down() {
    let questions = register_asked(1_000);
    let all = [1, 2, 3].map(|n| (number(n), ()));
    questions.forget(tenant(1), &number(1));
    questions.add(tenant(1), all.clone(), at(6));
    questions.forget(tenant(2), &number(2));
    questions.forget(tenant(1), &number(1));
    assert_eq!(questions.take(tenant(1), at(6)), all[1..], "while it waits");
    questions.forget(tenant(1), &number(2));
    questions.answered(tenant(1), vec![register_answer(2), register_answer(3)]);
    let unsaved = || questions.unsaved(tenant(1)).unwrap().to_vec();
    assert_eq!(unsaved(), [register_answer(3)], "while somebody is asked");
    questions.forget(tenant(1), &number(3));
    assert!(unsaved().is_empty(), "while it cannot be written down");
    questions.saved(tenant(1), &unsaved());
    assert!(questions.take(tenant(1), at(7)).is_empty());

    let questions = asked(1_000);
    questions.add(tenant(1), [(number(1), at(5)), (number(2), at(5))], at(6));
    assert_eq!(questions.take(tenant(1), at(6)).len(), 2);
    questions.answered(tenant(1), vec![reassigned_answer(1, 5), reassigned_answer(2, 5)]);
    questions.forget(tenant(1), &number(1));
    let unsaved = questions.unsaved(tenant(1)).unwrap();
    assert_eq!(*unsaved, [reassigned_answer(2, 5)]);
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
