//! Where mails go: an SMTP server; in development a folder; or nowhere yet.
use entities::{mail::Model as Row, values::Moment};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use std::{path::PathBuf, time::Duration};

#[derive(Clone)]
pub enum Post {
    Smtp {
        transport: AsyncSmtpTransport<Tokio1Executor>,
        from: Mailbox,
    },
    /// Each mail becomes an `.eml` file there.
    Folder { folder: PathBuf, from: Mailbox },
    /// Mails wait until the operator names a server.
    Unconfigured,
}

/// Why a mail did not go.
#[derive(Clone, Debug, PartialEq)]
pub enum Undelivered {
    /// Tried again.
    Passing(String),
    /// The server, or the address, will not have it.
    Final(String),
    Unconfigured,
}

/// A server that does not answer a step of the talk.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Replies about the login: required, too weak, refused, not encrypted.
const LOGIN: [u16; 4] = [530, 534, 535, 538];

impl Post {
    /// `smtp://` (STARTTLS when the server has it), `smtps://`; with `user:password@` if the server asks for it.
    pub fn smtp(url: &str, from: &str) -> Result<Self, String> {
        let mut url = url::Url::parse(url)
            .map_err(|error| format!("is no URL ({error}); write smtps://user:password@host:465"))?;
        if !matches!(url.scheme(), "smtp" | "smtps") {
            return Err(format!("starts with `{}`; write smtp:// or smtps://", url.scheme()));
        }
        // Passwords go over TLS only; a server on the same machine may do without.
        let local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if url.scheme() == "smtp" && !url.query_pairs().any(|(name, _)| name == "tls") {
            let credentials = !url.username().is_empty();
            match (local, credentials) {
                (true, _) => {}
                (false, true) => drop(url.query_pairs_mut().append_pair("tls", "required")),
                (false, false) => drop(url.query_pairs_mut().append_pair("tls", "opportunistic")),
            }
        }
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())
            .map_err(|error| format!("cannot be used ({error})"))?
            .timeout(Some(TIMEOUT))
            .build();
        Ok(Post::Smtp {
            transport,
            from: mailbox(from)?,
        })
    }

    pub fn folder(folder: PathBuf, from: &str) -> Result<Self, String> {
        Ok(Post::Folder {
            folder,
            from: mailbox(from)?,
        })
    }

    pub async fn deliver(&self, mail: &Row) -> Result<(), Undelivered> {
        match self {
            Post::Unconfigured => Err(Undelivered::Unconfigured),
            Post::Smtp { transport, from } => {
                let message = message(mail, from)?;
                transport.send(message).await.map(drop).map_err(|error| {
                    // A wrong password is the operator's slip, and will be mended: the mail waits for that.
                    let login = error.status().is_some_and(|code| LOGIN.contains(&u16::from(code)));
                    if error.is_permanent() && !login {
                        Undelivered::Final(error.to_string())
                    } else {
                        Undelivered::Passing(error.to_string())
                    }
                })
            }
            Post::Folder { folder, from } => {
                let message = message(mail, from)?.formatted();
                let path = folder.join(format!("{}.eml", mail.id));
                let passing = |error: std::io::Error| Undelivered::Passing(format!("{}: {error}", path.display()));
                tokio::fs::create_dir_all(folder).await.map_err(passing)?;
                tokio::fs::write(&path, message).await.map_err(passing)
            }
        }
    }
}

fn mailbox(from: &str) -> Result<Mailbox, String> {
    from.parse()
        .map_err(|error| format!("`{from}` is no e-mail address ({error}); write `Callboard <callboard@example.com>`"))
}

/// The same bytes at each attempt, so that a second copy can be told by its Message-ID.
fn message(mail: &Row, from: &Mailbox) -> Result<Message, Undelivered> {
    let bad = |error: &dyn std::fmt::Display| Undelivered::Final(error.to_string());
    Message::builder()
        .from(from.clone())
        .to(mail.recipient.parse().map_err(|error| bad(&error))?)
        .subject(&mail.subject)
        .date(date(mail.created_at))
        .message_id(Some(format!("<{}@{}>", mail.id, from.email.domain())))
        .header(ContentType::TEXT_PLAIN)
        .body(mail.body.clone())
        .map_err(|error| bad(&error))
}

fn date(at: Moment) -> std::time::SystemTime {
    at.datetime().into()
}
