//! A telephone of PJSIP's: a process that is told what to do, and tells what happens (`pjsip.py` has the words).
use super::{Need, PATIENCE, Process};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, Stdio},
};
use tokio::sync::mpsc;

/// Events that are not read yet.
const QUEUE: usize = 4_096;
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/world/phone/pjsip.py");

/// It does not outlive its test.
pub struct Pjsip {
    process: Process,
    input: ChildStdin,
    heard: mpsc::Receiver<Value>,
    events: Vec<Value>,
    /// Up to where `hears` has read.
    read: usize,
    pub port: u16,
}

impl Pjsip {
    /// With that configuration, of which `port` and `rtp_port` are needed.
    pub async fn start(config: Value) -> Self {
        let mut config = config;
        if config["codecs"].is_null() {
            config["codecs"] = json!(["PCMU/8000", "PCMA/8000"]);
        }
        let mut command = Need::Pjsip.command();
        command
            .arg(SCRIPT)
            .arg(config.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut process = Process::start(&mut command);
        let input = process.0.stdin.take().unwrap();
        let output = BufReader::new(process.0.stdout.take().unwrap());
        let (tell, heard) = mpsc::channel(QUEUE);
        std::thread::spawn(move || {
            // PJSIP itself writes a line now and then.
            let lines = output.lines().map_while(Result::ok);
            let events = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            for event in events.filter(Value::is_object) {
                if tell.blocking_send(event).is_err() {
                    return;
                }
            }
        });
        let mut pjsip = Pjsip {
            process,
            input,
            heard,
            events: Vec::new(),
            read: 0,
            port: config["port"].as_u64().unwrap().try_into().unwrap(),
        };
        pjsip.hears("ready", |_| true).await;
        pjsip
    }

    pub fn tell(&mut self, command: Value) {
        writeln!(self.input, "{command}").unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for the next event of that name of which this is true. What comes before it is skipped.
    pub async fn hears(&mut self, name: &str, so: impl Fn(&Value) -> bool) -> Value {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            while let Some(event) = self.events.get(self.read) {
                self.read += 1;
                assert!(event["event"] != "error", "PJSIP: {event}");
                if event["event"] == name && so(event) {
                    return event.clone();
                }
            }
            match tokio::time::timeout_at(until, self.heard.recv()).await {
                Ok(Some(event)) => self.events.push(event),
                Ok(None) => panic!(
                    "PJSIP is gone: {:?}; before it was: {:#?}",
                    self.process.0.try_wait(),
                    self.events
                ),
                Err(_) => panic!("PJSIP did not tell of `{name}`, but of {:#?}", self.events),
            }
        }
    }

    /// Waits for a state of a call: `EARLY`, `CONFIRMED`, `DISCONNECTED`.
    pub async fn is(&mut self, state: &str) -> Value {
        self.hears("state", |event| event["state"] == state).await
    }

    /// All events of that name so far.
    pub fn all(&mut self, name: &str) -> Vec<Value> {
        while let Ok(event) = self.heard.try_recv() {
            self.events.push(event);
        }
        let of_it = self.events.iter().filter(|event| event["event"] == name);
        of_it.cloned().collect()
    }

    /// The calls that it believes to be in.
    pub async fn open_calls(&mut self) -> Vec<Value> {
        self.tell(json!({ "do": "calls" }));
        let told = self.hears("calls", |_| true).await;
        told["open"].as_array().unwrap().clone()
    }

    /// The digits that were pressed at the other end, as it understood them.
    pub fn digits(&mut self) -> String {
        let pressed = self.all("dtmf");
        pressed.iter().filter_map(|event| event["digit"].as_str()).collect()
    }
}
