//! A SIP peer on a real socket: reads OPTIONS requests, and answers in one way or another.
use crate::world::zoo::{TlsFault, tls_config};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// How it answers.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// With this status and reason.
    Says(u16, &'static str),
    /// Never.
    Silent,
    /// Not before the third time that it is asked.
    AfterTwoLosses,
    /// `100 Trying`, then nothing.
    OnlyTries,
    /// `100 Trying`, an answer to somebody else, a request of its own, then 200.
    BesideOthers,
    /// 200, a byte at a time, with compact names and a body.
    InPieces,
    /// As a web server does.
    Http,
    /// Bytes without end.
    Floods,
    /// It hangs up (TCP).
    HangsUp,
}

pub struct Peer {
    pub address: SocketAddr,
    /// What it was sent.
    heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    pub async fn udp(manner: Manner) -> Peer {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let (heard, its) = started();
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let times = note(&its, &request);
                for answer in answers(manner, &request, times) {
                    // Who asked may be gone.
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Peer { address, heard, task }
    }

    pub async fn tcp(manner: Manner) -> Peer {
        Peer::stream(manner, None).await
    }

    pub async fn tls(manner: Manner, fault: TlsFault) -> Peer {
        Peer::stream(manner, Some(TlsAcceptor::from(tls_config(fault)))).await
    }

    async fn stream(manner: Manner, tls: Option<TlsAcceptor>) -> Peer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heard, its) = started();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever is asked goes away sooner or later: that is not the peer's fault.
                let _ = match &tls {
                    None => serve(manner, stream, &its).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => serve(manner, stream, &its).await,
                        Err(error) => Err(error),
                    },
                };
            }
        });
        Peer { address, heard, task }
    }

    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

type Heard = Arc<Mutex<Vec<String>>>;

fn started() -> (Heard, Heard) {
    let heard = Heard::default();
    (heard.clone(), heard)
}

fn note(heard: &Heard, request: &str) -> usize {
    let mut heard = heard.lock().unwrap();
    heard.push(request.to_owned());
    heard.len()
}

async fn serve(manner: Manner, mut stream: impl AsyncRead + AsyncWrite + Unpin, heard: &Heard) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let times = note(heard, &request);
    if let Manner::HangsUp = manner {
        return Ok(());
    }
    let in_pieces = matches!(manner, Manner::InPieces);
    for answer in answers(manner, &request, times) {
        for piece in answer.chunks(if in_pieces { 1 } else { answer.len() }) {
            stream.write_all(piece).await?;
            stream.flush().await?;
        }
    }
    // Until the other side leaves.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.map(drop)
}

fn answers(manner: Manner, request: &str, times: usize) -> Vec<Vec<u8>> {
    let of = |name: &str| {
        let line = request
            .lines()
            .find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
        line.map(|line| line.split_once(':').unwrap().1.trim().to_owned())
            .unwrap_or_default()
    };
    let (via, from, to, call_id, cseq) = (of("via"), of("from"), of("to"), of("call-id"), of("cseq"));
    let response = |status: u16, reason: &str, call_id: &str| {
        format!(
            "SIP/2.0 {status} {reason}\r\nVia: {via};received=127.0.0.1\r\nFrom: {from}\r\nTo: {to};tag=peer\r\nCall-ID: {call_id}\r\nCSeq: {cseq}\r\nContent-Length: 0\r\n\r\n"
        )
        .into_bytes()
    };
    match manner {
        Manner::Says(status, reason) => vec![response(status, reason, &call_id)],
        Manner::Silent | Manner::HangsUp => vec![],
        Manner::AfterTwoLosses if times < 3 => vec![],
        Manner::AfterTwoLosses => vec![response(200, "OK", &call_id)],
        Manner::OnlyTries => vec![response(100, "Trying", &call_id)],
        Manner::BesideOthers => {
            let own = "OPTIONS sip:callboard@localhost SIP/2.0\r\nCall-ID: own\r\nCSeq: 1 OPTIONS\r\nContent-Length: 3\r\n\r\nabc";
            vec![
                response(100, "Trying", &call_id),
                response(486, "Busy Here", "somebody-elses"),
                own.into(),
                response(200, "OK", &call_id),
            ]
        }
        Manner::InPieces => {
            let text = format!(
                "SIP/2.0 200 OK\r\nv: {via}\r\nf: {from}\r\nt: {to}\r\ni: {call_id}\r\nCSeq:\r\n {cseq}\r\nl: 4\r\n\r\nbody"
            );
            vec![text.into_bytes()]
        }
        Manner::Http => vec![b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec()],
        Manner::Floods => vec![vec![b'x'; 1400]; 200],
    }
}
