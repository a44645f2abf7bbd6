//! The people in the rooms of a load run: threads of this process that speak WebRTC over UDP, as a browser does.
use super::{
    rooms::{pause, percentiles, row},
    service::client,
};
use bytes::Bytes;
use futures_util::future::join_all;
use media::webrtc::peer::{Peer, State, View};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A sentence of 3.2 s: G.711 mu-law, 8 kHz.
pub const SENTENCE: &[u8] = include_bytes!("../../actors/media/src/speech/sentence.ulaw");
/// Each says it so often.
pub const EVERY: Duration = Duration::from_secs(8);
/// Without a packet for so long, by RTP's time, the agent had paused; 200 ms of silence are sent before it does.
const PAUSE_MS: u64 = 500;

/// Somebody in a room.
pub struct Guest {
    pub peer: Peer,
    pub room: String,
    pub session: String,
    /// What is deleted to hang up.
    seat: String,
    /// From asking to the answer, and to the open connection.
    answered: Duration,
    connected: Duration,
}

impl Guest {
    pub async fn join(client: &reqwest::Client, room: Value, peer: Peer, offer: String) -> Self {
        let started = Instant::now();
        let mut guest = match Guest::knock(client, &room, peer, offer).await {
            Ok(guest) => guest,
            Err(why) => panic!("nobody lets a guest in: {why}"),
        };
        guest.peer.connected().await;
        guest.connected = started.elapsed();
        guest
    }

    /// Asks for a seat, and begins to connect.
    pub async fn knock(client: &reqwest::Client, room: &Value, peer: Peer, offer: String) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let link = url::Url::parse(&text(&room["room_url"])).expect("a link");
        let mut whip = link.clone();
        whip.set_path(&format!("{}/whip", link.path()));
        let started = Instant::now();
        let request = client.post(whip).header("content-type", "application/sdp").body(offer);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let (status, seat) = (answer.status(), answer.headers().get("location").cloned());
        let body = answer.text().await.map_err(|error| error.to_string())?;
        if status.as_u16() != 201 {
            return Err(format!("{status} {body}"));
        }
        let answered = started.elapsed();
        peer.connect(&body);
        let mut leave = link
            .join(seat.expect("a seat").to_str().expect("a path"))
            .expect("a URL");
        leave.set_query(link.query());
        Ok(Guest {
            peer,
            room: text(&room["id"]),
            session: text(&room["session_id"]),
            seat: leave.into(),
            answered,
            connected: Duration::ZERO,
        })
    }

    /// Gives the seat up, if anybody is there to be told.
    pub async fn hang_up(&self, client: &reqwest::Client) {
        let _ = client.delete(&self.seat).send().await;
    }
}

/// In turns, each once in `EVERY`.
pub async fn talk(guests: &[Guest], duration: Duration, mut each_time: impl FnMut()) {
    let started = Instant::now();
    let step = EVERY / u32::try_from(guests.len().max(1)).unwrap_or(u32::MAX);
    let mut due = Duration::ZERO;
    for guest in guests.iter().cycle() {
        guest.peer.say(Bytes::from_static(SENTENCE));
        each_time();
        due += step;
        pause(due.min(duration).saturating_sub(started.elapsed())).await;
        if due >= duration {
            return;
        }
    }
}

pub async fn leave(guests: &[Guest]) {
    let client = client();
    let all = guests.iter().map(async |guest| {
        let answer = client.delete(&guest.seat).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 204);
        guest.peer.closed().await;
        assert_eq!(guest.peer.view().state, State::Closed);
    });
    join_all(all).await;
}

pub fn packets(guests: &[Guest]) -> u64 {
    guests.iter().map(|guest| guest.peer.view().packets).sum()
}

pub fn report_joining(guests: &[Guest]) {
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let of = |times: Vec<f64>| {
        let [p50, p99] = percentiles(times);
        format!("{p50:.0}, {p99:.0} ms")
    };
    let answered = guests.iter().map(|guest| ms(&guest.answered)).collect();
    let connected = guests.iter().map(|guest| ms(&guest.connected)).collect();
    row("POST whip to its answer, p50, p99", of(answered));
    row("… to the open connection", of(connected));
}

/// Of the window that began then. Everybody must have heard the agent, and the words of both must have come as captions.
pub fn report_sound(views: &[View], began: Instant, came: u64, late: [Option<f64>; 2]) {
    let flows: Vec<Flow> = views.iter().map(|view| flow(&view.times, began)).collect();
    let rate = |flow: &Flow| flow.came as f64 / flow.seconds.max(1e-3);
    let worst = flows.iter().map(rate).fold(f64::INFINITY, f64::min);
    let [typical, _] = percentiles(flows.iter().map(rate).collect());
    let sum = |of: fn(&Flow) -> u64| flows.iter().map(of).sum::<u64>() as f64;
    let missing = 100.0 * (1.0 - sum(|flow| flow.came) / sum(|flow| flow.due).max(1.0));
    println!();
    row("packets heard", came.to_string());
    row(
        "… per room and second of speech",
        format!("p50 {typical:.1}, least {worst:.1}, due 50"),
    );
    row("… missing", format!("{missing:.2} %"));
    if missing > 1.0 {
        println!("  The machine was too busy: what was not done cost nothing, and no figure of this run counts.");
    }
    if let [Some(p50), Some(p99)] = late {
        row(
            "sent late by, p50, p99",
            format!("{:.1}, {:.1} ms", p50 * 1e3, p99 * 1e3),
        );
    }
    let captions = |view: &View, role: &str| {
        let of_it = |note: &&Value| note["type"] == "caption" && note["role"] == role && note["text"] != "";
        view.notes.iter().filter(of_it).count()
    };
    let all = views.len();
    let hears = |view: &&View| view.packets > 50 && view.energy > 1.0;
    let heard = views.iter().filter(hears).count();
    let shown = |role: &str| views.iter().filter(|view| captions(view, role) > 0).count();
    let (agents, users) = (shown("agent"), shown("user"));
    row("rooms that heard the agent", format!("{heard} of {all}"));
    row("… that read its words, and their own", format!("{agents}, {users}"));
    let total: usize = views.iter().map(|view| captions(view, "user")).sum();
    row("captions of what people said", total.to_string());
    assert_eq!([heard, agents, users], [all; 3], "not everybody heard or was heard");
}

/// The agent's words as they came, pauses left out.
struct Flow {
    came: u64,
    due: u64,
    seconds: f64,
}

fn flow(times: &[(u64, Instant)], began: Instant) -> Flow {
    let mut flow = Flow {
        came: 0,
        due: 0,
        seconds: 0.0,
    };
    let since: Vec<_> = times.iter().filter(|(_, at)| *at >= began).collect();
    for pair in since.windows(2) {
        let gap = pair[1].0.saturating_sub(pair[0].0);
        if gap <= PAUSE_MS {
            flow.came += 1;
            flow.due += gap / 20;
            flow.seconds += (pair[1].1 - pair[0].1).as_secs_f64();
        }
    }
    flow
}
