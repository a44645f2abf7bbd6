//! A SIP registrar on a real UDP socket: it asks for a password, keeps bindings, and answers whoever asks whether it is there.
use sip::{
    digest::{Credentials, Proof, Verifier},
    message::{Fields, Message, Method, Name, Request, read_datagram},
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::{net::UdpSocket, task::JoinHandle};

/// What it was asked, in a word: `REGISTER` and how that went, or another method.
pub type Heard = Arc<Mutex<Vec<String>>>;

pub struct Registrar {
    pub address: SocketAddr,
    heard: Heard,
    task: JoinHandle<()>,
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Registrar {
    /// It takes this user with this password, for as long as is asked for.
    pub async fn start(username: &str, password: &str) -> Registrar {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let heard = Heard::default();
        let credentials = Credentials {
            username: username.into(),
            password: password.into(),
        };
        let task = tokio::spawn(serve(socket, credentials, heard.clone()));
        Registrar { address, heard, task }
    }

    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.heard().iter().filter(|heard| *heard == what).count()
    }
}

async fn serve(socket: UdpSocket, credentials: Credentials, heard: Heard) {
    let (started, mut verifier) = (Instant::now(), Verifier::new(b"the registrar's", "carrier.test"));
    let mut buffer = vec![0; 65_536];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let Ok(Message::Request(request)) = read_datagram(&buffer[..length]) else {
            continue;
        };
        let (word, response) = if request.method == Method::REGISTER {
            match verifier.verify(&request, &credentials, from.ip(), started.elapsed()) {
                Proof::Good => (accepted(&request), bound(&request)),
                proof => {
                    let stale = proof == Proof::Stale;
                    let challenge = verifier.challenge(&request, from.ip(), started.elapsed(), stale, "registrar");
                    (format!("REGISTER {proof:?}"), challenge)
                }
            }
        } else {
            let response = request.response(200, "OK", Some("registrar"));
            (request.method.as_str().to_owned(), response)
        };
        heard.lock().unwrap().push(word);
        // Who asked may be gone.
        let _ = socket.send_to(&response.to_bytes(), from).await;
    }
}

/// A binding, its end, or a question about bindings.
fn accepted(request: &Request) -> String {
    match (request.contact(), request.header_text(Name::EXPIRES).as_deref()) {
        (None, _) => "REGISTER asks".into(),
        (Some(_), Some("0")) => "REGISTER ends".into(),
        (Some(_), _) => "REGISTER binds".into(),
    }
}

fn bound(request: &Request) -> sip::message::Response {
    let mut response = request.response(200, "OK", Some("registrar"));
    if let Some(contact) = request.header_text(Name::CONTACT) {
        let expires = request.header_text(Name::EXPIRES).unwrap_or_default();
        response
            .headers
            .insert(Name::CONTACT, format!("{contact};expires={expires}"));
    }
    response
}
