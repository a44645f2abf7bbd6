//! A packet every so many milliseconds, whatever is said; late ones are caught up, and the clock of the stream never lies.
use super::*;
use crate::playout::SoundFrame;

const ORIGIN: Origin = Origin {
    ssrc: 9,
    sequence: 65_534,
    timestamp: u32::MAX - 200,
};

const FORMAT: Format = Format {
    codec: Codec::Pcmu,
    payload_type: 0,
    telephone_event: Some(101),
    ptime_ms: 20,
};

struct Stand {
    speaking: Speaking,
    start: Instant,
    /// Frames of words that are there.
    words: usize,
}

impl Stand {
    fn new(format: Format) -> Self {
        let start = Instant::now();
        let mut speaking = Speaking::new(format, ORIGIN).unwrap();
        speaking.send(true, start);
        Stand {
            speaking,
            start,
            words: 0,
        }
    }

    /// The packets of that moment, each with its payload.
    fn at(&mut self, ms: u64) -> Vec<(Header, Vec<u8>)> {
        let now = self.start + Duration::from_millis(ms);
        let mut packets = Vec::new();
        loop {
            let left = &mut self.words;
            let mut words = |_: Instant| {
                *left = left.checked_sub(1)?;
                Some(SoundFrame {
                    rate: 16_000,
                    samples: vec![5_000; 320],
                })
            };
            let Some(header) = self.speaking.next(now, &mut words) else {
                break;
            };
            packets.push((header, self.speaking.payload().to_vec()));
        }
        packets
    }

    fn until(&mut self, ms: u64) -> Vec<(Header, Vec<u8>)> {
        (0..ms / 10).flat_map(|beat| self.at(beat * 10)).collect()
    }
}

#[test]
fn packets_have_the_length_that_was_asked_for() {
    for (codec, asked, ptime_ms) in [
        (Codec::Pcmu, 20, 20),
        (Codec::Pcmu, 10, 10),
        (Codec::Pcma, 30, 30),
        (Codec::G722, 60, 60),
        (Codec::Pcmu, 0, 10),
        (Codec::Pcmu, 25, 30),
        (Codec::Pcmu, 1_000, 60),
        (Codec::Opus, 40, 20),
    ] {
        let mut stand = Stand::new(Format {
            codec,
            ptime_ms: asked,
            ..FORMAT
        });
        stand.words = 20;
        let packets = stand.until(1_200);
        assert_eq!(packets.len() as u32, 1_200 / ptime_ms, "{codec:?} {asked}");
        let units = ptime_ms * codec.per_ms();
        for (at, (header, payload)) in (0_u32..).zip(&packets) {
            assert_eq!(header.sequence, ORIGIN.sequence.wrapping_add(at as u16));
            assert_eq!(
                header.timestamp,
                ORIGIN.timestamp.wrapping_add(at * units),
                "{codec:?} {asked}"
            );
            assert_eq!((header.ssrc, header.payload_type, header.marker), (9, 0, at == 0));
            let wanted = ptime_ms as usize * BYTES_PER_MS;
            assert!(
                codec == Codec::Opus || payload.len() == wanted,
                "{codec:?} {asked}: {}",
                payload.len()
            );
            assert!(!payload.is_empty());
        }
        assert_eq!(stand.words, 0, "{codec:?} {asked}");
        let sent = stand.speaking.sent();
        assert_eq!(sent.packets, packets.len() as u32);
        assert_eq!(
            sent.octets as usize,
            packets.iter().map(|(_, payload)| payload.len()).sum::<usize>()
        );
    }
}

#[test]
fn silence_is_sent_too_and_ends_in_what_is_known() {
    let mut stand = Stand::new(FORMAT);
    stand.words = 5;
    let packets = stand.until(400);
    let loud = |payload: &[u8]| {
        payload
            .iter()
            .any(|byte| adapters::sound::mu_law::decode(*byte).unsigned_abs() > 1_000)
    };
    assert!(packets[..5].iter().all(|(_, payload)| loud(payload)));
    assert!(packets[9..].iter().all(|(_, payload)| *payload == [0xff; 160]));
}

#[test]
fn a_little_lateness_is_caught_up_and_much_of_it_is_a_pause() {
    let mut stand = Stand::new(FORMAT);
    stand.words = 100;
    assert_eq!(stand.at(0).len(), 1);
    assert_eq!(stand.at(105).len(), 5);
    let late = stand.at(1_000);
    assert_eq!(late.len(), 6, "100 ms and the one that is due");
    let header = late[0].0;
    // It was to sound at 900 ms, and says so; no number is missing.
    assert_eq!(header.timestamp, ORIGIN.timestamp.wrapping_add(900 * 8));
    assert_eq!(header.sequence, ORIGIN.sequence.wrapping_add(6));
    assert!(header.marker && late[1..].iter().all(|(header, _)| !header.marker));
    assert_eq!(stand.words, 100 - 12, "no word is lost");
}

#[test]
fn keys_go_as_events_and_the_words_wait() {
    let mut stand = Stand::new(FORMAT);
    stand.words = 100;
    assert!(stand.speaking.press("5") && stand.speaking.is_pressing());
    let packets = stand.until(400);
    let events: Vec<_> = packets
        .iter()
        .filter(|(header, _)| header.payload_type == 101)
        .collect();
    assert_eq!(events.len(), 8);
    assert!(
        events
            .iter()
            .all(|(header, payload)| payload[0] == 5 && header.timestamp == ORIGIN.timestamp)
    );
    // Eight packets of the key and three of the pause, and then the words from the first one on, at the time that it is.
    assert_eq!(stand.words, 100 - 9);
    assert_eq!(packets[11].0.timestamp, ORIGIN.timestamp.wrapping_add(11 * 160));
    assert!(!stand.speaking.is_pressing());
}

#[test]
fn keys_go_in_the_voice_where_events_were_not_agreed() {
    let mut stand = Stand::new(Format {
        telephone_event: None,
        ..FORMAT
    });
    assert!(stand.speaking.press("5#"));
    let bytes: Vec<u8> = stand.until(600).into_iter().flat_map(|(_, payload)| payload).collect();
    let heard = adapters::sound::Pcm::of_mu_law(&bytes).at(16_000);
    let mut keys = String::new();
    tones::KeyTones::default().hear(&heard.samples, |key| keys.push(key));
    assert_eq!(keys, "5#");
}

#[test]
fn another_legs_packets_take_the_place_of_ours() {
    let mut stand = Stand::new(FORMAT);
    assert_eq!(stand.at(0).len(), 1);
    let at = |ms: u64| stand.start + Duration::from_millis(ms);
    let (first, second) = (at(20), at(40));
    let speaking = &mut stand.speaking;
    let one = speaking.pass(5_000, &[1; 160]).unwrap();
    speaking.pause(first);
    let two = speaking.pass(5_160, &[2; 160]).unwrap();
    speaking.pause(second);
    assert_eq!(two.timestamp.wrapping_sub(one.timestamp), 160);
    assert_eq!(two.sequence, one.sequence.wrapping_add(1));
    assert_eq!(speaking.payload(), [2; 160]);
    // Then it speaks for itself again, at the time that it is.
    let own = stand.at(60)[0].0;
    assert_eq!(own.timestamp, ORIGIN.timestamp.wrapping_add(3 * 160));
    assert_eq!(own.sequence, two.sequence.wrapping_add(1));
    stand.speaking.send(false, second);
    assert_eq!(stand.speaking.pass(5_320, &[3; 160]), None);
    assert_eq!(stand.at(10_000), []);
}

#[test]
fn a_new_format_goes_on_where_the_old_one_was() {
    let mut stand = Stand::new(FORMAT);
    let before = stand.until(100);
    let format = Format {
        codec: Codec::Pcma,
        payload_type: 8,
        ptime_ms: 30,
        ..FORMAT
    };
    stand.speaking.change(format).unwrap();
    let (header, payload) = &stand.at(100)[0];
    assert_eq!((header.payload_type, payload.len()), (8, 240));
    assert_eq!(header.sequence, ORIGIN.sequence.wrapping_add(before.len() as u16));
    assert_eq!(header.timestamp, ORIGIN.timestamp.wrapping_add(5 * 160));
}

/// While it is held nothing may be sent: whoever plays the sound must not take what follows for what is a minute late.
#[test]
fn the_clock_of_the_stream_goes_on_while_nothing_is_sent() {
    let mut stand = Stand::new(FORMAT);
    assert_eq!(stand.until(100).len(), 5);
    let at = |ms: u64| stand.start + Duration::from_millis(ms);
    let (stopped, still, again) = (at(110), at(900), at(1_100));
    stand.speaking.send(false, stopped);
    stand.speaking.send(false, still);
    stand.speaking.send(true, again);
    let (header, _) = &stand.at(1_100)[0];
    assert_eq!(header.timestamp, ORIGIN.timestamp.wrapping_add(1_100 * 8));
    assert_eq!(header.sequence, ORIGIN.sequence.wrapping_add(5));
    assert!(header.marker);
}

/// Without it another leg's voice would wait for an end that cannot be said.
#[test]
fn a_key_ends_when_events_are_no_longer_agreed() {
    for ms in [100, 200] {
        let mut stand = Stand::new(FORMAT);
        assert!(stand.speaking.press("5"));
        stand.until(ms);
        assert!(stand.speaking.is_pressing());
        let format = Format {
            telephone_event: None,
            ..FORMAT
        };
        stand.speaking.change(format).unwrap();
        assert!(!stand.speaking.is_pressing(), "{ms}");
        let (header, _) = &stand.at(ms)[0];
        assert_eq!(header.payload_type, 0);
    }
}

/// A recording puts the words where they sound, whatever the length of packets.
#[test]
fn words_are_asked_for_as_of_the_moment_at_which_they_sound() {
    for ptime_ms in [10, 20, 30, 60] {
        let mut stand = Stand::new(Format { ptime_ms, ..FORMAT });
        let mut moments = Vec::new();
        for beat in 0..24 {
            let now = stand.start + Duration::from_millis(10 * beat);
            let mut words = |at: Instant| {
                moments.push((at - stand.start).as_millis());
                None
            };
            while stand.speaking.next(now, &mut words).is_some() {}
        }
        let wanted: Vec<u128> = (0..12).map(|frame| 20 * frame).collect();
        assert_eq!(moments, wanted, "{ptime_ms}");
    }
}
