//! What a call that we have placed counts as at its end: a person was served, was abandoned, or has said no.
use super::*;
use crate::law::abandonment::{self, Counts, Ended, PickedUp};
use entities::session::WhyAbandoned;

impl Session {
    /// Why it counts as abandoned; known at its end.
    pub fn abandonment(&self) -> Option<WhyAbandoned> {
        self.call.abandoned
    }

    /// The agent had nothing to say: was the message played that stands ready for that? Known until the end is stored.
    pub fn left_alone(&self) -> Option<bool> {
        self.log.left_alone
    }

    /// Turned down for the number that it showed: SIP 608, and 603 "Network Blocked". Known until the end is stored.
    pub fn is_blocked(&self) -> bool {
        self.log.is_blocked
    }
}

/// What it adds to the counts; that it was abandoned is in its row from now on. `machine`: what has picked up and is not talked to.
pub(super) fn reckon(session: &mut Session, end: &End, machine: Option<AnsweredBy>) -> Option<Placed> {
    let counts = counts(session, end, machine);
    if let Some(why) = counts.and_then(Counts::why_abandoned) {
        Arc::make_mut(&mut session.call).abandoned = Some(why);
    }
    placed(session, end, counts)
}

/// What it counts as; `None`: it was not picked up, or is none of ours.
fn counts(session: &Session, end: &End, machine: Option<AnsweredBy>) -> Option<Counts> {
    let call = &session.call;
    if call.direction != Direction::Outbound || call.room_id.is_some() {
        return None;
    }
    let picked_up_at = call.picked_up_at.or(end.started_at)?;
    let log = &session.log;
    let of_row = call.first_sound_ms.and_then(|ms| u32::try_from(ms).ok());
    let picked_up = PickedUp {
        by: machine.or(end.answered_by),
        first_sound_ms: of_row.or(log.first_sound_ms),
        was_kept_waiting: log.was_kept_waiting,
        was_left_alone: log.left_alone.is_some(),
        has_doubt: log.has_doubt && end.by == EndedBy::System && end.reason == EndReason::Voicemail,
        lasted_ms: i64::try_from(end.at.since(picked_up_at).as_millis()).unwrap_or(i64::MAX),
        ended: match (end.reason, end.by) {
            (EndReason::NodeLost, _) => Ended::Lost {
                was_heard: call.has_line(),
            },
            (_, EndedBy::Caller) => Ended::ByThem,
            (_, EndedBy::Agent | EndedBy::Api | EndedBy::System) => Ended::ByUs,
        },
    };
    Some(abandonment::counts(&picked_up))
}

/// What such a call adds to the counts; `None`: it was not placed by us.
fn placed(session: &Session, end: &End, counts: Option<Counts>) -> Option<Placed> {
    let call = &session.call;
    let to_number = call.to_number.clone()?;
    if call.direction != Direction::Outbound || call.room_id.is_some() || end.dialed_at.is_none() {
        return None;
    }
    let code = call.disposition_code.as_ref();
    let said_no = code.is_some_and(|code| call.options.declined_codes.contains(code)) || session.log.is_declined;
    Some(Placed {
        session_id: call.id,
        from_number: call.from_number.clone(),
        to_number,
        campaign: call.campaign_id.zip(call.contact_id),
        is_live: counts.is_some_and(Counts::is_live),
        abandoned: counts.and_then(Counts::why_abandoned),
        is_blocked: session.log.is_blocked,
        declined_at: said_no.then_some(end.at),
        ended_at: end.at,
    })
}

/// What was found out after the end says that the person said no.
pub(super) fn declined_late(session: &Session, code: &str) -> Option<Effect> {
    let (call, Phase::Ended(end)) = (&session.call, &session.phase) else {
        return None;
    };
    let is_no = call.options.declined_codes.iter().any(|declined| declined == code);
    let phone_number = call.phone_number().filter(|_| is_no)?.clone();
    let decline = Fact::Decline {
        phone_number,
        session_id: call.id,
        at: end.at,
    };
    Some(decline.into())
}
