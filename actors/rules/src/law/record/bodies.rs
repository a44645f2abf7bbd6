//! What the rows of the record say. A body names nobody: what does stands in the content, which can be blanked. Rows are read for years:
//! a field that is added is optional, and none is ever given another meaning.
use crate::{
    law::{Asked, Facts, Override},
    session::sip_answer::{Attestation, SipReason},
};
use entities::{
    dnc::DncChannel,
    ids::{AgentId, AttemptId, CampaignId, ConsentId, ContactId, DncId, ErasureId, SessionId},
    session::{AnsweredBy, Consent, ConsentAsked, Disclosure, EndedBy, Evaluator, WhyAbandoned},
    values::{E164, Moment},
};
use serde::{Deserialize, Serialize};
use std::ops::Not;
use uuid::Uuid;

/// Somebody is about to be called, or written to: written with the intent, before anything leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptBody {
    /// The version of the law pack that was in force.
    pub law: String,
    /// SHA-256, in hex, of the operator's own rules; none: there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The verdicts were computed and barred nothing: an attempt of the sandbox.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub observed: bool,
    pub facts: Facts,
    /// Every rule that concerned it, with its verdict.
    pub asked: Vec<Asked>,
    /// Why rules were overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// 1 for the first attempt to its contact.
    pub attempt_no: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Which names the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_id: Option<String>,
    /// Of a message: SHA-256, in hex, over the salt of the content, a line feed, and the SHA-256, in hex, of what it says. So whoever has the
    /// words and the content can show that these were sent, and of a blanked one nobody finds out by trying names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_sha256: Option<String>,
}

/// The content of an opening: who it is. It can be blanked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Person {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<E164>,
    /// In lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// Nobody finds out by trying numbers what a digest that is left was made of.
    pub salt: Uuid,
}

/// What came of an attempt: of a call at its end, of a message when nothing more is expected of it. Money, names and the words of a talk
/// are not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeBody {
    /// As the session's, or the message's, own status.
    pub status: String,
    /// Why a call ended; of a message the code of what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialed_at: Option<Moment>,
    /// Until it was picked up, or until its end: milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rang_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked_up_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// From the end of the person's greeting to the first sound of ours: milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sound_ms: Option<i32>,
    /// When the agent itself began to speak: milliseconds since the pick-up. What the service says for the law comes before; none: it
    /// never did, or a crash has cut the call off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_words_ms: Option<u32>,
    /// Why the call counts as abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<WhyAbandoned>,
    /// The stored message was played to a person whom no agent took in time.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub safe_harbour_played: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_seconds: i32,
    /// What the service has said, and whether it was heard whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disclosures: Vec<Disclosure>,
    /// Said beyond those that are kept.
    #[serde(default, skip_serializing_if = "is_none_more")]
    pub more_disclosures: u32,
    /// Whether it might be recorded, and what was asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Consent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_asked: Option<ConsentAsked>,
    /// Something of it was recorded.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub recorded: bool,
    /// When the person said that it wants no more calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opted_out_at: Option<Moment>,
    /// To whom it was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_to: Option<E164>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridged_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disposition: Option<String>,
    /// The carrier's final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sip_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q850: Option<i32>,
    /// Its words, cut, without the number that was called: the phrase, and what each `Reason` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sip_phrase: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sip_reasons: Vec<SipReason>,
    /// Where the one who has blocked the call says who he is (608).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jcard_url: Option<String>,
    /// A network, or what somebody has set up, turned the call down for the number that it showed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub blocked: bool,
    /// How the carrier says that it has signed the call; none: it says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
    /// Of a message: the provider's own id, or what the mail server said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
}

/// How a call was classified after its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DispositionBody {
    pub code: String,
    pub by: Evaluator,
    pub decided_at: Moment,
}

/// Somebody does not want to be reached any more: an entry of the do-not-call list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptOutBody {
    /// The entry's source, such as `opt_out_voice`.
    pub how: String,
    pub entry_id: DncId,
    /// What is barred from then on.
    pub channels: Vec<DncChannel>,
    /// When it was said; the entry's place among all commits is that of this row.
    pub said_at: Moment,
    /// The call in which it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The content of a wish, or of its end: who it was, the words or the reason, and who has entered it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptOutContent {
    #[serde(flatten)]
    pub person: Person,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// A member's address, or a key's name; none: the person it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_by: Option<String>,
}

/// An entry was taken off the do-not-call list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiftedBody {
    /// `staff`, or `sms_start`: the person wants texts again.
    pub how: String,
    pub entry_id: DncId,
    /// What is barred no more.
    pub channels: Vec<DncChannel>,
    pub lifted_at: Moment,
}

/// A consent was taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevocationBody {
    pub consent_id: ConsentId,
    /// `staff`: somebody of the workspace has entered it. What an opt-out takes back is told by its own row.
    pub how: String,
    pub said_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// What earlier rows said of a person was blanked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErasureBody {
    pub erasure_id: ErasureId,
    /// Their places, in order.
    pub places: Vec<i64>,
    pub rows: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
}

/// Something that a machine says of an attempt, on its way to a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Closing {
    /// It has ended.
    Outcome {
        attempt_id: AttemptId,
        campaign_id: Option<CampaignId>,
        /// It may never have been dialled: then nothing is recorded. `None`: it surely was.
        unless_undialled: Option<E164>,
        body: Box<OutcomeBody>,
    },
    /// It was classified.
    Disposition {
        attempt_id: AttemptId,
        campaign_id: Option<CampaignId>,
        body: DispositionBody,
    },
}

fn is_zero(seconds: &i32) -> bool {
    *seconds == 0
}

fn is_none_more(count: &u32) -> bool {
    *count == 0
}
