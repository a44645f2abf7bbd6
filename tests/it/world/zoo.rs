//! A zoo of receivers: each answers a POST in one strange way, on a real socket and byte by byte.
//!
//! An animal keeps no time, but for the two that drip. One that has said its part waits until its visitor leaves;
//! so a visitor who hangs up is told from one who forgets the connection: `Zoo::is_left`.
mod tls;

pub use tls::{Authority, TlsFault, authority, config as tls_config};

use std::{
    io::{self, ErrorKind},
    iter,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// How a receiver behaves. Unless said otherwise it reads the whole request first.
#[derive(Clone, Debug)]
pub enum Animal {
    /// A correct small answer with these headers; kept alive, unless they say `connection: close`.
    Status(u16, Vec<(&'static str, String)>),
    /// Answers 200 and promises to stay, then closes the connection.
    LeavesAfterAnswer,

    /// Nobody listens on the port.
    Refuses,
    /// Its queue is full: connects are dropped without a word, as a firewall does it.
    BlackHole,
    /// Accepts and reads nothing.
    NeverReads,
    HangBeforeHeaders,
    /// The status line and half a header, then silence.
    HangInHeaders,
    /// 10 bytes of 100, then silence.
    HangInBody,
    /// The headers, then a byte each 50 ms for ever.
    Drip,
    /// A byte of an endless header each 50 ms.
    DripHeaders,

    /// Resets the connection once it has the request.
    Reset,
    /// Resets the connection at once.
    ResetBeforeRequest,
    /// Says that it will say nothing, and stays.
    HalfClosed,
    CloseInHeaders,
    /// 10 bytes of 100, then closes.
    CloseInBody,

    GarbageStatusLine,
    GarbageBytes,
    /// Speaks HTTP/2 to a client of HTTP/1.1.
    HttpTwoPreface,
    /// One header after the other, without end.
    EndlessHeaders,
    /// One header whose value does not end.
    EndlessHeader,
    /// A thousand times `100 Continue`, then 200.
    ManyInterim,
    /// `100 Continue` for ever.
    EndlessInterim,

    /// 100 MB of zeros, as fast as they are taken.
    HugeBody,
    /// The same in chunks and without end.
    HugeChunked,
    /// Some 100 KB that inflate to 100 MB.
    GzipBomb,
    /// Says 2 bytes and sends more: a second answer, 418, to a question nobody asked.
    WrongContentLengthShort,
    /// Says 50 bytes, sends 2 and closes.
    WrongContentLengthLong,
    TwoContentLengths,
    NegativeContentLength,
    BodyOn204,

    Tls(TlsFault),
}

/// One animal in its cage. It ends with the struct.
pub struct Zoo {
    pub url: String,
    pub address: SocketAddr,
    log: Arc<Log>,
    keeper: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    connections: AtomicUsize,
    requests: AtomicUsize,
    bytes_sent: AtomicUsize,
    open: watch::Sender<usize>,
}

impl Zoo {
    pub fn of(animal: Animal) -> Zoo {
        let log = Arc::new(Log::default());
        let socket = TcpSocket::new_v4().unwrap();
        // What the kernel holds for a client that does not read says nothing about the client.
        socket.set_send_buffer_size(64 * 1024).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        let url = match animal {
            Animal::Tls(_) => format!("https://localhost:{}/hook", address.port()),
            _ => format!("http://{address}/hook"),
        };
        let keeper = match animal {
            Animal::Refuses => tokio::spawn(hold(socket)),
            Animal::BlackHole => {
                let listener = socket.listen(0).unwrap();
                let queued = fill_queue(address);
                tokio::spawn(hold((listener, queued)))
            }
            animal => tokio::spawn(keep(socket.listen(1024).unwrap(), animal, log.clone())),
        };
        Zoo {
            url,
            address,
            log,
            keeper,
        }
    }

    /// Requests that were read whole.
    pub fn requests(&self) -> usize {
        self.log.requests.load(SeqCst)
    }
    pub fn connections(&self) -> usize {
        self.log.connections.load(SeqCst)
    }
    /// Bytes of answers that the socket took.
    pub fn bytes_sent(&self) -> usize {
        self.log.bytes_sent.load(SeqCst)
    }
    /// Waits until every connection has ended; false when one is still there after twenty seconds.
    pub async fn is_left(&self) -> bool {
        let mut open = self.log.open.subscribe();
        tokio::time::timeout(Duration::from_secs(20), open.wait_for(|open| *open == 0))
            .await
            .is_ok()
    }
}

impl Drop for Zoo {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

async fn hold<T>(_held: T) {
    std::future::pending().await
}

/// Connects until the kernel drops one: from then on it drops them all.
fn fill_queue(address: SocketAddr) -> Vec<std::net::TcpStream> {
    iter::from_fn(|| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok()).collect()
}

async fn keep(listener: TcpListener, animal: Animal, log: Arc<Log>) {
    let mut visits = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                log.connections.fetch_add(1, SeqCst);
                log.open.send_modify(|open| *open += 1);
                let (animal, log) = (animal.clone(), log.clone());
                visits.spawn(async move {
                    let visitor = Visitor { stream, unread: Vec::new(), log: log.clone() };
                    // The visitor may leave at any point; what the test asks is in the counters.
                    let _ = receive(animal, visitor).await;
                    log.open.send_modify(|open| *open -= 1);
                });
            }
            Some(visit) = visits.join_next() => visit.unwrap(),
        }
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

async fn receive(animal: Animal, mut visitor: Visitor<TcpStream>) -> io::Result<()> {
    match animal {
        // The visitor's leaving cannot be seen either.
        Animal::NeverReads => return std::future::pending().await,
        Animal::ResetBeforeRequest => return visitor.stream.set_zero_linger(),
        Animal::Tls(fault) => return tls::receive(fault, visitor).await,
        _ => visitor.request().await?,
    }
    match animal {
        Animal::Status(status, headers) => return visitor.answer_all(status, &headers).await,
        Animal::LeavesAfterAnswer => return visitor.answer(200, &[]).await,
        Animal::HangBeforeHeaders => {}
        Animal::HangInHeaders => visitor.send(&format!("{OK}content-le")).await?,
        Animal::HangInBody => {
            visitor
                .send(&format!("{OK}content-length: 100\r\n\r\n0123456789"))
                .await?
        }
        Animal::Drip => {
            visitor.send(&format!("{OK}\r\n")).await?;
            visitor.drip().await?;
        }
        Animal::DripHeaders => {
            visitor.send(&format!("{OK}x-slow: ")).await?;
            visitor.drip().await?;
        }
        Animal::Reset => return visitor.stream.set_zero_linger(),
        Animal::HalfClosed => visitor.stream.shutdown().await?,
        Animal::CloseInHeaders => return visitor.send(&format!("{OK}content-le")).await,
        Animal::CloseInBody => {
            return visitor
                .send(&format!("{OK}content-length: 100\r\n\r\n0123456789"))
                .await;
        }
        Animal::GarbageStatusLine => visitor.send("NOPE\r\n\r\n").await?,
        Animal::GarbageBytes => visitor.send((0..=255u8).rev().collect::<Vec<_>>()).await?,
        // The preface and an empty SETTINGS frame.
        Animal::HttpTwoPreface => {
            visitor
                .send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0")
                .await?
        }
        Animal::EndlessHeaders => visitor.send_for_ever(OK, "x-more: and more\r\n".repeat(1000)).await?,
        Animal::EndlessHeader => {
            visitor
                .send_for_ever(&format!("{OK}x-long: "), "a".repeat(16 * 1024))
                .await?
        }
        Animal::ManyInterim => {
            visitor.send("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)).await?;
            visitor.answer(200, &[]).await?;
        }
        Animal::EndlessInterim => {
            visitor
                .send_for_ever("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000))
                .await?;
        }
        Animal::HugeBody => {
            const SLICES: usize = 1600;
            let slice = [0; 64 * 1024];
            visitor
                .send(&format!("{OK}content-length: {}\r\n\r\n", SLICES * slice.len()))
                .await?;
            for _ in 0..SLICES {
                visitor.send(slice).await?;
            }
        }
        Animal::HugeChunked => {
            let chunk = format!("10000\r\n{}\r\n", "\0".repeat(0x10000));
            visitor
                .send_for_ever(&format!("{OK}transfer-encoding: chunked\r\n\r\n"), chunk)
                .await?;
        }
        Animal::GzipBomb => {
            let bomb = gzip_bomb();
            let head = format!("{OK}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
            visitor.send(&head).await?;
            visitor.send(bomb).await?;
        }
        Animal::WrongContentLengthShort => {
            let smuggled = "HTTP/1.1 418 I'm a teapot\r\ncontent-length: 0\r\n\r\n";
            visitor
                .send(&format!("{OK}content-length: 2\r\n\r\nok{smuggled}"))
                .await?;
        }
        Animal::WrongContentLengthLong => {
            return visitor.send(&format!("{OK}content-length: 50\r\n\r\nok")).await;
        }
        Animal::TwoContentLengths => {
            visitor
                .send(&format!("{OK}content-length: 2\r\ncontent-length: 5\r\n\r\nhello"))
                .await?;
        }
        Animal::NegativeContentLength => visitor.send(&format!("{OK}content-length: -1\r\n\r\nhello")).await?,
        Animal::BodyOn204 => {
            visitor
                .send("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello")
                .await?;
        }
        Animal::Refuses | Animal::BlackHole | Animal::NeverReads | Animal::ResetBeforeRequest | Animal::Tls(_) => {
            unreachable!("done above")
        }
    }
    visitor.until_left().await
}

/// 100,033 bytes that inflate to 103,201,033 zeros: one block whose code gives the longest copy (258 bytes) two zero
/// bits, so that each zero byte stands for 1,032 of them.
pub fn gzip_bomb() -> Vec<u8> {
    const HEAD: [u8; 24] = *b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xed\xc0\x81\0\0\0\0\x80\xa0\xfd\xa9\x17\xa9\0";
    // The block's end, CRC and length.
    const TAIL: [u8; 9] = *b"\x06\xfb\x03\xad\x6b\x09\xb9\x26\x06";
    [&HEAD[..], &[0; 100_000], &TAIL].concat()
}

/// One connection, seen from the receiver.
struct Visitor<S> {
    stream: S,
    unread: Vec<u8>,
    log: Arc<Log>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Visitor<S> {
    /// Reads one whole request: the head, then as many bytes as it announces.
    async fn request(&mut self) -> io::Result<()> {
        let head = loop {
            match self.unread.windows(4).position(|end| end == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.fill().await?,
            }
        };
        let whole = head + content_length(&self.unread[..head])?;
        while self.unread.len() < whole {
            self.fill().await?;
        }
        self.unread.drain(..whole);
        self.log.requests.fetch_add(1, SeqCst);
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let mut bytes = bytes.as_ref();
        while !bytes.is_empty() {
            let sent = self.stream.write(bytes).await?;
            self.log.bytes_sent.fetch_add(sent, SeqCst);
            bytes = &bytes[sent..];
        }
        self.stream.flush().await
    }

    async fn send_for_ever(&mut self, first: &str, again: String) -> io::Result<()> {
        self.send(first).await?;
        loop {
            self.send(&again).await?;
        }
    }

    async fn drip(&mut self) -> io::Result<()> {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            self.send("x").await?;
        }
    }

    /// Answers the request that was read, and those that follow.
    async fn answer_all(&mut self, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
        loop {
            self.answer(status, headers).await?;
            if headers.iter().any(|header| *header == ("connection", "close".into())) {
                return self.stream.shutdown().await;
            }
            self.request().await?;
        }
    }

    async fn answer(&mut self, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let body = match status {
            100..200 | 204 | 304 => "\r\n",
            _ => "content-length: 2\r\n\r\nok",
        };
        self.send(&format!("HTTP/1.1 {status} Said\r\n{lines}{body}")).await
    }

    async fn until_left(&mut self) -> io::Result<()> {
        loop {
            self.unread.clear();
            self.fill().await?;
        }
    }
}

/// Zero where the head says nothing.
fn content_length(head: &[u8]) -> io::Result<usize> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    let named = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    named.map_or(Ok(0), |(_, length)| length.trim().parse().map_err(io::Error::other))
}
