//! Streams as phones send them: other codecs, packets of any length, and streams that begin anew in the middle of a call.
use super::{
    media::phone_without_keys,
    stage::{CALLEE, OURS, Stage, end, media_of},
};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, Heard, polite_phone},
        ear::{Packet, packets_of, packets_of_ms},
        pause,
        sound::{Sound, loudness},
        until,
    },
};
use audio_codec::{create_opus_decoder, create_opus_encoder, opus::OpusApplication};
use serde_json::{Value, json};
use std::{f64::consts::TAU, net::SocketAddr};

/// G.711 has nothing of it.
const WIDE_HZ: f64 = 5_000.0;

/// Where this tone is, in parts of 20 ms; nothing was put in between. A machine that is busy sends late, and some of it is lost.
fn parts_of_tone(sound: &Sound, hz: f64, sent_ms: u64) -> Vec<u64> {
    let is_it = |at: &u64| loudness(sound.part(*at, 20)) > 1_000.0 && sound.share_of(hz, *at, 20) > 0.8;
    let all: Vec<u64> = (0..sound.ms()).step_by(20).filter(is_it).collect();
    let span_ms = all.last().unwrap_or_else(|| panic!("nothing of {hz} Hz")) - all[0];
    assert!(span_ms <= sent_ms + 500, "{span_ms} of {sent_ms} ms: {all:?}");
    all
}

/// The agent of a call that is recorded over that trunk.
async fn recorded(stage: &Stage, port: u16, trunk: Value) -> Value {
    let trunk = stage.trunk(port, trunk).await;
    stage.number(OURS, &trunk, json!({})).await;
    let settings = json!({ "first_message": "Hello, this is Ann.", "recording": { "enabled": true } });
    stage.agent(settings).await
}

/// Hangs up, and answers what was recorded of both sides.
async fn hung_up(stage: &Stage, id: &str) -> [Sound; 2] {
    stage.hang_up(id).await;
    let ended = stage.ended(id).await;
    assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
    stage.recording(&ended).await
}

/// A tone of a quarter of full scale, as a recording has it.
fn tone_at(rate: u32, hz: f64, ms: u32) -> Sound {
    let sample = |n: u32| (8_192.0 * (TAU * hz * f64::from(n) / f64::from(rate)).sin()) as i16;
    let samples = (0..ms * rate / 1_000).map(sample).collect();
    Sound { rate, samples }
}

/// Three of four seconds begin another stream: another SSRC, another place in the same one, another time alone.
fn anew(mut packets: Vec<Packet>) -> Vec<Packet> {
    for (n, packet) in packets.iter_mut().enumerate() {
        let second = n / 50;
        if second >= 1 {
            packet.ssrc = 0x1234_5678;
            packet.sequence = packet.sequence.wrapping_add(20_000);
            packet.timestamp = packet.timestamp.wrapping_add(0x7654_3210);
        }
        if second >= 2 {
            packet.sequence = packet.sequence.wrapping_add(30_000);
            packet.timestamp = packet.timestamp.wrapping_sub(0x0765_4321);
        }
        if second >= 3 {
            packet.timestamp = packet.timestamp.wrapping_add(8_000_000);
        }
        packet.is_marked = n % 50 == 0;
    }
    packets
}

/// Which of three phones is called, by the last digit of its number.
fn which(invite: &Heard) -> usize {
    let to = invite.header("To").unwrap_or_default();
    let number = to.split(['@', '>']).next().unwrap_or_default();
    number.chars().last().and_then(|digit| digit.to_digit(10)).unwrap_or(0) as usize
}

on_the_phone! {
    /// 40. A gateway changes over in the middle of a talk: nothing is lost, and nothing that was lost is invented.
    async fn a_stream_begins_anew(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone_without_keys(at, ear.port());
        let agent = recorded(stage, at.port(), json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let to = media_of(peer.hears("INVITE", 1).await.body());
        stage.is(&id, "in_progress").await;
        ear.sends(anew(packets_of(&Sound::tone(440.0, 4_000))), 20, to).await;
        let before = ear.packets().len();
        until("it is sent to still", || ear.packets().len() > before + 10).await;
        let [_, theirs] = hung_up(stage, &id).await;
        peer.hears("BYE", 1).await;
        let all = parts_of_tone(&theirs, 440.0, 4_000);
        // Of each second, which is a stream of its own.
        for begins in (all[0]..).step_by(1_000).take(4) {
            let heard_ms = all.iter().filter(|at| (begins..begins + 1_000).contains(*at)).count() * 20;
            assert!(heard_ms >= 500, "{heard_ms} ms from {begins} ms on: {all:?}");
        }
    }

    /// 40. Packets of 10, 30 and 60 ms: ours are as long as the other side asks, and theirs may be as they like.
    async fn packets_of_any_length(stage: &mut Stage) needs [] {
        const LENGTHS: [u32; 3] = [10, 30, 60];
        // Whole packets of each.
        const TONE_MS: u64 = 4_200;
        let at = stage.address();
        let ears = LENGTHS.map(|_| stage.ear());
        let ports = [ears[0].port(), ears[1].port(), ears[2].port()];
        let peer = polite_phone(at, move |invite| {
            let phone = which(invite);
            format!("m=audio {} RTP/AVP 0\r\na=ptime:{}", ports[phone], LENGTHS[phone])
        });
        let agent = recorded(stage, at.port(), json!({})).await;
        let mut ids = Vec::new();
        for n in 0..LENGTHS.len() {
            ids.push(stage.call(&agent, &format!("+1202555012{n}"), json!({})).await);
        }
        for id in &ids {
            stage.is(id, "in_progress").await;
        }
        let tone = Sound::tone(440.0, TONE_MS as usize);
        let says = |n: usize| {
            let invites = peer.heard("INVITE");
            let to = media_of(invites.iter().find(|invite| which(invite) == n).unwrap().body());
            ears[n].sends(packets_of_ms(&tone, LENGTHS[n]), LENGTHS[n], to)
        };
        tokio::join!(says(0), says(1), says(2));
        for (n, id) in ids.iter().enumerate() {
            let [_, theirs] = hung_up(stage, id).await;
            let all = parts_of_tone(&theirs, 440.0, TONE_MS);
            let heard_ms = all.len() as u64 * 20;
            assert!(heard_ms * 10 >= TONE_MS * 6, "{heard_ms} of {TONE_MS} ms: {all:?}");
            let lengths: Vec<usize> = ears[n].packets().iter().map(|packet| packet.payload.len()).collect();
            let wanted = LENGTHS[n] as usize * 8;
            assert!(lengths.len() > 20 && lengths.iter().all(|length| *length == wanted), "{wanted}: {lengths:?}");
            assert!(ears[n].packets().iter().any(Packet::is_loud), "the agent is heard with {wanted}");
        }
    }

    /// 44. G.722: what G.711 cannot carry comes through.
    async fn a_wide_codec_of_a_real_phone(stage: &mut Stage) needs [Pjsip] {
        let (says, heard) = (stage.recorded("says.wav", &tone_at(16_000, WIDE_HZ, 3_000)), stage.file("heard.wav"));
        let behaviour = json!({ "play": says, "loop": true, "record": heard });
        let mut telephone = stage.telephone(behaviour, json!({ "codecs": ["G722/16000"] })).await;
        let agent = recorded(stage, telephone.port, json!({ "codecs": ["g722", "pcmu"] })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.hears("media", |media| media["codec"] == "G722").await;
        telephone.hears("playing", |_| true).await;
        stage.is(&id, "in_progress").await;
        pause(2_500).await;
        let [_, theirs] = hung_up(stage, &id).await;
        telephone.hears("gone", |_| true).await;
        assert_wide(&theirs);
        assert!(Sound::read(&heard).loud_ms().len() > 10, "the agent is heard");
    }

    /// 44. Opus, with a phone of ours and an encoder that is not.
    async fn opus_both_ways(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = opus_phone(at, ear.port());
        let agent = recorded(stage, at.port(), json!({ "codecs": ["opus", "pcmu"] })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        assert!(invite.body().to_ascii_lowercase().contains("opus/48000/2"), "{}", invite.text);
        stage.is(&id, "in_progress").await;
        ear.sends(opus_packets(), 20, media_of(invite.body())).await;
        let [_, theirs] = hung_up(stage, &id).await;
        peer.hears("BYE", 1).await;
        assert_wide(&theirs);
        let packets = ear.packets();
        assert!(packets.iter().all(|packet| packet.payload_type == 111));
        assert!(packets.windows(2).all(|pair| pair[1].timestamp.wrapping_sub(pair[0].timestamp).is_multiple_of(960)));
        let mut decoder = create_opus_decoder(16_000, 1);
        let samples = packets.iter().flat_map(|packet| decoder.decode(&packet.payload)).collect();
        let ours = Sound { rate: 16_000, samples };
        assert!(ours.loud_ms().len() > 10, "the agent is heard: {:?}", ours.loud_ms());
    }
}

/// A second of the wide tone at least, and nothing beside it. In short parts: a packet that a busy machine sends late spoils one.
fn assert_wide(theirs: &Sound) {
    let shares: Vec<f64> = (0..theirs.ms() / 20)
        .map(|n| theirs.share_of(WIDE_HZ, n * 20, 20))
        .collect();
    let pure = shares.iter().filter(|share| **share > 0.8).count();
    assert!(pure >= 50, "{shares:?}");
}

fn opus_phone(at: SocketAddr, rtp: u16) -> BytePeer {
    polite_phone(at, move |_| {
        format!("m=audio {rtp} RTP/AVP 111\r\na=rtpmap:111 opus/48000/2")
    })
}

/// Two seconds of the wide tone.
fn opus_packets() -> Vec<Packet> {
    let mut encoder = create_opus_encoder(48_000, 1, OpusApplication::Voip);
    let like = packets_of(&Sound::silence(20)).remove(0);
    let tone = tone_at(48_000, WIDE_HZ, 2_000);
    let frames = tone.samples.chunks(960).zip(0_u16..);
    let packets = frames.map(|(frame, n)| Packet {
        payload_type: 111,
        is_marked: n == 0,
        sequence: n,
        timestamp: u32::from(n) * 960,
        payload: encoder.encode(frame),
        ..like.clone()
    });
    packets.collect()
}
