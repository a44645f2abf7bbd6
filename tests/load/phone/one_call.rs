//! One call among many, whose sound comes to us packet by packet.
use super::{
    capture::{Capture, Passed, heard},
    line::{Line, OURS, noon},
    table::{Table, percentiles},
};
use crate::{
    peers::{
        byte_peer::{BytePeer, picks_up, response},
        ear::{Ear, Packet},
        sound::{SENTENCE, Sound, linear, loudness},
    },
    rooms::{pause, row},
    talk,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const EAR: u16 = 23_990;
/// The agent has said hello by then; and its answer, behind the sentence.
const BEFORE_MS: usize = 4_000;
const BEHIND_MS: usize = 5_000;
/// Root of the mean square of 10 ms, 40 dB below full scale: as loud as in the measurements of rooms.
const LOUD: f64 = 328.0;
/// No turn is over so soon: the agent was speaking.
const TOO_SOON: Duration = Duration::from_millis(150);

pub struct OneCall {
    ear: Ear,
    to: SocketAddr,
    pub session: String,
    carrier: BytePeer,
}

/// How soon each sentence was answered, in ms.
pub struct Answers {
    /// From the caller's last loud 10 ms to the first loud packet.
    pub outside: Vec<f64>,
    /// The share of it that is spent on the way: from the mouth to the detector, and from there to the socket.
    pub on_the_way: Vec<f64>,
    pub turns: Vec<Turn>,
}

/// When the caller's last loud 10 ms were said, and the first loud packet came.
#[derive(Clone, Copy)]
pub struct Turn {
    pub ended: Instant,
    pub answered: Instant,
}

impl OneCall {
    pub async fn place(line: &Line, agent: &Value) -> Self {
        let at = line.carriers[1];
        let ear = Ear::at(([127, 0, 0, 1], EAR));
        let carrier = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => vec![picks_up(&heard.text, at, EAR)],
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        let call = json!({ "to_number": "+12025550100", "from_number": OURS[1], "agent_id": agent,
            "contact": { "timezone": noon() }, "voicemail": { "detection": "off" } });
        let session = line.api.post("/v1/sessions", call).await["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let invite = carrier.hears("INVITE", 1).await;
        let port = invite
            .body()
            .lines()
            .find_map(|line| line.strip_prefix("m=audio ")?.split(' ').next()?.parse().ok());
        OneCall {
            ear,
            to: SocketAddr::from(([127, 0, 0, 1], port.expect("a port for sound"))),
            session,
            carrier,
        }
    }

    /// Says nothing, until it ends.
    pub fn is_quiet(&self) {
        self.ear.breathes(self.to);
    }

    /// Says the sentence so often, and waits for an answer each time.
    pub async fn talks(&self, line: &Line, turns: usize) -> Answers {
        let mut said = Sound::silence(BEFORE_MS);
        for _ in 0..turns {
            said = said.then(Sound::of_mu_law(SENTENCE)).then(Sound::silence(BEHIND_MS));
        }
        let mut began = Instant::now();
        let starts = |packets: Vec<Packet>| {
            began = Instant::now();
            packets
        };
        self.ear.says(said, self.to, starts).await;
        let packets = self.ear.packets();
        let (spoken_ms, last_ms) = (SENTENCE.len() / 8, last_loud_ms());
        let answered = (0..turns).filter_map(|turn| {
            let ends_ms = BEFORE_MS + turn * (spoken_ms + BEHIND_MS) + last_ms;
            // A microphone sends each 20 ms at their end; here the first of them leave at once.
            let ended = began + Duration::from_millis(ends_ms as u64) - Duration::from_millis(20);
            let until = ended + Duration::from_millis(BEHIND_MS as u64);
            let mut in_time = packets
                .iter()
                .filter(|packet| (ended + TOO_SOON..until).contains(&packet.at));
            let first = in_time.find(|packet| is_loud(packet))?;
            let answered = first.at;
            Some(Turn { ended, answered })
        });
        let answered: Vec<Turn> = answered.collect();
        let outside: Vec<f64> = answered
            .iter()
            .map(|turn| (turn.answered - turn.ended).as_secs_f64() * 1e3)
            .collect();
        let told = talk::marks(&line.api, &self.session).await;
        let told: Vec<f64> = told.iter().filter_map(|marks| packet_ms(marks)).collect();
        assert_eq!(
            (outside.len(), told.len()),
            (turns, turns),
            "turns that were answered, and that the service has measured: {outside:?}, {told:?}"
        );
        let on_the_way = outside.iter().zip(&told).map(|(all, inside)| all - inside).collect();
        Answers {
            outside,
            on_the_way,
            turns: answered,
        }
    }

    /// How evenly its packets come for so long, and whether all do.
    pub async fn spacing(&self, line: &Line, window: Duration) -> Spacing {
        let file = line.service.file(&format!("{}.pcap", self.session));
        let capture = Capture::start(&file, EAR).await;
        let from = self.ear.packets().len();
        pause(window).await;
        match capture {
            Some(capture) => Spacing::of(&capture.seen(), "by the kernel's clock"),
            None => Spacing::of(&heard(&self.ear.packets()[from..]), "by a process's clock: no tshark"),
        }
    }

    pub async fn end(self, line: &Line) {
        line.api
            .post(&format!("/v1/sessions/{}/end", self.session), json!({}))
            .await;
        self.carrier.hears("BYE", 1).await;
    }
}

/// In ms.
pub struct Spacing {
    /// The 99th percentile of all gaps.
    pub gap: f64,
    p99: f64,
    p999: f64,
    longest: f64,
    lost: f64,
    by: &'static str,
}

impl Spacing {
    fn of(packets: &[Passed], by: &'static str) -> Self {
        let gaps = packets.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms);
        let longest = gaps.clone().fold(f64::NAN, f64::max);
        let mut off: Vec<f64> = gaps.clone().map(|gap| (gap - 20.0).abs()).collect();
        off.sort_by(f64::total_cmp);
        let at = |share: f64| {
            off.get((off.len() as f64 * share) as usize)
                .copied()
                .unwrap_or(f64::NAN)
        };
        // Fewer than 65,536, which is more than 20 min.
        let sent = packets.last().zip(packets.first()).map_or(f64::NAN, |(last, first)| {
            f64::from(last.sequence.wrapping_sub(first.sequence)) + 1.0
        });
        let [_, gap] = percentiles(gaps.collect());
        Spacing {
            gap,
            p99: at(0.99),
            p999: at(0.999),
            longest,
            lost: sent - packets.len() as f64,
            by,
        }
    }

    pub fn check(&self, table: &mut Table) {
        table.at_most("send spacing off 20 ms, p99", self.p99, 3.0, "ms");
        table.at_most("… p99.9", self.p999, 10.0, "ms");
        table.at_most("… longest gap", self.longest, 60.0, "ms");
        table.at_most("packets lost", self.lost, 0.0, "");
        row("… measured", self.by.to_owned());
    }

    /// Of more calls than the goal is for.
    pub fn tell(&self) {
        let Spacing {
            p99,
            p999,
            longest,
            lost,
            by,
            ..
        } = self;
        row(
            "send spacing off 20 ms, p99, p99.9",
            format!("{p99:.2}, {p999:.2} ms   ({by})"),
        );
        row("… longest gap, packets lost", format!("{longest:.2} ms, {lost}"));
    }
}

/// Where the last loud 10 ms of the sentence end.
fn last_loud_ms() -> usize {
    let samples: Vec<i16> = SENTENCE.iter().map(|byte| linear(*byte)).collect();
    let last = samples.chunks(80).rposition(|ten| loudness(ten) >= LOUD);
    (last.expect("a voice") + 1) * 10
}

/// Are 10 ms of it? Of mu-law alone.
fn is_loud(packet: &Packet) -> bool {
    let samples: Vec<i16> = packet.payload.iter().map(|byte| linear(*byte)).collect();
    packet.payload_type == 0 && samples.chunks(80).any(|ten| loudness(ten) >= LOUD)
}

/// Of `endpoint 592 ms, …, packet 1302 ms`.
fn packet_ms(marks: &str) -> Option<f64> {
    let told = marks.split(", ").find_map(|mark| mark.strip_prefix("packet "))?;
    told.strip_suffix(" ms")?.parse().ok()
}
