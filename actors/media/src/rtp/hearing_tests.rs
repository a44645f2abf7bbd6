//! Packets of a phone that stumbles, pauses, changes and presses keys.
use super::{super::codec::Encoder, *};
use crate::{goertzel::purity_of, playout::SoundFrame, tones};

const EXPECTED: Expected = Expected {
    codec: Codec::Pcmu,
    payload_type: 0,
    telephone_event: Some(101),
};

struct Stand {
    hearing: Hearing,
    start: Instant,
    sound: Vec<i16>,
    keys: String,
    raw: usize,
}

impl Stand {
    fn new(expected: Expected) -> Self {
        let start = Instant::now();
        Stand {
            hearing: Hearing::new(expected, start).unwrap(),
            start,
            sound: Vec::new(),
            keys: String::new(),
            raw: 0,
        }
    }

    fn with(&mut self, work: impl FnOnce(&mut Hearing, &mut dyn FnMut(Heard<'_>))) {
        let (sound, keys, raw) = (&mut self.sound, &mut self.keys, &mut self.raw);
        work(&mut self.hearing, &mut |heard| match heard {
            Heard::Sound(samples) => sound.extend_from_slice(samples),
            Heard::Key(key) => keys.push(key),
            Heard::Payload { .. } => *raw += 1,
        });
    }

    fn packet(&mut self, kind: u8, sequence: u16, timestamp: u32, payload: &[u8], ms: u64) -> Option<&'static str> {
        let header = Header {
            marker: false,
            payload_type: kind,
            sequence,
            timestamp,
            ssrc: 5,
        };
        let (now, mut why) = (self.start + Duration::from_millis(ms), None);
        self.with(|hearing, give| why = hearing.packet(Packet { header, payload }, now, give));
        why
    }

    fn tick(&mut self, ms: u64) {
        let now = self.start + Duration::from_millis(ms);
        self.with(|hearing, give| hearing.tick(now, give));
    }
}

/// 20 ms packets of a tone of 500 Hz.
fn tone() -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(Codec::Pcmu).unwrap();
    let wave = |at: usize| (8_000.0 * (std::f64::consts::TAU * 500.0 * at as f64 / 8_000.0).sin()) as i16;
    let say = |nth: usize| {
        let mut payload = Vec::new();
        let samples = (0..160).map(|at| wave(nth * 160 + at)).collect();
        assert!(encoder.say(&SoundFrame { rate: 8_000, samples }, &mut payload));
        payload
    };
    (0..50).map(say).collect()
}

#[test]
fn a_second_of_sound_is_a_second_whatever_the_order_and_the_loss() {
    for (what, step) in [("in order", 1), ("backwards by threes", 3)] {
        let mut stand = Stand::new(EXPECTED);
        let payloads = tone();
        let mut order: Vec<usize> = (0..48).collect();
        order[1..].chunks_mut(step).for_each(<[usize]>::reverse);
        for at in order.into_iter().filter(|at| !(20..23).contains(at)) {
            stand.packet(0, at as u16, at as u32 * 160, &payloads[at], at as u64 * 20);
        }
        stand.tick(2_000);
        assert_eq!(stand.sound.len(), 48 * 320, "{what}");
        assert!(purity_of(&stand.sound[1_600..6_000], 500.0, 16_000.0) > 0.95, "{what}");
        let lost = &stand.sound[20 * 320..23 * 320];
        assert!(lost.iter().all(|sample| *sample == 0), "{what}");
    }
}

#[test]
fn what_does_not_come_is_silence_by_the_clock() {
    let mut stand = Stand::new(EXPECTED);
    stand.tick(5_000);
    assert_eq!(stand.sound.len(), 0, "it has not begun");
    stand.hearing.begin(stand.start);
    (0..50).for_each(|beat| stand.tick(beat * 10));
    assert_eq!(stand.sound.len() / 16, 480);
    // One packet is heard, 60 ms are no silence yet, then it is quiet again.
    stand.packet(0, 1, 0, &tone()[0], 500);
    let heard = stand.sound.len();
    stand.tick(560);
    assert_eq!(stand.sound.len(), heard);
    (57..100).for_each(|beat| stand.tick(beat * 10));
    assert_eq!((stand.sound.len() - heard) / 16, 480);
    // Ten packets were lost, and all of that was silence already.
    let before = stand.sound.len();
    stand.packet(0, 12, 11 * 160, &tone()[0], 1_000);
    stand.tick(1_100);
    assert_eq!(stand.sound.len() - before, 320 + 1_600);
    // Held up for long, it makes up for a second only.
    stand.tick(60_000);
    assert_eq!(stand.sound.len() - before, 320 + 1_600 + 16_000);
}

#[test]
fn keys_come_as_events_or_in_the_voice_and_never_as_both() {
    let voice: Vec<i16> = tones::key('5').unwrap();
    let in_band: Vec<u8> = voice.iter().copied().map(adapters::sound::mu_law::encode).collect();
    for (agreed, wanted) in [(Some(101), "7"), (None, "5")] {
        let mut stand = Stand::new(Expected {
            telephone_event: agreed,
            ..EXPECTED
        });
        for (at, payload) in in_band.chunks(160).enumerate() {
            stand.packet(0, at as u16, at as u32 * 160, payload, at as u64 * 20);
        }
        for (at, flags) in [(8, 10), (9, 0x8a), (10, 0x8a)] {
            stand.packet(101, at, 1_280, &[7, flags, 0, 200], u64::from(at) * 20);
        }
        assert_eq!(stand.keys, wanted);
    }
}

#[test]
fn what_is_not_agreed_is_counted_and_not_heard() {
    let mut stand = Stand::new(EXPECTED);
    let payload = &tone()[0];
    assert_eq!(stand.packet(0, 1, 0, payload, 0), None);
    assert_eq!(stand.packet(18, 2, 160, payload, 20), Some("payload"));
    assert_eq!(stand.packet(COMFORT_NOISE, 3, 320, &[40], 40), None);
    assert_eq!(stand.packet(0, 3, 320, payload, 40), Some("late"));
    assert_eq!(stand.packet(0, 5, 640, payload, 80), None);
    assert_eq!(stand.packet(0, 5, 640, payload, 80), Some("duplicate"));
    assert_eq!(stand.packet(0, 4, 480, payload, 80), None);
    assert_eq!(stand.sound.len(), 3 * 320);
    // Another leg takes it as it is.
    stand.hearing.relay(true, true);
    stand.packet(0, 6, 800, payload, 100);
    assert_eq!((stand.sound.len(), stand.raw), (3 * 320, 1));
}

/// Whoever sends more than there can be is heard for as long as it could have lasted: the thread has other legs.
#[test]
fn a_flood_is_not_heard_to_its_end() {
    for is_raw in [false, true] {
        for (what, sequence_step, timestamp_step) in [("packets", 1, 160), ("holes of a second", 2, 16_000)] {
            let mut stand = Stand::new(EXPECTED);
            stand.hearing.relay(is_raw, is_raw);
            let payload = &tone()[0];
            let whys: Vec<_> = (0..1_000_u16)
                .map(|nth| {
                    let sequence = nth.wrapping_mul(sequence_step);
                    stand.packet(0, sequence, u32::from(nth) * timestamp_step, payload, 0)
                })
                .collect();
            assert_eq!(whys[0], None, "{what}");
            assert_eq!(whys[999], Some("flood"), "{what}");
            let samples = stand.sound.len().max(stand.raw * 320);
            assert!((80_000..=96_320).contains(&samples), "{what}, raw: {is_raw}: {samples}");
            // A second later a second is heard again, and somewhat more.
            let before = samples;
            for nth in 0..200_u16 {
                let sequence = 1_000_u16.wrapping_mul(sequence_step).wrapping_add(nth);
                stand.packet(0, sequence, 900_000_000 + u32::from(nth) * 160, payload, 1_000);
            }
            let more = stand.sound.len().max(stand.raw * 320) - before;
            assert!((20_000..40_000).contains(&more), "{what}, raw: {is_raw}: {more}");
        }
    }
}

/// Detectors count time by what they hear: packets that hold nothing must not stop the clock.
#[test]
fn what_cannot_be_read_is_silence_too() {
    let mut stand = Stand::new(EXPECTED);
    stand.hearing.begin(stand.start);
    for nth in 0..50_u16 {
        let ms = u64::from(nth) * 20;
        stand.packet(0, nth, u32::from(nth) * 160, &[], ms);
        stand.tick(ms + 10);
    }
    assert!((14_000..=16_000).contains(&stand.sound.len()), "{}", stand.sound.len());
}
