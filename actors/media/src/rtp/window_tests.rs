//! Any order within the window is set right, and what is missing is told as often as it is missing.
use super::*;
use proptest::prelude::*;

fn header(sequence: u16, ssrc: u32) -> Header {
    Header {
        marker: false,
        payload_type: 0,
        sequence,
        timestamp: u32::from(sequence) * 160,
        ssrc,
    }
}

struct Stand {
    window: Window,
    now: Instant,
    /// Sequence number, missing before it, and whether a stream begins.
    given: Vec<(u16, u16, bool)>,
}

impl Stand {
    fn new() -> Self {
        Stand {
            window: Window::default(),
            now: Instant::now(),
            given: Vec::new(),
        }
    }

    fn push(&mut self, sequence: u16, ssrc: u32) -> Taken {
        let payload = sequence.to_be_bytes();
        let packet = Packet {
            header: header(sequence, ssrc),
            payload: &payload,
        };
        let given = &mut self.given;
        self.window.push(packet, self.now, &mut |piece| {
            assert_eq!(piece.payload, piece.header.sequence.to_be_bytes());
            given.push((piece.header.sequence, piece.missing, piece.is_first));
        })
    }

    fn give_up(&mut self, ms: u64) {
        let given = &mut self.given;
        self.window.give_up(self.now + Duration::from_millis(ms), &mut |piece| {
            given.push((piece.header.sequence, piece.missing, piece.is_first));
        });
    }

    fn take(&mut self) -> Vec<(u16, u16, bool)> {
        std::mem::take(&mut self.given)
    }
}

#[test]
fn what_comes_becomes_what_is_given() {
    use Taken::{Duplicate, Given, Late, Waits};
    for (what, comes, taken, given) in [
        ("in order", vec![5, 6], vec![Given, Given], vec![(5, 0), (6, 0)]),
        (
            "over the end",
            vec![65_535, 0],
            vec![Given, Given],
            vec![(65_535, 0), (0, 0)],
        ),
        (
            "swapped",
            vec![5, 7, 6],
            vec![Given, Waits, Given],
            vec![(5, 0), (6, 0), (7, 0)],
        ),
        (
            "three before one",
            vec![5, 9, 7, 8, 6],
            vec![Given, Waits, Waits, Waits, Given],
            vec![(5, 0), (6, 0), (7, 0), (8, 0), (9, 0)],
        ),
        (
            "one is lost",
            vec![5, 7, 8, 9, 10],
            vec![Given, Waits, Waits, Waits, Given],
            vec![(5, 0), (7, 1), (8, 0), (9, 0), (10, 0)],
        ),
        (
            "one is lost, and the one after it comes last",
            vec![5, 8, 9, 10, 7],
            vec![Given, Waits, Waits, Waits, Given],
            vec![(5, 0), (7, 1), (8, 0), (9, 0), (10, 0)],
        ),
        (
            "too late",
            vec![5, 7, 8, 9, 10, 6],
            vec![Given, Waits, Waits, Waits, Given, Late],
            vec![(5, 0), (7, 1), (8, 0), (9, 0), (10, 0)],
        ),
        (
            "twice",
            vec![5, 5, 7, 7, 6],
            vec![Given, Late, Waits, Duplicate, Given],
            vec![(5, 0), (6, 0), (7, 0)],
        ),
    ] {
        let mut stand = Stand::new();
        let got: Vec<Taken> = comes.iter().map(|sequence| stand.push(*sequence, 1)).collect();
        assert_eq!(got, taken, "{what}");
        let got: Vec<(u16, u16)> = stand.given.iter().map(|(at, missing, _)| (*at, *missing)).collect();
        assert_eq!(got, given, "{what}");
    }
}

#[test]
fn a_new_stream_loses_nothing() {
    let mut stand = Stand::new();
    stand.push(5, 1);
    stand.push(7, 1);
    stand.push(40_000, 2);
    assert_eq!(stand.take(), [(5, 0, true), (7, 1, false), (40_000, 0, true)]);
    // The same source jumps by more than it can have lost, ahead and back.
    stand.push(41_002, 2);
    stand.push(41_003, 2);
    stand.push(20, 2);
    assert_eq!(stand.take(), [(41_002, 0, true), (41_003, 0, false), (20, 0, true)]);
}

/// 1,000 packets are the most that may be lost, and one more is a new stream.
#[test]
fn a_jump_is_told_from_a_loss() {
    for (to, missing, is_first) in [(6 + 1_000, 1_000, false), (6 + 1_001, 0, true)] {
        let mut stand = Stand::new();
        stand.push(5, 1);
        stand.push(to, 1);
        stand.give_up(100);
        assert_eq!(stand.given[1], (to, missing, is_first));
    }
}

#[test]
fn a_sender_that_begins_anew_a_little_behind_is_heard_again() {
    let mut stand = Stand::new();
    for sequence in 500..510 {
        stand.push(sequence, 1);
    }
    stand.take();
    let taken: Vec<Taken> = (400..406).map(|sequence| stand.push(sequence, 1)).collect();
    assert_eq!(taken[..4], [Taken::Late; 4]);
    assert_eq!(stand.take(), [(404, 0, true), (405, 0, false)]);
    // A copy of each packet that comes late is no such thing.
    for sequence in 406..500 {
        stand.push(sequence, 1);
        stand.push(sequence - 3, 1);
    }
    let given: Vec<u16> = stand.take().into_iter().map(|(sequence, ..)| sequence).collect();
    assert_eq!(given, (406..500).collect::<Vec<_>>());
}

#[test]
fn nothing_waits_for_ever() {
    let mut stand = Stand::new();
    stand.push(5, 1);
    stand.push(7, 1);
    stand.push(9, 1);
    stand.give_up(99);
    assert_eq!(stand.take().len(), 1);
    stand.give_up(100);
    assert_eq!(stand.take(), [(7, 1, false), (9, 1, false)]);
}

proptest! {
    /// Blocks of four, each in any order, from anywhere: all come out in order, and nothing is missing.
    #[test]
    fn any_order_within_the_window_is_set_right(
        first in any::<u16>(),
        blocks in proptest::collection::vec(Just([0_u16, 1, 2, 3]).prop_shuffle(), 1..20),
    ) {
        let mut stand = Stand::new();
        // What comes first says where the stream begins.
        stand.push(first.wrapping_sub(1), 1);
        for (block, order) in (0_u16..).zip(&blocks) {
            for place in order {
                stand.push(first.wrapping_add(4 * block + place), 1);
            }
        }
        let wanted = (0..=4 * blocks.len() as u16).map(|at| first.wrapping_sub(1).wrapping_add(at));
        let given: Vec<u16> = stand.given.iter().map(|(sequence, ..)| *sequence).collect();
        prop_assert_eq!(given, wanted.collect::<Vec<_>>());
        prop_assert!(stand.given.iter().all(|(_, missing, _)| *missing == 0));
    }

    /// Whatever is lost: what is given rises, and given and missing together are all.
    #[test]
    fn what_is_missing_is_counted(lost in proptest::collection::vec(any::<bool>(), 10..200)) {
        let mut stand = Stand::new();
        for (sequence, is_lost) in (0_u16..).zip(&lost) {
            if !is_lost || sequence == 0 {
                stand.push(sequence, 1);
            }
        }
        stand.give_up(100);
        let mut next = 0;
        for (sequence, missing, _) in &stand.given {
            prop_assert_eq!(next + missing, *sequence);
            next = sequence + 1;
        }
    }

    /// Anything at all is survived, and nothing is held for ever.
    #[test]
    fn any_packets_are_survived(packets in proptest::collection::vec((any::<u16>(), 0_u32..3), 0..300)) {
        let mut stand = Stand::new();
        for (sequence, ssrc) in packets {
            stand.push(sequence, ssrc);
        }
        stand.give_up(100);
        prop_assert_eq!(stand.window.held().count(), 0);
    }
}
