//! An open websocket, in a task of its own, so that pings are answered while nobody thinks.
use super::{protocol::Event, provider::Socket};
use entities::boxed;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message, protocol::CloseFrame};

/// Asks and events that wait; past that the one or the other side waits.
const QUEUE: usize = 256;
/// The provider has that long to say good-bye.
const FAREWELL: Duration = Duration::from_secs(2);

/// Dropping it closes the socket.
#[derive(Debug)]
pub struct Link {
    asks: mpsc::Sender<Message>,
    /// The last one is the reason why there are no more.
    events: mpsc::Receiver<Result<Event, String>>,
    is_listening: Arc<AtomicBool>,
}

impl Link {
    pub fn over(socket: Socket) -> Self {
        let (asks, to_send) = mpsc::channel(QUEUE);
        let (heard, events) = mpsc::channel(QUEUE);
        let is_listening = Arc::new(AtomicBool::new(true));
        tokio::spawn(run(socket, to_send, heard, is_listening.clone()));
        Link {
            asks,
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
        self.asks.send(Message::text(ask)).await.is_ok()
    }

    /// `false`: there was no room, or the link is gone.
    pub fn send_now(&self, ask: String) -> bool {
        self.asks.try_send(Message::text(ask)).is_ok()
    }

    /// Fails when the link is gone, and says why.
    #[boxed]
    pub async fn event(&mut self) -> Result<Event, String> {
        let gone = || Err("the connection is gone".into());
        self.events.recv().await.unwrap_or_else(gone)
    }
}

async fn run(
    socket: Socket,
    asks: mpsc::Receiver<Message>,
    events: mpsc::Sender<Result<Event, String>>,
    is_listening: Arc<AtomicBool>,
) {
    let (mut sink, stream) = socket.split();
    // Both at once: a provider that cannot send does not read either.
    let end = tokio::select! {
        end = write(&mut sink, asks) => end,
        end = read(stream, &events, &is_listening) => end,
    };
    // It may be gone already, and nobody may want to know.
    let _ = tokio::time::timeout(FAREWELL, sink.close()).await;
    let _ = events.send(Err(end)).await;
}

async fn write(sink: &mut SplitSink<Socket, Message>, mut asks: mpsc::Receiver<Message>) -> String {
    while let Some(ask) = asks.recv().await {
        if let Err(error) = sink.feed(ask).await {
            return broken(&error);
        }
        if asks.is_empty()
            && let Err(error) = sink.flush().await
        {
            return broken(&error);
        }
    }
    "nobody asks any more".into()
}

async fn read(
    mut stream: SplitStream<Socket>,
    events: &mpsc::Sender<Result<Event, String>>,
    is_listening: &AtomicBool,
) -> String {
    loop {
        let text = match stream.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Binary(_))) => return "it sent a frame that is not text".into(),
            Some(Ok(Message::Close(frame))) => return closed(frame),
            Some(Err(error)) => return broken(&error),
            None => return "it closed the connection".into(),
        };
        let event = match serde_json::from_str(&text) {
            Ok(event) => event,
            Err(_) => return "it sent a frame that is not a JSON event of the protocol".into(),
        };
        let may_be_dropped = matches!(event, Event::Sound(_) | Event::Words(_) | Event::Other);
        if may_be_dropped && !is_listening.load(Ordering::Relaxed) {
            continue;
        }
        if events.send(Ok(event)).await.is_err() {
            return "nobody listens any more".into();
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
        Error::ConnectionClosed | Error::AlreadyClosed => "it closed the connection".into(),
        error => format!("the connection broke: {error}"),
    }
}
