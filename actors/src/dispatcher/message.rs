//! The intent to write to a contact, ready for its commit: the message is born as handed over, with everything that stands or
//! falls with it.
use super::dial::Known;
use crate::{
    attempts::{self, Opening, Written},
    deps::Deps,
    email, facts, legal, sms,
};
use entities::{
    Error, Result, boxed, campaign, campaign_hour,
    changes::{Guard, Writable},
    contact::Address,
    email_message::{self, Kind},
    ids::{CampaignId, DeliveryRowId, EmailId, SmsId, TenantId, TenantScoped},
    law::{LegalPerson, MessageLegal},
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
    hours,
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
    pub fn send(self, deps: &Deps, permit: Permit) {
        match self {
            Message::Sms(row) => sms::send_begun(deps, *row, permit),
            Message::Email(row) => email::send_begun(deps, *row, permit),
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
    let judged = match (&queue.legal, &turn.judged) {
        (Some(legal), Some(judged)) => {
            let judged = legal.committed(judged, from_number.as_ref(), at);
            if legal.is_enforced && judged.first_bar().is_some() {
                return Ok(None);
            }
            Some(judged)
        }
        (_, _) => None,
    };
    let contact = &turn.contact;
    let owner = (contact.tenant_id, contact.env);
    let legal = MessageLegal {
        legal: queue.plan.legal(),
        person: LegalPerson {
            region: contact.region.clone(),
            consent_id: contact.consent_id,
        },
        sandbox_law: queue.plan.sandbox_law,
    };
    let words_sha256 = digest(&match &text {
        Filled::Sms(body) => body.clone(),
        Filled::Email {
            subject, text, html, ..
        } => words_of_mail(subject, text.as_deref(), html.as_deref()),
    });
    let mut commit = Commit::default();
    let (message, row, channel, mut effects) = match (text, &turn.address) {
        (Filled::Sms(body), Address::Number(to)) => {
            let id: SmsId = deps.ids.next();
            let new = sms::New {
                id,
                to_number: to.clone(),
                from_number: sender(deps, owner, from_number).await?,
                body,
                legal: Some(legal.clone()),
                scheduled_at: None,
                client_reference_id: None,
                metadata: queue.plan.metadata.clone(),
                campaign: Some((queue.id, contact.id)),
            };
            let mut row = sms::row(deps, owner, new, now);
            row.send_by = Some(turn.hours.ours.1);
            let (row, effects) = rules::sms::machine::begin(row, at.max(now));
            commit.changes.sms_messages.push(row.clone());
            (Message::Sms(Box::new(row)), DeliveryRowId(id.0), Channel::Sms, effects)
        }
        (
            Filled::Email {
                from_name,
                reply_to,
                subject,
                text,
                html,
            },
            Address::Email(to),
        ) => {
            let id: EmailId = deps.ids.next();
            let new = email::New {
                id,
                to: to.clone(),
                from_name,
                reply_to,
                subject,
                text,
                html,
                attachments: Default::default(),
                // Somebody who is on a list can always get off it.
                kind: Kind::Marketing,
                legal: Some(legal.clone()),
                scheduled_at: None,
                client_reference_id: None,
                metadata: queue.plan.metadata.clone(),
                campaign: Some((queue.id, contact.id)),
            };
            let (mut row, content) = email::rows(deps, owner, new, now);
            row.send_by = Some(turn.hours.ours.1);
            let (row, effects) = rules::email::machine::begin(row, at.max(now));
            commit.changes.email_messages.push(row.clone());
            commit.changes.email_contents.push(content);
            (
                Message::Email(Box::new(row)),
                DeliveryRowId(id.0),
                Channel::Email,
                effects,
            )
        }
        (Filled::Sms(_) | Filled::Email { .. }, _) => {
            return Err(Error::Internal(
                "a message is planned to where its channel does not go".into(),
            ));
        }
    };
    let command = contact::machine::Command::Dispatch { row };
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, now)?;
    let caps = super::dial::caps_of(&queue.plan.caps, super::dial::law_of(queue, judged.as_ref()));
    let whom = turn.address.as_str().to_owned();
    effects.push(
        Fact::Require(Guard::Writable(Writable {
            tenant_id: contact.tenant_id,
            env: contact.env,
            channel,
            address: whom,
            message_id: row.0,
            at,
            hours: turn.hours.ours,
            wall_hours: turn.hours.wall,
            caps,
        }))
        .into(),
    );
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
    commit.changes.campaign_hours.push(campaign_hour::Model {
        dialed: 1,
        ..campaign_hour::Model::empty(queue.id, hours::hour_of(queue.rules.zone, at))
    });
    facts::contact_moved(&mut commit, contact, after, &events);
    Ok(Some(MessageIntent {
        message,
        at,
        commit,
        effects,
    }))
}
