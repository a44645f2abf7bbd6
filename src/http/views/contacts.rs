//! A campaign's contacts, and whether one may be called now.
use super::AskedView;
use actors::contact::edit::Eligibility;
use entities::{
    campaign::{self, Status},
    contact::{self, SkipReason, WaitReason},
    ids::{CampaignId, ConsentId, ContactId, DeliveryRowId, SessionId},
    values::{Moment, Place, Variables, Zone},
};
use rules::eligibility::{Rule, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub struct ContactView {
    pub id: ContactId,
    pub campaign_id: CampaignId,
    pub external_id: Option<String>,
    /// Null: none was given.
    pub phone_number: Option<String>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// Where the person is, if given.
    pub timezone: Option<Zone>,
    /// In which country, or part of one, if given.
    pub region: Option<Place>,
    /// The consent that was named for it.
    pub consent_id: Option<ConsentId>,
    pub variables: Variables,
    pub priority: i32,
    pub not_before: Option<Moment>,
    pub status: contact::Status,
    pub wait_reason: Option<WaitReason>,
    pub attempts: i32,
    pub last_session_id: Option<SessionId>,
    /// The SMS or the e-mail, in a campaign that writes.
    pub last_message_id: Option<DeliveryRowId>,
    /// Not called before this, for `wait_reason`.
    pub next_attempt_at: Option<Moment>,
    pub skip_reason: Option<SkipReason>,
    /// The rule of the law behind that; null: it was not one of the law's.
    pub skip_rule: Option<String>,
    /// How its last talk was classified.
    pub disposition_code: Option<String>,
    /// Who it was is not known any more.
    pub erased: bool,
    pub created_at: Moment,
}
impl From<contact::Model> for ContactView {
    fn from(contact: contact::Model) -> Self {
        let (phone_number, last_session_id) = (contact.number(), contact.last_session_id());
        let erased = contact.is_erased();
        ContactView {
            id: contact.id,
            campaign_id: contact.campaign_id,
            external_id: contact.external_id,
            phone_number,
            last_session_id,
            last_message_id: contact
                .last_row_id
                .filter(|_| contact.channel != campaign::Channel::Phone),
            email: contact.email,
            first_name: contact.first_name,
            last_name: contact.last_name,
            timezone: contact.timezone,
            region: contact.region,
            consent_id: contact.consent_id,
            variables: contact.variables,
            priority: contact.priority,
            not_before: contact.not_before,
            status: contact.status,
            wait_reason: contact.wait_reason,
            attempts: contact.attempts,
            next_attempt_at: contact.next_attempt_at,
            skip_reason: contact.skip_reason,
            skip_rule: contact.skip_rule,
            disposition_code: contact.disposition_code,
            erased,
            created_at: contact.created_at,
        }
    }
}

/// Whether one contact may be called now: every rule with its verdict.
#[derive(Serialize, JsonSchema)]
pub struct EligibilityView {
    pub contact_id: ContactId,
    /// It waits to be called, its campaign runs, and every rule says yes.
    pub eligible: bool,
    pub status: contact::Status,
    pub campaign_status: Status,
    /// In the order in which they are asked.
    pub rules: Vec<RuleView>,
    /// Each rule of the law, of an attempt at this moment, in the order in which they are asked. Empty: there is no number or address.
    pub law: Vec<AskedView>,
    /// The rules of the law bar it; else they are only told.
    pub law_binding: bool,
    /// The zones whose hours count, all of which must be open.
    pub zones: Vec<LocalTimeView>,
    /// When its hours are open next; null: not within a year.
    pub next_opening_at: Option<Moment>,
}
#[derive(Serialize, JsonSchema)]
pub struct RuleView {
    pub rule: Rule,
    pub verdict: VerdictView,
    /// It waits until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// It will be skipped for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<SkipReason>,
}
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictView {
    Yes,
    Wait,
    Never,
}
#[derive(Serialize, JsonSchema)]
pub struct LocalTimeView {
    pub timezone: Zone,
    /// The time there, with its offset from UTC.
    pub local_time: String,
}

impl EligibilityView {
    pub fn of(found: Eligibility, now: Moment) -> Self {
        let waits = matches!(
            found.contact.status,
            contact::Status::Pending | contact::Status::Waiting
        );
        let runs = found.campaign.status == Status::Running && found.campaign.cancel_requested_at.is_none();
        let local = |zone: chrono_tz::Tz| LocalTimeView::of(zone.into(), now);
        EligibilityView {
            contact_id: found.contact.id,
            eligible: waits && runs && found.rules.iter().all(|(_, verdict)| *verdict == Verdict::Yes),
            status: found.contact.status,
            campaign_status: found.campaign.status,
            rules: found.rules.iter().map(RuleView::from).collect(),
            law_binding: found.law.as_ref().is_some_and(|(legal, _)| legal.is_enforced),
            law: match &found.law {
                Some((legal, judged)) => AskedView::all(&legal.law, &judged.judgement),
                None => Vec::new(),
            },
            zones: found.zones.into_iter().map(local).collect(),
            next_opening_at: found.next_opening,
        }
    }
}
impl LocalTimeView {
    pub fn of(zone: Zone, at: Moment) -> Self {
        let there = at.datetime().with_timezone(&zone.tz());
        LocalTimeView {
            timezone: zone,
            local_time: there.format("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        }
    }
}
impl From<&(Rule, Verdict)> for RuleView {
    fn from((rule, verdict): &(Rule, Verdict)) -> Self {
        let (verdict, until, skip_reason) = match verdict {
            Verdict::Yes => (VerdictView::Yes, None, None),
            Verdict::Wait(until) => (VerdictView::Wait, *until, None),
            Verdict::Never(reason) => (VerdictView::Never, None, Some(*reason)),
        };
        RuleView {
            rule: *rule,
            verdict,
            until,
            skip_reason,
        }
    }
}
