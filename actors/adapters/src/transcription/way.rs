//! The way to a provider that hears while it is spoken, and when it is tried again.
use super::{dialect::Dialect, link::Link};
use crate::{provider_socket::Address, speech::SpeechError};
use futures_util::future::{BoxFuture, FutureExt, pending};
use std::{cmp, mem, time::Duration};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{
    Utf8Bytes,
    http::header::{HeaderName, HeaderValue},
};

const LONGEST_BACK_OFF: Duration = Duration::from_secs(8);
/// A wait may be so much shorter or longer.
const JITTER: f64 = 0.25;
/// Who waits for words waits so long for another try; later ones come too late.
pub const SOON: Duration = Duration::from_secs(1);

/// Makes one for a new connection.
pub type NewDialect = Box<dyn Fn() -> Box<dyn Dialect> + Send>;

/// Where a talk's provider is, and what is spoken there.
pub struct Wire {
    /// For metrics and logs.
    pub name: &'static str,
    pub address: Address,
    /// Without words to expect, if there are any: they may be what is refused.
    pub plain: Option<Address>,
    /// What lets us in.
    pub key: Option<(HeaderName, HeaderValue)>,
    pub dialect: NewDialect,
}

impl Wire {
    /// Within that time, or not at all.
    pub fn open(&self, patience: Duration) -> Way {
        let (address, plain, key) = (self.address.clone(), self.plain.clone(), self.key.clone());
        let opening = async move {
            let socket = address.open(key.clone()).await;
            let socket = match (socket.map_err(|error| SpeechError::of_handshake(&error)), plain) {
                (Err(SpeechError::Refused { status: 400 }), Some(plain)) => {
                    let socket = plain.open(key).await;
                    socket.map_err(|error| SpeechError::of_handshake(&error))
                }
                (socket, _) => socket,
            };
            socket.map(Link::over)
        };
        let opening = async move {
            let link = timeout(patience, opening).await;
            link.unwrap_or(Err(SpeechError::Timeout))
        };
        Way::Opening(opening.boxed())
    }
}

pub enum Way {
    Closed,
    Opening(BoxFuture<'static, Result<Link, SpeechError>>),
    Open(Link),
}

pub enum Step {
    Opened(Result<Link, SpeechError>),
    Read(Result<Utf8Bytes, SpeechError>),
}

impl Way {
    /// May be dropped and called again. What was opened must be put in its place before.
    pub async fn next(&mut self) -> Step {
        match self {
            Way::Closed => pending().await,
            Way::Opening(link) => Step::Opened(link.await),
            Way::Open(link) => Step::Read(link.next().await),
        }
    }
}

/// When the next try is due.
#[derive(Debug)]
pub struct Retry {
    at: Instant,
    /// The connection has said something good.
    is_good: bool,
    /// Connections of which none did, one after the other.
    failures: u32,
    last: Option<SpeechError>,
}

impl Retry {
    pub fn new(now: Instant) -> Self {
        Retry {
            at: now,
            is_good: false,
            failures: 0,
            last: None,
        }
    }

    pub fn at(&self) -> Instant {
        self.at
    }

    /// Why there was no connection the last time.
    pub fn failed(&self) -> Option<SpeechError> {
        self.last
    }

    pub fn is_good(&mut self) {
        self.is_good = true;
    }

    /// After a connection that was good the next is opened at once, after others later and later, give or take a quarter.
    pub fn broke(&mut self, error: SpeechError, now: Instant, back_off: Duration) {
        self.failures = match mem::take(&mut self.is_good) {
            true => 0,
            false => self.failures.saturating_add(1),
        };
        self.last = Some(error);
        let wait = match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => back_off.saturating_mul(1 << doublings.min(10)).min(LONGEST_BACK_OFF),
        };
        // Talks whose provider was away do not all come back at once.
        let wait = wait.mul_f64(rand::random_range(1.0 - JITTER..=1.0 + JITTER));
        let asked = match error {
            SpeechError::Limited { retry_after } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        self.at = now + cmp::max(wait, asked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tries_come_later_and_later() {
        let (now, half) = (Instant::now(), Duration::from_millis(500));
        let mut retry = Retry::new(now);
        for usual in [500, 1_000, 2_000, 4_000, 8_000, 8_000] {
            retry.broke(SpeechError::Absent, now, half);
            let waits = (retry.at() - now).as_millis();
            assert!((usual * 3 / 4..=usual * 5 / 4).contains(&waits), "{usual}: {waits}");
        }
        let waits = (0..20).map(|_| {
            retry.broke(SpeechError::Absent, now, half);
            retry.at()
        });
        assert!(waits.collect::<HashSet<_>>().len() > 1, "not all at once");
        retry.is_good();
        retry.broke(SpeechError::Closed, now, half);
        assert_eq!((retry.at(), retry.failed()), (now, Some(SpeechError::Closed)));
        let retry_after = Some(Duration::from_secs(60));
        retry.broke(SpeechError::Limited { retry_after }, now, half);
        assert_eq!(retry.at(), now + Duration::from_secs(60));
    }
}
