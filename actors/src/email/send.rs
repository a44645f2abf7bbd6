//! What is an e-mail's own when it is handed over: it is made first, and the mail server takes it, or the sandbox.
use crate::{deps::Deps, outgoing::Sendable, router::Mailbox};
use adapters::{
    email::{footer::Footer, link, message},
    mail::{
        post::{keep, mailbox},
        smtp::Failure,
    },
};
use entities::{
    Result,
    db::Db,
    email_message::{self, Kind, Model, content},
    ids::{EmailId, TenantScoped},
    legal_identity,
    values::Env,
};
use lettre::{Message, message::Mailbox as Address};
use rules::{
    commit::Commit,
    email::machine::{Command, Undeliverable},
    message::{Fault, MessageRejectReason, words_of_mail},
};
use runtime::{job::Running, permits::Permits};

impl Sendable for Model {
    /// As it travels.
    type Made = Message;

    async fn load(db: &Db, key: TenantScoped<EmailId>) -> Result<Self> {
        email_message::load(&db.read, key).await
    }
    fn rows(commit: &mut Commit) -> &mut Vec<Self> {
        &mut commit.changes.email_messages
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.emails()
    }
    fn running(deps: &Deps) -> &Running<EmailId> {
        &deps.email.running
    }
    fn permits(deps: &Deps, _: Env) -> Option<&Permits> {
        Some(&deps.email.permits)
    }
    fn check_configured(deps: &Deps, env: Env) -> Result<()> {
        super::check_configured(deps, env)
    }
    async fn barred(&self, _: &Deps) -> Result<Option<MessageRejectReason>> {
        Ok(None)
    }
    async fn words(&self, deps: &Deps) -> Result<String> {
        let content = content::load(&deps.db.read, self.key()).await?;
        let (text, html) = (content.text.as_deref(), content.html.as_deref());
        Ok(words_of_mail(&self.subject, text, html))
    }
    async fn made(&self, deps: &Deps) -> Result<Result<Message, Command>> {
        let content = content::load(&deps.db.read, self.key()).await?;
        let footer = footer(deps, self).await?;
        let made = sender(deps, self.env).and_then(|sender| {
            let link = link::url(&deps.links, &deps.base_url, self.id);
            message::build(self, &content, &sender, &link, &footer)
        });
        Ok(made.map_err(|why| Command::Own(Undeliverable::Unbuilt { why })))
    }
    async fn hand_over(&self, deps: &Deps, message: Message) -> Command {
        let taken = match self.env {
            Env::Live => deps.post.hand_over(&self.id.to_string(), &message).await,
            Env::Test => sandbox(deps, self, &message).await,
        };
        match taken {
            Ok(reply) => Command::Taken(Some(reply).filter(|reply| !reply.is_empty())),
            Err(Failure::Passing(why)) => Command::Busy {
                retry_after: None,
                why: Fault::new("deferred", why),
            },
            Err(Failure::Bounced(why)) => Command::Own(Undeliverable::Bounced(Fault::new("bounced", why))),
            Err(Failure::Refused(why)) => Command::Refused(Fault::new("provider_rejected", why)),
            Err(Failure::Unknown(why)) => Command::Lost { why },
        }
    }
    fn log(&self, outcome: &Command) {
        let result = match outcome {
            Command::Taken(_) => "taken",
            Command::Busy { .. } => "deferred",
            Command::Lost { .. } => "lost",
            Command::Own(Undeliverable::Bounced(_)) => "bounced",
            Command::Own(Undeliverable::Unbuilt { .. }) => "invalid",
            _ => "refused",
        };
        metrics::counter!("callboard_emails_total", "env" => self.env.as_str(), "result" => result).increment(1);
        if !matches!(outcome, Command::Taken(_)) {
            // What a server says may name its recipient: it stands in the message's `error`, not here.
            tracing::warn!(message = %self.id, attempt = self.attempts, result, "an e-mail was not taken");
        }
    }
}

/// What stands under its words: who sells, as it is known now.
async fn footer(deps: &Deps, row: &Model) -> Result<Footer> {
    let known = match row.kind {
        Kind::Marketing => legal_identity::of(&deps.db.read, row.tenant_id).await?,
        Kind::Transactional => None,
    };
    Ok(known.as_ref().map(Footer::from).unwrap_or_default())
}

/// Who writes.
fn sender(deps: &Deps, env: Env) -> Result<Address, String> {
    match (env, deps.post.from()) {
        (_, Some(from)) => Ok(from.clone()),
        (Env::Test, None) => mailbox("Callboard <callboard@localhost>"),
        (Env::Live, None) => Err("no mail server is configured".into()),
    }
}

/// Test keys' messages never leave: the address's local part decides what becomes of them. `bounced@` · `deferred@`, sent at the
/// second attempt · `failed@` · anything else is sent.
async fn sandbox(deps: &Deps, row: &Model, message: &Message) -> Result<String, Failure> {
    let local = row.to_address.split('@').next().unwrap_or_default();
    match local {
        "bounced" => {
            return Err(Failure::Bounced(
                "550 the sandbox plays a mailbox that does not exist".into(),
            ));
        }
        "failed" => {
            return Err(Failure::Refused(
                "554 the sandbox plays a server that refuses the message".into(),
            ));
        }
        "deferred" if row.attempts == 1 => {
            return Err(Failure::Passing("451 the sandbox plays a server that is busy".into()));
        }
        _ => {}
    }
    match &deps.email.sandbox_folder {
        Some(folder) => keep(folder, &row.id.to_string(), message)
            .await
            .map_err(Failure::Passing),
        None => Ok("kept by the sandbox".into()),
    }
}
