//! How deliveries come into a lane: straight from the commit that made them, or from their rows.
use super::{
    Lane,
    known::{Known, Receiver, newer},
    message::{Due, LaneAct, LaneSettings, ReadRows},
};
use crate::delivery::queue::{Item, window};
use entities::values::Moment;

/// What is known of the rows that are not in the queue.
pub(super) enum Rows {
    /// None of them is due.
    Drained,
    /// They may hold more that is due: they are read when the queue runs low.
    More,
    Reading(Meanwhile),
}

/// What was heard during a read, and so may not be in it.
pub(super) enum Meanwhile {
    /// These have been committed: they come after what is read.
    Arrived(Vec<Item>),
    /// More than is kept, or something that only the rows tell: another read follows.
    Missed,
    /// The endpoint changed: what is read of it and of its queue may be over.
    Outdated,
}

/// After a read that failed.
const READ_AGAIN_SECONDS: i64 = 1;

impl<T: Clone> Lane<T> {
    pub(super) fn arrived(&mut self, new: Vec<Item>) {
        match &mut self.rows {
            // It may have begun before they were there.
            Rows::Reading(Meanwhile::Arrived(kept)) => {
                kept.extend(new);
                if kept.len() > window(self.concurrency.get()) {
                    self.rows = Rows::Reading(Meanwhile::Missed);
                }
            }
            Rows::Reading(Meanwhile::Missed | Meanwhile::Outdated) => {}
            Rows::Drained | Rows::More => self.take(new),
        }
    }

    /// What has just been committed goes straight to the queue, unless older ones wait in the rows: they come first.
    fn take(&mut self, new: Vec<Item>) {
        for item in new {
            let has_room = matches!(self.rows, Rows::Drained) && self.queue.has_room(self.concurrency.get());
            match self.known.receiver().filter(|_| has_room) {
                Some(receiver) => self.queue.push(item, receiver.ordering),
                None => self.rows = Rows::More,
            }
        }
    }

    pub(super) fn changed(&mut self) {
        self.known.outdate();
        self.rows = match self.rows {
            Rows::Reading(_) => Rows::Reading(Meanwhile::Outdated),
            Rows::Drained | Rows::More => Rows::More,
        };
    }

    pub(super) fn woken(&mut self) {
        // A lost `Changed` is made good here.
        self.known.outdate();
        // A read under way may not see what this is about.
        if !self.miss() {
            self.rows = Rows::More;
        }
    }

    /// Something that a read under way may have passed over: another follows it. Answers whether one is under way.
    fn miss(&mut self) -> bool {
        if let Rows::Reading(meanwhile) = &mut self.rows {
            match meanwhile {
                Meanwhile::Arrived(_) | Meanwhile::Missed => *meanwhile = Meanwhile::Missed,
                Meanwhile::Outdated => {}
            }
        }
        self.is_reading()
    }

    /// Something is due, or a pause is over. A read under way may have begun before: what fell due since stays noted.
    pub(super) fn look_again(&mut self) {
        if !self.is_reading() {
            self.rows = Rows::More;
            self.next_due_at = None;
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.rows, Rows::Reading(_))
    }

    /// Reads the settings if they are not known, and what is due; unless a read is under way.
    pub(super) fn read(&mut self, now: Moment, acts: &mut Vec<LaneAct<T>>) {
        if self.is_reading() {
            return;
        }
        self.rows = Rows::Reading(Meanwhile::Arrived(Vec::new()));
        // What is due by now this read finds.
        self.next_due_at = self.next_due_at.filter(|at| *at > now);
        let in_hand = self.queue.in_hand().clone();
        acts.push(LaneAct::Read(ReadRows {
            with_settings: !self.known.is_current(),
            limit: window(self.concurrency.get()) + in_hand.len(),
            in_hand,
        }));
    }

    pub(super) fn take_in(&mut self, settings: Option<LaneSettings<T>>, due: Due) {
        let Rows::Reading(meanwhile) = std::mem::replace(&mut self.rows, Rows::More) else {
            return;
        };
        // The endpoint changed meanwhile: read again.
        let is_older = settings
            .as_ref()
            .is_some_and(|read| read.is_older_than(&self.endpoint_state));
        if is_older || matches!(meanwhile, Meanwhile::Outdated) {
            return self.known.outdate();
        }
        if let Some(settings) = settings {
            self.learn(settings);
        }
        let Some(ordering) = self.known.receiver().map(|receiver| receiver.ordering) else {
            self.rows = Rows::Drained;
            return self.stop_sending();
        };
        self.due_at(due.next_due_at);
        for item in due.deliveries {
            self.queue.push(item, ordering);
        }
        if let (Meanwhile::Arrived(new), false) = (meanwhile, due.more) {
            self.rows = Rows::Drained;
            self.take(new);
        }
    }

    fn learn(&mut self, LaneSettings { target, endpoint_state }: LaneSettings<T>) {
        let ordering = endpoint_state.endpoint.as_ref().map(|endpoint| endpoint.ordering);
        let receiver = target.zip(ordering);
        self.known = Known::Current(receiver.map(|(target, ordering)| Receiver { target, ordering }));
        if let Some(endpoint) = &endpoint_state.endpoint {
            self.concurrency
                .set_max(usize::try_from(endpoint.max_concurrency).unwrap_or(1));
        }
        self.endpoint_state.endpoint = endpoint_state.endpoint;
        self.endpoint_state.health = newer(&self.endpoint_state.health, endpoint_state.health);
    }

    pub(super) fn read_failed(&mut self, now: Moment) {
        self.rows = Rows::More;
        self.next_due_at = self.next_due_at.filter(|at| *at > now);
        self.due_at(Some(now.plus_seconds(READ_AGAIN_SECONDS)));
    }

    /// The endpoint is not active: its rows are held or cancelled.
    pub(super) fn stop_sending(&mut self) {
        self.known.forget_receiver();
        self.queue.clear();
        self.next_due_at = None;
        // A read under way leaves out what was in hand when it began; should the endpoint be active again, it is to be found.
        self.miss();
    }
}
