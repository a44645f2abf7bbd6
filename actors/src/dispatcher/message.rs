//! The intent to write to a contact, ready for its commit: the message is born as handed over, with everything that stands or
//! falls with it.
use super::dial::{Known, caps_of, judged_at, law_of, one_dialed};
use crate::{
    attempts::{self, Opening, Written},
    deps::Deps,
    email, facts, legal,
    outgoing::Permission,
    sms,
};
use entities::{
    Error, Result, boxed, campaign,
    changes::{Guard, Writable},
    contact::{Address, Model as Contact},
    email_message::{self, Kind},
    ids::{CampaignId, DeliveryRowId, EmailId, SmsId, TenantId, TenantScoped},
    law::MessageLegal,
    message_send::Channel,
    sms_message,
    values::{E164, Env, Moment},
};
use rules::{
    campaign::message_template::Filled,
    commit::Commit,
    contact,
    dispatch::{
        per_env::PerEnv,
        plan::{Doors, PlannedMessage},
        queue::Queue,
        round::ROUND,
    },
    effect::{Effect, Fact},
    law::record::chain::digest,
    message::words_of_mail,
};
use runtime::permits::{Permit, Permits};
use std::collections::BTreeMap;

/// A message whose intent is committed, on its way to who hands it over.
#[derive(Clone, Debug)]
pub enum Message {
    Sms(Box<sms_message::Model>),
    Email(Box<email_message::Model>),
}

impl Message {
    /// Hands it over, and its row to its actor.
    pub fn send(self, deps: &Deps, permit: Permit, permission: Option<Permission>) {
        match self {
            Message::Sms(row) => sms::send_begun(deps, *row, permit, permission),
            Message::Email(row) => email::send_begun(deps, *row, permit, permission),
        }
    }

    /// Its intent may stand all the same, though its commit was given up. Nothing was handed over: then it waits, as if there had
    /// been no room.
    pub fn undecided(self, deps: &Deps) {
        match self {
            Message::Sms(row) => sms::undecided(deps, row.key()),
            Message::Email(row) => email::undecided(deps, row.key()),
        }
    }

    pub fn campaign(&self) -> Option<CampaignId> {
        match self {
            Message::Sms(row) => row.campaign_id,
            Message::Email(row) => row.campaign_id,
        }
    }
}

/// A message that is ready to be committed.
pub struct MessageIntent {
    pub message: Message,
    /// The law's; `None`: it binds nobody here.
    pub permission: Option<Permission>,
    pub at: Moment,
    pub commit: Commit,
    /// Performed after the commit.
    pub effects: Vec<Effect>,
}

/// Leave for messages to be on their way, taken before their intents stand: none waits with the intent to send it committed.
pub struct Places {
    sms: PerEnv<Vec<Permit>>,
    email: Vec<Permit>,
}

impl Places {
    /// As many as one round can use, of those who hand over what the campaigns write.
    pub fn take(deps: &Deps, tenant: TenantId, campaigns: &BTreeMap<CampaignId, Queue>) -> Self {
        let write = |channel, env| {
            let writes = |queue: &Queue| queue.plan.channel == channel && queue.env == env;
            campaigns.values().any(writes)
        };
        let all = |permits: &Permits| (0..ROUND).map_while(|_| permits.take_now(tenant)).collect();
        let sms = |env| match deps.sms.of(env) {
            Some(door) if write(campaign::Channel::Sms, env) => all(&door.permits),
            Some(_) | None => Vec::new(),
        };
        let is_written = [Env::Live, Env::Test]
            .into_iter()
            .any(|env| write(campaign::Channel::Email, env));
        Places {
            sms: PerEnv::new(sms),
            email: if is_written {
                all(&deps.email.permits)
            } else {
                Vec::new()
            },
        }
    }

    pub fn doors(&self) -> Doors {
        Doors {
            sms: PerEnv::new(|env| self.sms.get(env).len()),
            email: self.email.len(),
        }
    }

    /// The permits of what was planned; the others are given back.
    pub fn of(mut self, planned: &[PlannedMessage]) -> Result<Vec<Permit>> {
        let permit = |message: &PlannedMessage| {
            let permit = match message.text {
                Filled::Sms(_) => self.sms.get_mut(message.turn.contact.env).pop(),
                Filled::Email { .. } => self.email.pop(),
            };
            permit.ok_or_else(|| Error::Internal("a message is planned for which there is no place".into()))
        };
        planned.iter().map(permit).collect()
    }
}

/// One of the campaign's numbers; the workspace's default where that was released meanwhile.
async fn sender(deps: &Deps, owner: (TenantId, Env), asked: Option<E164>) -> Result<Option<E164>> {
    match sms::from_number(deps, owner, asked).await {
        Err(Error::Invalid { .. }) => sms::from_number(deps, owner, None).await,
        found => found,
    }
}

/// The intent to write to a contact, as it was planned.
#[boxed]
pub async fn write(deps: &Deps, known: Known, queue: &Queue, planned: PlannedMessage) -> Result<Option<MessageIntent>> {
    let now = deps.clock.now();
    let PlannedMessage {
        turn,
        at,
        text,
        from_number,
        ..
    } = planned;
    let behind_ms = deps.clock.times().behind_ms();
    let Ok(judged) = judged_at(queue, turn.judged, from_number.as_ref(), (at, behind_ms)) else {
        return Ok(None);
    };
    let contact = &turn.contact;
    let owner = (contact.tenant_id, contact.env);
    let legal = MessageLegal {
        legal: queue.plan.legal(),
        person: contact.legal_person(),
        sandbox_law: queue.plan.sandbox_law,
    };
    let words_sha256 = digest(&match &text {
        Filled::Sms(body) => body.clone(),
        Filled::Email {
            subject, text, html, ..
        } => words_of_mail(subject, text.as_deref(), html.as_deref()),
    });
    let mut commit = Commit::default();
    let draft = Draft {
        queue,
        owner,
        contact,
        legal: &legal,
        send_by: turn.hours.ours.1,
        at: at.max(now),
        now,
    };
    let (message, row, channel, mut effects) = match (text, &turn.address) {
        (Filled::Sms(body), Address::Number(to)) => draft.sms(deps, to, (from_number, body), &mut commit).await?,
        (mail @ Filled::Email { .. }, Address::Email(to)) => draft.mail(deps, to, mail, &mut commit)?,
        (Filled::Sms(_) | Filled::Email { .. }, _) => return Err(nowhere()),
    };
    let command = contact::machine::Command::Dispatch { row };
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, now)?;
    let writable = Writable {
        tenant_id: contact.tenant_id,
        env: contact.env,
        channel,
        address: turn.address.as_str().to_owned(),
        message_id: row.0,
        at,
        hours: turn.hours.ours,
        wall_hours: turn.hours.wall,
        caps: caps_of(&queue.plan.caps, law_of(queue, judged.as_ref())),
    };
    effects.push(Fact::Require(Guard::Writable(writable)).into());
    let permission = law_of(queue, judged.as_ref())
        .map(|(legal, judged)| Permission::new(legal.clone(), judged.clone(), words_sha256.clone()));
    if let Some(judged) = judged {
        if queue.is_lawful() {
            effects.push(Fact::Require(judged.guard(owner)).into());
        }
        let written = Written {
            owner,
            message: row.0,
            dial_n: 1,
            campaign_id: Some(queue.id),
            contact: Some(contact),
            address: turn.address.as_str().to_owned(),
            words_sha256,
        };
        let body = legal::body(&deps.law, judged, queue.is_lawful());
        attempts::opened(deps, &mut commit, Opening::of_message(written, body))?;
    }
    effects.push(Fact::Require(Guard::Free(known.tenant, contact.env, known.version)).into());
    effects.push(Fact::Require(Guard::Dispatchable(queue.id, queue.version)).into());
    let key = TenantScoped::new(contact.tenant_id, contact.env, row);
    facts::add(deps, key, &effects, &mut commit).await?;
    commit.changes.campaign_hours.push(one_dialed(queue, at));
    facts::contact_moved(&mut commit, contact, after, &events);
    Ok(Some(MessageIntent {
        message,
        permission,
        at,
        commit,
        effects,
    }))
}

fn nowhere() -> Error {
    Error::Internal("a message is planned to where its channel does not go".into())
}

/// A message of a campaign that is being written.
struct Draft<'a> {
    queue: &'a Queue,
    owner: (TenantId, Env),
    contact: &'a Contact,
    legal: &'a MessageLegal,
    send_by: Moment,
    /// When it is handed over.
    at: Moment,
    now: Moment,
}

type Drafted = (Message, DeliveryRowId, Channel, Vec<Effect>);

impl Draft<'_> {
    async fn sms(
        &self,
        deps: &Deps,
        to: &E164,
        (from_number, body): (Option<E164>, String),
        commit: &mut Commit,
    ) -> Result<Drafted> {
        let id: SmsId = deps.ids.next();
        let new = sms::New {
            id,
            to_number: to.clone(),
            from_number: sender(deps, self.owner, from_number).await?,
            body,
            legal: Some(self.legal.clone()),
            scheduled_at: None,
            client_reference_id: None,
            metadata: self.queue.plan.metadata.clone(),
            campaign: Some((self.queue.id, self.contact.id)),
        };
        let mut row = sms::row(deps, self.owner, new, self.now);
        row.send_by = Some(self.send_by);
        let (row, effects) = rules::sms::machine::begin(row, self.at);
        commit.changes.sms_messages.push(row.clone());
        Ok((Message::Sms(Box::new(row)), DeliveryRowId(id.0), Channel::Sms, effects))
    }

    fn mail(&self, deps: &Deps, to: &str, filled: Filled, commit: &mut Commit) -> Result<Drafted> {
        let Filled::Email {
            from_name,
            reply_to,
            subject,
            text,
            html,
        } = filled
        else {
            return Err(nowhere());
        };
        let id: EmailId = deps.ids.next();
        let new = email::New {
            id,
            to: to.to_owned(),
            from_name,
            reply_to,
            subject,
            text,
            html,
            attachments: Default::default(),
            // Somebody who is on a list can always get off it.
            kind: Kind::Marketing,
            legal: Some(self.legal.clone()),
            scheduled_at: None,
            client_reference_id: None,
            metadata: self.queue.plan.metadata.clone(),
            campaign: Some((self.queue.id, self.contact.id)),
        };
        let (mut row, content) = email::rows(deps, self.owner, new, self.now);
        row.send_by = Some(self.send_by);
        let (row, effects) = rules::email::machine::begin(row, self.at);
        commit.changes.email_messages.push(row.clone());
        commit.changes.email_contents.push(content);
        let message = Message::Email(Box::new(row));
        Ok((message, DeliveryRowId(id.0), Channel::Email, effects))
    }
}
