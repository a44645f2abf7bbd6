//! A proxy before PostgreSQL that can hold a commit on its way, or the answer to one: what a network that is cut off for a
//! while, or a server whose disk hangs, does to a client.
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

pub struct Proxy {
    /// Where to reach the database through it.
    pub url: String,
    hold: Arc<AtomicU8>,
    /// COMMITs that pass before the one that is held.
    ahead: Arc<AtomicU8>,
    released: watch::Sender<bool>,
    delivered: watch::Receiver<bool>,
}

const NOTHING: u8 = 0;
const COMMIT: u8 = 1;
const ANSWER: u8 = 2;

impl Proxy {
    /// `url` is a `postgres://` URL with a port.
    pub async fn before(url: &str) -> Self {
        let mut through: url::Url = url.parse().unwrap();
        let server = (through.host_str().unwrap().to_owned(), through.port().unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        through.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let (hold, ahead) = (Arc::new(AtomicU8::new(NOTHING)), Arc::<AtomicU8>::default());
        let (released, release) = watch::channel(false);
        let (deliver, delivered) = watch::channel(false);
        let (held, first) = (hold.clone(), ahead.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else {
                    return;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let (mine, theirs) = watch::channel(false);
                let requests = Requests {
                    hold: held.clone(),
                    ahead: first.clone(),
                    release: release.clone(),
                    hold_answers: mine,
                    deliver: deliver.clone(),
                };
                tokio::spawn(requests.pump(from_client, to_server));
                tokio::spawn(answers(from_server, to_client, theirs, release.clone()));
            }
        });
        Proxy {
            url: through.to_string(),
            hold,
            ahead,
            released,
            delivered,
        }
    }

    /// The next COMMIT waits here, until it is released.
    pub fn hold_commit(&self) {
        self.hold.store(COMMIT, SeqCst);
    }

    /// The next COMMIT arrives, and no answer comes from then on, until it is released.
    pub fn hold_answer(&self) {
        self.hold.store(ANSWER, SeqCst);
    }

    /// The same of the COMMIT after so many others.
    pub fn hold_answer_after(&self, commits: u8) {
        self.ahead.store(commits, SeqCst);
        self.hold_answer();
    }

    /// What was held goes on, or finds that nobody is there any more.
    pub async fn release(&mut self) {
        self.released.send_replace(true);
        self.delivered.wait_for(|is_so| *is_so).await.unwrap();
    }
}

struct Requests {
    hold: Arc<AtomicU8>,
    ahead: Arc<AtomicU8>,
    release: watch::Receiver<bool>,
    hold_answers: watch::Sender<bool>,
    deliver: watch::Sender<bool>,
}

impl Requests {
    async fn pump(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let commits = buffer[..read].windows(6).any(|word| word == b"COMMIT");
            let passes = |ahead: u8| ahead.checked_sub(1);
            let held = if commits && self.ahead.fetch_update(SeqCst, SeqCst, passes).is_err() {
                self.hold.swap(NOTHING, SeqCst)
            } else {
                NOTHING
            };
            if held == COMMIT {
                self.released().await;
            }
            if held == ANSWER {
                self.hold_answers.send_replace(true);
            }
            let sent = to.write_all(&buffer[..read]).await;
            if held == ANSWER {
                self.released().await;
            }
            if held != NOTHING {
                self.deliver.send_replace(true);
            }
            if sent.is_err() {
                return;
            }
        }
    }

    async fn released(&mut self) {
        let _ = self.release.wait_for(|is_so| *is_so).await;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    held: watch::Receiver<bool>,
    mut release: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if *held.borrow() {
            let _ = release.wait_for(|is_so| *is_so).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
