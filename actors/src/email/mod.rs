//! E-mails to people outside. One message is a row with a state machine; the mail server of the service takes it.
pub mod door;
mod send;

pub use crate::outgoing::{MAX_OPEN, send_begun};

use crate::{
    birth::{self, Birth},
    deps::Deps,
    outgoing,
};
use adapters::mail::post::Post;
use entities::{
    Error, Result, boxed,
    email_message::{
        Kind, Model, Phase,
        content::{self, Attachments},
    },
    ids::{CampaignId, ContactId, EmailId, TenantId, TenantScoped},
    law::MessageLegal,
    values::{Cents, Env, Metadata, Moment},
};
use rules::email::machine::unsent;

/// A message that is asked for. None of its texts may have control characters but for the two bodies.
#[derive(Clone, Debug)]
pub struct New {
    pub id: EmailId,
    /// In lower case.
    pub to: String,
    pub from_name: Option<String>,
    pub reply_to: Option<String>,
    pub subject: String,
    /// One of the two is needed. In a marketing mail `{{unsubscribe_url}}` becomes its link.
    pub text: Option<String>,
    pub html: Option<String>,
    pub attachments: Attachments,
    pub kind: Kind,
    /// None: the service says it by itself.
    pub legal: Option<MessageLegal>,
    pub scheduled_at: Option<Moment>,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub campaign: Option<(CampaignId, ContactId)>,
}

/// The rows of a new message.
pub fn rows(deps: &Deps, (tenant_id, env): (TenantId, Env), new: New, now: Moment) -> (Model, content::Model) {
    let scheduled_at = new.scheduled_at.filter(|at| *at > now);
    let (campaign_id, contact_id) = new.campaign.unzip();
    let content = content::Model {
        message_id: new.id,
        tenant_id,
        text: new.text,
        html: new.html,
        attachments: new.attachments,
    };
    let key = TenantScoped::new(tenant_id, env, new.id);
    let mut row = Model {
        from_name: new.from_name,
        reply_to: new.reply_to,
        campaign_id,
        contact_id,
        legal: new.legal,
        client_reference_id: new.client_reference_id,
        metadata: new.metadata,
        scheduled_at: new.scheduled_at,
        price_cents: Cents(deps.limits.email_price_cents.into()),
        ..unsent(key, new.to, new.subject, new.kind, now)
    };
    if let Some(at) = scheduled_at {
        (row.phase, row.wake_at) = (Phase::Scheduled, Some(at));
    }
    (row, content)
}

/// Can messages of that env be sent at all?
pub fn check_configured(deps: &Deps, env: Env) -> Result<()> {
    match (env, &deps.post) {
        (Env::Live, Post::Unconfigured) => Err(Error::NotConfigured(
            "no mail server is configured for live messages; use a test key for sandbox messages".into(),
        )),
        (Env::Live | Env::Test, _) => Ok(()),
    }
}

/// May it be written, as far as is known now?
#[boxed]
pub async fn check(deps: &Deps, row: &Model) -> Result<()> {
    check_configured(deps, row.env)?;
    outgoing::check(deps, row, Cents(deps.limits.email_price_cents.into())).await
}

/// Stores a message; its actor sees to the rest.
#[boxed]
pub async fn create(deps: &Deps, (row, content): (Model, content::Model)) -> Result<Model> {
    let mut birth = Birth::of(row, Vec::new());
    birth.commit.changes.email_contents.push(content);
    birth::create_or_find(deps, birth).await
}

/// Nothing was handed over, whatever has become of its intent.
pub fn undecided(deps: &Deps, key: TenantScoped<EmailId>) {
    outgoing::undecided::<Model>(deps, key);
}
