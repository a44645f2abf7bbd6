//! Our time, made of two clocks: the wall clock, which knows the date and can be set, and the monotonic clock, which cannot
//! be set and knows no date. Pure; all times are microseconds.
//!
//! | The wall clock, against the monotonic one | Our time |
//! |---|---|
//! | agrees, within [`SMALL`] | is the wall clock; a step back is waited out |
//! | has stepped by up to [`STEP`] | runs a tenth faster, or slower, until both agree |
//! | has stepped by more | is in doubt ([`Doubt`]): runs on with the monotonic clock, as if nothing had been |
//! | … and has stepped back to where it was | is trusted again, at once |
//! | … has moved again | is in doubt from then on |
//! | … has stood still for [`STABLE`], or the operator has accepted it | ahead: leaps there; behind: runs at half speed until both agree |
//!
//! Our time never goes back, and moves by more than what was lived only where a step was found good.
//!
//! A machine that slept looks like one whose wall clock was set ahead: on Linux the monotonic clock stands still meanwhile.
//! Nobody can tell the two apart, so both are in doubt for [`STABLE`].

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;

/// Clocks that differ by no more agree: leap seconds, and what a time server corrects all day.
pub const SMALL: i64 = SECOND;
/// A step of the wall clock by more is in doubt.
pub const STEP: i64 = 3 * MINUTE;
/// A wall clock in doubt that has stood still against the monotonic one for so long is believed.
pub const STABLE: i64 = 10 * MINUTE;
/// At a start: a wall clock that is further ahead of the last that was stored is in doubt. A service may have been off for some
/// days; of less than this nobody can tell a long stop from a wrong clock.
pub const AHEAD_AT_START: i64 = 7 * 24 * 60 * MINUTE;

/// While our time is led back to the wall clock, it loses one part of so many: gently, or where there is much to lose, half.
const GENTLY: i64 = 10;
const HALF: i64 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady {
    /// The monotonic clock at the last reading.
    mono: i64,
    ours: i64,
    /// How far our time is known to be ahead of a wall clock that was found good; 0 where that is little.
    ahead: i64,
    /// What of a slew was too little for a microsecond.
    rest: i64,
    doubt: Option<Doubt>,
}

/// A step of the wall clock of which nobody knows whether it is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Our time when it was seen: no two steps have the same.
    pub since: i64,
    /// By how much the wall clock is off; negative: it was set back.
    pub step: i64,
    /// The monotonic clock when it was seen.
    seen: i64,
    /// The wall clock less the monotonic one, since then.
    offset: i64,
}

impl Steady {
    pub fn new(wall: i64, mono: i64) -> Self {
        Steady {
            mono,
            ours: wall,
            ahead: 0,
            rest: 0,
            doubt: None,
        }
    }

    /// At a start, before anything was stored: `last` is the latest moment that the last run is known to have come to.
    pub fn start_after(&mut self, last: i64, wall: i64, mono: i64) {
        *self = Steady::new(wall, mono);
        if last > wall || wall - last > AHEAD_AT_START {
            self.ours = last;
        }
        let step = wall - self.ours;
        if step.abs() > STEP {
            self.doubt(step, wall);
        }
    }

    /// Our time, as of the last reading.
    pub fn ours(&self) -> i64 {
        self.ours
    }

    pub fn in_doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// When a wall clock in doubt is believed at the earliest, by our time.
    pub fn believed_at(&self) -> Option<i64> {
        self.doubt.map(|doubt| self.ours + STABLE - (self.mono - doubt.seen))
    }

    /// Reads both clocks.
    pub fn follow(&mut self, wall: i64, mono: i64) {
        // The monotonic clock is read by many threads, and so now and then a little late.
        let lived = (mono - self.mono).max(0);
        self.mono += lived;
        let step = wall - (self.ours + lived - self.ahead);
        match self.doubt {
            None if step.abs() > STEP => {
                self.ours += lived;
                self.doubt(step, wall);
            }
            None => self.approach(wall, lived),
            Some(_) if step.abs() <= STEP => {
                self.doubt = None;
                self.approach(wall, lived);
            }
            Some(doubt) => {
                self.ours += lived;
                if (wall - self.mono - doubt.offset).abs() > SMALL {
                    self.doubt(step, wall);
                } else if self.mono - doubt.seen >= STABLE {
                    self.believe(wall);
                }
            }
        }
    }

    /// The operator says that the wall clock is right. Answers whether it was in doubt.
    pub fn accept(&mut self, wall: i64, mono: i64) -> bool {
        self.follow(wall, mono);
        let was_in_doubt = self.doubt.is_some();
        if was_in_doubt {
            self.believe(wall);
        }
        was_in_doubt
    }

    fn doubt(&mut self, step: i64, wall: i64) {
        self.rest = 0;
        self.doubt = Some(Doubt {
            since: self.ours,
            step,
            seen: self.mono,
            offset: wall - self.mono,
        });
    }

    fn believe(&mut self, wall: i64) {
        self.doubt = None;
        self.ahead = (self.ours - wall).max(0);
        self.ours = self.ours.max(wall);
    }

    /// Leads our time to a wall clock that is trusted.
    fn approach(&mut self, wall: i64, lived: i64) {
        let gap = wall - (self.ours + lived);
        if gap.abs() <= SMALL {
            (self.ahead, self.rest) = (0, 0);
            self.ours = self.ours.max(wall);
            return;
        }
        let part = if gap < -STEP { HALF } else { GENTLY };
        let due = lived + self.rest;
        let by = (due / part).min(lived).min(gap.abs());
        self.rest = due % part;
        self.ours += lived + if gap > 0 { by } else { -by };
        // A step that comes on top of what is known is none of it.
        self.ahead = if gap < -STEP { (self.ahead - by).max(0) } else { 0 };
    }
}
