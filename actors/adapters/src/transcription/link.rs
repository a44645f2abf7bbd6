//! An open websocket, in a task of its own, so that whoever listens to a talk never waits for a provider.
use crate::{provider_socket::Socket, speech::SpeechError};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use std::time::Duration;
use tokio::{sync::mpsc, time::timeout};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// Messages that wait to be sent: the sound of the longest turn and more.
const TO_SEND: usize = 1_024;
/// Messages that wait to be read, of 1 MiB at most.
const TO_READ: usize = 8;
/// The provider has that long to take a message, and to say goodbye.
const SENDING: Duration = Duration::from_secs(5);

/// Dropping it closes the socket, behind what waits to be sent.
#[derive(Debug)]
pub struct Link {
    to_send: mpsc::Sender<Message>,
    /// The last one is the reason why there are no more.
    received: mpsc::Receiver<Result<Utf8Bytes, SpeechError>>,
}

impl Link {
    pub fn over(socket: Socket) -> Self {
        let (to_send, waiting) = mpsc::channel(TO_SEND);
        let (read, received) = mpsc::channel(TO_READ);
        tokio::spawn(run(socket, waiting, read));
        Link { to_send, received }
    }

    /// Without a socket: what is sent comes out there, and nothing is received.
    #[cfg(test)]
    pub fn loose() -> (Self, mpsc::Receiver<Message>) {
        let (to_send, sent) = mpsc::channel(TO_SEND);
        let (_, received) = mpsc::channel(1);
        (Link { to_send, received }, sent)
    }

    /// Fails when it is not read any more.
    pub fn send(&self, message: Message) -> Result<(), SpeechError> {
        self.to_send.try_send(message).map_err(|_| SpeechError::Closed)
    }

    /// The next text. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> Result<Utf8Bytes, SpeechError> {
        self.received.recv().await.unwrap_or(Err(SpeechError::Closed))
    }
}

async fn run(socket: Socket, waiting: mpsc::Receiver<Message>, received: mpsc::Sender<Result<Utf8Bytes, SpeechError>>) {
    let (mut sink, stream) = socket.split();
    // Both at once: a provider that cannot send does not read either.
    let end = tokio::select! {
        end = write(&mut sink, waiting) => end,
        end = read(stream, &received) => end,
    };
    // Nobody may want to know, and it may be gone already.
    let _ = received.try_send(Err(end));
    drop(received);
    let _ = timeout(SENDING, sink.close()).await;
}

async fn write(sink: &mut SplitSink<Socket, Message>, mut waiting: mpsc::Receiver<Message>) -> SpeechError {
    while let Some(message) = waiting.recv().await {
        let is_last = waiting.is_empty();
        let sending = async {
            sink.feed(message).await?;
            if is_last { sink.flush().await } else { Ok(()) }
        };
        if !matches!(timeout(SENDING, sending).await, Ok(Ok(()))) {
            break;
        }
    }
    SpeechError::Closed
}

async fn read(mut stream: SplitStream<Socket>, received: &mpsc::Sender<Result<Utf8Bytes, SpeechError>>) -> SpeechError {
    loop {
        let text = match stream.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Binary(_)) | Err(Error::Capacity(_) | Error::Utf8(_))) => return SpeechError::Garbage,
            Some(Ok(Message::Close(_)) | Err(_)) | None => return SpeechError::Closed,
        };
        if received.send(Ok(text)).await.is_err() {
            return SpeechError::Closed;
        }
    }
}
