//! A real local mail server: it keeps the mails it takes and answers as it is told.
use base64::{Engine, prelude::BASE64_STANDARD};
use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// One mail that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    /// The envelope's; empty for a bounce.
    pub from: String,
    pub to: Vec<String>,
    /// Headers and body with CRLF, as they were before dots were doubled.
    pub data: String,
    /// User and password, when the client gave any.
    pub auth: Option<(String, String)>,
}

pub struct Smtp {
    /// `smtp://127.0.0.1:PORT`
    pub url: String,
    address: SocketAddr,
    state: Arc<State>,
    door: Mutex<Door>,
}

#[derive(Default)]
struct State {
    mails: Mutex<Vec<Mail>>,
    answers: Mutex<VecDeque<&'static str>>,
    recipients: Mutex<VecDeque<&'static str>>,
    offered: AtomicUsize,
}

enum Door {
    Open(JoinHandle<()>),
    /// Bound but not listening: the port stays ours and connects are refused.
    Shut(TcpSocket),
    Turning,
}

impl Smtp {
    pub fn start() -> Smtp {
        let socket = bind((Ipv4Addr::LOCALHOST, 0).into());
        let address = socket.local_addr().unwrap();
        let state = Arc::new(State::default());
        let door = Mutex::new(open(socket, &state));
        Smtp {
            url: format!("smtp://{address}"),
            address,
            state,
            door,
        }
    }

    /// The mails taken so far, oldest first.
    pub fn mails(&self) -> Vec<Mail> {
        self.state.mails.lock().unwrap().clone()
    }

    /// How often a whole mail was handed over, taken or not.
    pub fn offered(&self) -> usize {
        self.state.offered.load(SeqCst)
    }

    /// The next mails get these replies, e.g. `451 try later`, once they are handed over; after them `250`. A mail
    /// is taken when its reply begins with 2. An empty reply takes the mail too, but closes the connection instead of
    /// saying so.
    pub fn answer_next(&self, replies: Vec<&'static str>) {
        self.state.answers.lock().unwrap().extend(replies);
    }

    /// The next recipients get these replies, e.g. `550 nobody here`; one that is empty closes the connection.
    pub fn answer_next_recipients(&self, replies: Vec<&'static str>) {
        self.state.recipients.lock().unwrap().extend(replies);
    }

    /// Closes all connections and refuses new ones.
    pub async fn refuse_connections(&self) {
        let before = std::mem::replace(&mut *self.door.lock().unwrap(), Door::Turning);
        let socket = match before {
            Door::Open(task) => {
                task.abort();
                let _ = task.await;
                bind(self.address)
            }
            Door::Shut(socket) => socket,
            Door::Turning => panic!("the door is turned twice at once"),
        };
        *self.door.lock().unwrap() = Door::Shut(socket);
    }

    /// Takes connections again.
    pub fn accept_connections(&self) {
        let mut door = self.door.lock().unwrap();
        *door = match std::mem::replace(&mut *door, Door::Turning) {
            Door::Shut(socket) => open(socket, &self.state),
            before => before,
        };
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        if let Door::Open(task) = &*self.door.lock().unwrap() {
            task.abort();
        }
    }
}

fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    // The port is taken a second time while closed connections linger on it.
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

fn open(socket: TcpSocket, state: &Arc<State>) -> Door {
    Door::Open(tokio::spawn(accept(socket.listen(1024).unwrap(), state.clone())))
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let conversation = Conversation { peer: BufReader::new(stream), state: state.clone(), auth: None, from: None, to: Vec::new() };
                // A client may hang up whenever it likes.
                conversations.spawn(async move { let _ = conversation.run().await; });
            }
            Some(ended) = conversations.join_next() => ended.unwrap(),
        }
    }
}

struct Conversation {
    peer: BufReader<TcpStream>,
    state: Arc<State>,
    auth: Option<(String, String)>,
    /// Set by MAIL, and with it the recipients by RCPT; both last until the mail's end.
    from: Option<String>,
    to: Vec<String>,
}

impl Conversation {
    async fn run(mut self) -> io::Result<()> {
        self.say("220 localhost ESMTP").await?;
        loop {
            let line = self.line().await?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let reply = match verb.to_ascii_uppercase().as_str() {
                "EHLO" => {
                    self.forget();
                    "250-localhost\r\n250-8BITMIME\r\n250-PIPELINING\r\n250 AUTH PLAIN LOGIN"
                }
                "HELO" => {
                    self.forget();
                    "250 localhost"
                }
                "AUTH" => self.authenticate(rest).await?,
                "MAIL" if self.from.is_some() => "503 one mail at a time",
                "MAIL" => match path(rest, "FROM:") {
                    Some(from) => {
                        self.from = Some(from);
                        "250 sender ok"
                    }
                    None => "501 MAIL FROM:<address>",
                },
                "RCPT" if self.from.is_none() => "503 MAIL first",
                "RCPT" => match path(rest, "TO:").filter(|to| !to.is_empty()) {
                    Some(to) => {
                        let reply = self.state.recipients.lock().unwrap().pop_front();
                        match reply.unwrap_or("250 recipient ok") {
                            "" => return Ok(()),
                            reply if reply.starts_with('2') => {
                                self.to.push(to);
                                reply
                            }
                            reply => reply,
                        }
                    }
                    None => "501 RCPT TO:<address>",
                },
                "DATA" if self.to.is_empty() => "503 RCPT first",
                "DATA" => {
                    self.say("354 end with a dot").await?;
                    match self.take().await? {
                        "" => return Ok(()),
                        reply => reply,
                    }
                }
                "RSET" => {
                    self.forget();
                    "250 forgotten"
                }
                "NOOP" => "250 still here",
                "QUIT" => {
                    self.say("221 bye").await?;
                    return self.peer.shutdown().await;
                }
                _ => "500 unknown command",
            };
            self.say(reply).await?;
        }
    }

    fn forget(&mut self) {
        self.from = None;
        self.to.clear();
    }

    /// Reads the mail, keeps it if its reply says so, and answers the reply.
    async fn take(&mut self) -> io::Result<&'static str> {
        let mut data = String::new();
        loop {
            let line = self.line().await?;
            if line == "." {
                break;
            }
            data.push_str(line.strip_prefix('.').unwrap_or(&line));
            data.push_str("\r\n");
        }
        let mail = Mail {
            from: self.from.take().unwrap_or_default(),
            to: std::mem::take(&mut self.to),
            data,
            auth: self.auth.clone(),
        };
        self.state.offered.fetch_add(1, SeqCst);
        let reply = self.state.answers.lock().unwrap().pop_front().unwrap_or("250 taken");
        if reply.is_empty() || reply.starts_with('2') {
            self.state.mails.lock().unwrap().push(mail);
        }
        Ok(reply)
    }

    /// Any user and password will do; they stand in the mails.
    async fn authenticate(&mut self, rest: &str) -> io::Result<&'static str> {
        let (method, first) = rest.split_once(' ').unwrap_or((rest, ""));
        let given = match method.to_ascii_uppercase().as_str() {
            "PLAIN" => {
                let answer = self.ask_unless("334 ", first).await?;
                // An identity, which may be empty, then user and password.
                let mut parts = answer.split('\0').skip(1).map(str::to_owned);
                parts.next().zip(parts.next())
            }
            "LOGIN" => {
                let user = self.ask_unless("334 VXNlcm5hbWU6", first).await?;
                let password = self.ask_unless("334 UGFzc3dvcmQ6", "").await?;
                Some((user, password))
            }
            _ => return Ok("504 PLAIN or LOGIN"),
        };
        self.auth = given;
        Ok(match self.auth {
            Some(_) => "235 welcome",
            None => "535 user and password",
        })
    }

    /// Decodes what was given at once, or asks for it.
    async fn ask_unless(&mut self, question: &str, given: &str) -> io::Result<String> {
        let encoded = if given.is_empty() {
            self.say(question).await?;
            self.line().await?
        } else {
            given.to_owned()
        };
        let bytes = BASE64_STANDARD.decode(encoded).map_err(io::Error::other)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }

    /// The next line without its end.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.peer.read_until(b'\n', &mut line).await?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        String::from_utf8(line.to_vec()).map_err(io::Error::other)
    }

    async fn say(&mut self, reply: &str) -> io::Result<()> {
        self.peer.write_all(format!("{reply}\r\n").as_bytes()).await
    }
}

/// The address of `FROM:<a@b.example> SIZE=10`.
fn path(rest: &str, keyword: &str) -> Option<String> {
    let (word, address) = rest.split_at_checked(keyword.len())?;
    let (address, _parameters) = address.trim_start().strip_prefix('<')?.split_once('>')?;
    word.eq_ignore_ascii_case(keyword).then(|| address.to_owned())
}

mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// Says all of it at once, as a pipelining client does, and answers the replies' first words.
    async fn talk(smtp: &Smtp, lines: &[&str]) -> io::Result<Vec<String>> {
        let mut stream = TcpStream::connect(smtp.address).await?;
        stream.write_all((lines.join("\r\n") + "\r\n").as_bytes()).await?;
        let mut replies = String::new();
        stream.read_to_string(&mut replies).await?;
        Ok(replies.lines().map(|reply| reply[..4].trim().to_owned()).collect())
    }

    fn mail(smtp_data: &[&'static str]) -> Vec<&'static str> {
        let envelope = [
            "EHLO here",
            "MAIL FROM:<a@example.com> BODY=8BITMIME",
            "RCPT TO:<b@example.com>",
            "rcpt to:<c@example.com>",
            "DATA",
        ];
        [&envelope[..], smtp_data, &[".", "QUIT"]].concat()
    }

    #[tokio::test]
    async fn a_mail_is_kept_as_it_was_written() {
        let smtp = Smtp::start();
        let replies = talk(&smtp, &mail(&["Subject: Grüße", "", "..two dots", ".. ", "end"]))
            .await
            .unwrap();
        let hello = ["220", "250-", "250-", "250-", "250"];
        assert_eq!(
            replies,
            [&hello[..], &["250", "250", "250", "354", "250", "221"]].concat()
        );
        let expected = Mail {
            from: "a@example.com".into(),
            to: vec!["b@example.com".into(), "c@example.com".into()],
            data: "Subject: Grüße\r\n\r\n.two dots\r\n. \r\nend\r\n".into(),
            auth: None,
        };
        assert_eq!(smtp.mails(), [expected]);
        assert!(smtp.url.starts_with("smtp://127.0.0.1:"));
    }

    #[tokio::test]
    async fn replies_are_given_in_turn_and_one_may_be_lost() {
        let smtp = Smtp::start();
        smtp.answer_next(vec!["451 try later", "554 no", ""]);
        for (reply, taken) in [("451", 0), ("554", 0), ("354", 1), ("250", 2)] {
            let replies = talk(&smtp, &mail(&["x"])).await;
            // Closed with QUIT unread, so it may be a reset.
            if let Ok(replies) = replies {
                assert_eq!(replies.iter().rfind(|word| *word != "221").unwrap(), reply);
            }
            assert_eq!(smtp.mails().len(), taken);
        }
        assert_eq!(smtp.offered(), 4);
    }

    #[tokio::test]
    async fn both_ways_of_saying_who_one_is() {
        let smtp = Smtp::start();
        let plain = BASE64_STANDARD.encode("\0ann\0secret");
        let at_once = format!("AUTH PLAIN {plain}");
        let (user, password) = (BASE64_STANDARD.encode("ann"), BASE64_STANDARD.encode("secret"));
        let ways: [&[&str]; 3] = [&[&at_once], &["AUTH PLAIN", &plain], &["AUTH LOGIN", &user, &password]];
        for way in ways {
            talk(&smtp, &[way, &mail(&["x"])].concat()).await.unwrap();
        }
        let who: Vec<_> = smtp.mails().into_iter().map(|mail| mail.auth.unwrap()).collect();
        assert_eq!(who, vec![("ann".to_owned(), "secret".to_owned()); 3]);
    }

    #[tokio::test]
    async fn what_is_out_of_turn_is_refused() {
        let smtp = Smtp::start();
        let lines = [
            "RCPT TO:<b@example.com>",
            "DATA",
            "MAIL TO:<x>",
            "MAIL FROM:<>",
            "MAIL FROM:<>",
            "RCPT TO:<>",
            "NOOP",
            "RSET",
            "DATA",
            "AUTH MAGIC",
            "BDAT 1",
            "HELO here",
            "QUIT",
        ];
        let replies = talk(&smtp, &lines).await.unwrap();
        let expected = [
            "220", "503", "503", "501", "250", "503", "501", "250", "250", "503", "504", "500", "250", "221",
        ];
        assert_eq!(replies, expected);
    }

    #[tokio::test]
    async fn the_door_can_be_shut_and_opened() {
        let smtp = Smtp::start();
        let mut guest = TcpStream::connect(smtp.address).await.unwrap();
        smtp.refuse_connections().await;
        let mut rest = Vec::new();
        let _ = guest.read_to_end(&mut rest).await;
        let refused = talk(&smtp, &["QUIT"]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        smtp.accept_connections();
        assert_eq!(talk(&smtp, &["QUIT"]).await.unwrap(), ["220", "221"]);
    }
}
