//! The talk of a room, over its bridge: the test is the page, which plays what it gets and says what it hears.
//!
//! The service's time stands still while sound is played, and the line's goes on by what is played and said: frames are taken as fast
//! as they come, each at its own moment.
mod dropped;
mod hearers;

use super::{
    the_call::{agent, call, said, session, told},
    voices,
};
use crate::{
    on_both,
    world::{
        Tenant, World,
        cartesia_server::{CartesiaServer, Say},
        chat_server::{self, ChatServer},
        elevenlabs_server::{self, ElevenlabsServer},
        front::Front,
        seconds,
        speech_server::{self, SpeechServer},
        transcription_server::{Answer, TranscriptionServer},
        voice_server::VoiceServer,
    },
};
use actors::room::conversation::RoomConversation;
use adapters::sound::Pcm;
use entities::{
    ids::{SessionId, TenantScoped},
    session::AnsweredBy,
    values::{Env, Scopes},
};
use media::{
    bridge::{MediaBridge, Note},
    mic::{MicEvent, Piece},
};
use rules::session::command::Command;
use runtime::clock::Clock;
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, yield_now},
};

/// A page that is connected.
struct Page {
    id: String,
    bridge: Arc<MediaBridge>,
    heard: mpsc::Sender<MicEvent>,
    talk: JoinHandle<()>,
    /// What it was shown, as `agent: …` and `user: …`.
    captions: Vec<String>,
    /// Frames that it has played.
    played: usize,
    /// The last of them was silence, in the place of sound that is late.
    is_waiting: bool,
    /// The line's time.
    at: Instant,
}

impl Page {
    /// A call that rings for long enough is picked up in a browser.
    async fn join(world: &World, tenant: &Tenant, agent: &str) -> Page {
        let id = call(tenant, agent, "+15002345602", json!({})).await;
        // Nothing of its dialling is on its way.
        world.settle().await;
        let deps = world.deps();
        // A room's, of which what was on its line is recorded. With its new version it is read again.
        let is_a_rooms = "UPDATE sessions SET room_id = id, version = version + 1 WHERE phase <> 'ended'";
        let pool = deps.db.write.pool().unwrap();
        pool.execute_unprepared(is_a_rooms).await.unwrap();
        world.advance(seconds(1)).await;
        let key = TenantScoped::new(tenant.id, Env::Test, SessionId(id.parse().unwrap()));
        let leg = deps.calls.leg(key.id).unwrap();
        let (bridge, _) = MediaBridge::new();
        let (heard, listen) = mpsc::channel(64);
        let (_, inbox) = mpsc::channel(16);
        let ways = (listen, inbox);
        let mut talk = RoomConversation::prepare(deps, &leg, bridge.clone(), ways)
            .await
            .unwrap();
        talk.begin();
        let answer = Command::Answer {
            by: AnsweredBy::Human,
            recording_id: deps.ids.next(),
        };
        deps.router.sessions().request(key, answer).await.unwrap();
        Page {
            id,
            bridge,
            heard,
            talk: deps.runtime.spawn(talk.hold()),
            captions: Vec::new(),
            played: 0,
            is_waiting: false,
            at: Instant::now(),
        }
    }

    /// So much later on the line, and never before the machine's own time.
    fn pass(&mut self, by: Duration) -> Instant {
        self.at = (self.at + by).max(Instant::now());
        self.at
    }

    /// Plays the next 20 ms; `false`: the agent is silent.
    fn frame(&mut self) -> bool {
        let due = self.at.max(Instant::now());
        let frame = self.bridge.next_frame_at(due);
        self.is_waiting = frame
            .as_ref()
            .is_some_and(|frame| frame.samples.iter().all(|sample| *sample == 0));
        if frame.is_some() {
            self.at = due + Duration::from_millis(20);
            self.played += 1;
        }
        frame.is_some()
    }

    /// After a frame. A pause in sound that is still being made is played as well: whoever makes it is given time, or the line's
    /// would run away.
    async fn let_run(&self) {
        match self.is_waiting {
            true => self.next_moment().await,
            false => yield_now().await,
        }
    }

    /// The talk runs on other threads: they are let run.
    async fn next_moment(&self) {
        let _busy = Clock::wall().sleep(Duration::from_millis(1)).await;
    }

    fn look(&mut self) {
        let (notes, _) = self.bridge.notes_from(0);
        let shown = notes.into_iter().filter_map(|note| match note {
            Note::Joined => None,
            Note::Caption { place, role, text } => Some((place, format!("{}: {text}", json!(role).as_str().unwrap()))),
            Note::Ended { .. } => panic!("nobody has ended it"),
        });
        // A later one of the same place is the same turn.
        let turns: BTreeMap<usize, String> = shown.collect();
        self.captions = turns.into_values().collect();
    }

    /// Plays until so many captions are shown and the agent is silent again; answers the last.
    async fn play_until(&mut self, captions: usize) -> &str {
        loop {
            // Before the frame: a caption comes with its sound, which is then still playing.
            self.look();
            let is_shown = self.captions.len() >= captions;
            if self.frame() {
                self.let_run().await;
                continue;
            }
            if is_shown && !self.bridge.is_playing() {
                self.look();
                return self.captions.last().unwrap();
            }
            self.next_moment().await;
        }
    }

    /// Plays nothing until so many captions are shown.
    async fn look_until(&mut self, captions: usize) {
        while self.captions.len() < captions {
            self.next_moment().await;
            self.look();
        }
    }

    /// Plays nothing until that caption is shown.
    async fn look_for(&mut self, caption: &str) {
        while !self.captions.iter().any(|shown| shown == caption) {
            self.next_moment().await;
            self.look();
        }
    }

    /// Plays so many frames.
    async fn play(&mut self, frames: usize) {
        let until = self.played + frames;
        while self.played < until {
            match self.frame() {
                true => self.let_run().await,
                false => self.next_moment().await,
            }
        }
    }

    /// What is said now, from its first frame to its last.
    async fn play_out(&mut self) {
        self.play(1).await;
        while self.bridge.next_frame().is_some() {
            self.played += 1;
            self.next_moment().await;
        }
    }

    async fn speak(&mut self) {
        self.sound(speech()).await;
    }

    /// What the microphone picks up, and what the detector makes of it.
    async fn sound(&mut self, speech: Pcm) {
        // At the rate of a microphone: each sample twice.
        let heard: Vec<i16> = speech.samples.iter().flat_map(|sample| [*sample; 2]).collect();
        self.pick_up(&heard);
        let began = MicEvent::SpeechStarted { number: 1, ago_ms: 0 };
        self.heard.send(began).await.unwrap();
        self.heard.send(MicEvent::SpeechEnded(speech)).await.unwrap();
    }

    /// Half a second of speech, and a pause that may be the end of it.
    async fn speak_and_pause(&self) {
        let began = MicEvent::SpeechStarted { number: 1, ago_ms: 0 };
        self.heard.send(began).await.unwrap();
        for nth in 0..38 {
            let sound = Pcm::new(16_000, vec![8_000; 256]);
            let voice_db = (nth < 30).then_some(-12.0);
            self.heard
                .send(MicEvent::Sound(Piece { sound, voice_db }))
                .await
                .unwrap();
        }
    }

    fn pick_up(&mut self, samples: &[i16]) {
        for piece in samples.chunks(320) {
            let came_at = self.pass(Duration::from_millis(20));
            self.bridge.hear_at(piece, came_at);
        }
    }

    async fn press(&mut self, keys: &str) {
        self.heard.send(MicEvent::Dtmf(keys.into())).await.unwrap();
    }

    /// Plays until the talk is over.
    async fn end(mut self) -> Vec<String> {
        while !self.talk.is_finished() {
            match self.frame() {
                true => self.let_run().await,
                false => self.next_moment().await,
            }
        }
        self.look();
        self.talk.await.unwrap();
        self.captions
    }
}

/// As loud as a telephone can be, for half a second: nobody else sounds so.
fn speech() -> Pcm {
    let wave: Vec<i16> = (0..4_000)
        .map(|at| if at / 20 % 2 == 0 { 32_124 } else { -32_124 })
        .collect();
    Pcm::new(8_000, wave)
}

async fn greeter(tenant: &Tenant, consent: &str) -> String {
    let replies = json!([{ "say": "Wonderful." }, { "say": "Very well." }]);
    let settings = json!({
        "first_message": "Good morning, how are you?", "recording": { "enabled": true, "consent": consent },
        "brain": { "mode": "scripted", "replies": replies },
    });
    agent(tenant, settings).await
}

async fn understand(world: &mut World, words: &[&str]) -> TranscriptionServer {
    let server = TranscriptionServer::understanding(words).await;
    world.change_setting("transcription_url", json!(server.url())).await;
    server
}

async fn transcript(tenant: &Tenant, id: &str) -> Vec<Value> {
    let transcript = tenant.api.get(&format!("/v1/sessions/{id}/transcript.json")).await.ok();
    transcript["turns"].as_array().unwrap().clone()
}

async fn noted(tenant: &Tenant, id: &str, kind: &str) -> Vec<Value> {
    let timeline = tenant.api.get(&format!("/v1/sessions/{id}/timeline")).await.ok();
    let entries = timeline["entries"].as_array().unwrap().clone().into_iter();
    entries
        .filter(|entry| entry["kind"] == kind)
        .map(|entry| entry["detail"].clone())
        .collect()
}

/// The agent's side and the other's.
async fn recorded(tenant: &Tenant) -> [Vec<i16>; 2] {
    let completed = told(tenant, "session.recording_completed").await.remove(0);
    let path = completed["recording_url"]
        .as_str()
        .unwrap()
        .strip_prefix(&tenant.api.url)
        .unwrap()
        .to_owned();
    let response = tenant.api.request(reqwest::Method::GET, &path).send().await.unwrap();
    let wav = response.bytes().await.unwrap();
    [0, 2].map(|side| {
        let frames = crate::world::wav::sound(&wav).chunks_exact(4);
        frames
            .map(|frame| i16::from_le_bytes([frame[side], frame[side + 1]]))
            .collect()
    })
}

const QUESTION: &str = "agent: Before we begin: may I record this call?";
const CLOSING: &str = "agent: Thank you for your time. Goodbye!";

on_both! {
    async fn offline_the_agent_speaks_hears_speech_and_keys_and_all_of_it_is_recorded(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "verbal").await;
        let mut page = Page::join(world, &tenant, &agent).await;
        assert_eq!(page.play_until(1).await, format!("{QUESTION} Press 1 for yes or 2 for no."));
        world.advance(seconds(1)).await;
        page.press("1").await;
        assert_eq!(page.play_until(2).await, "agent: Good morning, how are you?");
        for (captions, answer) in [(4, "agent: Wonderful."), (6, "agent: Very well."), (8, CLOSING)] {
            world.advance(seconds(1)).await;
            page.speak().await;
            assert_eq!(page.play_until(captions).await, answer);
        }
        let id = page.id.clone();
        let captions = page.end().await;
        world.settle().await;
        let row = session(&tenant, &id).await;
        assert_eq!((&row["status"], &row["ended_by"], &row["consent"]), (&json!("completed"), &json!("agent"), &json!("granted")));
        let turns = transcript(&tenant, &id).await;
        assert_eq!(said(&json!(turns)), captions, "captions are the transcript");
        assert_eq!(captions.iter().filter(|line| *line == "user: [speech]").count(), 3);
        assert_eq!(noted(&tenant, &id, "keys_pressed").await, ["1"]);
        assert!(turns.windows(2).all(|pair| pair[0]["t"].as_f64() <= pair[1]["t"].as_f64()), "{turns:?}");

        world.advance(seconds(10)).await;
        let [agents, theirs] = recorded(&tenant).await;
        assert!(agents.iter().any(|sample| sample.abs() > 1_000), "the agent is heard");
        let loud = theirs.iter().filter(|sample| sample.abs() > 32_000).count();
        assert_eq!((loud, theirs.iter().filter(|sample| **sample != 0).count()), (24_000, 24_000), "their own sound, and nothing else");
        assert_eq!(agents.len(), theirs.len());
        assert!(world.spooled_files().is_empty(), "it is stored: {:?}", world.spooled_files());
    }

    async fn a_no_by_key_and_no_clear_answer_end_the_talk(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "verbal").await;
        for (keys, captions) in [(&["2"][..], 2), (&["7", "#"], 3)] {
            let mut page = Page::join(world, &tenant, &agent).await;
            for (at, key) in keys.iter().enumerate() {
                page.play_until(at + 1).await;
                page.press(key).await;
            }
            let id = page.id.clone();
            let shown = page.end().await;
            assert_eq!((shown.len(), shown.last().unwrap().as_str()), (captions, "agent: I understand. Then this call ends here. Goodbye."));
            world.settle().await;
            let row = session(&tenant, &id).await;
            assert_eq!((&row["end_reason"], &row["consent"]), (&json!("consent_refused"), &json!("refused")));
        }
        assert_eq!(told(&tenant, "session.recording_completed").await.len(), 0);
    }

    async fn words_are_understood_who_cuts_in_is_listened_to_and_who_wants_no_more_is_left_alone(world: &mut World) {
        let server = understand(world, &["Yes, sure.", "Wait a moment!", "Please stop calling me."]).await;
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "verbal").await;
        let mut page = Page::join(world, &tenant, &agent).await;
        assert_eq!(page.play_until(1).await, QUESTION, "words are enough");
        world.advance(seconds(1)).await;
        page.speak().await;
        // It greets, and is cut in on after a fifth of a second.
        page.play(10).await;
        page.speak().await;
        page.look_until(4).await;
        assert_eq!(page.play_until(5).await, "agent: Wonderful.");
        world.advance(seconds(1)).await;
        page.speak().await;
        let id = page.id.clone();
        let shown = page.end().await;
        assert_eq!(shown, [
            QUESTION, "user: Yes, sure.", "agent: Good morning, how are you?", "user: Wait a moment!", "agent: Wonderful.",
            "user: Please stop calling me.", "agent: I understand. You will not be called again. Goodbye.",
        ]);
        world.settle().await;
        let row = session(&tenant, &id).await;
        assert_eq!((&row["status"], &row["end_reason"]), (&json!("completed"), &json!("opt_out")));
        assert_eq!(told(&tenant, "session.opt_out_detected").await.len(), 1);
        let turns = transcript(&tenant, &id).await;
        let greeting = turns[2]["content"].as_str().unwrap();
        assert!("Good morning, how are you?".starts_with(greeting) && (1..15).contains(&greeting.len()), "what was heard of it: {greeting}");
        assert_eq!(server.asked().len(), 3);
        assert!(server.asked().iter().all(|asked| asked.samples() == 8_000), "half a second, as words are understood");
    }

    async fn a_notice_is_heard_to_its_end_and_a_provider_that_fails_ends_nothing(world: &mut World) {
        let server = TranscriptionServer::start_with(|_, before| match before {
            0 => Answer::Words("Hello?".into()),
            1 => Answer::Status(400, "no".into()),
            _ => Answer::Words("Fine.".into()),
        })
        .await;
        world.change_setting("transcription_url", json!(server.url())).await;
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "notice").await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play(2).await;
        page.speak().await;
        while server.asked().is_empty() {
            page.next_moment().await;
        }
        page.play_until(3).await;
        world.advance(seconds(1)).await;
        page.speak().await;
        assert_eq!(page.play_until(5).await, "agent: Wonderful.");
        for captions in [7, 9] {
            page.speak().await;
            page.play_until(captions).await;
        }
        let id = page.id.clone();
        assert_eq!(page.end().await, [
            "agent: This call is recorded.", "agent: Good morning, how are you?", "user: Hello?", "user: [speech]",
            "agent: Wonderful.", "user: Fine.", "agent: Very well.", "user: Fine.", CLOSING,
        ]);
        world.settle().await;
        assert_eq!(noted(&tenant, &id, "transcription_failed").await, ["the provider failed: it answered 400"]);
        assert_eq!(session(&tenant, &id).await["status"], "completed");
    }

    /// It costs the recording, and not a word of the talk.
    async fn a_disk_that_is_full_fails_the_recording_and_never_the_talk(world: &mut World) {
        world.change_setting("recordings_spool_max_mb", json!(1)).await;
        let tenant = world.tenant().await;
        let agent = greeter(&tenant, "none").await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_until(1).await;
        // Forty seconds, of which each takes 32 KB.
        page.pick_up(&[3_000; 40 * 16_000]);
        world.deps().studio.spools.flush().await.unwrap();
        assert!(world.spooled_files().is_empty(), "others need the room");
        for captions in [3, 5, 7] {
            world.advance(seconds(1)).await;
            page.speak().await;
            page.play_until(captions).await;
        }
        let id = page.id.clone();
        assert_eq!(page.end().await.last().unwrap(), CLOSING);
        world.settle().await;
        assert_eq!(session(&tenant, &id).await["status"], "completed");
        let failed = noted(&tenant, &id, "recording_failed").await;
        assert_eq!(failed, ["the call could not be recorded: there is no room left for recordings in progress"]);
        let recordings = tenant.api.get(&format!("/v1/sessions/{id}/recordings")).await.ok();
        let recording = &recordings["data"][0];
        assert_eq!((&recording["status"], &recording["error"]), (&json!("failed"), &failed[0]));
        assert_eq!(told(&tenant, "session.recording_completed").await.len(), 0);
    }

    /// A clause before its sentence, and what follows while nothing of it has been played yet; the transcript has sentences, as the
    /// model wrote them.
    async fn what_a_provider_says_next_is_asked_for_early(world: &mut World) {
        // 50 ms a letter.
        let server = SpeechServer::start_with(|asked, _| {
            // First it is asked what it has, which opens the connection.
            let letters = asked.body["input"].as_str().unwrap_or_default().chars().count();
            speech_server::Answer::samples(&vec![700; 1_200 * letters], 4_800)
        })
        .await;
        let chat = ChatServer::start_with(|_, before| match before {
            0 => chat_server::Answer::Words("I can certainly do that today, if you tell me *your* name. Who is it?".into()),
            _ => chat_server::Answer::WordsAndCalls("Goodbye.".into(), chat_server::calls([("end_call", "{}")])),
        })
        .await;
        world.change_settings(&[
            ("speech_provider", json!("openai")), ("speech_url", json!(format!("{}/v1", server.url()))),
            ("speech_api_key", json!("k")), ("speech_voices", json!("bella")), ("chat_url", json!(chat.url())),
        ]).await;
        let tenant = world.tenant().await;
        let settings = json!({ "first_message": "Good morning!", "recording": { "enabled": false }, "brain": { "mode": "chat" } });
        let agent = agent(&tenant, settings).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_out().await;
        page.speak().await;
        let spoken = || -> Vec<Value> {
            let asked = server.asked().into_iter();
            asked.map(|asked| asked.body["input"].clone()).filter(Value::is_string).collect()
        };
        while spoken().len() < 4 {
            page.next_moment().await;
        }
        let mut asked = spoken();
        // These two are asked for at once.
        asked[2..].sort_by_key(|text| text.as_str().unwrap().len());
        assert_eq!(asked, ["Good morning!", "I can certainly do that today,", "Who is it?", "if you tell me your name."]);
        page.look_until(3).await;
        assert_eq!(page.captions.len(), 3, "the question comes after the sentence");
        page.play_until(4).await;
        page.speak().await;
        assert_eq!(page.end().await, [
            "agent: Good morning!", "user: [speech]", "agent: I can certainly do that today, if you tell me *your* name.",
            "agent: Who is it?", "user: [speech]", "agent: Goodbye.",
        ]);
    }

    /// What was heard of words that were cut is what their provider says, not their share of the sound: its first words take 200 ms
    /// each, and the third takes 1,200.
    async fn who_cuts_in_has_heard_exactly_the_words_that_the_provider_times(world: &mut World) {
        let _ears = understand(world, &["Can you do that?", "Wait a moment!"]).await;
        let server = CartesiaServer::start_with(|ask, _| slow_third(ask)).await;
        let chat = ChatServer::start_with(|_, before| match before {
            0 => chat_server::Answer::Words("I can certainly do that today, if you tell me your name.".into()),
            _ => chat_server::Answer::WordsAndCalls("Goodbye.".into(), chat_server::calls([("end_call", "{}")])),
        })
        .await;
        world.change_settings(&[
            ("speech_provider", json!("cartesia")), ("speech_url", json!(server.url)), ("speech_api_key", json!("k")),
            ("speech_voices", json!("bella")), ("chat_url", json!(chat.url())),
        ]).await;
        let tenant = world.tenant().await;
        let settings = json!({ "first_message": "Good morning!", "recording": { "enabled": false }, "brain": { "mode": "chat" } });
        let agent = agent(&tenant, settings).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_out().await;
        page.speak().await;
        // 800 ms: "I" and "can" have been said, and a part of "certainly".
        page.play(40).await;
        page.speak().await;
        page.look_until(4).await;
        let id = page.id.clone();
        page.end().await;
        world.settle().await;
        let turns = transcript(&tenant, &id).await;
        assert_eq!(turns[2]["content"], "I can", "{turns:?}");
        let asked = chat.requests().into_iter().flat_map(|asked| asked["messages"].as_array().unwrap().clone());
        let said: Vec<_> = asked.filter(|message| message["role"] == "assistant").map(|message| message["content"].clone()).collect();
        assert!(said.contains(&json!("I can—")), "the model knows it too: {said:?}");

        let asks = server.with("transcript");
        let of = |text: &str| {
            let is_it = |ask: &&Value| ask["transcript"].as_str().unwrap().trim() == text;
            let found = asks.iter().find(is_it);
            found.unwrap_or_else(|| panic!("{text} in {asks:?}"))["context_id"].clone()
        };
        let turn = of("I can certainly do that today,");
        assert_ne!(of("Good morning!"), turn, "each turn has a context of its own");
    }

    async fn a_trained_clone_is_heard_through_one_socket_a_turn(world: &mut World) {
        let cloner = VoiceServer::start();
        let speaker = ElevenlabsServer::start_with(|text, _| vec![elevenlabs_server::spoken(text, 20)]).await;
        let front = Front::before(&cloner.url, &speaker.url, "stream-input");
        let chat = ChatServer::start_with(|_, before| match before {
            0 => chat_server::Answer::Words("I can certainly do that today, if you tell me *your* name. Who is it?".into()),
            _ => chat_server::Answer::WordsAndCalls("Goodbye.".into(), chat_server::calls([("end_call", "{}")])),
        })
        .await;
        world.change_settings(&[
            ("voice_provider_url", json!(front.url)), ("voice_provider_api_key", json!("xi-key")), ("chat_url", json!(chat.url())),
        ]).await;
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let voice = voices::clone(&live, [voices::good(), voices::good(), voices::good()]).await;
        world.settle().await;
        let settings = json!({
            "first_message": "Good morning!", "recording": { "enabled": false }, "brain": { "mode": "chat" }, "voice_id": voice,
        });
        let agent = agent(&tenant, settings).await;
        let mut page = Page::join(world, &tenant, &agent).await;
        page.play_out().await;
        assert!(page.played > 5, "it is heard: {} frames", page.played);
        page.speak().await;
        page.play_until(4).await;
        page.speak().await;
        assert_eq!(page.end().await, [
            "agent: Good morning!", "user: [speech]", "agent: I can certainly do that today, if you tell me *your* name.",
            "agent: Who is it?", "user: [speech]", "agent: Goodbye.",
        ]);
        let sockets = speaker.with("connected");
        let at_clone = |socket: &Value| socket["connected"].as_str().unwrap().starts_with("/v1/text-to-speech/voice-1/stream-input?");
        assert!(sockets.iter().all(|socket| at_clone(socket) && socket["key"] == "xi-key"), "{sockets:?}");
        // A blank begins a turn, and nothing ends it.
        assert_eq!(speaker.texts(11).await, [
            " ", "Good morning! ", "", " ", "I can certainly do that today, ", "if you tell me your name. ", "Who is it? ", "",
            " ", "Goodbye. ", "",
        ]);
    }
}

/// Says what Cartesia is asked: the first two words of it take 200 ms each, the third 1,200, and each other one 200. That a
/// sentence which asks for a name is over it does not tell.
fn slow_third(ask: &Value) -> Vec<Say> {
    let text = ask["transcript"].as_str().unwrap().trim();
    let (mut words, mut starts, mut ends, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for (place, word) in text.split_whitespace().enumerate() {
        words.push(word);
        starts.push(at);
        at += if place == 2 { 1.2 } else { 0.2 };
        ends.push(at);
    }
    let timed = json!({ "words": words, "start": starts, "end": ends });
    let sound = Say::Sound(700_i16.to_le_bytes().repeat((at * 24_000.0) as usize));
    let says = vec![
        Say::Event(json!({ "type": "timestamps", "word_timestamps": timed })),
        sound,
    ];
    match ask["continue"] == true {
        // A flush, or the end.
        _ if text.is_empty() => Vec::new(),
        _ if text.ends_with("name.") => says,
        true => [says, vec![Say::Event(json!({ "type": "flush_done" }))]].concat(),
        false => [says, vec![Say::Done]].concat(),
    }
}
