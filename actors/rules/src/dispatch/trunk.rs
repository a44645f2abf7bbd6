//! What a trunk takes: its rate, halved when it says that it has no room, and growing back while it says nothing; its channels;
//! and whether it takes anything at all.
use super::{pace::Pace, round::WakeAt, route::Route, slots::Slots};
use entities::{ids::TrunkId, values::Moment};
use std::collections::HashMap;

/// One trunk, as far as its calls need it.
#[derive(Debug)]
pub struct Trunk {
    pub pace: Pace,
    most: f64,
    /// Calls at once, those that come in and both legs of a transfer among them; `None`: no limit of its own.
    channels: Option<i32>,
    /// Legs beside those of the calls that take a slot: of calls that are being handed over.
    pub more_legs: i64,
    /// Its peer is there, as far as is known, and takes us for who we are.
    pub is_up: bool,
    /// By its user.
    pub is_paused: bool,
    /// It has asked for a rest.
    pub paused_until: Option<Moment>,
    /// Of its row.
    pub version: i32,
    /// When the rate was changed last.
    changed_at: Option<Moment>,
}

/// A rate that was halved grows after so long without a refusal, by this factor.
const GROWS_AFTER_SECONDS: i64 = 5;
const GROWTH: f64 = 1.25;
/// Refusals within one second are one: they answer to calls of one rate.
const SETTLES_AFTER_SECONDS: i64 = 1;
/// Calls a second that are always tried.
const LEAST: f64 = 0.1;

impl Trunk {
    pub fn new(most: f64) -> Self {
        Trunk {
            pace: Pace::new(most),
            most,
            channels: None,
            more_legs: 0,
            is_up: true,
            is_paused: false,
            paused_until: None,
            version: 0,
            changed_at: None,
        }
    }

    /// What its row says from now on. A rate that was halved grows towards the new one, and is at most that.
    pub fn set(&mut self, most: f64, channels: Option<i32>, version: i32) {
        let rate = match self.changed_at {
            Some(_) => self.pace.rate().min(most),
            None => most,
        };
        self.pace.set_rate(rate);
        (self.most, self.channels, self.version) = (most, channels, version);
    }

    /// It refused a call for pacing.
    pub fn congested(&mut self, now: Moment) {
        let is_same = |at: Moment| now < at.plus_seconds(SETTLES_AFTER_SECONDS);
        if !self.changed_at.is_some_and(is_same) {
            self.pace.set_rate((self.pace.rate() / 2.0).max(LEAST));
            self.changed_at = Some(now);
        }
    }

    /// Time has passed.
    pub fn grow(&mut self, now: Moment) {
        if self.grows_at().is_some_and(|at| now >= at) {
            let rate = (self.pace.rate() * GROWTH).min(self.most);
            self.pace.set_rate(rate);
            self.changed_at = (rate < self.most).then_some(now);
        }
    }

    /// When it may grow; `None`: it has all that it should.
    pub fn grows_at(&self) -> Option<Moment> {
        self.changed_at.map(|at| at.plus_seconds(GROWS_AFTER_SECONDS))
    }

    /// Takes the token of a leg whose call has its slot, and says when it may leave; `None`: not by then. Its channel is for whoever
    /// asks to look for.
    fn take_turn(&mut self, now: Moment, by: Moment) -> Option<Moment> {
        for _ in 0..TRIES {
            let at = self.rested(now);
            if !self.is_up || self.is_paused || at > by {
                return None;
            }
            if self.pace.spend(at) {
                return Some(at);
            }
        }
        None
    }

    /// When its rate, and its peer's wish for a rest, allow the next call.
    fn rested(&self, now: Moment) -> Moment {
        let at = self.pace.earliest(now);
        self.paused_until.map_or(at, |until| at.max(until))
    }

    /// When its next call may start, with so many calls live on it; `None`: not before something changes.
    fn opens_at(&self, live: i64, now: Moment) -> Option<Moment> {
        let in_use = live + self.more_legs;
        let has_channel = self.channels.is_none_or(|channels| in_use < i64::from(channels));
        (self.is_up && !self.is_paused && has_channel).then(|| self.rested(now))
    }
}

/// A rate is asked so often for one token: rounding may make it ask for a moment more.
const TRIES: usize = 4;

/// All that a tenant's calls go over.
#[derive(Debug)]
pub struct Trunks {
    pub sandbox: Trunk,
    pub live: HashMap<TrunkId, Trunk>,
    /// This service had no room for a call: before then it tries no trunk.
    no_room_until: Option<Moment>,
}

/// What this service lacks, a port or a database that answers, it does not have a moment later.
const NO_ROOM_SECONDS: i64 = 1;

impl Trunks {
    /// `most`: calls a second that the sandbox is given.
    pub fn new(most: f64) -> Self {
        Trunks {
            sandbox: Trunk::new(most),
            live: HashMap::new(),
            no_room_until: None,
        }
    }

    pub fn get(&self, route: Route) -> Option<&Trunk> {
        match route {
            Route::Sandbox => Some(&self.sandbox),
            Route::Trunk(trunk) => self.live.get(&trunk),
            Route::Nowhere => None,
        }
    }

    fn get_mut(&mut self, route: Route) -> Option<&mut Trunk> {
        match route {
            Route::Sandbox => Some(&mut self.sandbox),
            Route::Trunk(trunk) => self.live.get_mut(&trunk),
            Route::Nowhere => None,
        }
    }

    /// When the next call may start over it; `None`: not before something changes.
    pub fn opens_at(&self, route: Route, slots: &Slots, now: Moment) -> Option<Moment> {
        let Some(trunk) = route.trunk() else {
            return self.get(route)?.opens_at(0, now);
        };
        let opens_at = self.get(route)?.opens_at(slots.used_of_trunk(trunk), now)?;
        Some(self.no_room_until.map_or(opens_at, |until| opens_at.max(until)))
    }

    /// The trunk as it is known: a dial over it stands only if it is still so.
    pub fn as_known(&self, trunk: Option<TrunkId>) -> Option<(TrunkId, i32)> {
        let id = trunk?;
        self.live.get(&id).map(|trunk| (id, trunk.version))
    }

    /// Takes its token. `false`: there is none at that moment.
    pub fn spend(&mut self, route: Route, at: Moment) -> bool {
        self.get_mut(route).is_some_and(|trunk| trunk.pace.spend(at))
    }

    /// Takes the token of a second leg over that trunk, and says when it may leave; `None`: not by then.
    pub fn take_turn(&mut self, trunk: TrunkId, now: Moment, by: Moment) -> Option<Moment> {
        self.live.get_mut(&trunk)?.take_turn(now, by)
    }

    /// It refused a call for pacing.
    pub fn congested(&mut self, route: Route, now: Moment) {
        if let Some(trunk) = self.get_mut(route) {
            trunk.congested(now);
        }
    }

    /// This service had no room for a call, which is no trunk's fault: all rates stay.
    pub fn no_room(&mut self, now: Moment) {
        self.no_room_until = Some(now.plus_seconds(NO_ROOM_SECONDS));
    }

    /// Time has passed without a refusal.
    pub fn grow(&mut self, now: Moment, wake_at: &mut WakeAt) {
        for trunk in self.live.values_mut().chain([&mut self.sandbox]) {
            trunk.grow(now);
            if let Some(at) = trunk.grows_at() {
                wake_at.no_later_than(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_halves_and_silence_grows_back() {
        let start = Moment::from_millis(1_000_000);
        let mut trunk = Trunk::new(100.0);
        trunk.congested(start);
        assert_eq!(trunk.pace.rate(), 50.0);
        trunk.congested(start.plus_millis(999));
        assert_eq!(trunk.pace.rate(), 50.0, "answers to calls that were placed before");
        trunk.congested(start.plus_seconds(1));
        assert_eq!(trunk.pace.rate(), 25.0);
        let (mut now, mut steps) = (start.plus_seconds(1), 0);
        while trunk.grows_at().is_some() {
            now = now.plus_seconds(GROWS_AFTER_SECONDS);
            trunk.grow(now);
            steps += 1;
            assert!(steps < 10, "four times the rate in seven steps");
        }
        assert_eq!(trunk.pace.rate(), 100.0);
    }

    #[test]
    fn second_legs_take_their_turns() {
        let now = Moment::from_millis(1_000_000);
        let mut trunk = Trunk::new(0.5);
        let in_time = now.plus_seconds(5);
        // One each two seconds, until the next would be too late.
        let turns: Vec<_> = (0..4).map(|_| trunk.take_turn(now, in_time)).collect();
        let expected = [Some(0), Some(2_000), Some(4_000), None];
        assert_eq!(
            turns,
            expected.map(|millis| millis.map(|millis| now.plus_millis(millis)))
        );
        // The calls that are dialled come behind them.
        assert_eq!(trunk.opens_at(0, now), Some(now.plus_seconds(6)));
        trunk.is_paused = true;
        assert_eq!(trunk.take_turn(now.plus_seconds(60), now.plus_seconds(90)), None);
    }

    #[test]
    fn want_of_our_own_slows_no_trunk() {
        let now = Moment::from_millis(1_000_000);
        let id = TrunkId(uuid::Uuid::from_u128(1));
        let mut trunks = Trunks::new(50.0);
        trunks.live.insert(id, Trunk::new(8.0));
        let slots = Slots::new(
            crate::dispatch::concurrency::Concurrency { limit: 9, reserve: 0 },
            std::iter::empty(),
        );
        trunks.no_room(now);
        // The route: when it opens, in milliseconds from now.
        for (route, expected) in [
            (Route::Trunk(id), Some(1_000)),
            (Route::Sandbox, Some(0)),
            (Route::Nowhere, None),
        ] {
            let expected = expected.map(|millis| now.plus_millis(millis));
            assert_eq!(trunks.opens_at(route, &slots, now), expected, "{route:?}");
        }
        assert_eq!(trunks.live[&id].pace.rate(), 8.0);
        let later = now.plus_seconds(2);
        assert_eq!(trunks.opens_at(Route::Trunk(id), &slots, later), Some(later));
    }

    #[test]
    fn something_is_always_tried() {
        let mut trunk = Trunk::new(1.0);
        for second in 0..100 {
            trunk.congested(Moment::from_millis(second * 1000));
        }
        assert_eq!(trunk.pace.rate(), LEAST);
    }

    #[test]
    fn a_change_of_the_row_ends_no_congestion() {
        // The rate before, whether it was halved then, the rate of the row: the rate after.
        for (before, halved, most, expected) in [
            (10.0, false, 20.0, 20.0),
            (10.0, false, 5.0, 5.0),
            (10.0, true, 20.0, 5.0),
            (10.0, true, 10.0, 5.0),
            (10.0, true, 2.0, 2.0),
        ] {
            let mut trunk = Trunk::new(before);
            if halved {
                trunk.congested(Moment::from_millis(1_000));
            }
            trunk.set(most, None, 2);
            assert_eq!(trunk.pace.rate(), expected, "{before} {halved} {most}");
        }
    }

    #[test]
    fn it_opens_with_a_token_a_channel_and_a_peer() {
        type Made = fn(&mut Trunk);
        let now = Moment::from_millis(1_000_000);
        // What is so, the calls live on it: when it opens, in milliseconds from now.
        let table: [(&str, Made, i64, Option<i64>); 10] = [
            ("nothing in its way", |_| {}, 0, Some(0)),
            ("no limit of channels", |_| {}, 1_000, Some(0)),
            ("a channel left", |trunk| trunk.channels = Some(3), 2, Some(0)),
            ("no channel left", |trunk| trunk.channels = Some(3), 3, None),
            (
                "the last channel is a second leg's",
                |trunk| (trunk.channels, trunk.more_legs) = (Some(3), 1),
                2,
                None,
            ),
            ("down", |trunk| trunk.is_up = false, 0, None),
            ("paused", |trunk| trunk.is_paused = true, 0, None),
            (
                "it has asked for a rest",
                |trunk| trunk.paused_until = Some(Moment::from_millis(1_005_000)),
                0,
                Some(5_000),
            ),
            (
                "it has had its rest",
                |trunk| trunk.paused_until = Some(Moment::from_millis(999_000)),
                0,
                Some(0),
            ),
            (
                "no token",
                |trunk| assert!(trunk.pace.spend(Moment::from_millis(1_000_000))),
                0,
                Some(1_000),
            ),
        ];
        for (what, made, live, expected) in table {
            let mut trunk = Trunk::new(1.0);
            made(&mut trunk);
            let expected = expected.map(|millis| now.plus_millis(millis));
            assert_eq!(trunk.opens_at(live, now), expected, "{what}");
        }
    }
}
