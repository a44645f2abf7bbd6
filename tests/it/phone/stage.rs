//! A service that speaks SIP on loopback, and a workspace with a live key.
use crate::{
    process::{self, Calls, Place, json_of, stderr, terminate},
    world::{
        Backend,
        phone::{Need, at_hand, byte_peer::BytePeer, ear::Ear, pjsip::Pjsip, ports::Ports, signal, sound::Sound},
    },
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

/// The workspace's own number, and one that it calls.
pub const OURS: &str = "+12025551000";
pub const CALLEE: &str = "+12025550100";
/// What the agent says first: in tones, so long that it can be heard anywhere.
pub const HELLO: &str = "Hello, this is Ann from Northwind. Is this a good time for you?";

/// So many lines of the service's log are shown of a scenario that failed.
const LOG_LINES: usize = 100;

pub fn run(backend: Backend, needs: &[Need], scenario: impl AsyncFnOnce(&mut Stage)) {
    if at_hand(needs) {
        process::on(backend, async |place| play(place, &[], scenario).await);
    }
}

/// The same for tests that kill: commits take the time of a disk.
pub fn run_on_disk(backend: Backend, needs: &[Need], scenario: impl AsyncFnOnce(&mut Stage)) {
    if at_hand(needs) {
        process::on_disk(backend, async |place| play(place, &[], scenario).await);
    }
}

async fn play(place: Place, settings: &[(&'static str, &str)], scenario: impl AsyncFnOnce(&mut Stage)) {
    let mut stage = Stage::set(place, settings);
    scenario(&mut stage).await;
    stage.strike();
}

pub struct Stage {
    serving: Child,
    environment: Vec<(&'static str, String)>,
    pub ports: Ports,
    /// Where the service speaks SIP, and its ports for sound.
    pub sip: SocketAddr,
    pub rtp: std::ops::RangeInclusive<u16>,
    /// With the live key.
    pub api: Calls,
    // What the others stand on goes last.
    pub place: Place,
}

/// The service does not outlive its test, however that ends.
impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.serving.kill();
        let _ = self.serving.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
            eprintln!("The service's log ends with:\n{}", last.join("\n"));
        }
    }
}

impl Stage {
    fn set(place: Place, settings: &[(&'static str, &str)]) -> Self {
        let mut ports = Ports::new();
        let rtp = ports.range(24);
        let sip = local(ports.take());
        let mut environment = vec![
            ("CALLBOARD_SIP_BIND", sip.to_string()),
            ("CALLBOARD_RTP_PORTS", format!("{}-{}", rtp.start(), rtp.end())),
            // The same on every machine.
            ("CALLBOARD_VOICE", "tones".to_owned()),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "0".to_owned()),
            // One number is called again and again.
            ("CALLBOARD_NUMBER_CAP_24H", "0".to_owned()),
            ("CALLBOARD_NUMBER_CAP_7D", "0".to_owned()),
            ("CALLBOARD_DRAIN_SECONDS", "0".to_owned()),
        ];
        environment.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
        place.create_workspace("acme", "Acme", "a@b.co");
        let key = place.create_key("live", "k");
        let serving = serve(&place, &environment);
        let api = Calls::to(&place, key);
        Stage {
            serving,
            environment,
            ports,
            sip,
            rtp,
            api,
            place,
        }
    }

    /// It ends in order, nothing is left undone, and its log has no secret.
    fn strike(&mut self) {
        terminate(&mut self.serving);
        let dump = self.place.run(&["audit", "dump"]);
        let dump = String::from_utf8(dump.stdout).unwrap();
        let lines = dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let open: Vec<_> = lines
            .filter(|line| line["kind"] == "session" && line["ended_at"].is_null())
            .collect();
        assert!(open.is_empty(), "sessions that never ended: {open:?}");
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
        for secret in ["Digest ", "a=crypto", "response=\"", PASSWORD, &OURS[1..], &CALLEE[1..]] {
            assert!(!log.contains(secret), "`{secret}` stands in the log:\n{log}");
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(log_file(&self.place)).unwrap_or_default()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.serving.kill().unwrap();
        self.serving.wait().unwrap();
    }

    /// It stands still from here on: what comes in waits in its sockets.
    pub fn freeze(&self) {
        signal(self.serving.id(), "-STOP");
    }

    pub fn serve_again(&mut self) {
        self.serving = serve(&self.place, &self.environment);
    }

    /// SIGTERM, and a clean end.
    pub fn stop(&mut self) {
        terminate(&mut self.serving);
    }

    /// SIGTERM alone: it drains, if it was given time to.
    pub fn ask_to_stop(&self) {
        signal(self.serving.id(), "-TERM");
    }

    /// Waits for its end after that, which is a clean one.
    pub fn has_stopped(&mut self) {
        let ended = self.serving.wait().unwrap();
        assert!(ended.success(), "SIGTERM ends it in order, not by {ended}");
    }

    /// Starts the service again with further settings.
    pub fn restart_with(&mut self, settings: &[(&'static str, &str)]) {
        terminate(&mut self.serving);
        for (name, value) in settings {
            self.environment.retain(|(known, _)| known != name);
            self.environment.push((*name, (*value).to_owned()));
        }
        self.serve_again();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place.folder.path().join(name)
    }

    /// A free address for a peer. Its neighbour above is free, too.
    pub fn address(&mut self) -> SocketAddr {
        local(*self.ports.range(2).start())
    }

    pub fn ear(&mut self) -> Ear {
        Ear::at(self.address())
    }

    pub fn silent_peer(&mut self) -> BytePeer {
        BytePeer::silent(self.address())
    }

    /// A telephone with that behaviour, and more configuration.
    pub async fn telephone(&mut self, behaviour: Value, more: Value) -> Pjsip {
        let (port, rtp) = (self.address().port(), *self.ports.range(6).start());
        let config = json!({ "port": port, "rtp_port": rtp, "behaviour": behaviour });
        Pjsip::start(merged(config, more)).await
    }

    /// A trunk to 127.0.0.1, over UDP.
    pub async fn trunk(&self, port: u16, more: Value) -> Value {
        let trunk = json!({ "name": format!("Carrier {port}"), "host": format!("127.0.0.1:{port}"),
            "max_calls_per_second": 50, "options_interval_seconds": 0 });
        self.api.post("/v1/sip_trunks", merged(trunk, more)).await
    }

    /// Claims a number, and gives it that trunk.
    pub async fn number(&self, number: &str, trunk: &Value, more: Value) -> Value {
        let claimed = self
            .place
            .run(&["workspace", "claim-number", "--workspace", "acme", "--number", number]);
        assert!(claimed.status.success(), "{}", stderr(&claimed));
        let asked = json!({ "phone_number": number, "trunk_id": trunk["id"] });
        let made = self.api.post("/v1/numbers", merged(asked, more)).await;
        self.knows(trunk).await;
        made
    }

    /// Its peer is a stranger, and unheard, until the trunk's actor has looked it up.
    pub async fn knows(&self, trunk: &Value) {
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        let is_known = |trunk: &Value| {
            trunk["state"]["targets"]
                .as_array()
                .is_some_and(|targets| !targets.is_empty())
        };
        self.api.until(&path, is_known).await;
    }

    /// An agent that says hello, and then that it notes what it hears, as often as it is spoken to.
    pub async fn agent(&self, more: Value) -> Value {
        let replies = vec![json!({ "say": "I write that down." }); 20];
        let agent = json!({ "name": "Ann", "prompt": "x", "first_message": HELLO,
            "brain": { "mode": "scripted", "replies": replies } });
        self.api.post("/v1/agents", merged(agent, more)).await
    }

    /// All that an outgoing call needs: a trunk to that port, a number, and an agent; answers the agent.
    pub async fn line(&self, port: u16) -> Value {
        let trunk = self.trunk(port, json!({})).await;
        self.number(OURS, &trunk, json!({})).await;
        self.agent(json!({})).await
    }

    /// Calls a number, at noon there. Whoever picks up is taken for a person at once. Answers the session's id.
    pub async fn call(&self, agent: &Value, to: &str, more: Value) -> String {
        let call = json!({ "to_number": to, "agent_id": agent["id"], "contact": { "timezone": noon() },
            "voicemail": { "detection": "off" } });
        let session = self.api.post("/v1/sessions", merged(call, more)).await;
        session["id"].as_str().unwrap().to_owned()
    }

    /// Contacts to be called at noon, one attempt each; answers the campaign's path.
    pub async fn campaign(&self, agent: &Value, numbers: &[String], more: Value) -> String {
        let contact = |number: &String| json!({ "phone_number": number, "timezone": noon() });
        let contacts: Vec<_> = numbers.iter().map(contact).collect();
        let campaign = json!({ "name": "Calls", "agent_id": agent["id"], "contacts": contacts,
            "pacing": { "calls_per_second": 50 }, "retry": { "max_attempts": 1, "min_gap_minutes": 0 },
            "voicemail": { "detection": "off" }, "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] } });
        let campaign = self.api.post("/v1/campaigns/run", merged(campaign, more)).await;
        format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap())
    }

    pub async fn session(&self, id: &str) -> Value {
        self.api.get(&format!("/v1/sessions/{id}")).await
    }

    /// Waits until the call has that status, or is in that phase.
    pub async fn is(&self, id: &str, wanted: &str) -> Value {
        let path = format!("/v1/sessions/{id}");
        let is = |session: &Value| session["status"] == wanted || session["phase"] == wanted;
        let shown = self
            .api
            .until(&path, |session| is(session) || session["phase"] == "ended")
            .await;
        if !is(&shown) {
            // What was said on the wire is told when nothing is left there.
            let timeline = format!("/v1/sessions/{id}/timeline");
            let is_told = |told: &Value| told.to_string().contains("sip_ladder");
            let told = self.api.until(&timeline, is_told).await;
            panic!("it has ended before it was {wanted}: {shown}\n{told:#}");
        }
        shown
    }

    pub async fn ended(&self, id: &str) -> Value {
        let path = format!("/v1/sessions/{id}");
        self.api.until(&path, |session| session["phase"] == "ended").await
    }

    /// What was recorded of a call that has ended: our side, and theirs.
    pub async fn recording(&self, ended: &Value) -> [Sound; 2] {
        let id = ended["recording_id"].as_str();
        let recording = format!(
            "/v1/recordings/{}",
            id.unwrap_or_else(|| panic!("it was recorded: {ended}"))
        );
        self.api
            .until(&recording, |recording| recording["status"] == "completed")
            .await;
        let audio = self.api.client.get(format!("{}{recording}/audio", self.api.url));
        let answer = audio.bearer_auth(&self.api.key).send().await.unwrap();
        let bytes = answer.bytes().await.unwrap();
        let mut wav = hound::WavReader::new(&*bytes).unwrap();
        assert_eq!(wav.spec().channels, 2);
        let rate = wav.spec().sample_rate;
        let both: Vec<i16> = wav.samples().map(Result::unwrap).collect();
        let side = |side: usize| Sound {
            rate,
            samples: both.chunks(2).map(|pair| pair[side]).collect(),
        };
        [side(0), side(1)]
    }

    pub async fn hang_up(&self, id: &str) {
        self.api.post(&format!("/v1/sessions/{id}/end"), json!({})).await;
    }

    pub async fn timeline(&self, id: &str) -> Vec<Value> {
        let timeline = self.api.get(&format!("/v1/sessions/{id}/timeline")).await;
        timeline["entries"].as_array().unwrap().clone()
    }

    /// Waits for the only call that has come in; answers its id.
    pub async fn has_come_in(&self) -> String {
        let path = "/v1/sessions?direction=inbound";
        let found = self
            .api
            .until(path, |list| list["data"].as_array().is_some_and(|all| all.len() == 1))
            .await;
        found["data"][0]["id"].as_str().unwrap().to_owned()
    }

    /// A WAV file for a telephone to play.
    pub fn recorded(&self, name: &str, sound: &Sound) -> String {
        let file = self.file(name);
        sound.write(&file);
        file.to_str().unwrap().to_owned()
    }

    /// What the operator's commands answer.
    pub fn operator(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = std::iter::once("--json").chain(arguments.iter().copied()).collect();
        let output = self.place.run(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        json_of(&output)
    }

    /// A command of the operator's that knows the service's settings, while it runs.
    pub fn start_operator(&self, arguments: &[&str]) -> Child {
        let settings = self.environment.iter().map(|(name, value)| (*name, value.as_str()));
        let mut command = self.place.command(arguments);
        command.envs(settings).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Where a telephone calls that number of ours.
    pub fn uri(&self, number: &str) -> String {
        format!("sip:{number}@{}", self.sip)
    }
}

/// Of trunks in tests; it must not be found in any log.
pub const PASSWORD: &str = "canary-4711";

fn serve(place: &Place, environment: &[(&'static str, String)]) -> Child {
    let log = File::options().append(true).create(true).open(log_file(place)).unwrap();
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, &**value)).collect();
    place.start(&environment).ready_into(log)
}

fn log_file(place: &Place) -> PathBuf {
    place.folder.path().join("serve.log")
}

pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The fields of the second over those of the first.
pub fn merged(mut first: Value, second: Value) -> Value {
    let fields = first.as_object_mut().unwrap();
    fields.extend(second.as_object().unwrap().clone());
    first
}

/// A zone in which it is about noon now: live calls keep hours, whenever the tests run.
pub fn noon() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hour = i64::try_from(seconds / 3_600 % 24).unwrap();
    // The signs of these names are the other way round: GMT-5 is five hours ahead of Greenwich.
    match 12 - hour {
        0 => "Etc/GMT".to_owned(),
        ahead if ahead > 0 => format!("Etc/GMT-{ahead}"),
        behind => format!("Etc/GMT+{}", -behind),
    }
}

/// How a call ended: `(status, end_reason)`.
pub fn end(session: &Value) -> (&str, &str) {
    let word = |name: &str| session[name].as_str().unwrap_or("none");
    (word("status"), word("end_reason"))
}

/// Where a description on loopback wants sound.
pub fn media_of(sdp: &str) -> SocketAddr {
    let line = sdp
        .lines()
        .find_map(|line| line.strip_prefix("m=audio "))
        .unwrap_or_else(|| panic!("no sound: {sdp}"));
    let port = line.split(' ').next().unwrap();
    local(port.parse().unwrap())
}
