//! The receiver: a process of its own, so that its work is not taken for the service's. It says where it listens on its
//! first line, and counts per path what arrives and how long that took since the time written into the body.
use actix_web::{
    App, HttpResponse, HttpServer,
    web::{self, Bytes, Data, Path},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::Mutex,
};

/// What arrived at one path since the last reset.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Arrivals {
    pub count: usize,
    pub p50_us: u64,
    pub p99_us: u64,
    /// From 0 to 100.
    pub percentiles_us: Vec<u64>,
}

#[derive(Default)]
struct Inbox(Mutex<BTreeMap<usize, Vec<u64>>>);

/// The receiver's own process.
pub async fn serve() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    println!("http://{}", listener.local_addr().expect("its address"));
    std::io::stdout().flush().expect("a reader");
    let inbox = Data::new(Inbox::default());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(inbox.clone())
            .app_data(web::PayloadConfig::new(1 << 20))
            .route("/hook/{n}", web::post().to(hook))
            .route("/report", web::get().to(report))
            .route("/count", web::get().to(count))
            .route("/reset", web::post().to(reset))
    });
    server
        .workers(1)
        .listen(listener)
        .expect("it listens")
        .run()
        .await
        .expect("it runs");
}

async fn hook(inbox: Data<Inbox>, n: Path<usize>, body: Bytes) -> HttpResponse {
    let took = sent_at(&body).map_or(0, |sent| micros_now().saturating_sub(sent));
    inbox.0.lock().expect("no panic").entry(*n).or_default().push(took);
    HttpResponse::Ok().finish()
}

async fn report(inbox: Data<Inbox>) -> HttpResponse {
    let inbox = inbox.0.lock().expect("no panic");
    let arrivals: BTreeMap<usize, Arrivals> = inbox.iter().map(|(n, took)| (*n, arrivals(took.clone()))).collect();
    HttpResponse::Ok().json(arrivals)
}

/// Asked again and again during a run: nothing is sorted for it.
async fn count(inbox: Data<Inbox>) -> HttpResponse {
    let inbox = inbox.0.lock().expect("no panic");
    HttpResponse::Ok().json(inbox.values().map(Vec::len).sum::<usize>())
}

async fn reset(inbox: Data<Inbox>) -> HttpResponse {
    inbox.0.lock().expect("no panic").clear();
    HttpResponse::Ok().finish()
}

fn arrivals(mut took: Vec<u64>) -> Arrivals {
    took.sort_unstable();
    let percentile = |percent: usize| {
        took.get((took.len().saturating_sub(1)) * percent / 100)
            .copied()
            .unwrap_or(0)
    };
    Arrivals {
        count: took.len(),
        p50_us: percentile(50),
        p99_us: percentile(99),
        percentiles_us: (0..=100).map(percentile).collect(),
    }
}

/// The time of sending, as `t=<microseconds> ` somewhere in the body.
fn sent_at(body: &[u8]) -> Option<u64> {
    let at = body.windows(2).position(|window| window == b"t=")? + 2;
    let digits = body[at..].iter().take_while(|byte| byte.is_ascii_digit());
    std::str::from_utf8(&digits.copied().collect::<Vec<u8>>())
        .ok()?
        .parse()
        .ok()
}

/// Microseconds since 1970: both processes look at the same clock.
pub fn micros_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_micros()).expect("before the year 500,000")
}

/// The receiver, from the side of the run.
pub struct Receiver {
    pub url: String,
    child: Child,
    client: reqwest::Client,
}

impl Receiver {
    pub fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("receiver")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        output.read_line(&mut url).expect("its address");
        Receiver {
            url: url.trim().to_owned(),
            child,
            client: super::service::client(),
        }
    }

    pub fn hook(&self, n: usize) -> String {
        format!("{}/hook/{n}", self.url)
    }

    pub async fn reset(&self) {
        let request = self.client.post(format!("{}/reset", self.url));
        request.send().await.expect("an answer");
    }

    pub async fn report(&self) -> BTreeMap<usize, Arrivals> {
        let answer = self.client.get(format!("{}/report", self.url)).send().await;
        answer.expect("an answer").json().await.expect("a report")
    }

    pub async fn count(&self) -> usize {
        let answer = self.client.get(format!("{}/count", self.url)).send().await;
        answer.expect("an answer").json().await.expect("a count")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
