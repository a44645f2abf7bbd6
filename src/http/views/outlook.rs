//! What is to be expected of a campaign.
use super::LawCountView;
use actors::campaign::outlook::{Outlook, Texts};
use entities::{
    campaign::{self, Status},
    ids::CampaignId,
    values::{Cents, Moment, Zone},
};
use rules::law::Law;
use schemars::JsonSchema;
use serde::Serialize;

/// What to expect of a campaign, before it starts or while it runs.
#[derive(Serialize, JsonSchema)]
pub struct OutlookView {
    pub campaign_id: CampaignId,
    /// The moment it describes: requests that arrive while it is worked out share one answer.
    pub generated_at: Moment,
    /// Nothing keeps it from being started.
    pub ready: bool,
    /// What does, and what to do about it.
    pub problems: Vec<ProblemView>,
    /// Contacts that have not reached a final status.
    pub contacts: i64,
    /// Those that will be called, as far as is known now.
    pub eligible: i64,
    /// Those that will be skipped, by reason.
    pub skips: SkipsView,
    /// Numbers that were called as often as the caps allow: they wait, unless `caps.on_cap` says `skip`.
    pub capped: i64,
    /// Contacts by the zones whose hours they keep, the largest group first.
    pub zones: Vec<ZoneView>,
    /// The pace that can be expected.
    pub calls_per_second: f64,
    /// When everybody will have been called once; null if that is more than 60 days away or cannot be said.
    pub expected_finish_at: Option<Moment>,
    /// The rules of the law that keep contacts from being reached, the one that bars most first. One contact counts for each rule that
    /// says no.
    pub law: Vec<LawCountView>,
    /// Of a campaign by SMS: what it writes, as it leaves; else null.
    pub texts: Option<TextsView>,
}
/// Texts as they leave, one to each contact who will be written to; second attempts are not foreseen.
#[derive(Serialize, JsonSchema)]
pub struct TextsView {
    /// Those too whom the campaign's own caps or its end will leave out.
    pub messages: i64,
    pub segments: i64,
    /// What that costs once the provider has taken them.
    pub cost_cents: Cents,
    /// Segments of the longest one.
    pub most_segments: i32,
    /// Those that do not fit into the GSM alphabet.
    pub ucs2: i64,
    /// Those in which a last line says who writes, because the law of the place wants that.
    pub signed: i64,
    /// Characters that it takes at most, with its line feed; 0: none has it.
    pub signed_characters: i32,
}
#[derive(Serialize, JsonSchema)]
pub struct ProblemView {
    pub code: &'static str,
    pub message: &'static str,
}
#[derive(Serialize, JsonSchema)]
pub struct SkipsView {
    pub invalid: i64,
    pub dnc_blocked: i64,
    pub daily_cap_reached: i64,
    pub quiet_hours_expired: i64,
}
#[derive(Serialize, JsonSchema)]
pub struct ZoneView {
    /// All of them must be open; empty: nobody of these can be called.
    pub timezones: Vec<Zone>,
    pub contacts: i64,
    pub open_now: bool,
    /// When the first of them may be called; null: not before the campaign ends.
    pub opens_at: Option<Moment>,
}

impl OutlookView {
    pub fn of(
        row: &campaign::Model,
        (outlook, law): (Outlook, &Law),
        (has_agent, has_sender, is_filled): (bool, bool, bool),
        now: Moment,
    ) -> Self {
        let ended = row.plan.schedule.ends_at.is_some_and(|end| end <= now);
        let possible = [
            (
                row.status != Status::Draft || has_agent,
                "no_agent",
                "it has no agent: set `agent_id`",
            ),
            (
                outlook.open > 0,
                "no_contacts",
                "nobody is left to be called: add contacts",
            ),
            (
                outlook.eligible > 0,
                "nobody_eligible",
                "none of its contacts can be called: see `skips`",
            ),
            (!ended, "ended", "its `schedule.ends_at` has passed"),
            (
                has_sender,
                "not_configured",
                "no provider is configured for live calls or messages of its channel",
            ),
            (
                is_filled,
                "missing_variables",
                "its template is missing, or needs a variable that a contact does not have",
            ),
        ];
        let problems: Vec<_> = possible
            .into_iter()
            .filter(|(fine, ..)| !fine)
            .map(|(_, code, message)| ProblemView { code, message })
            .collect();
        let mut groups = outlook.groups;
        groups.sort_by_key(|group| std::cmp::Reverse(group.contacts));
        OutlookView {
            campaign_id: row.id,
            generated_at: now,
            ready: problems.is_empty(),
            problems,
            contacts: outlook.open,
            eligible: outlook.eligible,
            skips: SkipsView {
                invalid: outlook.skips.invalid,
                dnc_blocked: outlook.skips.barred,
                daily_cap_reached: outlook.skips.capped,
                quiet_hours_expired: outlook.skips.expired,
            },
            capped: outlook.capped,
            zones: groups
                .into_iter()
                .map(|group| ZoneView {
                    timezones: group.zones.into_iter().map(Zone::from).collect(),
                    contacts: group.contacts,
                    open_now: group.opens_at.is_some_and(|at| at <= now),
                    opens_at: group.opens_at,
                })
                .collect(),
            calls_per_second: outlook.calls_per_second,
            expected_finish_at: outlook.finishes_at,
            law: LawCountView::all(law, &outlook.law),
            texts: outlook.texts.map(TextsView::from),
        }
    }
}

impl From<Texts> for TextsView {
    fn from(texts: Texts) -> Self {
        TextsView {
            messages: texts.messages,
            segments: texts.segments,
            cost_cents: texts.cost,
            most_segments: texts.most_segments,
            ucs2: texts.ucs2,
            signed: texts.signed,
            signed_characters: texts.most_added,
        }
    }
}
