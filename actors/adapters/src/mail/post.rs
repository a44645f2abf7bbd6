//! Where mails go: an SMTP server; in development a folder; or nowhere yet.
use super::smtp::{Failure, Server};
use entities::{boxed, mail::Model as Row, values::Moment};
use lettre::{
    Message,
    message::{
        Mailbox,
        header::{ContentType, Header, HeaderName, HeaderValue},
    },
};
use std::{
    error::Error as StdError,
    path::{Path, PathBuf},
};

#[derive(Clone)]
pub enum Post {
    Smtp {
        server: Server,
        from: Mailbox,
    },
    /// Each mail becomes an `.eml` file there.
    Folder {
        folder: PathBuf,
        from: Mailbox,
    },
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

impl Post {
    /// See [`Server::parse`].
    pub fn smtp(url: &str, from: &str) -> Result<Self, String> {
        Ok(Post::Smtp {
            server: Server::parse(url)?,
            from: mailbox(from)?,
        })
    }

    pub fn folder(folder: PathBuf, from: &str) -> Result<Self, String> {
        Ok(Post::Folder {
            folder,
            from: mailbox(from)?,
        })
    }

    /// Who writes; `None` without a server.
    pub fn from(&self) -> Option<&Mailbox> {
        match self {
            Post::Smtp { from, .. } | Post::Folder { from, .. } => Some(from),
            Post::Unconfigured => None,
        }
    }

    /// Hands a message over; answers what was said when it was taken. `name`: of its file, where there is a folder.
    #[boxed]
    pub async fn hand_over(&self, name: &str, message: &Message) -> Result<String, Failure> {
        match self {
            Post::Unconfigured => Err(Failure::Passing("no mail server is configured".into())),
            Post::Smtp { server, .. } => server.hand_over(message).await,
            Post::Folder { folder, .. } => keep(folder, name, message).await.map_err(Failure::Passing),
        }
    }

    #[boxed]
    pub async fn deliver(&self, mail: &Row) -> Result<(), Undelivered> {
        let Some(from) = self.from() else {
            return Err(Undelivered::Unconfigured);
        };
        let sent = self.hand_over(&mail.id.to_string(), &message(mail, from)?).await;
        sent.map(drop).map_err(|failure| match failure {
            // A second copy can be told by its Message-ID.
            Failure::Passing(why) | Failure::Unknown(why) => Undelivered::Passing(why),
            Failure::Bounced(why) | Failure::Refused(why) => Undelivered::Final(why),
        })
    }
}

/// Puts a message into a folder, as an `.eml` file.
#[boxed]
pub async fn keep(folder: &Path, name: &str, message: &Message) -> Result<String, String> {
    let path = folder.join(format!("{name}.eml"));
    let passing = |error: std::io::Error| format!("{}: {error}", path.display());
    tokio::fs::create_dir_all(folder).await.map_err(passing)?;
    tokio::fs::write(&path, message.formatted()).await.map_err(passing)?;
    Ok("kept as a file".into())
}

pub fn mailbox(from: &str) -> Result<Mailbox, String> {
    from.parse()
        .map_err(|_| format!("`{from}` is not an e-mail address; write `Callboard <callboard@example.com>`"))
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
        .header(TellsOf(mail.kind.clone()))
        .body(mail.body.clone())
        .map_err(|error| bad(&error))
}

/// What a mail tells of, for whoever sorts them: the event's type.
#[derive(Clone)]
struct TellsOf(String);

impl Header for TellsOf {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("X-Callboard-Event")
    }
    fn parse(text: &str) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        Ok(TellsOf(text.into()))
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), self.0.clone())
    }
}

pub fn date(at: Moment) -> std::time::SystemTime {
    at.datetime().into()
}
