//! The agent's words on their way out: a frame every 20 ms, on time or not at all.
use super::{Codec, codec::PayloadEncoder};
use crate::{bridge::MediaBridge, playout::SoundFrame};
use metrics::Histogram;
use std::time::{Duration, Instant};
use str0m::{Rtc, media::Mid};

const EVERY: Duration = Duration::from_millis(20);
/// Frames that are caught up at once when the machine was late, 100 ms: what browsers buffer. Beyond it the agent's words
/// wait, and the time that passed is a pause.
const CATCH_UP: u32 = 5;
/// Frames of silence after the agent's words, so that they end softly whatever the browser makes of the pause; then nothing
/// is sent until it speaks again.
const SILENT: u32 = 10;
/// Of silence before the agent's first word.
const FIRST_RATE: u32 = 8_000;

/// 20 ms to be sent.
pub struct Frame {
    sound: SoundFrame,
    /// Counts every 20 ms since the beginning, sent or not: RTP's time.
    number: u64,
    at: Instant,
    /// After a pause.
    first: bool,
}

#[cfg(any(test, feature = "peer"))]
impl Frame {
    pub fn sound(&self) -> &SoundFrame {
        &self.sound
    }
}

pub struct Speech {
    codec: Codec,
    encoder: PayloadEncoder,
    /// Of the agent's last word: silence after it has the same, so that the encoder goes on as it was.
    rate: u32,
    due: Option<Instant>,
    number: u64,
    /// Frames since the agent's last word.
    silent: u32,
    /// A microphone never pauses: its silence is sent too.
    steady: bool,
    late: Histogram,
}

impl Speech {
    pub fn new(codec: Codec, encoder: PayloadEncoder) -> Self {
        Speech {
            codec,
            encoder,
            rate: FIRST_RATE,
            due: None,
            number: 0,
            silent: SILENT,
            steady: false,
            // Looked up once: fifty times a second it would be felt.
            late: metrics::histogram!("callboard_media_late_seconds", "kind" => "room"),
        }
    }

    /// A microphone's.
    #[cfg(any(test, feature = "peer"))]
    pub fn steady(codec: Codec) -> Result<Self, String> {
        let speech = Speech::new(codec, PayloadEncoder::new(codec)?);
        Ok(Speech { steady: true, ..speech })
    }

    pub fn begin(&mut self, now: Instant) {
        self.due.get_or_insert(now);
    }

    /// When the next frame is due; `None` before the beginning, and while the agent is silent: nothing needs to wake for that.
    pub fn due(&self, bridge: &MediaBridge) -> Option<Instant> {
        self.due.filter(|_| !self.is_resting() || bridge.is_playing())
    }

    /// Nothing is sent.
    fn is_resting(&self) -> bool {
        self.silent >= SILENT && !self.steady
    }

    /// The next frame to send now; `None`: nothing is due. Frames that the agent is silent in are passed over.
    pub fn next(&mut self, bridge: &MediaBridge, now: Instant) -> Option<Frame> {
        loop {
            let due = self.due.filter(|due| *due <= now)?;
            let (is_resting, was_due) = (self.is_resting(), due);
            let due = self.skip(due, now);
            let late = now - if is_resting { due } else { was_due };
            let number = self.number;
            self.number += 1;
            self.due = Some(due + EVERY);
            let first = self.silent >= SILENT;
            let sound = match bridge.next_frame_at(due) {
                Some(sound) => {
                    self.silent = 0;
                    self.rate = sound.rate;
                    sound
                }
                None if first && !self.steady => continue,
                None => {
                    self.silent = self.silent.saturating_add(1);
                    SoundFrame::silence(self.rate)
                }
            };
            self.late.record(late.as_secs_f64());
            let at = due;
            return Some(Frame {
                sound,
                number,
                at,
                first,
            });
        }
    }

    /// Too late for more than may be caught up: passes over the rest.
    fn skip(&mut self, due: Instant, now: Instant) -> Instant {
        let late = (now - due).as_millis() / EVERY.as_millis();
        let late = u32::try_from(late).unwrap_or(u32::MAX);
        // Behind a pause there is nothing to catch up with; what a microphone has heard is all sent.
        let caught_up = match (self.steady, self.is_resting()) {
            (true, _) => late,
            (false, true) => 0,
            (false, false) => CATCH_UP,
        };
        let skipped = late.saturating_sub(caught_up);
        if skipped > 0 {
            // What follows comes after a pause.
            self.silent = SILENT;
        }
        self.number += u64::from(skipped);
        due + EVERY * skipped
    }

    pub fn write(&mut self, rtc: &mut Rtc, mid: Mid, frame: Frame) {
        let Some(payload) = self.encoder.say(&frame.sound) else {
            return;
        };
        let Some(writer) = rtc.writer(mid) else {
            return;
        };
        let codec = self.codec;
        let Some(pt) = writer
            .payload_params()
            .find(|known| codec.is(known.spec().codec))
            .map(|known| known.pt())
        else {
            return;
        };
        let writer = writer.start_of_talkspurt(frame.first);
        if let Err(error) = writer.write(pt, frame.at, codec.time(frame.number), payload) {
            tracing::debug!(%error, "a frame of a room was not sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stand {
        speech: Speech,
        bridge: std::sync::Arc<MediaBridge>,
        start: Instant,
    }

    impl Stand {
        fn new() -> Self {
            let start = Instant::now();
            let mut speech = Speech::new(Codec::Pcmu, PayloadEncoder::new(Codec::Pcmu).unwrap());
            speech.begin(start);
            let bridge = MediaBridge::new().0;
            Stand { speech, bridge, start }
        }

        fn play(&self, frames: usize) {
            drop(self.bridge.play_whole(16_000, vec![1; frames * 320]));
        }

        /// The numbers of the frames at that time, and whether each comes after a pause.
        fn at(&mut self, ms: u64) -> Vec<(u64, bool)> {
            let now = self.start + Duration::from_millis(ms);
            std::iter::from_fn(|| self.speech.next(&self.bridge, now))
                .map(|frame| (frame.number, frame.first))
                .collect()
        }
    }

    #[test]
    fn a_frame_every_20_ms_then_a_little_silence_then_nothing() {
        let mut stand = Stand::new();
        assert_eq!(stand.at(0), []);
        stand.play(3);
        let sent: Vec<_> = (1..100).flat_map(|frame| stand.at(frame * 20)).collect();
        let expected: Vec<_> = (1..=3 + u64::from(SILENT))
            .map(|number| (number, number == 1))
            .collect();
        assert_eq!(sent, expected);
        stand.play(1);
        // By the clock of the stream the pause lasted as long as by the machine's.
        assert_eq!(stand.at(100 * 20), [(100, true)]);
        assert_eq!(stand.at(100 * 20 + 19), []);
    }

    /// The first leaves before the last has come; where the sound is late there is a pause, and the talkspurt goes on.
    #[test]
    fn sound_that_is_still_being_made_leaves_as_it_comes() {
        let mut stand = Stand::new();
        let (mut feed, _played) = stand.bridge.play(24_000);
        assert_eq!(stand.at(0), [], "nothing has come");
        feed.push(&[1; 480]);
        assert_eq!(stand.at(20), [(1, true)]);
        assert_eq!(stand.at(60), [(2, false), (3, false)], "nothing has come for a while");
        feed.push(&[1; 480]);
        feed.finish();
        let sent: Vec<_> = (4..100).flat_map(|frame| stand.at(frame * 20)).collect();
        assert_eq!(
            sent,
            (4..=4 + u64::from(SILENT))
                .map(|number| (number, false))
                .collect::<Vec<_>>()
        );
    }

    /// While the agent is silent nothing wakes, and its next word leaves at once, alone and at its own time.
    #[test]
    fn a_pause_needs_no_clock_and_its_end_is_no_burst() {
        let mut stand = Stand::new();
        assert_eq!(stand.speech.due(&stand.bridge), None);
        stand.play(2);
        assert!(stand.speech.due(&stand.bridge).is_some());
        assert_eq!(stand.at(1_015), [(50, true)]);
        assert_eq!(stand.at(1_020), [(51, false)]);
        for frame in 52..62 {
            assert!(stand.speech.due(&stand.bridge).is_some(), "its end is soft");
            assert_eq!(stand.at(frame * 20), [(frame, false)]);
        }
        assert_eq!(stand.speech.due(&stand.bridge), None);
    }

    #[test]
    fn silence_goes_on_at_the_rate_of_the_words_before_it() {
        let mut stand = Stand::new();
        drop(stand.bridge.play_whole(22_050, vec![1; 441]));
        let frames: Vec<_> = (0..5)
            .filter_map(|frame| stand.speech.next(&stand.bridge, stand.start + EVERY * frame))
            .collect();
        assert_eq!(frames.len(), 5);
        assert!(frames.iter().all(|frame| frame.sound.samples.len() == 441));
    }

    #[test]
    fn a_little_lateness_is_caught_up_and_much_of_it_is_a_pause() {
        let mut stand = Stand::new();
        stand.play(40);
        assert_eq!(stand.at(0), [(0, true)]);
        assert_eq!(stand.at(75), [(1, false), (2, false), (3, false)]);
        assert_eq!(stand.at(81), [(4, false)]);
        // 400 ms without a turn: the oldest of it are a pause, and no word is lost.
        let late = stand.at(500);
        let numbers: Vec<_> = late.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [20, 21, 22, 23, 24, 25]);
        assert!(late[0].1 && late[1..].iter().all(|(_, first)| !first));
        let rest: Vec<_> = (26..90).flat_map(|frame| stand.at(frame * 20)).collect();
        assert_eq!(rest.len(), 40 - 11 + SILENT as usize);
    }
}
