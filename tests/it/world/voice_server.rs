//! A real local voice provider, in the shape of ElevenLabs: `POST /v1/voices/add`, `GET /v1/voices`,
//! `DELETE /v1/voices/{id}`, `POST /v1/text-to-speech/{id}`. Reads forms with its own few lines, not with the service's.
use super::http_server::serve;
use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, Data, Path},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What becomes of a request to make a voice.
#[derive(Clone, Debug, PartialEq)]
pub enum Adding {
    Make,
    /// Made, and the answer never comes.
    MakeAndHang,
    /// Neither.
    Hang,
    /// Refused with that status and these words.
    Refuse(u16, String),
}

/// A voice as it was asked for.
#[derive(Clone, Debug)]
pub struct Voice {
    pub id: String,
    pub name: String,
    pub labels: Value,
    /// Name and length of each file.
    pub files: Vec<(String, usize)>,
}

struct State {
    adding: Mutex<Adding>,
    /// Voices that were asked for, and those that are there.
    asked: Mutex<Vec<Voice>>,
    voices: Mutex<Vec<Voice>>,
    /// Deletions fail with a 500.
    stuck: Mutex<bool>,
    keys: Mutex<Vec<String>>,
    arrived: tokio::sync::Notify,
}

pub struct VoiceServer {
    pub url: String,
    state: Arc<State>,
}

impl VoiceServer {
    pub fn start() -> Self {
        let state = Arc::new(State {
            adding: Mutex::new(Adding::Make),
            asked: Mutex::default(),
            voices: Mutex::default(),
            stuck: Mutex::default(),
            keys: Mutex::default(),
            arrived: tokio::sync::Notify::new(),
        });
        let data = Data::from(state.clone());
        let (url, _) = serve(move |config| {
            config
                .app_data(data.clone())
                .app_data(web::PayloadConfig::new(64 * 1024 * 1024))
                .route("/v1/voices/add", web::post().to(add))
                .route("/v1/voices", web::get().to(list))
                .route("/v1/voices/{id}", web::delete().to(delete))
                .route("/v1/text-to-speech/{id}", web::post().to(speak));
        });
        VoiceServer { url, state }
    }

    pub fn answer_with(&self, adding: Adding) {
        *self.state.adding.lock().unwrap() = adding;
    }
    pub fn get_stuck(&self, stuck: bool) {
        *self.state.stuck.lock().unwrap() = stuck;
    }
    pub fn asked(&self) -> Vec<Voice> {
        self.state.asked.lock().unwrap().clone()
    }
    /// Ids of the voices that are there.
    pub fn voices(&self) -> Vec<String> {
        let voices = self.state.voices.lock().unwrap();
        voices.iter().map(|voice| voice.id.clone()).collect()
    }
    /// Every key that came, each once.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = self.state.keys.lock().unwrap().clone();
        keys.dedup();
        keys
    }

    /// Waits until so many voices have been asked for.
    pub async fn arrived(&self, count: usize) {
        loop {
            let arrived = self.state.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.asked().len() >= count {
                return;
            }
            arrived.await;
        }
    }
}

fn note_key(state: &State, request: &HttpRequest) {
    let key = request
        .headers()
        .get("xi-api-key")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    state.keys.lock().unwrap().push(key);
}

/// Name, file name and content of each part.
fn parts(request: &HttpRequest, body: &[u8]) -> Vec<(String, Option<String>, Vec<u8>)> {
    let kind = request.headers().get("content-type").unwrap().to_str().unwrap();
    let boundary = format!("--{}", kind.split_once("boundary=").unwrap().1);
    let find = |text: &[u8], wanted: &[u8]| text.windows(wanted.len()).position(|window| window == wanted);
    let quoted = |head: &str, name: &str| {
        let (_, rest) = head.split_once(&format!("{name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let (mut rest, mut parts) = (body, Vec::new());
    while let Some(start) = find(rest, boundary.as_bytes()) {
        rest = &rest[start + boundary.len()..];
        let Some(end) = find(rest, boundary.as_bytes()) else {
            break;
        };
        let part = &rest[2..end - 2];
        let split = find(part, b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&part[..split]).into_owned();
        parts.push((
            quoted(&head, " name").unwrap(),
            quoted(&head, "filename"),
            part[split + 4..].to_vec(),
        ));
    }
    parts
}

async fn add(state: Data<State>, request: HttpRequest, body: Bytes) -> HttpResponse {
    note_key(&state, &request);
    let adding = state.adding.lock().unwrap().clone();
    let mut voice = Voice {
        id: format!("voice-{}", state.asked.lock().unwrap().len() + 1),
        name: String::new(),
        labels: Value::Null,
        files: Vec::new(),
    };
    for (name, file, content) in parts(&request, &body) {
        match (name.as_str(), file) {
            ("name", None) => voice.name = String::from_utf8(content).unwrap(),
            ("labels", None) => voice.labels = serde_json::from_slice(&content).unwrap(),
            ("files", Some(file)) => voice.files.push((file, content.len())),
            other => panic!("what is {other:?}?"),
        }
    }
    state.asked.lock().unwrap().push(voice.clone());
    if matches!(adding, Adding::Make | Adding::MakeAndHang) {
        state.voices.lock().unwrap().push(voice.clone());
    }
    state.arrived.notify_waiters();
    match adding {
        Adding::Make => HttpResponse::Ok().json(json!({ "voice_id": voice.id, "requires_verification": false })),
        Adding::MakeAndHang | Adding::Hang => std::future::pending().await,
        Adding::Refuse(status, words) => HttpResponse::build(status.try_into().unwrap())
            .json(json!({ "detail": { "status": "refused", "message": words } })),
    }
}

async fn list(state: Data<State>, request: HttpRequest) -> HttpResponse {
    note_key(&state, &request);
    let others = json!({ "voice_id": "premade", "name": "Rachel", "labels": { "accent": "american" } });
    let mut voices = vec![others, json!({ "voice_id": "bare", "name": "Bare", "labels": null })];
    let own = state.voices.lock().unwrap().clone();
    voices.extend(
        own.into_iter()
            .map(|voice| json!({ "voice_id": voice.id, "name": voice.name, "labels": voice.labels })),
    );
    HttpResponse::Ok().json(json!({ "voices": voices }))
}

async fn delete(state: Data<State>, request: HttpRequest, id: Path<String>) -> HttpResponse {
    note_key(&state, &request);
    if *state.stuck.lock().unwrap() {
        return HttpResponse::InternalServerError().json(json!({ "detail": "stuck" }));
    }
    let mut voices = state.voices.lock().unwrap();
    let before = voices.len();
    voices.retain(|voice| voice.id != *id);
    if voices.len() == before {
        return HttpResponse::BadRequest().json(json!({ "detail": { "status": "voice_does_not_exist" } }));
    }
    HttpResponse::Ok().json(json!({ "status": "ok" }))
}

/// Half a second of a tone, if it was asked for as we can read it.
async fn speak(state: Data<State>, request: HttpRequest, id: Path<String>, body: web::Json<Value>) -> HttpResponse {
    note_key(&state, &request);
    assert!(body["text"].is_string() && request.query_string() == "output_format=pcm_16000");
    if !state.voices.lock().unwrap().iter().any(|voice| voice.id == *id) {
        return HttpResponse::NotFound()
            .json(json!({ "detail": { "status": "voice_not_found", "message": "no such voice" } }));
    }
    let samples = (0..8_000_i16).flat_map(|n| (n % 80 * 100).to_le_bytes());
    HttpResponse::Ok().body(samples.collect::<Vec<u8>>())
}
