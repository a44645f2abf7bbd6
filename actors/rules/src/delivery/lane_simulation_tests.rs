//! What holds for every lane, whatever happens and in whatever order: a database of rows, a receiver and a clock are played
//! here, and everything that takes time (a read, an attempt, a commit) ends when the steps say so.
use super::*;
use crate::delivery::{
    queue::Item,
    samples::{answer, at, endpoint, endpoint_state, item, limits, report},
    settle::{Settled, Tried, settle},
};
use entities::{
    delivery::Status,
    webhook_endpoint::{Model as Endpoint, Status as EndpointStatus},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Failures in a row that suspend.
const SUSPEND_AFTER: i32 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// New events about these subjects, in one commit.
    New(Vec<u8>),
    /// The lane is not told of them.
    NewInSilence(Vec<u8>),
    /// The read under way looks at the rows; its answer may come later.
    Look,
    ReadEnds,
    ReadFails,
    /// One of the attempts under way.
    Answer(usize, u16),
    /// The rows have it; the lane may hear of it later.
    Commit,
    CommitHeard,
    CommitFails,
    BackedOff,
    Wait(i64),
    Wake,
    /// Its user changes how many are sent at once.
    Change(i32),
    Disable,
    Enable,
    /// What is held becomes due.
    Recover,
    Doubt(bool),
    MayGo,
}

/// An attempt under way.
struct Attempt {
    begun: Begin<i32>,
    at: Moment,
}

struct World {
    lane: Lane<i32>,
    limits: Limits,
    now: Moment,
    in_doubt: bool,
    endpoint: Endpoint,
    /// As of the last commit.
    health: Option<EndpointState>,
    /// By their events' numbers.
    rows: BTreeMap<i64, Item>,
    /// The read under way; and what it has seen, if it has looked.
    reading: Option<ReadRows>,
    seen: Option<LaneEvent<i32>>,
    attempts: Vec<Attempt>,
    /// The commit under way, and what it counts on; then what the lane will hear of it.
    committing: Option<(EndpointState, Vec<Tried>)>,
    landed: Option<LaneEvent<i32>>,
    backing_off: bool,
    timer: Option<Moment>,
    is_running: bool,
    /// It wants to go: what it is told waits.
    resting: bool,
    waiting: Vec<LaneEvent<i32>>,
    /// Rows that were begun at least once; answered, and not known to be written down.
    begun: BTreeSet<i64>,
    unsettled: BTreeSet<i64>,
    begins: usize,
    /// Some rows were not told of, or came back: their order is not the lane's doing.
    is_disturbed: bool,
    has_silent_rows: bool,
}

impl World {
    fn new() -> Self {
        let endpoint = endpoint(EndpointStatus::Active, 1);
        World {
            lane: Lane::new(endpoint.id),
            limits: limits(SUSPEND_AFTER),
            now: at(100_000),
            in_doubt: false,
            endpoint,
            health: None,
            rows: BTreeMap::new(),
            reading: None,
            seen: None,
            attempts: Vec::new(),
            committing: None,
            landed: None,
            backing_off: false,
            timer: None,
            is_running: false,
            resting: false,
            waiting: Vec::new(),
            begun: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            begins: 0,
            is_disturbed: false,
            has_silent_rows: false,
        }
    }

    /// What a registry does: starts it if it does not run, and lets what comes while it goes wait.
    fn tell(&mut self, event: LaneEvent<i32>) {
        if self.resting {
            return self.waiting.push(event);
        }
        if !self.is_running {
            self.is_running = true;
            (self.lane, self.timer) = (Lane::new(self.endpoint.id), None);
            self.hear(LaneEvent::Started);
        }
        self.hear(event);
    }

    fn hear(&mut self, event: LaneEvent<i32>) -> usize {
        let times = Times {
            in_doubt: self.in_doubt,
            ..Times::at(self.now)
        };
        let acts = self.lane.on(event, times, &self.limits);
        let count = acts.len();
        for act in acts {
            self.perform(act);
        }
        assert_eq!(self.timer, self.lane.timer);
        count
    }

    fn perform(&mut self, act: LaneAct<i32>) {
        match act {
            LaneAct::Read(what) => assert!(self.reading.replace(what).is_none(), "one read at a time"),
            LaneAct::Begin(begin) => self.begin(begin),
            LaneAct::Commit(tried) => {
                assert!(!tried.is_empty() && self.landed.is_none() && !self.backing_off);
                let endpoint_state = self.lane.endpoint_state().clone();
                let before = self.committing.replace((endpoint_state, tried));
                assert!(before.is_none(), "one commit at a time");
            }
            LaneAct::BackOff => self.backing_off = true,
            LaneAct::SetTimer(at) => self.timer = at,
            LaneAct::Rest => self.resting = true,
            LaneAct::Stay => {}
            LaneAct::Stop => self.is_running = false,
        }
    }

    fn begin(&mut self, begun: Begin<i32>) {
        let number = begun.delivery.event_seq;
        let (row, event) = &self.rows[&number];
        let is_first = |delivery: &Delivery| delivery.attempts == 0;

        assert!(!self.in_doubt, "{number} is begun while the clock is in doubt");
        let allowed = usize::try_from(begun.target).unwrap().min(self.lane.concurrency());
        assert!(self.attempts.len() < allowed, "{number} is one too many");

        let mut under_way = self.attempts.iter().map(|attempt| &attempt.begun);
        assert!(
            under_way.all(|other| other.delivery.id != row.id),
            "{number} is under way"
        );
        assert!(!self.unsettled.contains(&number), "{number} is not settled");
        match row.status {
            Status::Pending | Status::Retrying => assert!(row.next_attempt_at <= Some(self.now), "{number} is not due"),
            Status::Succeeded | Status::Failed => panic!("{number} has ended"),
            // Its endpoint was stopped and let go again, quicker than the lane could hear.
            Status::Held | Status::Cancelled => {}
        }

        if is_first(&begun.delivery) {
            let mut same = self
                .attempts
                .iter()
                .filter(|other| other.begun.event.subject_id == event.subject_id);
            assert!(
                same.all(|other| !is_first(&other.begun.delivery)),
                "{number} does not wait"
            );
            let mut before = self.rows.range(..number).filter(|(earlier, (row, of))| {
                is_open(row) && of.subject_id == event.subject_id && !self.begun.contains(*earlier)
            });
            assert!(self.is_disturbed || before.next().is_none(), "{number} overtakes");
        }
        self.begun.insert(number);
        self.begins += 1;
        let at = self.now;
        self.attempts.push(Attempt { begun, at });
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::New(subjects) => {
                let new = self.add(&subjects);
                if !new.is_empty() {
                    self.tell(LaneEvent::Arrived(new));
                }
            }
            Step::NewInSilence(subjects) => {
                self.add(&subjects);
                (self.is_disturbed, self.has_silent_rows) = (true, true);
            }
            Step::Look => self.look(),
            Step::ReadEnds => self.end_read(),
            Step::ReadFails => {
                if self.reading.take().is_some() {
                    self.seen = None;
                    self.hear(LaneEvent::ReadFailed);
                }
            }
            Step::Answer(nth, status) => self.answer(nth, status),
            Step::Commit => self.commit(),
            Step::CommitHeard => self.hear_of_commit(),
            Step::CommitFails => {
                if let Some((_, tried)) = self.committing.take() {
                    self.hear(LaneEvent::CommitFailed(tried));
                }
            }
            Step::BackedOff => {
                if std::mem::take(&mut self.backing_off) {
                    self.hear(LaneEvent::BackedOff);
                }
            }
            Step::Wait(millis) => self.wait_until(self.now.plus_millis(millis)),
            Step::Wake => self.tell(LaneEvent::Woken),
            Step::Change(at_once) => {
                self.endpoint.max_concurrency = at_once;
                self.save_endpoint(self.endpoint.status);
            }
            Step::Disable => {
                self.is_disturbed = true;
                self.put_away(Status::Cancelled);
                self.save_endpoint(EndpointStatus::Disabled);
            }
            Step::Enable => {
                self.endpoint.failure_streak = 0;
                self.save_endpoint(EndpointStatus::Active);
            }
            Step::Recover if self.endpoint.status == EndpointStatus::Active => {
                self.is_disturbed = true;
                for (row, _) in self.rows.values_mut().filter(|(row, _)| row.status == Status::Held) {
                    (row.status, row.next_attempt_at) = (Status::Pending, Some(self.now));
                }
                self.tell(LaneEvent::Woken);
            }
            Step::Recover => {}
            Step::Doubt(in_doubt) => {
                if std::mem::replace(&mut self.in_doubt, in_doubt) && !in_doubt {
                    self.tell(LaneEvent::Woken);
                }
            }
            Step::MayGo => self.let_go(),
        }
    }

    fn add(&mut self, subjects: &[u8]) -> Vec<Item> {
        let first = self.rows.keys().next_back().map_or(1, |last| last + 1);
        let mut new = Vec::new();
        for (number, subject) in (first..).zip(subjects) {
            let (mut row, event) = item(number, u128::from(*subject), self.now);
            match self.endpoint.status {
                EndpointStatus::Active => new.push((row.clone(), event.clone())),
                EndpointStatus::Suspended => (row.status, row.next_attempt_at) = (Status::Held, None),
                EndpointStatus::Disabled => return new,
            }
            self.rows.insert(number, (row, event));
        }
        new
    }

    fn save_endpoint(&mut self, status: EndpointStatus) {
        self.endpoint.status = status;
        self.endpoint.version += 1;
        self.tell(LaneEvent::Changed);
    }

    fn put_away(&mut self, status: Status) {
        for (row, _) in self.rows.values_mut().filter(|(row, _)| is_open(row)) {
            (row.status, row.next_attempt_at) = (status, None);
        }
    }

    /// As `delivery/rows.rs` does.
    fn look(&mut self) {
        let Some(what) = self.reading.as_ref().filter(|_| self.seen.is_none()) else {
            return;
        };
        let (with_settings, limit, in_hand) = (what.with_settings, what.limit, what.in_hand.clone());
        match self.endpoint.status {
            EndpointStatus::Suspended if with_settings => self.put_away(Status::Held),
            EndpointStatus::Disabled if with_settings => self.put_away(Status::Cancelled),
            EndpointStatus::Active | EndpointStatus::Suspended | EndpointStatus::Disabled => {}
        }
        let settings = with_settings.then(|| {
            let known = endpoint_state(self.endpoint.clone());
            let health = self
                .health
                .as_ref()
                .map_or(known.health.clone(), |it| it.health.clone());
            let is_active = known.is_active();
            LaneSettings {
                target: is_active.then_some(self.endpoint.max_concurrency),
                endpoint_state: EndpointState { health, ..known },
            }
        });
        let open: Vec<Item> = self.rows.values().filter(|(row, _)| is_open(row)).cloned().collect();
        let (mut due, later): (Vec<Item>, Vec<Item>) = open
            .into_iter()
            .partition(|(row, _)| row.next_attempt_at <= Some(self.now));
        due.sort_by_key(|(row, _)| (row.next_attempt_at, row.event_seq));
        due.truncate(limit);
        let more = due.len() == limit;
        due.retain(|(row, _)| !in_hand.contains(&row.id));
        let due = Due {
            deliveries: due,
            more,
            next_due_at: later.iter().filter_map(|(row, _)| row.next_attempt_at).min(),
        };
        self.seen = Some(LaneEvent::Read { settings, due });
    }

    fn end_read(&mut self) {
        self.look();
        if self.reading.take().is_some()
            && let Some(seen) = self.seen.take()
        {
            self.hear(seen);
        }
    }

    fn answer(&mut self, nth: usize, status: u16) {
        if self.attempts.is_empty() {
            return;
        }
        let Attempt { begun, at } = self.attempts.remove(nth % self.attempts.len());
        self.unsettled.insert(begun.delivery.event_seq);
        self.hear(LaneEvent::Attempted(Attempted {
            subject: begun.event.subject_id,
            delivery: begun.delivery,
            number: begun.number,
            report: report(answer(status), at),
        }));
    }

    /// As `delivery/settling.rs` and the writer do.
    fn commit(&mut self) {
        let Some((mut counted_on, tried)) = self.committing.take() else {
            return;
        };
        let settled = loop {
            let before = counted_on.endpoint.clone();
            let settled = settle(counted_on, &tried, &self.limits, self.now, 0.5).unwrap();
            let is_stale = before.is_some_and(|before| before.version != self.endpoint.version);
            if settled.commit.changes.endpoints.is_empty() || !is_stale {
                break settled;
            }
            counted_on = EndpointState {
                endpoint: Some(self.endpoint.clone()),
                health: settled.endpoint_state.health,
            };
        };
        let Settled {
            deliveries,
            endpoint_state,
            commit,
            ..
        } = settled;
        for delivery in &deliveries {
            let (row, _) = self.rows.get_mut(&delivery.event_seq).unwrap();
            if is_open(row) || row.status == Status::Held {
                *row = delivery.clone();
            }
        }
        self.health = Some(endpoint_state.clone());
        let was_active = self.endpoint.status == EndpointStatus::Active;
        if let Some(endpoint) = commit.changes.endpoints.into_iter().next() {
            self.endpoint = endpoint;
        }
        self.landed = Some(LaneEvent::Committed {
            deliveries,
            endpoint_state,
        });
        if was_active && self.endpoint.status == EndpointStatus::Suspended {
            self.put_away(Status::Held);
            self.tell(LaneEvent::Changed);
        }
    }

    fn hear_of_commit(&mut self) {
        let Some(event) = self.landed.take() else { return };
        if let LaneEvent::Committed { deliveries, .. } = &event {
            for delivery in deliveries {
                self.unsettled.remove(&delivery.event_seq);
            }
        }
        self.hear(event);
    }

    fn wait_until(&mut self, until: Moment) {
        while let Some(at) = self.timer.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.ring(at);
        }
        self.now = until;
    }

    /// A timer is never in vain: it has the lane do something, or look into its rows as soon as it can.
    fn ring(&mut self, at: Moment) {
        self.timer = None;
        let rows = |lane: &Lane<i32>| (std::mem::discriminant(&lane.rows), lane.next_due_at);
        let before = rows(&self.lane);
        let (is_reading, pause) = (self.lane.is_reading(), self.lane.endpoint_state.health.paused_until);
        let acts = self.hear(LaneEvent::Rang);
        let changes = acts > 0 || rows(&self.lane) != before;
        assert!(changes || is_reading || pause == Some(at), "woken in vain");
        let again = self.timer.filter(|again| *again <= self.now);
        assert_eq!(again, None, "it would ring for ever");
    }

    fn let_go(&mut self) {
        if !std::mem::take(&mut self.resting) {
            return;
        }
        self.hear(LaneEvent::MayGo);
        assert!(!self.is_running && self.reading.is_none() && self.attempts.is_empty());
        assert!(self.committing.is_none() && self.landed.is_none() && !self.backing_off);
        for event in std::mem::take(&mut self.waiting) {
            self.tell(event);
        }
    }

    /// What is under way ends well, and time passes, until nothing is left to happen.
    fn settle_down(&mut self) {
        self.step(Step::Doubt(false));
        if self.endpoint.status != EndpointStatus::Active {
            self.step(Step::Enable);
        }
        if self.has_silent_rows {
            self.step(Step::Wake);
        }
        for _ in 0..50_000 {
            if self.reading.is_some() {
                self.end_read();
            } else if !self.attempts.is_empty() {
                self.answer(0, 200);
            } else if self.committing.is_some() {
                self.commit();
            } else if self.landed.is_some() {
                self.hear_of_commit();
            } else if self.backing_off {
                self.step(Step::BackedOff);
            } else if self.resting {
                self.let_go();
            } else if let Some(at) = self.timer {
                self.wait_until(self.now.max(at));
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}

fn is_open(row: &Delivery) -> bool {
    matches!(row.status, Status::Pending | Status::Retrying)
}

fn subjects() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(0..3_u8, 1..4),
        1 => proptest::collection::vec(0..200_u8, 10..40),
    ]
}

/// What happens to every lane.
fn usual() -> impl Strategy<Value = Step> {
    let status = prop_oneof![
        6 => Just(200_u16),
        3 => Just(500_u16),
        1 => Just(429_u16),
        1 => Just(404_u16),
        1 => Just(410_u16),
    ];
    prop_oneof![
        4 => subjects().prop_map(Step::New),
        3 => Just(Step::Look),
        6 => Just(Step::ReadEnds),
        1 => Just(Step::ReadFails),
        10 => (0..100_usize, status).prop_map(|(nth, status)| Step::Answer(nth, status)),
        5 => Just(Step::Commit),
        5 => Just(Step::CommitHeard),
        1 => Just(Step::CommitFails),
        2 => Just(Step::BackedOff),
        3 => (0..20_000_i64).prop_map(Step::Wait),
        1 => (0..100_000_i64).prop_map(Step::Wait),
        1 => Just(Step::Wake),
        1 => (1..5_i32).prop_map(Step::Change),
        2 => Just(Step::Enable),
        1 => any::<bool>().prop_map(Step::Doubt),
        1 => Just(Step::MayGo),
    ]
}

/// Also what disturbs the order of the rows.
fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => usual(),
        1 => subjects().prop_map(Step::NewInSilence),
        1 => Just(Step::Disable),
        1 => Just(Step::Recover),
    ]
}

fn after(steps: Vec<Step>) -> World {
    let mut world = World::new();
    for step in steps {
        world.step(step);
    }
    world
}

/// Everything was sent or put away, and written down; and the lane has gone.
fn check_nothing_is_lost(world: &World) {
    for (number, (row, _)) in &world.rows {
        assert!(!is_open(row), "{number} is lost: {row:?}");
    }
    assert!(world.unsettled.is_empty(), "not written down: {:?}", world.unsettled);
    assert!(!world.is_running, "it stays for nothing");
}

proptest! {
    /// Each row is sent once per time that it is due, never more at once than allowed, first attempts about one subject one
    /// after the other and in their order (all of it asserted by `World::begin`); and in the end none is left.
    #[test]
    fn a_lane_loses_nothing_and_keeps_the_order(steps in proptest::collection::vec(usual(), 0..120)) {
        let mut world = after(steps);
        world.settle_down();
        check_nothing_is_lost(&world);
    }

    #[test]
    fn nor_does_it_lose_anything_when_its_endpoint_comes_and_goes(steps in proptest::collection::vec(any_step(), 0..120)) {
        let mut world = after(steps);
        world.settle_down();
        check_nothing_is_lost(&world);
    }

    /// After the service's last word nothing is begun, and what was answered is written down before it goes.
    #[test]
    fn a_lane_that_is_stopped_begins_nothing_and_forgets_no_answer(steps in proptest::collection::vec(any_step(), 0..80)) {
        let mut world = after(steps);
        if !world.is_running || world.resting {
            return Ok(());
        }
        let begins = world.begins;
        world.hear(LaneEvent::Shutdown);
        for _ in 0..10_000 {
            if !world.is_running {
                break;
            } else if !world.attempts.is_empty() {
                world.answer(0, 500);
            } else if world.committing.is_some() {
                world.commit();
            } else if world.landed.is_some() {
                world.hear_of_commit();
            } else {
                world.step(Step::BackedOff);
            }
        }
        prop_assert!(!world.is_running, "it does not stop");
        prop_assert_eq!(world.begins, begins);
        prop_assert!(world.unsettled.is_empty());
    }
}

/// So that the checks above are known to be able to fail: a world whose lane is told of nothing loses it.
#[test]
fn the_checks_find_what_is_lost() {
    let mut world = World::new();
    world.add(&[1, 2]);
    world.settle_down();
    assert!(world.rows.values().all(|(row, _)| is_open(row)));
    let check = std::panic::AssertUnwindSafe(|| check_nothing_is_lost(&world));
    assert!(std::panic::catch_unwind(check).is_err());
}
