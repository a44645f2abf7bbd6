//! The one actor that empties the outbox: oldest first, one mail after the other, with its own plan of retries.
use crate::{deps::Deps, leases::Of};
use actix::prelude::*;
use adapters::mail::post::Undelivered;
use entities::{
    Error, Result,
    mail::{self, Model as Row, Status},
    values::Moment,
};
use rules::commit::Commit;
use runtime::{
    clock::{Busy, Clock},
    keyring::purpose,
    registry::{Child, Link, Stop, tell_itself},
    supervise::join_text,
};
use std::time::Duration;

/// Look at the rows: there may be a mail due.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wake(Busy);
impl Wake {
    pub fn new(clock: &Clock) -> Self {
        Wake(clock.busy())
    }
}

/// Waiting time after the 1st, 2nd, … attempt; then it has failed. Servers that greylist want minutes, a broken one hours.
const DELAYS: [Duration; 9] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(6 * 3600),
    Duration::from_secs(12 * 3600),
    Duration::from_secs(12 * 3600),
    Duration::from_secs(24 * 3600),
    Duration::from_secs(24 * 3600),
];
/// Without a server a mail waits this long for one to be configured, looked at every hour.
const UNCONFIGURED_FOR: Duration = Duration::from_secs(3 * 24 * 3600);
const UNCONFIGURED_LOOK: Duration = Duration::from_secs(3600);
/// A round that takes longer is given up: a read may never return.
const LIMIT: Duration = Duration::from_secs(1800);
/// Mails read at once.
const BATCH: u64 = 20;

pub struct Mailer {
    deps: Deps,
    link: Link<Self>,
    next_due_at: Option<Moment>,
    alarm: Option<SpawnHandle>,
}

impl Mailer {
    pub fn new(deps: Deps, link: Link<Self>) -> Self {
        Mailer {
            deps,
            link,
            next_due_at: None,
            alarm: None,
        }
    }

    /// Sends what is due, with the mailbox shut.
    fn work(&mut self, busy: Busy, ctx: &mut Context<Self>) {
        let deps = self.deps.clone();
        let runtime = deps.runtime.clone();
        // On the threads for the outside: a slow server keeps no other actor waiting.
        let emptied = runtime.spawn(async move {
            let late = |_| Err(Error::Unavailable("the mail outbox took too long".into()));
            tokio::time::timeout(LIMIT, empty(&deps)).await.unwrap_or_else(late)
        });
        ctx.wait(emptied.into_actor(self).map(move |emptied, mailer, ctx| {
            let _busy = busy;
            let next_due_at = match emptied {
                Ok(Ok(next_due_at)) => next_due_at,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the mail outbox could not be processed; trying again");
                    Some(mailer.deps.clock.now().plus_seconds(60))
                }
                Err(error) => {
                    tracing::error!(why = join_text(error), "sending a mail was broken off");
                    Some(mailer.deps.clock.now().plus_seconds(60))
                }
            };
            mailer.wait_until(next_due_at, ctx);
        }));
    }

    fn wait_until(&mut self, at: Option<Moment>, ctx: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        self.next_due_at = at;
        let Some(at) = at else { return self.link.rest() };
        let rings = self.deps.clock.alarm(at).into_actor(self).map(|busy, mailer, ctx| {
            mailer.alarm = None;
            tell_itself(ctx, Wake(busy));
        });
        self.alarm = Some(ctx.spawn(rings));
    }
}

/// Sends all that is due; answers when the next one is.
async fn empty(deps: &Deps) -> Result<Option<Moment>> {
    loop {
        let due = mail::due(&deps.db.read, deps.clock.now(), BATCH).await?;
        if due.is_empty() {
            return mail::next_due_at(&deps.db.read).await;
        }
        for row in due {
            deps.pass(Of::Installation).await?;
            let sent = match opened(deps, &row) {
                Ok(open) => deps.post.deliver(&open).await,
                Err(error) => Err(Undelivered::Final(error.to_string())),
            };
            let row = attempted(row, sent, deps.clock.now());
            log(&row);
            write_down(deps, row).await;
        }
    }
}

/// As it is to be read.
fn opened(deps: &Deps, row: &Row) -> Result<Row> {
    let mut open = row.clone();
    if row.lets_in() {
        open.body = deps.keyring.open(purpose::MAIL_BODY, &row.body)?.to_string();
    }
    Ok(open)
}

/// Until it stands: what was sent must not be sent again for want of a commit. A crash before that sends it again, with the
/// same Message-ID.
async fn write_down(deps: &Deps, row: Row) {
    let mut tries = 0;
    loop {
        let row = row.clone();
        let written = deps
            .writer
            .run(Of::Installation, move |db| {
                let row = row.clone();
                Box::pin(async move {
                    mail::save(db, &[row]).await?;
                    Ok(((), Commit::default()))
                })
            })
            .await;
        let Err(error) = written else { return };
        if deps.is_draining() {
            return tracing::warn!(%error, "the outcome of an e-mail was not stored");
        }
        tries += 1;
        deps.clock.back_off(tries).await;
    }
}

/// The mail after an attempt. Pure.
fn attempted(mut mail: Row, sent: Result<(), Undelivered>, now: Moment) -> Row {
    let (error, next) = match sent {
        Ok(()) => {
            mail.status = Status::Sent;
            mail.attempts += 1;
            (None, None)
        }
        Err(Undelivered::Final(error)) => {
            mail.attempts += 1;
            (Some(error), None)
        }
        Err(Undelivered::Passing(error)) => {
            let delay = usize::try_from(mail.attempts).ok().and_then(|nth| DELAYS.get(nth));
            mail.attempts += 1;
            (Some(error), delay.map(|delay| now.plus(*delay)))
        }
        Err(Undelivered::Unconfigured) => {
            let next = now.plus(UNCONFIGURED_LOOK);
            let error = "no SMTP server is configured (CALLBOARD_SMTP_URL)".to_owned();
            (
                Some(error),
                Some(next).filter(|next| *next <= mail.created_at.plus(UNCONFIGURED_FOR)),
            )
        }
    };
    mail.last_error = error;
    mail.next_attempt_at = next;
    if next.is_none() {
        mail.ended_at = Some(now);
        if mail.lets_in() {
            mail.body.clear();
        }
        if mail.status == Status::Queued {
            mail.status = Status::Failed;
        }
    }
    mail
}

fn log(mail: &Row) {
    let status = match mail.status {
        Status::Sent => "sent",
        Status::Queued => "retrying",
        Status::Failed => "failed",
    };
    metrics::counter!("callboard_mails_total", "status" => status).increment(1);
    match &mail.last_error {
        None => tracing::info!(mail = %mail.id, kind = mail.kind, "an e-mail was sent"),
        Some(error) => {
            tracing::warn!(mail = %mail.id, kind = mail.kind, error, next_attempt_at = ?mail.next_attempt_at, "an e-mail was not sent")
        }
    }
}

impl Actor for Mailer {
    type Context = Context<Self>;
}

impl Supervised for Mailer {
    fn restarting(&mut self, ctx: &mut Context<Self>) {
        (self.next_due_at, self.alarm) = (None, None);
        tell_itself(ctx, Wake::new(&self.deps.clock));
    }
}

impl Child for Mailer {
    type Id = ();
    const KIND: &'static str = "mailer";
}

impl Handler<Wake> for Mailer {
    type Result = ();
    fn handle(&mut self, Wake(busy): Wake, ctx: &mut Context<Self>) {
        self.work(busy, ctx);
    }
}

impl Handler<Stop> for Mailer {
    type Result = ();
    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        match stop {
            Stop::Idle if self.next_due_at.is_some() => self.link.stay(),
            Stop::Idle | Stop::Shutdown => ctx.stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::ids::{MailId, TenantId};
    use rules::mail::Mail;
    use uuid::Uuid;

    fn mail() -> Row {
        let mail = Mail {
            kind: "webhook.endpoint_disabled_notice",
            subject: "s".into(),
            body: "b".into(),
        };
        mail.row(
            MailId(Uuid::nil()),
            TenantId(Uuid::nil()),
            "a@example.com".into(),
            Moment::from_millis(0),
        )
    }
    fn passing() -> Result<(), Undelivered> {
        Err(Undelivered::Passing("451".into()))
    }

    #[test]
    fn every_outcome_of_an_attempt() {
        let now = Moment::from_millis(5);
        let sent = attempted(mail(), Ok(()), now);
        assert_eq!(
            (sent.status, sent.next_attempt_at, sent.ended_at),
            (Status::Sent, None, Some(now))
        );
        let refused = attempted(mail(), Err(Undelivered::Final("550".into())), now);
        assert_eq!(
            (refused.status, refused.last_error.as_deref()),
            (Status::Failed, Some("550"))
        );
        let later = attempted(mail(), passing(), now);
        assert_eq!(
            (later.status, later.next_attempt_at),
            (Status::Queued, Some(now.plus(DELAYS[0])))
        );
        let waiting = attempted(mail(), Err(Undelivered::Unconfigured), now);
        assert_eq!((waiting.status, waiting.attempts), (Status::Queued, 0));
    }

    #[test]
    fn it_is_given_up_after_the_plan_or_three_days_without_a_server() {
        let mut row = mail();
        while let Some(at) = row.next_attempt_at {
            row = attempted(row, passing(), at);
        }
        assert_eq!((row.status, row.attempts), (Status::Failed, 10));
        let mut row = mail();
        while let Some(at) = row.next_attempt_at {
            row = attempted(row, Err(Undelivered::Unconfigured), at);
        }
        assert_eq!(
            (row.status, row.attempts, row.ended_at),
            (Status::Failed, 0, Some(Moment::from_millis(0).plus(UNCONFIGURED_FOR)))
        );
    }
}
