//! What happens at each step of a campaign: lists, in this order.
use super::{super::patch::Patch, Campaign, Cause, Phase};
use crate::{
    effect::{Effect, Fact, Hint, Work},
    event::{CampaignCompleted, CampaignPaused, CampaignPausedQuietHours, CampaignStarted},
};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, CompletedReason, PauseReason, Plan},
    changes::Guard,
    ids::ApiKeyId,
    tally::Model as Tally,
    values::Moment,
};
use std::sync::Arc;

pub(super) fn start_or_arm(
    mut campaign: Campaign,
    (agent, api_key_id): (Option<AgentSnapshot>, Option<ApiKeyId>),
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    campaign.agent = agent.map(Arc::new);
    campaign.api_key_id = api_key_id;
    if campaign.plan.schedule.starts_at.is_some_and(|at| at > now) {
        campaign.phase = Phase::Armed { armed_at: now };
        return Ok((campaign, Vec::new()));
    }
    start(campaign, now)
}

pub(super) fn start(mut campaign: Campaign, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Running { started_at: now };
    let started = CampaignStarted {
        campaign_id: campaign.key.id,
        started_at: now,
    };
    let effects = vec![
        Effect::emit(started),
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
        Hint::CheckDrained(campaign.key).into(),
    ];
    Ok((campaign, effects))
}

pub(super) fn pause(started_at: Moment, mut campaign: Campaign, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Paused {
        started_at,
        paused_at: now,
        cause: Cause::Manual,
    };
    let paused = CampaignPaused {
        campaign_id: campaign.key.id,
        paused_at: now,
        reason: PauseReason::Manual,
    };
    let effects = vec![
        Effect::emit(paused),
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
    ];
    Ok((campaign, effects))
}

/// The automatic pause: calls in flight run on.
pub(super) fn rest(
    started_at: Moment,
    next_open_at: Moment,
    (total, waiting): (i64, i64),
    mut campaign: Campaign,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Paused {
        started_at,
        paused_at: now,
        cause: Cause::QuietHours { next_open_at },
    };
    let paused = CampaignPausedQuietHours {
        campaign_id: campaign.key.id,
        paused_at: now,
        next_open_at,
    };
    let effects = vec![
        // A contact added at this moment may be callable.
        Fact::Require(Guard::Counted {
            campaign_id: campaign.key.id,
            total,
            waiting,
        })
        .into(),
        Effect::emit(paused),
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
    ];
    Ok((campaign, effects))
}

pub(super) fn resume(started_at: Moment, mut campaign: Campaign) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Running { started_at };
    let effects = vec![
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
        Hint::CheckDrained(campaign.key).into(),
    ];
    Ok((campaign, effects))
}

/// Other rules, from the next dial on. Who calls, and how, is fixed by the start.
pub(super) fn change_rules(campaign: Campaign, patch: &Patch) -> Result<(Campaign, Vec<Effect>)> {
    let before = &*campaign.plan;
    let plan = patch.apply(before)?;
    let fixed = [
        ("channel", before.channel == plan.channel),
        ("session_type", before.session_type() == plan.session_type()),
        ("template", before.template == plan.template),
        ("agent_id", before.agent_id == plan.agent_id),
        ("voice_id", before.voice_id == plan.voice_id),
        ("from_numbers", before.from_numbers == plan.from_numbers),
    ];
    if let Some((field, _)) = fixed.into_iter().find(|(_, same)| !same) {
        return Err(Error::invalid(
            field,
            "is fixed once the campaign has started: duplicate the campaign",
        ));
    }
    let judged_by = |plan: &Plan| {
        (
            plan.retry.clone(),
            plan.caps.clone(),
            plan.schedule.clone(),
            plan.legal(),
            plan.sandbox_law,
        )
    };
    let is_anew = judged_by(before) != judged_by(&plan);
    let mut campaign = changed(campaign, plan);
    let mut effects = vec![Hint::CampaignsChanged(campaign.key.tenant_id).into()];
    // Before the start nobody was judged.
    if is_anew && !matches!(campaign.phase, Phase::Armed { .. }) {
        campaign.rules_version = campaign.version;
        campaign.review_of = Some(campaign.version);
        effects.push(Effect::Work(Work::ReviewContacts(campaign.key)));
    }
    if let Phase::Paused {
        started_at,
        cause: Cause::QuietHours { .. },
        ..
    } = campaign.phase
    {
        // Whether everybody is in their quiet hours is decided anew.
        campaign.phase = Phase::Running { started_at };
        effects.push(Hint::CheckDrained(campaign.key).into());
    }
    Ok((campaign, effects))
}

pub(super) fn reviewed(mut campaign: Campaign) -> (Campaign, Vec<Effect>) {
    campaign.review_of = None;
    let effects = vec![
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
        Hint::CheckDrained(campaign.key).into(),
    ];
    (campaign, effects)
}

/// Contacts are read as their campaign's channel asks for: another one can only come before them.
pub(super) fn change_draft(campaign: Campaign, patch: &Patch) -> Result<(Campaign, Vec<Effect>)> {
    let plan = patch.apply(&campaign.plan)?;
    let has_none = Fact::Require(Guard::Counted {
        campaign_id: campaign.key.id,
        total: 0,
        waiting: 0,
    })
    .into();
    let effects = (plan.channel != campaign.plan.channel).then_some(has_none);
    Ok((changed(campaign, plan), effects.into_iter().collect()))
}

pub(super) fn changed(mut campaign: Campaign, mut plan: Plan) -> Campaign {
    plan.session_type = Some(plan.session_type());
    campaign.plan = Arc::new(plan);
    campaign
}

/// Nothing more is dialled; what was not called is put away, and calls in flight run to their end.
pub(super) fn close(
    started_at: Option<Moment>,
    reason: CompletedReason,
    mut campaign: Campaign,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    // Nobody waits any more.
    campaign.review_of = None;
    campaign.phase = Phase::Closing {
        started_at,
        since: now,
        reason,
    };
    let effects = vec![
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
        Work::PutAwayContacts {
            campaign: campaign.key,
            reason,
        }
        .into(),
    ];
    Ok((campaign, effects))
}

/// What happens when a campaign is over: this list, in this order.
pub(super) fn complete(
    started_at: Option<Moment>,
    closed_at: Option<Moment>,
    reason: CompletedReason,
    mut campaign: Campaign,
    tally: &Tally,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    if tally.unfinished() != 0 {
        return Ok((campaign, Vec::new()));
    }
    campaign.review_of = None;
    campaign.phase = Phase::Completed {
        started_at,
        closed_at,
        at: now,
        reason,
    };
    let completed = CampaignCompleted {
        campaign_id: campaign.key.id,
        completed_at: now,
        total_contacts: tally.total,
        completed_sessions: tally.completed_sessions,
        failed_sessions: tally.failed_sessions,
    };
    let effects = vec![
        // A contact added at this moment keeps the campaign open.
        Fact::Require(Guard::Drained {
            campaign_id: campaign.key.id,
            total: tally.total,
        })
        .into(),
        Effect::emit(completed),
        Hint::CampaignsChanged(campaign.key.tenant_id).into(),
    ];
    Ok((campaign, effects))
}
