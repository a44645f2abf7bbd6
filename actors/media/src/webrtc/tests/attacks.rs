//! Packets that nobody should send.
use super::*;
use crate::playout::SoundFrame;
use std::{io::ErrorKind, net::UdpSocket};

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.below(256) as u8).collect()
    }
}

/// A STUN binding request with USE-CANDIDATE and whatever integrity.
fn stun(username: &str, integrity: &[u8]) -> Vec<u8> {
    let attributes: [(u16, &[u8]); 5] = [
        (0x0006, username.as_bytes()),
        (0x0024, &[0x6e, 0x7f, 0xff, 0xff]),
        (0x802a, &[1; 8]),
        (0x0025, &[]),
        (0x0008, integrity),
    ];
    let mut body = Vec::new();
    for (kind, value) in attributes {
        body.extend(kind.to_be_bytes());
        body.extend((value.len() as u16).to_be_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut packet = vec![0, 1];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([0x21, 0x12, 0xa4, 0x42]);
    packet.extend([9; 12]);
    packet.extend(body);
    packet
}

/// Broken packets of every kind that the port knows.
fn broken(chance: &mut Chance, username: &str) -> Vec<u8> {
    let size = chance.below(300);
    let mut bytes = chance.bytes(size);
    match chance.below(6) {
        // STUN: good at the beginning, then cut or scribbled over.
        0 => {
            bytes = stun(username, &[0; 20]);
            let size = chance.below(bytes.len() + 1);
            bytes.truncate(size);
        }
        1 => {
            bytes = stun(username, &[0; 20]);
            for _ in 0..4 {
                let at = 2 + chance.below(bytes.len() - 2);
                bytes[at] = chance.below(256) as u8;
            }
        }
        // DTLS: records of every kind with any version, epoch and length.
        2 if size > 13 => {
            bytes[0] = 20 + chance.below(44) as u8;
            bytes[1..3].copy_from_slice(&[0xfe, 0xfd]);
            if chance.below(2) == 0 {
                let length = (size - 13) as u16;
                bytes[3..5].copy_from_slice(&[0, chance.below(2) as u8]);
                bytes[11..13].copy_from_slice(&length.to_be_bytes());
            }
        }
        // RTP and RTCP.
        3 | 4 if size > 2 => {
            bytes[0] = 0x80 | chance.below(64) as u8;
            bytes[1] = [0, 96, 111, 200, 201, 202, 203, 205, 206][chance.below(9)];
        }
        _ => {}
    }
    bytes
}

#[tokio::test]
async fn broken_packets_end_nothing() {
    let media = media();
    let mut call = Call::new(&media, Codec::Opus).await;
    let username = format!("{}:{}", value(&call.answer, "a=ice-ufrag:"), "theirs");
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut chance = Chance(1);
    for round in 0..8 {
        for _ in 0..250 {
            stranger
                .send_to(&broken(&mut chance, &username), media.local_addr())
                .unwrap();
            call.peer.raw(broken(&mut chance, &username));
        }
        call.is_alive(440.0 + f64::from(round)).await;
    }
    call.peer.press("8");
    assert_eq!(call.pressed().await, "8");
    assert!(purest(&call.peer.heard(), 440.0) > 0.9);
    assert!(call.changes.try_recv().is_err(), "it never was lost");
}

#[tokio::test]
async fn broken_packets_do_not_keep_a_page_from_connecting() {
    let media = media();
    let (peer, sdp) = Peer::offer(Codec::Pcmu);
    let offered = media.offer(&sdp).unwrap();
    let answer = offered.answer().to_string();
    let username = format!("{}:{}", value(&answer, "a=ice-ufrag:"), value(&sdp, "a=ice-ufrag:"));
    let (bridge, _heard) = MediaBridge::new();
    let _connection = offered.connect(bridge, |_| {});
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut chance = Chance(2);
    for _ in 0..200 {
        stranger
            .send_to(&broken(&mut chance, &username), media.local_addr())
            .unwrap();
    }
    peer.connect(&answer);
    peer.connected().await;
}

#[tokio::test]
async fn who_does_not_know_the_secret_steals_no_connection() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    call.is_alive(440.0).await;
    let thief = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (_, theirs) = call.answer.split_once("a=ice-ufrag:").unwrap();
    let ours = theirs.lines().next().unwrap();
    for name in ["x", "theirs", ours] {
        for integrity in [[0; 20], [0xff; 20]] {
            thief
                .send_to(&stun(&format!("{ours}:{name}"), &integrity), media.local_addr())
                .unwrap();
        }
    }
    // Not known by its address either.
    thief
        .send_to(
            &[0x80, 111, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 5, 5, 5, 5],
            media.local_addr(),
        )
        .unwrap();
    for _ in 0..2 {
        call.is_alive(500.0).await;
    }
    call.peer.press("9");
    assert_eq!(call.pressed().await, "9");
    thief.set_nonblocking(true).unwrap();
    let got = thief.recv_from(&mut [0; 2_000]);
    assert_eq!(got.unwrap_err().kind(), ErrorKind::WouldBlock, "nothing was answered");
}

#[test]
fn a_decoder_survives_any_payload() {
    let mut chance = Chance(3);
    for codec in Codec::ALL {
        let mut decoder = super::codec::PayloadDecoder::new(codec).unwrap();
        for frame in 0..3_000 {
            let size = chance.below(200);
            let mut payload = chance.bytes(size);
            if let Some(first) = payload.first_mut() {
                // Every way of packing, most of them with frames that one packet may carry.
                *first = chance.below(256) as u8;
            }
            let samples = decoder.hear(&payload, codec.time(frame));
            assert!(samples.len() <= 16_000 + 2 * 1_600, "{}", samples.len());
        }
        // And hears on.
        let mut encoder = super::codec::PayloadEncoder::new(codec).unwrap();
        let sound = Pcm::of_mu_law(&tone(600.0, 400));
        let mut heard = Vec::new();
        for (at, frame) in sound.samples.chunks(160).enumerate() {
            let frame = SoundFrame {
                rate: sound.rate,
                samples: frame.to_vec(),
            };
            let payload = encoder.say(&frame).unwrap();
            heard.extend(decoder.hear(&payload, codec.time(3_000 + at as u64)));
        }
        assert!(purest(&heard, 600.0) > 0.9, "{codec:?}");
    }
}

#[test]
fn what_is_missing_takes_its_time() {
    let mut decoder = super::codec::PayloadDecoder::new(Codec::Pcmu).unwrap();
    let frame = [0x10; 160];
    let sizes = [0, 1, 2, 5, 5, 1_000, 3].map(|at| decoder.hear(&frame, Codec::Pcmu.time(at)).len());
    // In order; two lost; the same again; a second at most of a long pause; back in time.
    assert_eq!(sizes, [320, 320, 320, 960, 320, 16_320, 320]);
}
