//! `callboard listen`: a workspace's events at a program on your own machine, signed as deliveries are, with no endpoint
//! and no public address.
//!
//! The event stream is read and each event posted, in order, one at a time. What fails is not tried again: somebody
//! watches, and `--replay` sends it once more.
pub mod client;
mod forward;
mod frames;
mod server;
#[cfg(test)]
mod tests;

use super::webhook::secret;
use crate::error::CannotStart;
use adapters::signature;
use bytes::Bytes;
use clap::Args;
use entities::{ids::EventId, webhook_endpoint::Patterns};
use forward::{Forward, Line};
use frames::{Frame, Frames};
use reqwest::Url;
use rules::event;
use runtime::clock::Clock;
use server::{Refusal, Server};
use std::{io::Write, time::Duration};

#[derive(Args)]
pub struct Listen {
    /// Where your program listens, such as http://127.0.0.1:9000/hook
    #[arg(long, value_name = "URL", value_parser = http_url)]
    forward_to: Url,
    /// An API key with the scope webhooks:read; it decides whose events come, and whether test or live
    #[arg(long, value_name = "KEY", env = "CALLBOARD_KEY", hide_env_values = true)]
    key: String,
    /// Where Callboard runs
    #[arg(long, value_name = "URL", env = "CALLBOARD_URL", default_value = "http://127.0.0.1:8080", value_parser = http_url)]
    server: Url,
    /// Which events, separated by commas: `*`, groups such as session.*, exact types
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', default_value = "*", value_parser = pattern)]
    events: Vec<String>,
    /// Forward this one event, marked with `X-Webhook-Replay: true`, and end
    #[arg(long, value_name = "EVENT_ID", conflicts_with = "events")]
    replay: Option<EventId>,
    /// Sign with this secret [default: a new one, printed at the start]
    #[arg(long, value_name = "whsec_…")]
    secret: Option<String>,
}

/// An event, its body in the very bytes of its deliveries.
struct Event {
    id: EventId,
    event_type: String,
    body: Bytes,
}

pub fn http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "is not a URL; write it as http://127.0.0.1:9000/hook".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry a user name or password".into());
    }
    Ok(url)
}

fn pattern(text: &str) -> Result<String, String> {
    let text = text.trim();
    event::check_pattern(text).map(|()| text.to_owned())
}

impl Listen {
    pub async fn run(self, json: bool) -> Result<(), CannotStart> {
        tokio::select! {
            done = self.work(json) => done,
            // The way to end it, and no error.
            pressed = tokio::signal::ctrl_c() => pressed.map_err(|error| CannotStart(error.to_string())),
        }
    }

    async fn work(self, json: bool) -> Result<(), CannotStart> {
        let clock = Clock::wall();
        let server = Server::new(self.server, &self.key)?;
        let secret = match self.secret {
            Some(secret) => match secret::flaw(&secret) {
                Some(flaw) => return Err(CannotStart(format!("--secret {}", flaw.message))),
                None => secret,
            },
            None => new_secret(json)?,
        };
        let target = self.forward_to.clone();
        let forward = Forward::new(self.forward_to, secret, clock.clone())?;
        if let Some(id) = self.replay {
            return replay(&server, &forward, id, json).await;
        }
        note(&format!("events go to {target}, Ctrl-C ends it"));
        let tail = Tail {
            server,
            forward,
            patterns: Patterns(self.events),
            json,
            last: None,
            wait: FIRST_WAIT,
        };
        tail.run(&clock).await
    }
}

/// Standard output has the events; what else there is to say goes here.
fn note(text: &str) {
    eprintln!("callboard: {text}");
}

fn print(line: &str) -> Result<(), CannotStart> {
    // `println!` would panic when whoever reads has gone, as `head` does.
    writeln!(std::io::stdout(), "{line}").map_err(|error| CannotStart(format!("standard output: {error}")))
}

fn show(line: &Line, json: bool) -> Result<(), CannotStart> {
    if json {
        // A plain struct always serialises.
        print(&serde_json::to_string(line).unwrap_or_default())
    } else {
        print(&line.text())
    }
}

/// The one moment at which it is shown.
fn new_secret(json: bool) -> Result<String, CannotStart> {
    let secret = signature::new_secret();
    let export = format!("export WEBHOOK_SECRET={secret}");
    if json {
        eprintln!("{export}");
    } else {
        print(&export)?;
    }
    note("the secret is new: give it to your receiver, or give its own with --secret");
    Ok(secret)
}

async fn replay(server: &Server, forward: &Forward, id: EventId, json: bool) -> Result<(), CannotStart> {
    let event = server.event(id).await?;
    let line = forward.send(&event, true).await;
    show(&line, json)?;
    match line.error {
        None => Ok(()),
        Some(why) => Err(CannotStart(format!("event {id} was not taken: {why}"))),
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The stream, connected again whenever it is cut.
struct Tail {
    server: Server,
    forward: Forward,
    patterns: Patterns,
    json: bool,
    /// The last event that was dealt with: forwarded, or not asked for.
    last: Option<EventId>,
    /// Before the next connection.
    wait: Duration,
}

impl Tail {
    async fn run(mut self, clock: &Clock) -> Result<(), CannotStart> {
        loop {
            let why = match self.connection().await {
                Ok(()) => "the server has ended the stream".to_owned(),
                Err(Refusal::Passing(why)) => why,
                Err(Refusal::Final(error)) => return Err(error),
            };
            note(&format!("{why}; connecting again in {} s", self.wait.as_secs()));
            let _busy = clock.sleep(self.wait).await;
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        }
    }

    /// One connection, to its end.
    async fn connection(&mut self) -> Result<(), Refusal> {
        let last = match self.last {
            Some(last) => last,
            None => self.server.newest().await?,
        };
        self.last = Some(last);
        let mut response = self.server.stream(last).await?;
        note("connected, waiting for events");
        let mut frames = Frames::default();
        while let Some(bytes) = self.server.next(&mut response).await? {
            self.wait = FIRST_WAIT;
            for event in frames.push(&bytes).into_iter().filter_map(Event::of) {
                self.take(event).await.map_err(Refusal::Final)?;
            }
            if frames.overflowed() {
                let limit = frames::MAX_FRAME_BYTES;
                let text = format!("the server sent an event of more than {limit} bytes; is --server Callboard?");
                return Err(Refusal::Final(CannotStart(text)));
            }
        }
        Ok(())
    }

    async fn take(&mut self, event: Event) -> Result<(), CannotStart> {
        if self.patterns.matches(&event.event_type) {
            let line = self.forward.send(&event, false).await;
            show(&line, self.json)?;
        }
        self.last = Some(event.id);
        Ok(())
    }
}

impl Event {
    /// `None`: a frame that is no event, as a later server may send, is passed over.
    fn of(frame: Frame) -> Option<Self> {
        Some(Event {
            id: frame.id?.parse().ok()?,
            event_type: frame.event?,
            body: frame.data.into(),
        })
    }
}
