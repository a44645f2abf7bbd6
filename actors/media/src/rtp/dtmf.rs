//! Keys of a telephone as named events. Pure. Source: RFC 4733.
use super::packet::Header;
use std::collections::VecDeque;

/// Keys that wait to be sent; who presses more at once is refused.
pub const MOST_WAITING: usize = 64;
/// How long a key is pressed, and the pause after it.
const PRESSED_MS: u32 = 100;
const PAUSE_MS: u32 = 60;
/// The end of a key is said so often, for one packet may be lost.
const ENDS: u8 = 3;
/// Packets of sound in a row after which a key is over though nobody said its end.
const OVER_AFTER: u8 = 3;
/// A packet that is so far behind the last key is of another clock, not of an older key: packets come in their order, but for a
/// tenth of a second. Units of the RTP clock; 1.4 s at 48 kHz, 8 s at 8 kHz.
const ANOTHER_CLOCK: i32 = 1 << 16;
/// −10 dBm0, in the six bits of the event.
const VOLUME: u8 = 10;
/// The last of the telephone's twelve keys; letters and signals of modems are not passed on.
const KEYS: [char; 12] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '*', '#'];

/// Its event's number.
pub fn event_of(key: char) -> Option<u8> {
    let at = KEYS.iter().position(|known| *known == key)?;
    u8::try_from(at).ok()
}

/// What the other side presses: each key once, with its first packet that comes.
#[derive(Debug, Default)]
pub struct KeyReceiver {
    last: Option<Pressed>,
}

#[derive(Clone, Copy, Debug)]
struct Pressed {
    event: u8,
    /// All packets of a key have the same, unless it is pressed for very long.
    timestamp: u32,
    duration: u16,
    is_over: bool,
    /// Packets of sound since its last packet.
    sound: u8,
}

impl KeyReceiver {
    /// The key that begins with this packet, if one does.
    pub fn packet(&mut self, header: &Header, payload: &[u8]) -> Option<char> {
        let [event, flags, high, low, ..] = *payload else {
            return None;
        };
        let now = Pressed {
            event,
            timestamp: header.timestamp,
            duration: u16::from_be_bytes([high, low]),
            is_over: flags & 0x80 != 0,
            sound: 0,
        };
        if let Some(last) = &mut self.last {
            let ahead = now.timestamp.wrapping_sub(last.timestamp) as i32;
            // A key that is pressed for longer than its 16 bits count goes on in a second part (section 2.5.1.3).
            let goes_on = !last.is_over && now.event == last.event && ahead == i32::from(last.duration);
            if (-ANOTHER_CLOCK..0).contains(&ahead) {
                return None;
            }
            if ahead == 0 || goes_on {
                let is_over = now.is_over || ahead == 0 && last.is_over;
                *last = Pressed { is_over, ..now };
                return None;
            }
        }
        self.last = Some(now);
        KEYS.get(usize::from(event)).copied()
    }

    /// Sound came instead.
    pub fn sound(&mut self) {
        if let Some(last) = &mut self.last {
            last.sound = last.sound.saturating_add(1);
            last.is_over |= last.sound >= OVER_AFTER;
        }
    }

    /// Another stream, whose timestamps say nothing of those before.
    pub fn reset(&mut self) {
        self.last = None;
    }
}

/// A packet of a key that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub payload: [u8; 4],
    pub timestamp: u32,
    /// The first of its key.
    pub marker: bool,
}

/// What comes next of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// No key is pressed: the words go on.
    Words,
    /// Between two keys, or after the last.
    Pause,
    Key(Event),
}

/// Keys on their way out, a packet for each step of the sender's clock.
#[derive(Debug, Default)]
pub struct KeySender {
    waiting: VecDeque<u8>,
    now: Option<Sending>,
    /// Of the pause after the last key.
    pause_ms: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    event: u8,
    timestamp: u32,
    pressed_ms: u32,
    ends: u8,
}

impl KeySender {
    /// `false`: it holds another key than `0-9*#`, or too many wait already; none of it is pressed then.
    pub fn press(&mut self, keys: &str) -> bool {
        let Some(events) = keys.chars().map(event_of).collect::<Option<Vec<u8>>>() else {
            return false;
        };
        let fits = self.waiting.len() + events.len() <= MOST_WAITING;
        if fits {
            self.waiting.extend(events);
        }
        fits
    }

    /// Until the pause behind the last key is over.
    pub fn is_pressing(&self) -> bool {
        !self.waiting.is_empty() || self.now.is_some() || self.pause_ms > 0
    }

    /// The next step, of so many milliseconds, that begins at `timestamp` of a clock of `per_ms` units.
    pub fn step(&mut self, ms: u32, timestamp: u32, per_ms: u32) -> Turn {
        if self.pause_ms > 0 {
            self.pause_ms = self.pause_ms.saturating_sub(ms);
            return Turn::Pause;
        }
        let marker = self.now.is_none();
        let mut sending = match self.now {
            Some(sending) => sending,
            None => match self.waiting.pop_front() {
                Some(event) => Sending {
                    event,
                    timestamp,
                    pressed_ms: 0,
                    ends: 0,
                },
                None => return Turn::Words,
            },
        };
        let is_over = sending.pressed_ms >= PRESSED_MS;
        match is_over {
            true => sending.ends += 1,
            false => sending.pressed_ms += ms,
        }
        self.now = (sending.ends < ENDS).then_some(sending);
        if self.now.is_none() {
            self.pause_ms = PAUSE_MS;
        }
        let [high, low] = ((sending.pressed_ms * per_ms).min(0xffff) as u16).to_be_bytes();
        let flags = u8::from(is_over) << 7 | VOLUME;
        Turn::Key(Event {
            payload: [sending.event, flags, high, low],
            timestamp: sending.timestamp,
            marker,
        })
    }

    /// Events are no longer agreed on: what is left of the key that is being pressed, and of its pause, cannot be said.
    pub fn break_off(&mut self) {
        self.now = None;
        self.pause_ms = 0;
    }

    /// A key that is pressed in the voice itself, where events were not agreed: the next one that waits.
    pub fn take(&mut self) -> Option<char> {
        let event = self.waiting.pop_front()?;
        KEYS.get(usize::from(event)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(timestamp: u32) -> Header {
        Header {
            marker: false,
            payload_type: 101,
            sequence: 0,
            timestamp,
            ssrc: 1,
        }
    }

    fn heard(packets: &[(u32, [u8; 4])]) -> String {
        let mut receiver = KeyReceiver::default();
        let packets = packets.iter();
        packets
            .filter_map(|(timestamp, payload)| receiver.packet(&header(*timestamp), payload))
            .collect()
    }

    fn event(event: u8, is_over: bool, duration: u16) -> [u8; 4] {
        let [high, low] = duration.to_be_bytes();
        [event, u8::from(is_over) << 7 | 10, high, low]
    }

    #[test]
    fn each_key_is_heard_once_whatever_is_lost() {
        let five = [
            (160, event(5, false, 160)),
            (160, event(5, false, 320)),
            (160, event(5, true, 480)),
            (160, event(5, true, 480)),
            (160, event(5, true, 480)),
        ];
        let again = five.map(|(_, payload)| (4_000, payload));
        let all = [five, again].concat();
        assert_eq!(heard(&all), "55");
        for kept in 0..5 {
            assert_eq!(heard(&[all[kept], all[5 + kept]]), "55", "only packet {kept} of each");
        }
        for (what, packets, keys) in [
            ("an end that comes again late", vec![all[0], all[5], all[4]], "55"),
            (
                "the same key at once again",
                vec![all[0], all[4], (640, event(5, false, 160))],
                "55",
            ),
            (
                "one that is pressed for long goes on",
                vec![(8, event(1, false, 0xffff)), (8 + 0xffff, event(1, false, 160))],
                "1",
            ),
            (
                "one that has ended does not",
                vec![(8, event(1, true, 800)), (808, event(1, false, 160))],
                "11",
            ),
            (
                "over the end of the clock",
                vec![(u32::MAX, event(1, true, 1)), (5, event(2, true, 1))],
                "12",
            ),
            (
                "a clock that was set back",
                vec![
                    (900_000, event(1, true, 1)),
                    (160, event(1, true, 1)),
                    (320, event(2, true, 1)),
                ],
                "112",
            ),
            (
                "letters and modems",
                vec![(1, event(12, true, 1)), (2, event(36, true, 1))],
                "",
            ),
            (
                "star and hash",
                vec![(1, event(10, true, 1)), (2, event(11, true, 1))],
                "*#",
            ),
        ] {
            assert_eq!(heard(&packets), keys, "{what}");
        }
        assert_eq!(KeyReceiver::default().packet(&header(1), &[5, 0, 0]), None, "it is cut");
    }

    #[test]
    fn a_key_whose_end_is_lost_is_over_when_sound_comes() {
        for (sounds, wanted) in [(2, None), (3, Some('1'))] {
            let mut receiver = KeyReceiver::default();
            assert_eq!(receiver.packet(&header(8), &event(1, false, 800)), Some('1'));
            (0..sounds).for_each(|_| receiver.sound());
            assert_eq!(receiver.packet(&header(808), &event(1, false, 160)), wanted, "{sounds}");
        }
    }

    fn sent(sender: &mut KeySender, ms: u32, steps: u32) -> Vec<Turn> {
        (0..steps)
            .map(|step| sender.step(ms, 1_000 + step * ms * 8, 8))
            .collect()
    }

    #[test]
    fn a_key_is_pressed_for_100_ms_and_ends_three_times() {
        let mut sender = KeySender::default();
        assert!(sender.press("5"));
        let turns = sent(&mut sender, 20, 12);
        let keys: Vec<Event> = turns
            .iter()
            .filter_map(|turn| match turn {
                Turn::Key(event) => Some(*event),
                Turn::Pause | Turn::Words => None,
            })
            .collect();
        let durations = [160, 320, 480, 640, 800, 800, 800, 800];
        for (at, (key, duration)) in keys.iter().zip(durations).enumerate() {
            assert_eq!(key.payload, event(5, at >= 5, duration), "{at}");
            assert_eq!((key.timestamp, key.marker), (1_000, at == 0), "{at}");
        }
        assert_eq!(keys.len(), 8);
        assert_eq!(turns[8..], [Turn::Pause, Turn::Pause, Turn::Pause, Turn::Words]);
    }

    /// What one end sends the other hears, at every packet length.
    #[test]
    fn what_is_pressed_is_heard() {
        for ms in [10, 20, 30, 40, 50, 60] {
            let (mut sender, mut receiver) = (KeySender::default(), KeyReceiver::default());
            assert!(sender.press("1122*#09"));
            let heard: String = sent(&mut sender, ms, 400)
                .into_iter()
                .filter_map(|turn| match turn {
                    Turn::Key(event) => receiver.packet(&header(event.timestamp), &event.payload),
                    Turn::Pause | Turn::Words => None,
                })
                .collect();
            assert_eq!(heard, "1122*#09", "{ms}");
            assert_eq!(sender.step(ms, 0, 8), Turn::Words);
        }
    }

    #[test]
    fn what_cannot_be_pressed_is_refused_whole() {
        let mut sender = KeySender::default();
        assert!(!sender.press("12A4") && !sender.press("1 2"));
        assert_eq!(sender.step(20, 0, 8), Turn::Words, "nothing of it");
        assert!(sender.press(&"1".repeat(MOST_WAITING)) && !sender.press("2"));
        assert_eq!(sender.take(), Some('1'));
        assert!(sender.press("2"));
    }
}
