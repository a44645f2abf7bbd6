//! One talk with the mail server, step by step, so that it is known how far it came: what was refused before the message's end
//! can be said again, what was cut off after it cannot.
use crate::outbound::trouble;
use entities::boxed;
use lettre::{
    Message,
    transport::smtp::{
        Error,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::{ClientId, Extension, MailBodyParameter, MailParameter},
    },
};
use std::{fmt::Display, sync::Arc, time::Duration};

/// Where mails are handed in. Cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    host: String,
    port: u16,
    tls: Tls,
    hello: ClientId,
    credentials: Option<Credentials>,
}

enum Tls {
    /// From the first byte.
    Wrapped(TlsParameters),
    /// By STARTTLS, or not at all.
    Required(TlsParameters),
    /// By STARTTLS where the server has it.
    Opportunistic(TlsParameters),
    None,
}

/// Why a mail was not taken, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was not taken, and may be later.
    Passing(String),
    /// The server takes nothing for this recipient.
    Bounced(String),
    /// The server will not take it.
    Refused(String),
    /// The talk was cut off after the message's beginning: it may have been taken.
    Unknown(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Connect,
    Sender,
    Recipient,
    Begin,
    Message,
}

/// A server that does not answer a step of the talk.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The message itself, to the server's last word.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(180);
/// Replies about the login: required, too weak, refused, not encrypted. The operator's slip, which will be mended.
const LOGIN: [u16; 4] = [530, 534, 535, 538];

impl Server {
    /// `smtp://` (STARTTLS when the server has it), `smtps://`; with `user:password@` if the server asks for it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let url = url::Url::parse(url).map_err(|_| "is not a URL; write smtps://user:password@host:465".to_owned())?;
        let host = url.host_str().ok_or("names no host")?.to_owned();
        let asked = url
            .query_pairs()
            .find(|(name, _)| name == "tls")
            .map(|(_, value)| value.into_owned());
        let parameters = || {
            TlsParameters::new(host.clone())
                .map_err(|_| format!("names the host `{host}`, to which no TLS connection can be made"))
        };
        let local = matches!(host.as_str(), "127.0.0.1" | "localhost" | "[::1]");
        let (tls, port) = match (url.scheme(), asked.as_deref()) {
            ("smtps", _) => (Tls::Wrapped(parameters()?), 465),
            ("smtp", Some("required")) => (Tls::Required(parameters()?), 587),
            ("smtp", Some("opportunistic")) => (Tls::Opportunistic(parameters()?), 587),
            ("smtp", Some(other)) => return Err(format!("has `tls={other}`; write required or opportunistic")),
            // Passwords go over TLS only; a server on the same machine may do without.
            ("smtp", None) if local => (Tls::None, 25),
            ("smtp", None) if !url.username().is_empty() => (Tls::Required(parameters()?), 587),
            ("smtp", None) => (Tls::Opportunistic(parameters()?), 587),
            (scheme, _) => return Err(format!("starts with `{scheme}`; write smtp:// or smtps://")),
        };
        let decoded = |text: &str| -> Result<String, String> {
            let pairs = format!("x={}", text.replace('+', "%2B"));
            let value = url::form_urlencoded::parse(pairs.as_bytes()).next();
            value
                .map(|(_, text)| text.into_owned())
                .ok_or_else(|| "has an unreadable login".into())
        };
        let credentials = match url.password() {
            Some(password) => Some(Credentials::new(decoded(url.username())?, decoded(password)?)),
            None => None,
        };
        let name = url.path().trim_matches('/');
        Ok(Server(Arc::new(Inner {
            port: url.port().unwrap_or(port),
            tls,
            hello: if name.is_empty() {
                ClientId::default()
            } else {
                ClientId::Domain(name.to_owned())
            },
            credentials,
            host,
        })))
    }

    /// Hands a mail over; answers what the server said when it took it.
    #[boxed]
    pub async fn hand_over(&self, message: &Message) -> Result<String, Failure> {
        let mut connection = within(TIMEOUT, Step::Connect, self.connect()).await?;
        let said = talk(&mut connection, message).await;
        // The last courtesies change nothing.
        let _ = tokio::time::timeout(Duration::from_secs(2), connection.abort()).await;
        said
    }

    /// Connects and signs in, and no more.
    #[boxed]
    pub async fn greet(&self) -> Result<(), String> {
        match within(TIMEOUT, Step::Connect, self.connect()).await {
            Ok(mut connection) => {
                let _ = tokio::time::timeout(Duration::from_secs(2), connection.abort()).await;
                Ok(())
            }
            Err(Failure::Passing(why) | Failure::Bounced(why) | Failure::Refused(why) | Failure::Unknown(why)) => {
                Err(why)
            }
        }
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let Inner {
            host,
            port,
            tls,
            hello,
            credentials,
        } = &*self.0;
        let wrapped = match tls {
            Tls::Wrapped(parameters) => Some(parameters.clone()),
            Tls::Required(_) | Tls::Opportunistic(_) | Tls::None => None,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let mut connection =
            AsyncSmtpConnection::connect_tokio1((host, *port), Some(TIMEOUT), hello, wrapped, None).await?;
        match tls {
            Tls::Required(parameters) => connection.starttls(parameters.clone(), hello).await?,
            Tls::Opportunistic(parameters) if connection.can_starttls() => {
                connection.starttls(parameters.clone(), hello).await?;
            }
            Tls::Opportunistic(_) | Tls::Wrapped(_) | Tls::None => {}
        }
        if let Some(credentials) = credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }
}

async fn talk(connection: &mut AsyncSmtpConnection, message: &Message) -> Result<String, Failure> {
    let (envelope, bytes) = (message.envelope(), message.formatted());
    let mut options = Vec::new();
    let has = |connection: &AsyncSmtpConnection, extension| connection.server_info().supports_feature(extension);
    if !bytes.is_ascii() {
        if !has(connection, Extension::EightBitMime) {
            return Err(Failure::Refused("the mail server takes no 8-bit messages".into()));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    let all = || envelope.to().iter().chain(envelope.from());
    if all().any(|address| !address.to_string().is_ascii()) {
        if !has(connection, Extension::SmtpUtfEight) {
            return Err(Failure::Refused("the mail server takes ASCII addresses only".into()));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    let sender = connection.command(Mail::new(envelope.from().cloned(), options));
    within(TIMEOUT, Step::Sender, sender).await?;
    for recipient in envelope.to() {
        let recipient = connection.command(Rcpt::new(recipient.clone(), Vec::new()));
        within(TIMEOUT, Step::Recipient, recipient).await?;
    }
    within(TIMEOUT, Step::Begin, connection.command(Data)).await?;
    let reply = within(MESSAGE_TIMEOUT, Step::Message, connection.message(&bytes)).await?;
    let said: String = reply.message().collect::<Vec<_>>().join(" ");
    Ok(said.chars().filter(|char| !char.is_control()).take(200).collect())
}

async fn within<T>(limit: Duration, step: Step, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(judge(step, &error)),
        Err(_) => Err(unheard(step, &"the mail server did not answer in time")),
    }
}

/// Does a server say that it passes on no mail of ours? In whole phrases: it may say "relay" of a recipient, too.
fn takes_nothing_of_ours(said: &str) -> bool {
    const PHRASES: [&str; 7] = [
        "relay access denied",
        "relaying denied",
        "relay denied",
        "unable to relay",
        "relay not permitted",
        "relaying not allowed",
        "not permitted to relay",
    ];
    let said = said.to_lowercase();
    PHRASES.iter().any(|phrase| said.contains(phrase))
}

/// What is refused before a recipient is named, and a server that passes on nothing of ours, is about us (our address, our login,
/// our name, a server that is closed): the operator's to mend, and no mail's fault.
fn judge(step: Step, error: &Error) -> Failure {
    let login = error.status().is_some_and(|code| LOGIN.contains(&u16::from(code)));
    let said = trouble::of_system(error).map_or_else(|| error.to_string(), trouble::unnamed);
    match (error.is_permanent(), error.is_transient()) {
        (true, _) if login => Failure::Passing(said),
        (true, _) => match step {
            Step::Connect | Step::Sender => Failure::Passing(said),
            Step::Recipient if takes_nothing_of_ours(&said) => Failure::Passing(said),
            Step::Recipient => Failure::Bounced(said),
            Step::Begin | Step::Message => Failure::Refused(said),
        },
        (false, true) => Failure::Passing(said),
        (false, false) => unheard(step, &said),
    }
}

fn unheard(step: Step, said: &dyn Display) -> Failure {
    match step {
        Step::Message => Failure::Unknown(said.to_string()),
        Step::Connect | Step::Sender | Step::Recipient | Step::Begin => Failure::Passing(said.to_string()),
    }
}

#[cfg(test)]
#[path = "smtp_tests.rs"]
mod tests;
