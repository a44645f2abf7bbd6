use super::steady::{AHEAD_AT_START, SMALL, STABLE, STEP, Steady};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Where each story begins.
const START: i64 = 1_800_000_000 * SECOND;

/// A machine with two clocks.
struct Machine {
    steady: Steady,
    wall: i64,
    mono: i64,
}

impl Machine {
    fn new() -> Self {
        Machine {
            steady: Steady::new(START, 0),
            wall: START,
            mono: 0,
        }
    }
    fn read(&mut self) {
        self.steady.follow(self.wall, self.mono);
    }
    /// The wall clock is set.
    fn step(&mut self, by: i64) {
        self.wall += by;
        self.read();
    }
    /// Both clocks run, and are read every second.
    fn run(&mut self, micros: i64) {
        let mut left = micros;
        while left > 0 {
            let by = left.min(SECOND);
            (self.wall, self.mono, left) = (self.wall + by, self.mono + by, left - by);
            self.read();
        }
    }
    /// Our time less what was lived since the start: what a step has moved it by.
    fn moved(&self) -> i64 {
        self.steady.ours() - START - self.mono
    }
    fn gap(&self) -> i64 {
        self.wall - self.steady.ours()
    }
}

enum Do {
    Step(i64),
    Run(i64),
    Accept,
}
use Do::{Accept, Run, Step};

/// Is it in doubt, what has our time moved by, and how far is the wall clock ahead of it.
type Expected = (bool, i64, i64);

/// What is done, and what becomes of it.
const STORIES: &[(&str, &[Do], Expected)] = &[
    ("nothing happens", &[Run(HOUR)], (false, 0, 0)),
    (
        "a second ahead is followed",
        &[Step(SECOND), Run(SECOND)],
        (false, SECOND, 0),
    ),
    (
        "half a second back is waited out",
        &[Step(-SECOND / 2), Run(2 * SECOND)],
        (false, -SECOND / 2, 0),
    ),
    (
        "two minutes ahead are caught up by a tenth",
        &[Step(2 * MINUTE), Run(10 * MINUTE)],
        (false, MINUTE, MINUTE),
    ),
    (
        "and then both agree",
        &[Step(2 * MINUTE), Run(30 * MINUTE)],
        (false, 2 * MINUTE, 0),
    ),
    (
        "two minutes back are lost by a tenth",
        &[Step(-2 * MINUTE), Run(10 * MINUTE)],
        (false, -MINUTE, -MINUTE),
    ),
    (
        "and then both agree",
        &[Step(-2 * MINUTE), Run(30 * MINUTE)],
        (false, -2 * MINUTE, 0),
    ),
    (
        "small steps add up to one in doubt",
        &[Step(2 * MINUTE), Run(SECOND), Step(2 * MINUTE)],
        (true, SECOND / 10, 4 * MINUTE - SECOND / 10),
    ),
    (
        "two hours ahead are in doubt",
        &[Step(2 * HOUR), Run(STABLE - SECOND)],
        (true, 0, 2 * HOUR),
    ),
    (
        "and are believed when they last",
        &[Step(2 * HOUR), Run(STABLE)],
        (false, 2 * HOUR, 0),
    ),
    (
        "or when somebody says so",
        &[Step(2 * HOUR), Run(SECOND), Accept],
        (false, 2 * HOUR, 0),
    ),
    (
        "40 days for 80 seconds were nothing",
        &[Step(40 * DAY), Run(80 * SECOND), Step(-40 * DAY), Run(MINUTE)],
        (false, 0, 0),
    ),
    (
        "nor were 40 days back",
        &[Step(-40 * DAY), Run(80 * SECOND), Step(40 * DAY), Run(MINUTE)],
        (false, 0, 0),
    ),
    (
        "a clock that moves on is not believed",
        &[Step(HOUR), Run(9 * MINUTE), Step(HOUR), Run(9 * MINUTE)],
        (true, 0, 2 * HOUR),
    ),
    (
        "not by two seconds either",
        &[Step(HOUR), Run(9 * MINUTE), Step(2 * SECOND), Run(9 * MINUTE)],
        (true, 0, HOUR + 2 * SECOND),
    ),
    (
        "two hours back are in doubt, too",
        &[Step(-2 * HOUR), Run(STABLE - SECOND)],
        (true, 0, -2 * HOUR),
    ),
    (
        "when believed, our time runs at half speed",
        &[Step(-2 * HOUR), Run(STABLE), Run(2 * HOUR)],
        (false, -HOUR, -HOUR),
    ),
    (
        "until both agree",
        &[Step(-2 * HOUR), Run(STABLE), Run(6 * HOUR)],
        (false, -2 * HOUR, 0),
    ),
    (
        "accepted ahead, and mended: in doubt once more",
        &[Step(2 * HOUR), Accept, Run(HOUR), Step(-2 * HOUR), Run(MINUTE)],
        (true, 2 * HOUR, -2 * HOUR),
    ),
    (
        "while it is led back another step is in doubt",
        &[Step(-2 * HOUR), Accept, Run(HOUR), Step(90 * MINUTE)],
        (true, -30 * MINUTE, 0),
    ),
    (
        "accepting what is in no doubt does nothing",
        &[Step(2 * MINUTE), Accept],
        (false, 0, 2 * MINUTE),
    ),
];

#[test]
fn what_becomes_of_our_time() {
    for (name, story, expected) in STORIES {
        let mut machine = Machine::new();
        for what in *story {
            match what {
                Step(by) => machine.step(*by),
                Run(by) => machine.run(*by),
                Accept => {
                    machine.steady.accept(machine.wall, machine.mono);
                }
            }
        }
        // To the second: a slew begins and ends between two readings, and what is small is followed at once.
        let seen = (machine.moved(), machine.gap());
        let near = (seen.0 - expected.1).abs() <= SMALL && (seen.1 - expected.2).abs() <= SMALL;
        let in_doubt = machine.steady.in_doubt().is_some();
        assert!(
            in_doubt == expected.0 && near,
            "{name}: {in_doubt} {seen:?}, expected {expected:?}"
        );
    }
}

/// The last moment that was stored, by how much the wall clock is after it, and then: is it in doubt, and by how much our time is
/// after it.
#[test]
fn what_a_start_believes() {
    for (after, expected) in [
        (0, (false, 0)),
        (HOUR, (false, HOUR)),
        (6 * DAY, (false, 6 * DAY)),
        (AHEAD_AT_START + SECOND, (true, 0)),
        (40 * DAY, (true, 0)),
        (-MINUTE, (false, 0)),
        (-STEP - SECOND, (true, 0)),
        (-40 * DAY, (true, 0)),
    ] {
        let mut steady = Steady::new(START + after, 0);
        steady.start_after(START, START + after, 0);
        assert_eq!(
            (steady.in_doubt().is_some(), steady.ours() - START),
            expected,
            "{after}"
        );
    }
}

#[test]
fn a_start_in_doubt_ends_like_any_other() {
    let mut late = Steady::new(START, 0);
    late.start_after(START - 40 * DAY, START, 0);
    late.follow(START + STABLE, STABLE);
    assert_eq!((late.in_doubt(), late.ours()), (None, START + STABLE));
    let mut early = Steady::new(START, 0);
    early.start_after(START + HOUR, START, 0);
    assert_eq!(early.believed_at(), Some(START + HOUR + STABLE));
    assert!(early.accept(START + SECOND, SECOND));
    assert_eq!((early.in_doubt(), early.ours()), (None, START + HOUR + SECOND));
    early.follow(START + 11 * SECOND, 11 * SECOND);
    assert_eq!(early.ours(), START + HOUR + 6 * SECOND, "half speed");
}

fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => Just(0),
        2 => -2 * SECOND..2 * SECOND,
        2 => -STEP..STEP,
        2 => -3 * HOUR..3 * HOUR,
        1 => -50 * DAY..50 * DAY,
    ]
}

proptest! {
    #[test]
    fn whatever_the_wall_clock_does(moves in proptest::collection::vec((step(), 0..30 * MINUTE, any::<bool>()), 0..40)) {
        let mut machine = Machine::new();
        for (by, lived, accepts) in moves {
            let before = machine.steady.clone();
            let gap = machine.gap();
            machine.wall += by;
            machine.read();
            // A step is seen at the first reading, and moves nothing by itself but what is small.
            if before.in_doubt().is_none() && gap == 0 && by.abs() > STEP {
                prop_assert!(machine.steady.in_doubt().is_some());
            }
            prop_assert!(machine.steady.ours() >= before.ours());
            prop_assert!(machine.steady.ours() <= before.ours() + SMALL);
            // Without the operator no more than a tenth is added to what was lived, but where a step has lasted.
            let (ours, was_in_doubt) = (machine.steady.ours(), machine.steady.in_doubt().is_some());
            (machine.wall, machine.mono) = (machine.wall + lived, machine.mono + lived);
            machine.read();
            let gained = machine.steady.ours() - ours;
            prop_assert!(gained >= 0);
            let has_lasted = was_in_doubt && machine.steady.in_doubt().is_none();
            prop_assert!(has_lasted || gained <= lived + lived / 10 + SMALL);
            if accepts {
                let ours = machine.steady.ours();
                machine.steady.accept(machine.wall, machine.mono);
                prop_assert!(machine.steady.ours() >= ours);
                prop_assert!(machine.steady.in_doubt().is_none());
            }
        }
        // A clock that stands still is believed in the end, and both agree in the end.
        machine.run(STABLE);
        prop_assert!(machine.steady.in_doubt().is_none());
        let mut gap = machine.gap().abs();
        while gap > SMALL {
            let by = (gap / 4).max(30 * SECOND);
            (machine.wall, machine.mono) = (machine.wall + by, machine.mono + by);
            machine.read();
            let left = machine.gap().abs();
            prop_assert!(left < gap, "{left} of {gap}");
            prop_assert!(machine.steady.in_doubt().is_none());
            gap = left;
        }
    }
}
