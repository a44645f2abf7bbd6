//! The noisy workspace's clients, as a process of their own.
use crate::{
    rooms::{pause, row},
    service::{Api, client},
};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    rc::Rc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Keys for each kind of noise but the flood, which has the rest.
pub const OWN_KEYS: usize = 3;

/// The process, as long as it makes noise.
pub struct Noise {
    child: Child,
}

impl Noise {
    /// `about` is what [`make`] reads.
    pub fn start(about: &Value) -> Self {
        let mut command = Command::new("nice");
        command
            .args(["-n", "19"])
            .arg(std::env::current_exe().expect("this program"));
        let child = command.arg("noise").stdin(Stdio::piped()).spawn().expect("a process");
        let mut input = child.stdin.as_ref().expect("its input");
        writeln!(input, "{about}").expect("it reads");
        Noise { child }
    }

    /// Prints what it was answered.
    pub fn end(mut self) {
        // Its input ends.
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

/// What the noise was answered, by kind and status; 0: no answer.
type Tally = Rc<RefCell<BTreeMap<(&'static str, u16), usize>>>;

/// Makes noise until the input ends. Its first line says where and with what keys.
pub async fn make() {
    let mut about = String::new();
    std::io::stdin().read_line(&mut about).expect("a line");
    let about: Value = serde_json::from_str(&about).expect("JSON");
    let texts = |of: &str| -> Vec<String> { serde_json::from_value(about[of].clone()).expect("texts") };
    let (keys, looked_at, tally) = (texts("keys"), texts("looked_at"), Tally::default());
    let url = about["url"].as_str().expect("a URL");
    let api = |key: usize| Rc::new(Api::new(url.to_owned(), keys[key].clone()));
    for n in 0..8 {
        let path = format!("{}/preflight", looked_at[n % looked_at.len()]);
        again(&api(0), &tally, "preflight", path, json!({}));
    }
    let test = silent_function(&api(1)).await;
    for _ in 0..20 {
        let body = json!({ "arguments": {} });
        again(&api(1), &tally, "function test", test.clone(), body);
    }
    for _ in 0..about["bodies"].as_u64().expect("a number") {
        half_sent(&api(2), &tally, format!("{}/contacts/import", looked_at[0]));
    }
    for key in OWN_KEYS..keys.len() {
        flood(api(key), tally.clone(), key);
    }
    for _ in 0..4 {
        sign_in(api(0).address().to_owned(), tally.clone());
    }
    cancel(api(0), tally.clone(), texts("canceled"));
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let _ = end.await;
    for ((what, status), count) in tally.borrow().iter() {
        row(&format!("{what}, answered {status}"), count.to_string());
    }
}

fn count(tally: &Tally, what: &'static str, status: u16) {
    *tally.borrow_mut().entry((what, status)).or_default() += 1;
}

/// Posts the same as soon as it was answered; what was refused is tried again a little later.
fn again(api: &Rc<Api>, tally: &Tally, what: &'static str, path: String, body: Value) {
    let (api, tally) = (api.clone(), tally.clone());
    actix_rt::spawn(async move {
        loop {
            let status = api.status(&path, Some(body.clone())).await;
            count(&tally, what, status);
            if !(200..300).contains(&status) {
                pause(Duration::from_millis(100)).await;
            }
        }
    });
}

/// A function whose receiver takes every call and never answers; answers the path of its test.
async fn silent_function(api: &Api) -> String {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("its address"));
    actix_rt::spawn(async move {
        let mut held = Vec::new();
        while let Ok((call, _)) = silent.accept().await {
            held.push(call);
        }
    });
    let function = json!({
        "name": "wait",
        "description": "Never answers.",
        "parameters": { "type": "object" },
        "url": url,
        "timeout_ms": 120_000,
    });
    let function = api.post("/v1/functions", function).await;
    format!("/v1/functions/{}/test", function["id"].as_str().expect("an id"))
}

/// Half of the largest body that a list may have, and then nothing more, until the service has enough of it.
fn half_sent(api: &Rc<Api>, tally: &Tally, path: String) {
    const WHOLE: usize = 10 * 1024 * 1024;
    let (api, tally) = (api.clone(), tally.clone());
    actix_rt::spawn(async move {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: text/csv\r\nContent-Length: {WHOLE}\r\n\r\n",
            api.address(),
            api.key()
        );
        let half = vec![b'1'; WHOLE / 2];
        loop {
            let status = match TcpStream::connect(api.address()).await {
                Ok(connection) => send_half(connection, head.as_bytes(), &half).await,
                Err(_) => 0,
            };
            count(&tally, "half-sent body", status);
            pause(Duration::from_millis(100)).await;
        }
    });
}

/// The status of the answer that came, 0 without one.
async fn send_half(mut connection: TcpStream, head: &[u8], half: &[u8]) -> u16 {
    // Whoever refuses may close before all of it was sent.
    let sent = async {
        connection.write_all(head).await?;
        connection.write_all(half).await
    };
    let _ = sent.await;
    let mut answer = [0; 12];
    match connection.read_exact(&mut answer).await {
        Ok(_) => std::str::from_utf8(&answer[9..]).map_or(0, |text| text.parse().unwrap_or(0)),
        Err(_) => 0,
    }
}

/// A key somewhat above its limit, with reads and writes.
fn flood(api: Rc<Api>, tally: Tally, key: usize) {
    actix_rt::spawn(async move {
        for n in 0_usize.. {
            let status = if n.is_multiple_of(2) {
                api.status("/v1/campaigns?limit=100", None).await
            } else {
                let number = format!("+1500{}{:05}", 20 + key % 80, n % 100_000);
                api.status("/v1/dnc", Some(json!({ "phone_number": number }))).await
            };
            count(&tally, "flood", status);
            pause(Duration::from_millis(15)).await;
        }
    });
}

/// Sign-ins of an e-mail address as large as a body may be.
fn sign_in(address: String, tally: Tally) {
    actix_rt::spawn(async move {
        let body =
            json!({ "email": format!("{}@example.com", "x".repeat(900_000)), "password": "correct horse battery" });
        let url = format!("http://{address}/v1/_internal/login");
        let client = client();
        loop {
            let answer = client.post(&url).json(&body).send().await;
            count(&tally, "sign-in", answer.map_or(0, |answer| answer.status().as_u16()));
            pause(Duration::from_millis(100)).await;
        }
    });
}

/// One long list after the other.
fn cancel(api: Rc<Api>, tally: Tally, campaigns: Vec<String>) {
    actix_rt::spawn(async move {
        for path in campaigns {
            let status = loop {
                let status = api.status(&format!("{path}/cancel"), Some(json!({}))).await;
                if status != 429 {
                    break status;
                }
                pause(Duration::from_millis(100)).await;
            };
            count(&tally, "cancel", status);
            // The answer may be a refusal, of which nobody knows how far it is.
            while api.get(&path).await["status"] != "completed" {
                pause(Duration::from_millis(500)).await;
            }
        }
    });
}
