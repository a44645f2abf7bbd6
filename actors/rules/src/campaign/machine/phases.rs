//! What each command does in each phase: every pair stands here. A new command makes the compiler ask in all of them.
use super::{
    Campaign, Cause, Command, Phase, refused,
    steps::{change_draft, change_rules, close, complete, pause, rest, resume, reviewed, start, start_or_arm},
};
use crate::effect::{Effect, Work};
use entities::{Error, Result, campaign::CompletedReason, values::Moment};

/// It is gone for its users; what was under way for it is told in vain.
pub(super) fn when_deleted(campaign: Campaign, command: &Command) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        Tick | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => Ok((campaign, Vec::new())),
        Start { .. } | Change(_) | Pause | Resume | Cancel | Delete => Err(Error::NotFound("campaign")),
    }
}

pub(super) fn while_draft(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        Start { contacts: 0, .. } => Err(refused("draft", "start", "it has no contacts: add some first")),
        Start { .. } if is_over(&campaign, now) => Err(refused("draft", "start", "its `schedule.ends_at` has passed")),
        Start { agent, api_key_id, .. } => start_or_arm(campaign, (agent.map(|agent| *agent), api_key_id), now),
        Change(patch) => change_draft(campaign, &patch),
        Cancel => close(None, CompletedReason::Canceled, campaign, now),
        Delete => delete(campaign, now),
        // Told late: no change, not an error.
        Tick | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => Ok((campaign, Vec::new())),
        Pause => Err(refused("draft", "be paused", "it has not been started")),
        Resume => Err(refused("draft", "be resumed", "it has not been started: use start")),
    }
}

pub(super) fn while_armed(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        // The service was down for the whole of it.
        Tick if is_over(&campaign, now) => close(None, CompletedReason::Ended, campaign, now),
        Tick if campaign.starts_at() <= now => start(campaign, now),
        Change(patch) => change_rules(campaign, &patch),
        Cancel => close(None, CompletedReason::Canceled, campaign, now),
        // Ticks come early, and who starts may ask twice.
        Tick | Start { .. } | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => {
            Ok((campaign, Vec::new()))
        }
        Pause => Err(refused(
            "armed",
            "be paused",
            "it has not begun: change `schedule.starts_at`, or cancel it",
        )),
        Resume => Err(refused(
            "armed",
            "be resumed",
            "it begins by itself at `schedule.starts_at`",
        )),
        Delete => Err(refused("armed", "be deleted", "cancel it first")),
    }
}

pub(super) fn while_running(
    started_at: Moment,
    campaign: Campaign,
    command: Command,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        Tick if is_over(&campaign, now) => close(Some(started_at), CompletedReason::Ended, campaign, now),
        Rest {
            next_open_at,
            total,
            waiting,
            version,
        } if next_open_at > now && version == campaign.version => {
            rest(started_at, next_open_at, (total, waiting), campaign, now)
        }
        Pause => pause(started_at, campaign, now),
        Change(patch) => change_rules(campaign, &patch),
        Reviewed { of } if campaign.review_of == Some(of) => Ok(reviewed(campaign)),
        Cancel => close(Some(started_at), CompletedReason::Canceled, campaign, now),
        Drained(tally) => complete(Some(started_at), None, CompletedReason::Finished, campaign, &tally, now),
        // Asked twice, or told late: no change, not an error.
        Tick | Start { .. } | Resume | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } => {
            Ok((campaign, Vec::new()))
        }
        Delete => Err(refused("running", "be deleted", "cancel it first")),
    }
}

pub(super) fn while_paused(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    let Phase::Paused {
        started_at,
        paused_at,
        cause,
    } = campaign.phase
    else {
        return Ok((campaign, Vec::new()));
    };
    let opens_at = match cause {
        Cause::QuietHours { next_open_at } => Some(next_open_at),
        Cause::Manual => None,
    };
    match command {
        Tick if is_over(&campaign, now) => close(Some(started_at), CompletedReason::Ended, campaign, now),
        Tick if opens_at.is_some_and(|at| now >= at) => resume(started_at, campaign),
        Reconsider if opens_at.is_some() => resume(started_at, campaign),
        Awake { from } if opens_at.is_some() && now >= from => resume(started_at, campaign),
        Awake { from } if opens_at.is_some_and(|at| from < at) => {
            let phase = Phase::Paused {
                started_at,
                paused_at,
                cause: Cause::QuietHours { next_open_at: from },
            };
            Ok((Campaign { phase, ..campaign }, Vec::new()))
        }
        // A manual pause overrides that for the quiet hours.
        Pause if opens_at.is_some() => pause(started_at, campaign, now),
        Resume if opens_at.is_none() => resume(started_at, campaign),
        Change(patch) => change_rules(campaign, &patch),
        Reviewed { of } if campaign.review_of == Some(of) => Ok(reviewed(campaign)),
        Cancel => close(Some(started_at), CompletedReason::Canceled, campaign, now),
        // Asked twice, or told late. A paused campaign completes when it is resumed. Source: specification, "Campaign":
        // completion leaves `running`.
        Tick | Pause | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => {
            Ok((campaign, Vec::new()))
        }
        Start { .. } => Err(refused("paused", "be started", "use resume")),
        Resume => Err(refused(
            "paused",
            "be resumed",
            "everybody who is left is in their quiet hours; it resumes by itself at `next_open_at`",
        )),
        Delete => Err(refused("paused", "be deleted", "cancel it first")),
    }
}

pub(super) fn while_closing(
    (started_at, since, reason): (Option<Moment>, Moment, CompletedReason),
    campaign: Campaign,
    command: Command,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        Drained(tally) => complete(started_at, Some(since), reason, campaign, &tally, now),
        // One that is found closing after a crash goes on with it.
        Tick => {
            let rest = Work::PutAwayContacts {
                campaign: campaign.key,
                reason,
            }
            .into();
            Ok((campaign, vec![rest]))
        }
        Cancel | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } => Ok((campaign, Vec::new())),
        Start { .. } => Err(refused("closing", "be started", "its time is over: duplicate it")),
        Pause => Err(refused("closing", "be paused", "its time is over")),
        Resume => Err(refused("closing", "be resumed", "its time is over: duplicate it")),
        Change(_) => Err(refused("closing", "be changed", "its time is over: duplicate it")),
        Delete => Err(refused("closing", "be deleted", "wait until it has completed")),
    }
}

pub(super) fn when_completed(campaign: Campaign, command: &Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    match command {
        Delete => delete(campaign, now),
        Tick | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => Ok((campaign, Vec::new())),
        Start { .. } => Err(refused("completed", "be started", "duplicate it")),
        Pause => Err(refused("completed", "be paused", "it is over")),
        Resume => Err(refused("completed", "be resumed", "it is over")),
        Cancel => Err(refused("completed", "be canceled", "it is over")),
        Change(_) => Err(refused("completed", "be changed", "it is over: duplicate it")),
    }
}

fn delete(campaign: Campaign, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    let deleted_at = Some(now);
    Ok((Campaign { deleted_at, ..campaign }, Vec::new()))
}

/// Its `schedule.ends_at` has passed.
fn is_over(campaign: &Campaign, now: Moment) -> bool {
    campaign.plan.schedule.ends_at.is_some_and(|end| now >= end)
}
