//! A socket that is opened before it is needed: each is good for one turn, so the next one is opened as soon as that begins.
use super::endpoint::{Endpoint, VoiceIn};
use crate::{provider_socket::Socket, speech::SpeechError};
use futures_util::StreamExt;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::oneshot, time::timeout};
use tokio_tungstenite::tungstenite::Message;

/// How long the other side may take to be told that it is over.
const CLOSING: Duration = Duration::from_secs(5);

/// Of one talk.
pub struct Spares {
    endpoint: Arc<Endpoint>,
    spare: Mutex<Option<Spare>>,
    /// It is a talk, which has a next turn.
    is_kept: AtomicBool,
    /// The next one is on its way.
    is_opening: AtomicBool,
}

/// Dropping it closes the socket.
struct Spare {
    voice: VoiceIn,
    wanted: oneshot::Sender<oneshot::Sender<Socket>>,
}

impl Spares {
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Spares {
            endpoint,
            spare: Mutex::default(),
            is_kept: AtomicBool::new(false),
            is_opening: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one for that voice, and from now on another one whenever it was used.
    pub async fn keep(&self, voice: &VoiceIn) -> Result<(), SpeechError> {
        self.is_kept.store(true, Ordering::Relaxed);
        let socket = self.endpoint.connect(voice).await?;
        let (wanted, asked) = oneshot::channel();
        tokio::spawn(wait(socket, asked));
        *self.lock() = Some(Spare {
            voice: voice.clone(),
            wanted,
        });
        Ok(())
    }

    /// For the turn after this one, which may be thrown away before it is heard. In a task that ends within [`Endpoint::connect`]'s
    /// time.
    pub fn renew(self: &Arc<Self>, voice: &VoiceIn) {
        if !self.is_kept.load(Ordering::Relaxed) || self.lock().is_some() {
            return;
        }
        if self.is_opening.swap(true, Ordering::Relaxed) {
            return;
        }
        let (spares, voice) = (self.clone(), voice.clone());
        tokio::spawn(async move {
            // The next turn will tell.
            let _ = spares.keep(&voice).await;
            spares.is_opening.store(false, Ordering::Relaxed);
        });
    }

    /// One for that voice; `false`: it was open before.
    pub async fn socket(&self, voice: &VoiceIn) -> Result<(Socket, bool), SpeechError> {
        let spare = self.lock().take();
        if let Some(spare) = spare.filter(|spare| spare.voice == *voice) {
            let (give, given) = oneshot::channel();
            // It may have been closed by then.
            let _ = spare.wanted.send(give);
            if let Ok(socket) = given.await {
                return Ok((socket, false));
            }
        }
        Ok((self.endpoint.connect(voice).await?, true))
    }
}

/// Answers the other side's pings until the socket is wanted, or not any more.
async fn wait(mut socket: Socket, mut asked: oneshot::Receiver<oneshot::Sender<Socket>>) {
    loop {
        tokio::select! {
            biased;
            wanted = &mut asked => {
                let unused = match wanted {
                    Ok(give) => give.send(socket).err(),
                    Err(_) => Some(socket),
                };
                if let Some(socket) = unused {
                    close(socket).await;
                }
                return;
            }
            message = socket.next() => match message {
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                // It was not asked anything.
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Close(_)) | Err(_)) | None => return,
            },
        }
    }
}

/// As the protocol wants it.
pub async fn close(mut socket: Socket) {
    // It may be gone.
    let _ = timeout(CLOSING, socket.close(None)).await;
}
