//! A campaign's calls as they will follow one another, if nobody changes anything: whose turn it is by the dispatcher's rules, at
//! a steady pace. A retry of a call that has yet to be made is not foreseen.
use chrono_tz::Tz;
use entities::{boxed, values::Moment};
use rules::{
    eligibility::RING_MS,
    hours::{self, CallingHours},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Further ahead nothing is said.
const HORIZON_SECONDS: i64 = 60 * 24 * 3600;
/// Turns after which others have theirs: there may be a million.
const AT_ONCE: usize = 256;

/// A group of contacts that keep the same hours.
#[derive(Clone, Debug)]
pub struct Group {
    /// The zones that count; empty: nobody can be called.
    pub zones: Vec<chrono_tz::Tz>,
    pub contacts: i64,
    pub calling_hours: CallingHours,
    /// When the first of them may be called; `None`: never.
    pub opens_at: Option<Moment>,
}

/// Contacts of one group that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its place among the groups.
    pub group: usize,
    pub priority: i32,
    /// Its place in the list.
    pub place: usize,
    pub contacts: i64,
    /// They wait for this moment; `None`: for their turn only.
    pub due: Option<Moment>,
    /// They were called before.
    pub is_retry: bool,
}

/// What holds for all of them.
#[derive(Clone, Debug)]
pub struct Terms {
    pub starts: Moment,
    pub ends_at: Option<Moment>,
    /// A second.
    pub rate: f64,
    /// Calls of a day.
    pub per_day: Option<i64>,
    /// Those that this day has had.
    pub dialed: i64,
    /// Whose midnight begins a day.
    pub zone: Tz,
    /// Who is left when the day's calls are used up is skipped.
    pub skips: bool,
    pub behind_ms: i64,
}

/// How it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Called once more at least.
    pub called: i64,
    /// Left out by the campaign's own cap.
    pub capped: i64,
    /// Without an opening before the end.
    pub expired: i64,
    /// `None`: further ahead than anything is said.
    pub finishes_at: Option<Moment>,
}

/// When the contacts of a group may be called.
#[derive(Clone, Copy, Debug)]
enum Hours {
    /// A call may start until then.
    Open(Moment),
    Closed(Moment),
    Never,
}

struct Lane {
    hours: Hours,
    /// In the order of their turns.
    fresh: VecDeque<Run>,
}

/// Whose turn comes first is the greatest.
type Rank = (bool, i32, Reverse<usize>);

fn rank(run: &Run) -> Rank {
    (run.is_retry, run.priority, Reverse(run.place))
}

struct Walk<'a> {
    groups: &'a [Group],
    lanes: Vec<Lane>,
    /// Whose time has not come.
    later: BinaryHeap<Reverse<(Moment, Reverse<Rank>, usize)>>,
    /// Whose time has come.
    ready: BinaryHeap<(Rank, usize)>,
    due: Vec<Run>,
    terms: &'a Terms,
    at: Moment,
    day_ends: Moment,
    dialed: i64,
    /// Milliseconds that the pace is ahead of `at`.
    ahead: f64,
    found: Forecast,
}

/// Fresh runs in the list's order.
#[boxed]
pub async fn foresee(groups: &[Group], runs: Vec<Run>, terms: &Terms) -> Forecast {
    let mut walk = Walk::new(groups, runs, terms);
    loop {
        for _ in 0..AT_ONCE {
            if walk.step().is_none() {
                return walk.found;
            }
        }
        tokio::task::yield_now().await;
    }
}

impl<'a> Walk<'a> {
    fn new(groups: &'a [Group], runs: Vec<Run>, terms: &'a Terms) -> Self {
        let (due, fresh): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.due.is_some());
        let later = due.iter().enumerate();
        let later = later.filter_map(|(nth, run)| Some(Reverse((run.due?, Reverse(rank(run)), nth))));
        let mut walk = Walk {
            lanes: Vec::new(),
            later: later.collect(),
            ready: BinaryHeap::new(),
            due,
            terms,
            at: terms.starts,
            day_ends: hours::day_of(terms.zone, terms.starts).1,
            dialed: terms.dialed,
            ahead: 0.0,
            found: Forecast::default(),
            groups,
        };
        walk.lanes = (0..groups.len())
            .map(|group| Lane {
                hours: walk.hours_of(group, terms.starts),
                fresh: VecDeque::new(),
            })
            .collect();
        for run in fresh {
            walk.lanes[run.group].fresh.push_back(run);
        }
        for lane in &mut walk.lanes {
            lane.fresh.make_contiguous().sort_by_key(|run| Reverse(rank(run)));
        }
        walk
    }

    fn hours_of(&self, group: usize, at: Moment) -> Hours {
        let CallingHours::Hours(hours) = &self.groups[group].calling_hours else {
            return Hours::Never;
        };
        match hours.next_opening_by_both(at, RING_MS, self.terms.behind_ms) {
            Some(opens) if self.terms.ends_at.is_some_and(|end| opens >= end) => Hours::Never,
            Some(opens) if opens > at => Hours::Closed(opens),
            Some(_) => {
                let closes = hours
                    .open_window(at)
                    .map(|open_window| open_window.until.plus_millis(-RING_MS));
                closes.map_or(Hours::Never, Hours::Open)
            }
            None => Hours::Never,
        }
    }

    fn look(&mut self, group: usize) -> Hours {
        let is_known = match self.lanes[group].hours {
            Hours::Open(until) => self.at <= until,
            Hours::Closed(until) => self.at < until,
            Hours::Never => true,
        };
        if !is_known {
            self.lanes[group].hours = self.hours_of(group, self.at);
        }
        self.lanes[group].hours
    }

    /// One turn, or a wait; `None`: that was all.
    fn step(&mut self) -> Option<()> {
        if self.is_empty() {
            return self.end(Some(self.at));
        }
        if self.terms.ends_at.is_some_and(|end| self.at >= end) {
            self.found.expired += self.left(|run| !run.is_retry);
            return self.end(self.terms.ends_at);
        }
        if self.at > self.terms.starts.plus_seconds(HORIZON_SECONDS) {
            self.found.called += self.left(|_| true);
            return self.end(None);
        }
        if self.at >= self.day_ends {
            (self.dialed, self.day_ends) = (0, hours::day_of(self.terms.zone, self.at).1);
        }
        let of_day = self.terms.per_day.map(|most| most - self.dialed);
        if of_day.is_some_and(|of_day| of_day <= 0) {
            if self.terms.skips || self.terms.ends_at.is_some_and(|end| self.day_ends >= end) {
                return self.leave_out();
            }
            self.wait_until(self.day_ends);
            return Some(());
        }
        self.come_due();
        let next_fresh = self.next_fresh();
        let next_due = self.ready.peek().copied();
        if next_due.is_none() && next_fresh.is_none() {
            self.wait_for_somebody();
            return Some(());
        }
        let is_due = next_due.map(|(rank, _)| rank) > next_fresh.map(|(rank, _)| rank);
        match (is_due, next_due, next_fresh) {
            (true, Some((_, nth)), _) => {
                self.ready.pop();
                let contacts = std::mem::take(&mut self.due[nth].contacts);
                self.call(contacts);
            }
            (_, _, Some((_, group))) => {
                // One always fits in.
                let is_one = self.lanes[group].fresh.front()?.contacts == 1;
                let most = if is_one { 1 } else { self.most(group, of_day) };
                let front = self.lanes[group].fresh.front_mut()?;
                let contacts = front.contacts.min(most);
                front.contacts -= contacts;
                if front.contacts <= 0 {
                    self.lanes[group].fresh.pop_front();
                }
                self.call(contacts);
            }
            _ => {}
        }
        Some(())
    }

    /// Whose time has come is ready, or waits for the opening.
    fn come_due(&mut self) {
        while let Some(Reverse((due, rank, nth))) = self.later.peek().copied()
            && due <= self.at
        {
            self.later.pop();
            self.ready.push((rank.0, nth));
        }
        // Whose time has come in closed hours waits for the opening.
        while let Some((rank, nth)) = self.ready.peek().copied() {
            let run = &self.due[nth];
            let (group, contacts) = (run.group, if run.is_retry { 0 } else { run.contacts });
            match self.look(group) {
                Hours::Open(_) => break,
                Hours::Closed(until) => self.later.push(Reverse((until, Reverse(rank), nth))),
                Hours::Never => self.found.expired += contacts,
            }
            self.ready.pop();
        }
    }

    /// Whose turn it is in the list's order, of those whose hours are open.
    fn next_fresh(&mut self) -> Option<(Rank, usize)> {
        let mut next_fresh: Option<(Rank, usize)> = None;
        for group in 0..self.lanes.len() {
            let Some(front) = self.lanes[group].fresh.front().map(rank) else {
                continue;
            };
            match self.look(group) {
                Hours::Open(_) => next_fresh = next_fresh.max(Some((front, group))),
                Hours::Closed(_) => {}
                Hours::Never => {
                    let fresh = std::mem::take(&mut self.lanes[group].fresh);
                    self.found.expired += fresh.iter().map(|run| run.contacts).sum::<i64>();
                }
            }
        }
        next_fresh
    }

    fn wait_for_somebody(&mut self) {
        let opens = self.lanes.iter().filter_map(|lane| match lane.hours {
            Hours::Closed(until) if !lane.fresh.is_empty() => Some(until),
            Hours::Closed(_) | Hours::Open(_) | Hours::Never => None,
        });
        let due = self.later.peek().map(|Reverse((due, ..))| *due);
        let next = opens.chain(due).min();
        // Nobody is left but those who were never to be called.
        self.wait_until(next.unwrap_or(self.at).max(self.at.plus_millis(1)));
    }

    /// So many fit in until something may change.
    fn most(&self, group: usize, of_day: Option<i64>) -> i64 {
        let closes = match self.lanes[group].hours {
            Hours::Open(until) => Some(until),
            Hours::Closed(_) | Hours::Never => None,
        };
        let opens = self.lanes.iter().filter_map(|lane| match lane.hours {
            Hours::Closed(until) => Some(until),
            Hours::Open(_) | Hours::Never => None,
        });
        let due = self.later.peek().map(|Reverse((due, ..))| *due);
        let changes = opens.chain(due).chain(closes).chain(self.terms.ends_at);
        let until = changes.chain([self.day_ends]).min().unwrap_or(self.day_ends);
        let span = until.millis() - self.at.millis();
        #[expect(clippy::cast_possible_truncation, reason = "a day's calls at most")]
        let fit = (span.max(0) as f64 * self.terms.rate / 1000.0).ceil() as i64;
        fit.min(of_day.unwrap_or(i64::MAX)).max(1)
    }

    fn call(&mut self, contacts: i64) {
        self.found.called += contacts;
        self.dialed += contacts;
        self.ahead += contacts as f64 * 1000.0 / self.terms.rate;
        #[expect(clippy::cast_possible_truncation, reason = "whole milliseconds of some days")]
        let millis = self.ahead.floor() as i64;
        self.ahead -= millis as f64;
        self.at = self.at.plus_millis(millis);
    }

    fn wait_until(&mut self, at: Moment) {
        (self.at, self.ahead) = (at, 0.0);
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.later.is_empty() && self.lanes.iter().all(|lane| lane.fresh.is_empty())
    }

    /// The day's calls are used up: who was never called is left out, and so is whoever's time comes before the day ends. Who was called
    /// before fails then, and is counted nowhere.
    fn leave_out(&mut self) -> Option<()> {
        let is_over = self.at;
        for lane in &mut self.lanes {
            self.found.capped += lane.fresh.drain(..).map(|run| run.contacts).sum::<i64>();
        }
        let mut of_today: Vec<usize> = self.ready.drain().map(|(_, nth)| nth).collect();
        while let Some(Reverse((due, _, nth))) = self.later.peek().copied()
            && due < self.day_ends
        {
            self.later.pop();
            of_today.push(nth);
        }
        let of_today = of_today.into_iter().map(|nth| &self.due[nth]);
        self.found.capped += of_today
            .filter(|run| !run.is_retry)
            .map(|run| run.contacts)
            .sum::<i64>();
        if self.later.is_empty() {
            return self.end(Some(is_over));
        }
        self.wait_until(self.day_ends);
        Some(())
    }

    fn left(&self, which: impl Fn(&Run) -> bool) -> i64 {
        let fresh = self.lanes.iter().flat_map(|lane| &lane.fresh);
        let ready = self.ready.iter().map(|(_, nth)| &self.due[*nth]);
        let later = self.later.iter().map(|Reverse((.., nth))| &self.due[*nth]);
        let runs = fresh.chain(ready).chain(later).filter(|run| which(run));
        runs.map(|run| run.contacts).sum()
    }

    fn end(&mut self, at: Option<Moment>) -> Option<()> {
        self.found.finishes_at = at;
        None
    }
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
