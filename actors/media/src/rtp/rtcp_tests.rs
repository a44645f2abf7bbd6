//! Two ends that tell each other what they hear; loss, jitter and round trip come out as they were made.
use super::*;
use proptest::prelude::*;

fn header(sequence: u16, timestamp: u32) -> Header {
    Header {
        marker: false,
        payload_type: 0,
        sequence,
        timestamp,
        ssrc: 77,
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn control(ssrc: u32, now: Instant) -> Control {
    Control::new(ssrc, "abcdefghijkl".into(), 7, now)
}

#[test]
fn what_is_lost_is_counted_over_the_end_of_the_numbers() {
    let mut reception = Reception::default();
    for at in (0..200_u16).filter(|at| at % 10 != 3) {
        reception.packet(&header(65_500_u16.wrapping_add(at), 0), None, at == 0);
    }
    assert_eq!(reception.totals(), (180, 20));
    let mut block = Vec::new();
    reception.block(None, &mut block);
    assert_eq!(block.len(), 24);
    assert_eq!(block[4], 25, "a tenth, of 256");
    assert_eq!(word(&block, 1).unwrap() & 0xff_ffff, 20);
    assert_eq!(
        word(&block, 2),
        Some((1 << 16) | u32::from(65_500_u16.wrapping_add(199)))
    );
    // Nothing was lost since then.
    reception.packet(&header(65_500_u16.wrapping_add(200), 0), None, false);
    block.clear();
    reception.block(None, &mut block);
    assert_eq!(block[4], 0);
    // A new source begins at nothing, and what was before is not forgotten.
    reception.packet(&header(9, 0), None, true);
    assert_eq!(reception.totals(), (182, 20));
}

#[test]
fn jitter_is_the_deviation_of_the_gaps() {
    for (off_ms, wanted) in [(0, 0.0..0.01), (8, 7.5..8.5)] {
        let mut reception = Reception::default();
        for at in 0..500_u32 {
            // Every other packet is late.
            let arrival = at * 160 + (at % 2) * off_ms * 8;
            reception.packet(&header(at as u16, at * 160), Some(arrival), at == 0);
        }
        let quality = control(1, Instant::now()).quality(&reception, 8_000);
        assert!(wanted.contains(&quality.jitter_ms), "{off_ms}: {quality:?}");
    }
}

#[test]
fn a_round_trip_is_what_the_way_took() {
    let start = Instant::now();
    let (mut here, mut there) = (control(1, start), control(2, start + ms(3_000)));
    let (mut heard_here, mut heard_there) = (Reception::default(), Reception::default());
    let sent = Sent {
        packets: 100,
        octets: 16_000,
        timestamp: 5,
    };
    for at in (0..100_u16).filter(|at| at % 4 != 1) {
        let header = Header {
            ssrc: 1,
            ..header(at, 0)
        };
        heard_there.packet(&header, None, at == 0);
    }
    let report = here.report(sent, &mut heard_here, start + ms(5_000), false);
    // 40 ms there, a second of thinking, 60 ms back.
    assert!(there.read(&report, start + ms(5_040)));
    let report = there.report(Sent::default(), &mut heard_there, start + ms(6_040), true);
    assert!(here.read(&report, start + ms(6_100)));
    let quality = here.quality(&heard_here, 8_000);
    let trip = quality.round_trip_ms.unwrap();
    assert!((99.0..101.0).contains(&trip), "{trip}");
    assert!((quality.remote_loss.unwrap() - 0.25).abs() < 0.01, "{quality:?}");
    assert_eq!(quality.remote_jitter_ms, Some(0.0));
}

/// Whole packets of four bytes each, the first a report: what other stacks check before they read.
#[test]
fn a_report_is_well_formed() {
    let start = Instant::now();
    let mut control = control(1, start);
    let mut reception = Reception::default();
    let nothing = control.report(Sent::default(), &mut reception, start, false);
    assert_eq!(nothing[..4], [0x80, RECEIVER_REPORT, 0, 1]);
    reception.packet(&header(1, 1), None, true);
    let sent = Sent {
        packets: 1,
        ..Sent::default()
    };
    let bytes = control.report(sent, &mut reception, start + ms(1_500), true);
    let (mut rest, mut kinds) = (&bytes[..], Vec::new());
    while let [first, kind, high, low, after @ ..] = rest {
        let length = 4 * usize::from(u16::from_be_bytes([*high, *low]));
        kinds.push((*first, *kind, length));
        rest = &after[length..];
    }
    assert!(rest.is_empty());
    assert_eq!(
        kinds,
        [(0x81, SENDER_REPORT, 48), (0x81, DESCRIPTION, 20), (0x81, GOODBYE, 4)]
    );
    assert_eq!(bytes[8..16], ntp(ms(1_500)).to_be_bytes());
    assert_eq!(ntp(ms(1_500)), 1 << 32 | 1 << 31);
}

#[test]
fn reports_keep_their_distance() {
    let start = Instant::now();
    let mut control = control(1, start);
    let (mut now, mut moments) = (start, Vec::new());
    while moments.len() < 200 {
        now += ms(10);
        if control.is_due(now) {
            moments.push(now);
        }
    }
    let gaps: Vec<Duration> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (ms(2_500)..=ms(7_520)).contains(gap)), "{gaps:?}");
    let mean = gaps.iter().sum::<Duration>() / gaps.len() as u32;
    assert!((ms(4_500)..ms(5_500)).contains(&mean), "{mean:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 200_u8..205) {
        if let [first, second, _, low, ..] = &mut bytes[..] {
            *first = *first & 0x3f | 0x80;
            *second = kind;
            *low &= 0x1f;
        }
        let now = Instant::now();
        let mut control = control(1, now);
        control.read(&bytes, now + Duration::from_secs(20));
        let trip = control.quality(&Reception::default(), 8_000).round_trip_ms;
        prop_assert!(trip.is_none_or(|trip| trip <= 10_000.0));
    }
}
