//! An open websocket, in tasks of its own: pings are answered and sound is sent while nobody thinks.
//!
//! What comes waits here in bounded space. While an answer is played that was made faster than it is heard, that is full, and the
//! provider is read at the pace of the listener; a ping is then answered when it is its turn, and until it is, the provider gets a pong
//! that it has not asked for every few seconds (RFC 6455, 5.5.3), so that it need not think that nobody is there. Asks, such as
//! calling the answer off, go out all the same; once nobody listens any more, sound is read and thrown away.
use super::{
    own_words::Ear,
    protocol::Event,
    provider::Socket,
    sound::Format,
    writer::{Job, Live, PutIn, Speech, Writer},
};
use crate::{outbound::trouble, sound::Pcm};
use entities::boxed;
use futures_util::{SinkExt, StreamExt, stream::SplitStream};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{
    Bytes, Error, Message, error::ProtocolError::ResetWithoutClosingHandshake, protocol::CloseFrame,
};

/// Asks and events that wait; past that the one or the other side waits.
const QUEUE: usize = 256;
/// Bytes of events that wait: one message of the greatest size, 16 s of sound at 24 kHz.
const UNREAD_BYTES: usize = super::MESSAGE_LIMIT;
/// Between two signs of life while nothing is read.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// The provider has that long to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);

/// Dropping it closes the socket.
#[derive(Debug)]
pub struct Link {
    jobs: mpsc::Sender<Job>,
    events: mpsc::Receiver<Unread>,
    is_listening: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Unread {
    /// The last one is the reason why there are no more.
    event: Result<Event, String>,
    /// Given back when it is read.
    _room: Option<OwnedSemaphorePermit>,
}

impl Link {
    /// `ear`: notes what the provider understands of what is said.
    pub fn over(socket: Socket, ear: Option<Ear>) -> Self {
        let (jobs, to_do) = mpsc::channel(QUEUE);
        let (heard, events) = mpsc::channel(QUEUE);
        let is_listening = Arc::new(AtomicBool::new(true));
        let reader = Reader {
            events: heard,
            room: Arc::new(Semaphore::new(UNREAD_BYTES)),
            is_listening: is_listening.clone(),
            jobs: jobs.downgrade(),
            ear,
        };
        tokio::spawn(run(socket, to_do, reader));
        Link {
            jobs,
            events,
            is_listening,
        }
    }

    /// Does anybody care for sound and words now? If not, they are thrown away as they come.
    pub fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Relaxed);
    }

    /// Sent, or at least on its way, when this returns; not at all if it is dropped before. `false`: the link is gone.
    #[boxed]
    pub async fn send(&self, ask: String) -> bool {
        self.jobs.send(Job::Send(Message::text(ask))).await.is_ok()
    }

    /// `false`: there was no room, or the link is gone.
    pub fn send_now(&self, ask: String) -> bool {
        self.jobs.try_send(Job::Send(Message::text(ask))).is_ok()
    }

    /// What is spoken is put in from now on. Given back if there was no room for that now.
    pub fn listen_to(&self, live: Live) -> Option<Live> {
        let refused = self.jobs.try_send(Job::Listen(live)).err()?;
        match refused.into_inner() {
            Job::Listen(live) => Some(live),
            Job::Send(_) | Job::Speech(_) => None,
        }
    }

    /// All of what was said. `None`: the link is gone. Dropped before it returns, it is taken back, if that is not too late.
    #[boxed]
    pub async fn speak(&self, sound: Pcm, format: Format, name: String) -> Option<PutIn> {
        let (done, put_in) = oneshot::channel();
        let speech = Speech {
            sound,
            format,
            name,
            done,
        };
        self.jobs.send(Job::Speech(speech)).await.ok()?;
        put_in.await.ok()
    }

    /// Fails when the link is gone, and says why.
    #[boxed]
    pub async fn event(&mut self) -> Result<Event, String> {
        let gone = || Err("the connection is gone".into());
        self.events.recv().await.map_or_else(gone, |unread| unread.event)
    }

    /// One that waits already.
    pub fn event_now(&mut self) -> Option<Result<Event, String>> {
        self.events.try_recv().ok().map(|unread| unread.event)
    }
}

async fn run(socket: Socket, jobs: mpsc::Receiver<Job>, reader: Reader) {
    let (mut sink, stream) = socket.split();
    let end = {
        let mut writer = Writer::new(&mut sink, jobs);
        // Both at once: a provider that cannot send does not read either.
        tokio::select! {
            end = writer.run() => match end {
                Ok(()) => "nobody asks any more".into(),
                Err(error) => broken(&error),
            },
            end = reader.read(stream) => end,
            // Also where the provider takes nothing in.
            () = reader.events.closed() => "nobody listens any more".into(),
        }
    };
    if let Some(ear) = &reader.ear {
        ear.end();
    }
    // It may be gone already, and nobody may want to know.
    let _ = timeout(FAREWELL, sink.close()).await;
    let last = Unread {
        event: Err(end),
        _room: None,
    };
    let _ = reader.events.send(last).await;
}

struct Reader {
    events: mpsc::Sender<Unread>,
    /// A permit for each byte that may still wait.
    room: Arc<Semaphore>,
    is_listening: Arc<AtomicBool>,
    /// For signs of life; it keeps nobody asking.
    jobs: mpsc::WeakSender<Job>,
    ear: Option<Ear>,
}

impl Reader {
    /// Until there is nothing more to read: why.
    async fn read(&self, mut stream: SplitStream<Socket>) -> String {
        loop {
            let text = match stream.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Binary(_))) => return "it sent a frame that is not text".into(),
                Some(Ok(Message::Close(frame))) => return closed(frame),
                Some(Err(error)) => return broken(&error),
                None => return "it closed the connection".into(),
            };
            let Ok(event) = serde_json::from_str::<Event>(&text) else {
                return "it sent a frame that is not a JSON event of the protocol".into();
            };
            if let Some(ear) = &self.ear {
                ear.note(&event);
            }
            if event.is_of_input() {
                continue;
            }
            let may_be_dropped = matches!(event, Event::Sound(_) | Event::Words(_) | Event::Other);
            if may_be_dropped && !self.is_listening.load(Ordering::Relaxed) {
                continue;
            }
            let bytes = text.len().min(UNREAD_BYTES) as u32;
            let room = self.patiently(self.room.clone().acquire_many_owned(bytes)).await;
            let unread = Unread {
                event: Ok(event),
                // Nobody closes it.
                _room: room.ok(),
            };
            if self.patiently(self.events.send(unread)).await.is_err() {
                return "nobody listens any more".into();
            }
        }
    }

    /// Waits, and shows the provider that somebody is there meanwhile.
    async fn patiently<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        loop {
            if let Ok(done) = timeout(SIGN_OF_LIFE, &mut waiting).await {
                return done;
            }
            if let Some(jobs) = self.jobs.upgrade() {
                // Where there is no room, what is sent shows it.
                let _ = jobs.try_send(Job::Send(Message::Pong(Bytes::new())));
            }
        }
    }
}

fn closed(frame: Option<CloseFrame>) -> String {
    match frame {
        Some(frame) if frame.reason.is_empty() => format!("it closed the connection ({})", frame.code),
        Some(frame) => format!("it closed the connection ({}): {}", frame.code, frame.reason),
        None => "it closed the connection".into(),
    }
}

fn broken(error: &Error) -> String {
    match error {
        Error::Capacity(error) => format!("it sent too much at once: {error}"),
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(ResetWithoutClosingHandshake) => {
            "it closed the connection".into()
        }
        Error::Io(error) => trouble::lost(error),
        error => format!("the connection broke: {error}"),
    }
}
