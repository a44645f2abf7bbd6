//! What a recording hears of a line: both directions, each in its place on one timeline.
//!
//! The agent's frames have their own clock, which is the connection's: each goes where it went out. A microphone's come by the
//! network, late and in bursts, and by another clock than ours: they follow one another as long as that is about right, a page that
//! is away leaves silence, and who is ahead of the time is cut.
use crate::playout::SoundFrame;
use adapters::{
    recording::spool::{LONGEST, Side, Track},
    sound::HEARING,
};
use std::time::Instant;

/// One direction's place on the timeline, in samples of 16 kHz. Pure: it knows no clock.
#[derive(Debug)]
pub struct Lane {
    /// Nothing has come for longer: that is silence, not lateness.
    gap: u64,
    /// Behind all that was placed.
    next: u64,
    has_begun: bool,
    /// Of the pieces since it was last set right: how many, and by how much the least late one was late.
    pieces: u32,
    least_late: u64,
}

/// Where a piece goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub at: u64,
    /// So much of its beginning is cut.
    pub cut: u64,
}

/// Of what comes by the network: 300 ms.
const NETWORK_GAP: u64 = 300 * PER_MS;
/// Of what our own clock sends: 1 ms, for moments are rounded to samples.
const CLOCK_GAP: u64 = PER_MS;
/// So far ahead of the time it may be (100 ms).
const AHEAD: u64 = 100 * PER_MS;
/// As late as this in every piece of a window (40 ms, 5 s), the other clock is slower than ours, or something was lost for good.
const DRIFT: u64 = 40 * PER_MS;
const WINDOW: u32 = 250;
const PER_MS: u64 = HEARING as u64 / 1_000;

impl Lane {
    /// Of what comes late and in bursts, by another clock.
    pub fn of_network() -> Self {
        Lane::with(NETWORK_GAP)
    }

    /// Of what goes out by our clock.
    pub fn of_clock() -> Self {
        Lane::with(CLOCK_GAP)
    }

    fn with(gap: u64) -> Self {
        Lane {
            gap,
            next: 0,
            has_begun: false,
            pieces: 0,
            least_late: 0,
        }
    }

    /// A piece of that length that ends, by our clock, at `ends`.
    pub fn place(&mut self, length: u64, ends: u64) -> Placed {
        let due = self.next.saturating_add(length);
        // The first one is neither late nor ahead: it stands where it ends.
        let (gap, may_lead) = match self.has_begun {
            true => (self.gap, AHEAD),
            false => (0, 0),
        };
        self.has_begun = true;
        let cut = match due > ends.saturating_add(may_lead) {
            true => (due - ends).min(length),
            false => 0,
        };
        let late = ends.saturating_sub(due);
        self.pieces += 1;
        self.least_late = match self.pieces {
            1 => late,
            _ => self.least_late.min(late),
        };
        let silence = match (late > gap, self.pieces >= WINDOW) {
            (true, _) => late,
            (false, true) if self.least_late > DRIFT => self.least_late,
            (false, _) => 0,
        };
        if silence > 0 || self.pieces >= WINDOW {
            self.pieces = 0;
        }
        let at = self.next + silence;
        self.next = at + length - cut;
        Placed { at, cut }
    }
}

/// Both directions of a line that is recorded.
pub struct Tap {
    track: Track,
    agent: Lane,
    user: Lane,
}

impl Tap {
    pub fn new(track: Track) -> Self {
        Tap {
            track,
            agent: Lane::of_clock(),
            user: Lane::of_network(),
        }
    }

    /// What the agent says, from that moment on.
    pub fn said(&mut self, frame: &SoundFrame, from: Instant) {
        let length = at_16_khz(frame.samples.len(), frame.rate);
        let placed = self.agent.place(length, self.track.place(from) + length);
        self.write(Side::Agent, placed, frame.rate, &frame.samples);
    }

    /// What the other side has said, until that moment; 16 kHz.
    pub fn heard(&mut self, samples: &[i16], until: Instant) {
        let placed = self.user.place(samples.len() as u64, self.track.place(until));
        self.write(Side::User, placed, HEARING, samples);
    }

    fn write(&self, side: Side, Placed { at, cut }: Placed, rate: u32, samples: &[i16]) {
        let cut = cut * u64::from(rate) / u64::from(HEARING);
        let samples = samples.get(cut as usize..).unwrap_or_default();
        // A second of any rate.
        for (nth, piece) in samples.chunks(rate.max(1) as usize).enumerate() {
            // Where nothing was written there is silence.
            if piece.iter().all(|sample| *sample == 0) {
                continue;
            }
            let at = at + (nth * LONGEST) as u64;
            if !self.track.write(side, at, rate, piece) {
                metrics::counter!("callboard_recording_dropped_frames_total").increment(1);
            }
        }
    }
}

fn at_16_khz(samples: usize, rate: u32) -> u64 {
    samples as u64 * u64::from(HEARING) / u64::from(rate.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds, as samples.
    fn ms(ms: u64) -> u64 {
        ms * PER_MS
    }

    /// Pieces of 20 ms that come at these milliseconds: where each begins, and how much of it is cut.
    fn placed(lane: &mut Lane, ends: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let placed = ends.into_iter().map(|end| lane.place(ms(20), ms(end)));
        placed.map(|Placed { at, cut }| (at / PER_MS, cut / PER_MS)).collect()
    }

    #[test]
    fn pieces_follow_one_another_and_what_is_missing_is_silence() {
        for (what, ends, wanted) in [
            ("in time", vec![20, 40, 60], vec![(0, 0), (20, 0), (40, 0)]),
            (
                "the first one, long after the beginning",
                vec![5_000, 5_020],
                vec![(4_980, 0), (5_000, 0)],
            ),
            ("the first one, soon after it", vec![250, 270], vec![(230, 0), (250, 0)]),
            (
                "begun before the recording",
                vec![5, 25, 45],
                vec![(0, 15), (5, 0), (25, 0)],
            ),
            ("wholly before it", vec![0, 20], vec![(0, 20), (0, 0)]),
            (
                "a little late, and early again",
                vec![20, 90, 91, 92, 100],
                vec![(0, 0), (20, 0), (40, 0), (60, 0), (80, 0)],
            ),
            (
                "all at once, after 200 ms",
                vec![20, 240, 240, 240],
                vec![(0, 0), (20, 0), (40, 0), (60, 0)],
            ),
            (
                "a page that was away for 10 s",
                vec![20, 10_040, 10_060],
                vec![(0, 0), (10_020, 0), (10_040, 0)],
            ),
            (
                "no more than 300 ms are lateness",
                vec![20, 340, 661],
                vec![(0, 0), (20, 0), (641, 0)],
            ),
        ] {
            assert_eq!(placed(&mut Lane::of_network(), ends), wanted, "{what}");
        }
    }

    /// A pause of the agent's is as long as it was, and frames that are caught up at once stand where they belong.
    #[test]
    fn what_our_own_clock_sends_stands_where_it_was_sent() {
        let ends = [1_020, 1_040, 1_060, 1_180, 1_200, 9_000, 9_020];
        let wanted = ends.map(|end| (end - 20, 0));
        assert_eq!(placed(&mut Lane::of_clock(), ends), wanted);
    }

    #[test]
    fn whoever_is_ahead_of_the_time_is_cut() {
        let mut lane = Lane::of_network();
        // A flood: a second of sound at once.
        let flood = placed(&mut lane, [20; 50]);
        let kept: u64 = flood.iter().map(|(_, cut)| 20 - cut).sum();
        assert_eq!(kept, 120, "what has come by then, and 100 ms");
        assert_eq!(flood[6], (120, 20), "nothing of the seventh");
        assert_eq!(placed(&mut lane, [140]), [(120, 0)], "then it goes on");
        // One that is longer than it may be is cut to what is due.
        let placed = Lane::of_network().place(ms(500), ms(200));
        assert_eq!(placed, Placed { at: 0, cut: ms(300) });
    }

    /// Clocks that are 1 % apart, for ten minutes: neither side is ever far from its time.
    #[test]
    fn other_clocks_do_not_run_away() {
        for every_us in [19_800_u64, 20_200] {
            let mut lane = Lane::of_network();
            for piece in 1..=30_000 {
                let end = piece * every_us * PER_MS / 1_000;
                let Placed { at, cut } = lane.place(ms(20), end);
                let off = (at + ms(20) - cut).abs_diff(end);
                assert!(off <= ms(120), "{every_us}: {} ms off at {piece}", off / PER_MS);
            }
        }
    }

    /// What a slow clock lacks is made up for in small steps, and not in the middle of a burst.
    #[test]
    fn steady_lateness_is_set_right_after_a_while() {
        let mut lane = Lane::of_network();
        placed(&mut lane, [20]);
        // 100 ms were lost and never come; each piece is that late from then on, some even later.
        let late: Vec<u64> = (1..=600).map(|nth| 20 + nth * 20 + 100 + nth % 3).collect();
        let came = placed(&mut lane, late);
        let moved: Vec<u64> = came
            .windows(2)
            .map(|pair| pair[1].0 - pair[0].0)
            .filter(|step| *step != 20)
            .collect();
        assert_eq!(moved, [120], "once, by what all were late");
    }

    #[test]
    fn nothing_is_placed_over_what_was_before() {
        let mut lane = Lane::of_network();
        let mut end = 0;
        for nth in 0_u64..5_000 {
            // Any time, and any length.
            let (length, now) = (nth * 7_919 % 1_500, nth * nth % 90_001 * nth);
            let Placed { at, cut } = lane.place(length, now);
            assert!(at >= end && cut <= length, "{nth}");
            end = at + length - cut;
        }
    }
}
