//! What a lane has in hand and may send next. Pure.
//!
//! With order kept, first attempts of deliveries about one subject (a session, a campaign, a contact) go one after the
//! other: the next waits until the one before was tried. A retry is nobody's turn and holds nobody up.
use crate::commit::Committed;
use entities::{delivery::Model as Delivery, ids::DeliveryId, webhook_endpoint::Ordering};
use std::collections::{HashMap, HashSet, VecDeque, hash_map::Entry};
use uuid::Uuid;

/// Deliveries that wait in memory, for each that may be sent at once; the rest of a backlog stays in its rows. A receiver
/// that hangs is sent one at a time, so it costs little memory too.
const WINDOW: usize = 64;
const LEAST_WINDOW: usize = 16;
/// Bytes of their bodies, so that long transcripts fill no memory.
pub const WINDOW_BYTES: usize = 4 * 1024 * 1024;

/// Deliveries that wait in memory at most, in a lane of this width.
pub fn window(concurrency: usize) -> usize {
    if concurrency > 1 {
        WINDOW * concurrency
    } else {
        LEAST_WINDOW
    }
}

pub type Item = (Delivery, Committed);

#[derive(Default)]
pub struct Queue {
    ready: VecDeque<Item>,
    /// By subject: what waits behind the first attempt that is ready or under way.
    behind: HashMap<Uuid, VecDeque<Item>>,
    len: usize,
    bytes: usize,
    /// Ready, waiting, or taken and not settled yet: not to be taken in again.
    in_hand: HashSet<DeliveryId>,
}

impl Queue {
    pub fn push(&mut self, item: Item, ordering: Ordering) {
        let (delivery, event) = &item;
        if !self.in_hand.insert(delivery.id) {
            return;
        }
        self.len += 1;
        self.bytes += event.body.len();
        if ordering == Ordering::Session && is_first(delivery) {
            match self.behind.entry(event.subject_id) {
                Entry::Occupied(mut waiting) => return waiting.get_mut().push_back(item),
                Entry::Vacant(turn) => {
                    turn.insert(VecDeque::new());
                }
            }
        }
        self.ready.push_back(item);
    }

    /// The next to be sent. It stays in hand until it is settled.
    pub fn pop(&mut self) -> Option<Item> {
        let item = self.ready.pop_front()?;
        self.len -= 1;
        self.bytes -= item.1.body.len();
        Some(item)
    }

    /// A delivery that was popped has been tried: whoever waited behind it may go.
    pub fn tried(&mut self, delivery: &Delivery, subject: Uuid) {
        if !is_first(delivery) {
            return;
        }
        if let Entry::Occupied(mut waiting) = self.behind.entry(subject) {
            match waiting.get_mut().pop_front() {
                Some(next) => self.ready.push_front(next),
                None => drop(waiting.remove()),
            }
        }
    }

    /// Its outcome is in its row.
    pub fn settled(&mut self, delivery: DeliveryId) {
        self.in_hand.remove(&delivery);
    }

    /// Waiting here, or taken and not settled yet.
    pub fn in_hand(&self) -> &HashSet<DeliveryId> {
        &self.in_hand
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn has_room(&self, concurrency: usize) -> bool {
        self.len < window(concurrency) && self.bytes < WINDOW_BYTES
    }

    /// Is it time to read on?
    pub fn runs_low(&self, concurrency: usize) -> bool {
        self.len < window(concurrency) / 2 && self.bytes < WINDOW_BYTES / 2
    }

    /// Gives back everything that waits: its rows have it. What was popped stays in hand.
    pub fn clear(&mut self) {
        for (delivery, event) in self.ready.drain(..) {
            self.in_hand.remove(&delivery.id);
            // Its turn had not begun. Where one is under way, whatever comes next still waits for it.
            let waiting = if is_first(&delivery) {
                self.behind.remove(&event.subject_id)
            } else {
                None
            };
            for (delivery, _) in waiting.into_iter().flatten() {
                self.in_hand.remove(&delivery.id);
            }
        }
        for (delivery, _) in self.behind.values_mut().flat_map(|waiting| waiting.drain(..)) {
            self.in_hand.remove(&delivery.id);
        }
        (self.len, self.bytes) = (0, 0);
    }
}

fn is_first(delivery: &Delivery) -> bool {
    delivery.attempts == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        delivery::Origin,
        event,
        ids::{EndpointId, EventId, TenantId},
        values::{Env, Moment},
    };
    use std::sync::Arc;

    fn item(number: u128, subject: u128, attempts: i32) -> Item {
        let event = event::Model {
            seq: i64::try_from(number).unwrap(),
            id: EventId(Uuid::from_u128(number)),
            tenant_id: TenantId(Uuid::nil()),
            env: Env::Test,
            event_type: "session.started".into(),
            subject_id: Uuid::from_u128(subject),
            created_at: Moment::from_millis(0),
            body: "12345".into(),
        };
        let id = DeliveryId(Uuid::from_u128(number));
        let endpoint = EndpointId(Uuid::nil());
        let mut delivery = Delivery::new(id, endpoint, &event, Origin::Live, Moment::from_millis(0));
        delivery.attempts = attempts;
        (delivery, Arc::new(event))
    }
    fn pop(queue: &mut Queue) -> Option<i64> {
        queue.pop().map(|(delivery, _)| delivery.event_seq)
    }
    fn tried(queue: &mut Queue, (delivery, event): &Item) {
        queue.tried(delivery, event.subject_id);
        queue.settled(delivery.id);
    }

    #[test]
    fn first_attempts_about_one_subject_go_one_after_the_other() {
        let mut queue = Queue::default();
        for (number, subject) in [(1, 7), (2, 7), (3, 8), (4, 7)] {
            queue.push(item(number, subject, 0), Ordering::Session);
        }
        assert_eq!(
            (pop(&mut queue), pop(&mut queue), pop(&mut queue)),
            (Some(1), Some(3), None)
        );
        tried(&mut queue, &item(1, 7, 0));
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some(2), None));
        tried(&mut queue, &item(2, 7, 0));
        tried(&mut queue, &item(3, 8, 0));
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some(4), None));
        assert!(queue.is_empty());
        tried(&mut queue, &item(4, 7, 0));
        assert_eq!(
            (queue.in_hand().len(), queue.behind.len()),
            (0, 0),
            "nothing is kept of what is over"
        );
    }

    #[test]
    fn a_retry_waits_for_nobody_and_nobody_for_it() {
        let mut queue = Queue::default();
        queue.push(item(1, 7, 0), Ordering::Session);
        queue.push(item(2, 7, 3), Ordering::Session);
        queue.push(item(3, 7, 0), Ordering::Session);
        assert_eq!(
            (pop(&mut queue), pop(&mut queue), pop(&mut queue)),
            (Some(1), Some(2), None)
        );
        tried(&mut queue, &item(2, 7, 3));
        assert_eq!(pop(&mut queue), None, "the third still waits for the first");
        tried(&mut queue, &item(1, 7, 0));
        assert_eq!(pop(&mut queue), Some(3));
    }

    #[test]
    fn what_is_given_back_keeps_the_turn_of_what_is_under_way() {
        let mut queue = Queue::default();
        for (number, subject) in [(1, 7), (2, 7), (3, 8), (4, 8)] {
            queue.push(item(number, subject, 0), Ordering::Session);
        }
        assert_eq!(pop(&mut queue), Some(1));
        queue.clear();
        assert_eq!((queue.in_hand().len(), queue.behind.len()), (1, 1));
        queue.push(item(2, 7, 0), Ordering::Session);
        queue.push(item(3, 8, 0), Ordering::Session);
        assert_eq!(
            (pop(&mut queue), pop(&mut queue)),
            (Some(3), None),
            "the second waits for the first"
        );
        tried(&mut queue, &item(1, 7, 0));
        assert_eq!(pop(&mut queue), Some(2));
    }

    #[test]
    fn without_order_nothing_waits() {
        let mut queue = Queue::default();
        for number in 1..=3 {
            queue.push(item(number, 7, 0), Ordering::None);
        }
        assert_eq!(
            (pop(&mut queue), pop(&mut queue), pop(&mut queue)),
            (Some(1), Some(2), Some(3))
        );
    }

    #[test]
    fn one_in_hand_is_not_taken_twice_and_a_full_queue_says_so() {
        let mut queue = Queue::default();
        queue.push(item(1, 7, 0), Ordering::None);
        queue.push(item(1, 7, 0), Ordering::None);
        assert_eq!((queue.len, queue.bytes), (1, 5));
        pop(&mut queue);
        queue.push(item(1, 7, 0), Ordering::None);
        assert!(queue.is_empty(), "it is under way");
        for number in 2..=u128::try_from(window(4)).unwrap() + 1 {
            assert!(queue.has_room(4));
            queue.push(item(number, number, 0), Ordering::None);
        }
        assert!(!queue.has_room(4) && queue.has_room(5));
        queue.clear();
        assert_eq!((queue.len, queue.bytes, queue.in_hand().len()), (0, 0, 1));
    }
}
