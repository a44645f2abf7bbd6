//! Two legs of ours, one at each end of a channel that loses, repeats and reorders: both always come to the same end.
use proptest::prelude::*;

use super::*;
use crate::transaction::GIVE_UP;

/// Of messages, for a seed: how long each is under way, and whether it arrives. So few are lost that none of the
/// transactions, which send each seven times or more, loses all of its own.
struct Channel {
    seed: u64,
    losses: u32,
}

impl Channel {
    fn next(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    /// In milliseconds, once for each time that it arrives.
    fn arrivals(&mut self) -> Vec<u64> {
        if self.losses > 0 && self.next(4) == 0 {
            self.losses -= 1;
            return Vec::new();
        }
        let copies = if self.next(5) == 0 { 2 } else { 1 };
        (0..copies).map(|_| 1 + self.next(300)).collect()
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Message(Bytes),
    Command(Command),
}

struct World {
    ends: [Option<Call>; 2],
    happenings: [Vec<String>; 2],
    channel: Channel,
    transport: Transport,
    now: Instant,
    /// When, in which order, at which end, what.
    agenda: Vec<(Instant, u64, usize, Deed)>,
    order: u64,
}

const CALLER: usize = 0;
const CALLEE: usize = 1;

impl World {
    fn new(seed: u64, transport: Transport) -> Self {
        let now = Instant::now();
        let channel = Channel {
            seed,
            losses: if transport.is_reliable() { 0 } else { 4 },
        };
        let happenings = [Vec::new(), Vec::new()];
        let mut world = Self {
            ends: [None, None],
            happenings,
            channel,
            transport,
            now,
            agenda: Vec::new(),
            order: 0,
        };
        world.ends[CALLER] = Some(Call::dial(dial(local(1, transport)), now));
        world.carry(CALLER);
        world
    }

    fn plan(&mut self, after_ms: u64, end: usize, deed: Deed) {
        self.order += 1;
        self.agenda
            .push((self.now + Duration::from_millis(after_ms), self.order, end, deed));
    }

    /// What one end gives out goes to the other; what it asks of its user is answered.
    fn carry(&mut self, from: usize) {
        let Some(call) = &mut self.ends[from] else { return };
        let outputs: Vec<Output> = std::iter::from_fn(|| call.poll()).collect();
        for output in outputs {
            match output {
                Output::Send { bytes, .. } => {
                    // A stream neither loses nor reorders.
                    let arrivals = if self.transport.is_reliable() {
                        vec![20]
                    } else {
                        self.channel.arrivals()
                    };
                    for after in arrivals {
                        self.plan(after, 1 - from, Deed::Message(bytes.clone()));
                    }
                }
                Output::Happening(happening) => {
                    if let Happening::Offer { .. } = happening {
                        let version = format!("{}", 100 + self.order);
                        self.plan(5, from, Deed::Command(Command::AnswerOffer { sdp: sdp(&version) }));
                    }
                    self.happenings[from].push(named(&happening));
                }
            }
        }
    }

    fn step(&mut self, until: Instant) -> bool {
        let first = self
            .agenda
            .iter()
            .enumerate()
            .min_by_key(|(_, (at, order, ..))| (*at, *order));
        let planned = first.map(|(index, (at, ..))| (*at, index));
        let due = self.ends.iter().enumerate();
        let due = due
            .filter_map(|(end, call)| Some((call.as_ref()?.deadline()?, end)))
            .min();
        let next = [planned.map(|(at, _)| at), due.map(|(at, _)| at)]
            .into_iter()
            .flatten()
            .min();
        let Some(at) = next.filter(|at| *at <= until) else {
            return false;
        };
        self.now = at.max(self.now);
        if let Some((_, index)) = planned.filter(|(planned, _)| *planned == at) {
            let (_, _, end, deed) = self.agenda.swap_remove(index);
            self.perform(end, deed);
            self.carry(end);
        } else if let Some((_, end)) = due {
            let call = self.ends[end].as_mut().unwrap();
            call.tick(self.now);
            assert!(
                call.deadline().is_none_or(|next| next > self.now),
                "a tick at the deadline changes nothing"
            );
            self.carry(end);
        }
        true
    }

    fn perform(&mut self, end: usize, deed: Deed) {
        let now = self.now;
        match deed {
            Deed::Command(command) => {
                if let Some(call) = &mut self.ends[end] {
                    call.command(command, now);
                }
            }
            Deed::Message(bytes) => {
                let message = read_datagram(&bytes).unwrap();
                match (self.ends[end].is_some(), message) {
                    (true, message) => self.ends[end].as_mut().unwrap().receive(message, now),
                    // The switchboard: only an INVITE makes a leg, all else has none.
                    (false, Message::Request(request)) if request.method == Method::INVITE => {
                        self.ends[end] = Some(Call::incoming(request, local(2, self.transport), now));
                    }
                    (false, _) => {}
                }
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    fn phases(&self) -> [Option<Phase>; 2] {
        [
            self.ends[0].as_ref().map(|call| call.phase),
            self.ends[1].as_ref().map(|call| call.phase),
        ]
    }
}

fn deeds() -> impl Strategy<Value = Vec<(u64, usize, Command)>> {
    let command = prop_oneof![
        2 => Just(Command::Ring),
        2 => Just(Command::Accept { sdp: sdp("2") }),
        1 => Just(Command::EarlyMedia { sdp: sdp("2") }),
        1 => Just(Command::Refuse { code: 486, reason: "Busy".to_owned(), retry_after: None }),
        1 => Just(Command::HangUp { q850: 16 }),
        1 => Just(Command::Cancel),
        2 => Just(Command::Info { content_type: "text/plain".to_owned(), body: Bytes::from("5") }),
        2 => (3_u32..99).prop_map(|version| Command::Offer { sdp: sdp(&version.to_string()) }),
    ];
    proptest::collection::vec((0_u64..6000, 0_usize..2, command), 0..12)
}

fn check(happenings: &[String]) -> Result<(), TestCaseError> {
    let count = |words: &[&str]| {
        let of = |happening: &&String| words.iter().any(|word| happening.split(' ').next() == Some(word));
        happenings.iter().filter(of).count()
    };
    prop_assert!(count(&["PickedUp"]) <= 1, "{happenings:?}");
    prop_assert!(
        count(&["Refused", "PickedUp", "Cancelled", "NoAnswer", "TransportFailed"]) <= 1,
        "{happenings:?}"
    );
    prop_assert!(
        count(&["RemoteHungUp", "Cancelled", "Refused", "NoAnswer"]) <= 1,
        "{happenings:?}"
    );
    prop_assert!(count(&["Gone"]) <= 1, "{happenings:?}");
    if count(&["Gone"]) == 1 {
        prop_assert_eq!(happenings.last().map(String::as_str), Some("Gone"));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn both_come_to_the_same_end(seed in any::<u64>(), is_udp in any::<bool>(), deeds in deeds()) {
        let mut world = World::new(seed, if is_udp { Transport::Udp } else { Transport::Tcp });
        for (after, end, command) in deeds {
            world.plan(after, end, Deed::Command(command));
        }
        // Nobody lets it ring for ever.
        world.plan(8000, CALLEE, Deed::Command(Command::Accept { sdp: sdp("2") }));
        world.plan(45_000, CALLER, Deed::Command(Command::Cancel));
        world.run_for(Duration::from_secs(44));
        let phases = world.phases();
        let is_talking = phases == [Some(Phase::Talking); 2];
        let is_ended = phases.iter().all(|phase| matches!(phase, None | Some(Phase::Ending | Phase::Over)));
        prop_assert!(is_talking || is_ended, "{phases:?} {:?}", world.happenings);
        // Whatever is left ends by itself after the last word.
        world.run_for(GIVE_UP * 4);
        let phases = world.phases();
        prop_assert!(phases.iter().all(|phase| matches!(phase, None | Some(Phase::Over))), "{phases:?} {:?}", world.happenings);
        for (end, happenings) in world.ends.iter().zip(&world.happenings) {
            check(happenings)?;
            prop_assert!(end.as_ref().is_none_or(|call| call.deadline().is_none()));
        }
    }
}

/// Else the property above would hold for ends that never speak.
#[test]
fn most_calls_are_picked_up_in_spite_of_the_channel() {
    let picked_up = (0..50).filter(|seed| {
        let mut world = World::new(*seed, Transport::Udp);
        // An INVITE that is lost four times comes after 7.5 s.
        for after in [2000, 9000] {
            world.plan(after, CALLEE, Deed::Command(Command::Accept { sdp: sdp("2") }));
        }
        world.plan(20_000, CALLER, Deed::Command(Command::Offer { sdp: sdp("3") }));
        world.run_for(Duration::from_secs(60));
        let [caller, callee] = &world.happenings;
        let has = |happenings: &[String], what: &str| happenings.iter().any(|happening| happening.starts_with(what));
        world.phases() == [Some(Phase::Talking); 2]
            && has(caller, "PickedUp 2")
            && has(callee, "Acked")
            && has(callee, "Offer 3")
            && has(caller, "OfferAnswered")
    });
    assert_eq!(picked_up.count(), 50);
}
