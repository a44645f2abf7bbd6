//! tshark: looks at what came to a phone and what it sent, as somebody who has no part in the call.
//!
//! The packets are those of the phone's own socket, written as a capture: to listen on the interface takes rights that not every
//! machine gives.
use super::{
    Need,
    ear::Packet,
    sound::{Sound, linear},
};
use std::{fs, net::SocketAddr, path::Path, process::Command};

/// RTP in one direction, as tshark sums it up.
#[derive(Clone, Debug)]
pub struct Stream {
    pub from: u16,
    pub packets: u64,
    pub lost: i64,
    /// Between two packets.
    pub mean_ms: f64,
    pub max_ms: f64,
}

/// What one side of a call has sent, as sound.
#[derive(Clone, Debug)]
pub struct Side {
    pub from: u16,
    pub sound: Sound,
}

/// Looks at a call's packets, which are written to that file. `port`: the phone's, of RTP.
pub fn look(file: &Path, passed: &[(Packet, SocketAddr)], port: u16) -> (Vec<Stream>, Vec<Side>) {
    fs::write(file, capture(passed)).unwrap();
    let as_rtp = format!("udp.port=={port},rtp");
    let tshark = |arguments: &[&str]| {
        let mut command: Command = Need::Tshark.command();
        let output = command.arg("-r").arg(file).args(["-n", "-d", &as_rtp]).args(arguments);
        let output = output.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let summed_up = tshark(&["-q", "-z", "rtp,streams"]);
    let streams = summed_up.lines().filter_map(stream).collect();
    let fields = ["udp.srcport", "rtp.timestamp", "rtp.payload"].map(|field| ["-e", field]);
    let each = [&["-Y", "rtp.p_type == 0", "-T", "fields"][..], fields.as_flattened()].concat();
    (streams, sides(&tshark(&each)))
}

/// As a file of libpcap, of IP packets without any frame around them (LINKTYPE_RAW).
fn capture(passed: &[(Packet, SocketAddr)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    let Some((first, _)) = passed.first() else { return file };
    for (packet, to) in passed {
        let since = packet.at.duration_since(first.at);
        let rtp = packet.to_bytes();
        let (udp, ip) = (8 + rtp.len() as u16, 28 + rtp.len() as u16);
        let seconds = 1 + since.as_secs() as u32;
        for word in [seconds, since.subsec_micros(), ip.into(), ip.into()] {
            file.extend(word.to_le_bytes());
        }
        // RFC 791: no options, not a fragment, 64 hops, UDP; nobody looks at the checksum.
        for half in [0x4500, ip, 0, 0, 0x4011, 0] {
            file.extend(half.to_be_bytes());
        }
        file.extend([127, 0, 0, 1, 127, 0, 0, 1]);
        for half in [packet.from.port(), to.port(), udp, 0] {
            file.extend(half.to_be_bytes());
        }
        file.extend(rtp);
    }
    file
}

/// Start, end, address, port, address, port, SSRC, payload, packets, lost, its share, and the least, mean and greatest gap.
fn stream(line: &str) -> Option<Stream> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok();
    Some(Stream {
        from: words.get(3)?.parse().ok()?,
        packets: words.get(8)?.parse().ok()?,
        lost: words.get(9)?.parse().ok()?,
        mean_ms: number(12)?,
        max_ms: number(13)?,
    })
}

/// Each payload where its timestamp says; what there is none of is silence.
fn sides(lines: &str) -> Vec<Side> {
    let mut sides: Vec<(Side, u32)> = Vec::new();
    for line in lines.lines() {
        let mut words = line.split('\t');
        let mut next = || words.next().unwrap_or_default();
        let from: u16 = next().parse().unwrap();
        let timestamp: u32 = next().parse().unwrap();
        let payload = next();
        let at = sides.iter().position(|(side, _)| side.from == from);
        let at = at.unwrap_or_else(|| {
            let sound = Sound::silence(0);
            sides.push((Side { from, sound }, timestamp));
            sides.len() - 1
        });
        let (side, first) = &mut sides[at];
        let place = timestamp.wrapping_sub(*first) as usize;
        assert!(place < 8_000 * 120, "{timestamp} is nowhere near {first}");
        let digits: Vec<u8> = payload.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let decoded: Vec<i16> = digits.chunks(2).map(|pair| linear(byte(pair))).collect();
        let samples = &mut side.sound.samples;
        samples.resize(samples.len().max(place + decoded.len()), 0);
        samples[place..place + decoded.len()].copy_from_slice(&decoded);
    }
    sides.into_iter().map(|(side, _)| side).collect()
}
