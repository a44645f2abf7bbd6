//! What is an SMS's own when it is handed over: its provider, its sender's number, and the text that is sent at once.
use crate::{
    deps::Deps,
    holds,
    outgoing::{Sendable, check_blocks},
    router::Mailbox,
};
use adapters::sms::{
    provider::{Outgoing, Sent, SmsOutcome},
    twilio::status_url,
};
use entities::{
    Error, Result, boxed,
    changes::{Guard, Reachable},
    db::Db,
    dnc::{self, DncChannel},
    ids::{SmsId, TenantId, TenantScoped},
    message_send::{self, Channel},
    number_claim,
    sms_message::{self, Model},
    values::{E164, Env},
};
use rules::{commit::Commit, message::MessageRejectReason, sms::machine::Command};
use runtime::{job::Running, permits::Permits};
use std::time::Duration;

impl Sendable for Model {
    type Made = ();

    async fn load(db: &Db, key: TenantScoped<SmsId>) -> Result<Self> {
        sms_message::load(&db.read, key).await
    }
    fn rows(commit: &mut Commit) -> &mut Vec<Self> {
        &mut commit.changes.sms_messages
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        deps.router.sms()
    }
    fn running(deps: &Deps) -> &Running<SmsId> {
        &deps.sms.running
    }
    fn permits(deps: &Deps, env: Env) -> Option<&Permits> {
        deps.sms.of(env).map(|door| &door.permits)
    }
    fn check_configured(deps: &Deps, env: Env) -> Result<()> {
        super::check_configured(deps, env)
    }
    /// A message may have been scheduled weeks ago, and its sender be another workspace's by now.
    async fn barred(&self, deps: &Deps) -> Result<Option<MessageRejectReason>> {
        if let (Env::Live, Some(from)) = (self.env, &self.from_number)
            && !deps.sms.is_shared(from)
            && !number_claim::holds(&deps.db.read, self.tenant_id, from).await?
        {
            return Ok(Some(MessageRejectReason::Sender));
        }
        Ok(None)
    }
    async fn words(&self, _: &Deps) -> Result<String> {
        Ok(self.body.clone())
    }
    async fn made(&self, _: &Deps) -> Result<Result<(), Command>> {
        Ok(Ok(()))
    }
    async fn hand_over(&self, deps: &Deps, (): ()) -> Command {
        let Some(door) = deps.sms.of(self.env) else {
            // It was there a moment ago; the intent stands, so nobody knows.
            let why = "the SMS provider was taken away".into();
            return Command::Lost { why };
        };
        let (handed_over, key) = (deps.clock.now(), self.key());
        let message = Outgoing::of(self, Some(status_url(&deps.base_url, self.id)));
        let Sent { outcome, reports } = door.provider.send(message).await;
        for (after, report) in reports {
            let (its, busy) = (deps.clone(), deps.clock.busy());
            deps.runtime.spawn(async move {
                let _busy = its.clock.busy_until(handed_over.plus(after), busy).await;
                its.router.sms().tell(key, Command::Own(report));
            });
        }
        outcome.into()
    }
    fn log(&self, outcome: &Command) {
        let (result, code) = match outcome {
            Command::Taken(_) => ("taken", ""),
            Command::Busy { why, .. } => ("busy", why.code),
            Command::Lost { .. } => ("lost", ""),
            Command::Refused(why) => ("refused", why.code),
            _ => ("refused", ""),
        };
        metrics::counter!("callboard_sms_total", "env" => self.env.as_str(), "result" => result).increment(1);
        if !matches!(outcome, Command::Taken(_)) {
            tracing::warn!(message = %self.id, attempt = self.attempts, result, code, "an SMS was not taken");
        }
    }
}

/// A text that is sent at once waits so long for the provider to have room.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one text at once and stores none of it, as a code that only its reader may see. The intent is a row all the same, on
/// the conditions that hold for every message; it is not charged and not tried again. `Unavailable`: it may or may not arrive.
#[boxed]
pub async fn send_now(deps: &Deps, owner: (TenantId, Env), to: E164, body: String) -> Result<()> {
    let (tenant_id, env) = owner;
    let from = super::from_number(deps, owner, None).await?;
    check_blocks(deps, owner).await?;
    holds::check(deps).await?;
    let number = std::slice::from_ref(&to);
    if !dnc::barred(&deps.db.read, owner, DncChannel::Sms, number)
        .await?
        .is_empty()
    {
        return Err(Error::RecipientOnDnc);
    }
    let Some(door) = deps.sms.of(env) else {
        return Err(Error::NotConfigured("no SMS provider is configured".into()));
    };
    // Somebody waits for the answer.
    let permit = tokio::time::timeout(PATIENCE, door.permits.take(tenant_id)).await;
    let _permit = permit.map_err(|_| Error::Unavailable("the SMS provider is busy".into()))??;
    let id: SmsId = deps.ids.next();
    let mut commit = Commit::default();
    commit.changes.guards.push(Guard::Reachable(Reachable {
        tenant_id,
        env,
        channel: DncChannel::Sms,
        address: to.as_str().to_owned(),
    }));
    commit.changes.message_sends.push(message_send::Model {
        tenant_id,
        env,
        channel: Channel::Sms,
        address: to.as_str().to_owned(),
        message_id: id.0,
        n: 1,
        campaign_id: None,
        sent_at: deps.clock.now(),
        seq: 0,
    });
    match deps.writer.commit(tenant_id.into(), commit).await {
        // Something has changed since it was read.
        Err(Error::Stale) => {
            holds::check(deps).await?;
            check_blocks(deps, owner).await?;
            return Err(Error::RecipientOnDnc);
        }
        done => done?,
    }
    let message = Outgoing {
        key: TenantScoped::new(tenant_id, env, id),
        to,
        from,
        body,
        attempt: 1,
        report_to: None,
    };
    deps.pass(tenant_id).await?;
    match door.provider.send(message).await.outcome {
        SmsOutcome::Taken(_) => Ok(()),
        SmsOutcome::Refused(fault) => Err(Error::invalid(
            "phone_number",
            format!("takes no text: {}", fault.message),
        )),
        SmsOutcome::Busy { why, .. } => Err(Error::Unavailable(why.message)),
        SmsOutcome::Lost(why) => Err(Error::Unavailable(why)),
    }
}
