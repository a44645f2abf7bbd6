//! A session's row, and the state that a row says.
use super::{
    log::Log,
    machine::{ActiveCall, CallMode, End, Phase, Session, bridged_until, code, cost, hold_ends_at, known_by, leaving},
};
use entities::{
    Error, Result,
    session::{AnsweredBy, Consent, EndReason, Model as Row, Phase as StoredPhase},
    values::Moment,
};
use std::sync::Arc;

impl Session {
    /// The row that says all this.
    pub fn row(&self) -> Row {
        let mut row = (*self.call).clone();
        row.status = self.status();
        row.version = self.version;
        row.latency = self.log.latency().or(row.latency);
        row.quality = self.log.quality.or(row.quality);
        (row.queued_until, row.dialed_at) = (None, None);
        match &self.phase {
            Phase::Scheduled { at } => {
                row.phase = StoredPhase::Scheduled;
                row.scheduled_at = Some(*at);
            }
            Phase::Awaiting => {
                row.phase = StoredPhase::Scheduled;
                row.scheduled_at = None;
            }
            Phase::Queued { until } => {
                row.phase = StoredPhase::Queued;
                row.queued_until = Some(*until);
            }
            Phase::Dialing { dialed_at, ringing, .. } => {
                row.phase = if self.call.picked_up_at.is_some() {
                    StoredPhase::Answered
                } else if *ringing {
                    StoredPhase::Ringing
                } else {
                    StoredPhase::Dialing
                };
                row.dialed_at = Some(*dialed_at);
            }
            Phase::Conversing(talk) => {
                row.phase = match talk.mode {
                    CallMode::Talking | CallMode::Leaving { .. } => StoredPhase::Conversing,
                    CallMode::LeavingMessage => StoredPhase::Answered,
                    CallMode::Transferring { .. } | CallMode::Bridged { .. } => StoredPhase::Transferring,
                };
                row.answered_by = Some(talk.answered_by);
                row.dialed_at = Some(talk.dialed_at);
                row.started_at = Some(talk.started_at);
            }
            Phase::Ended(end) => {
                row.phase = StoredPhase::Ended;
                row.end_reason = Some(end.reason);
                row.ended_by = Some(end.by);
                row.answered_by = end.answered_by;
                row.dialed_at = end.dialed_at;
                row.started_at = end.started_at;
                row.ended_at = Some(end.at);
                row.duration_seconds = end.duration_seconds();
                row.actual_cost_cents = cost(self.call.price_cents_per_minute, end.billed_seconds(&self.call));
                row.error_code = end.error.as_ref().map(|_| code(end.reason).to_owned());
                row.error_message = end.error.clone();
            }
        }
        row
    }

    /// The state that a stored row says.
    pub fn from_row(row: Row, base_url: Arc<str>) -> Result<Self> {
        let missing = |column| Error::Corrupt {
            table: "sessions",
            column,
            id: row.id.to_string(),
        };
        let dialed_at = || row.dialed_at.ok_or_else(|| missing("dialed_at"));
        let phase = match row.phase {
            StoredPhase::Scheduled if row.room_id.is_some() => Phase::Awaiting,
            StoredPhase::Scheduled => Phase::Scheduled {
                at: row.scheduled_at.ok_or_else(|| missing("scheduled_at"))?,
            },
            StoredPhase::Queued => Phase::Queued {
                until: row.queued_until.ok_or_else(|| missing("queued_until"))?,
            },
            StoredPhase::Dialing | StoredPhase::Ringing => {
                let dialed_at = dialed_at()?;
                let give_up_at = dialed_at.plus_seconds(row.ring_timeout_seconds.into());
                Phase::Dialing {
                    dialed_at,
                    give_up_at,
                    ringing: row.phase == StoredPhase::Ringing,
                }
            }
            StoredPhase::Answered if row.answered_by.is_none() => Phase::Dialing {
                dialed_at: dialed_at()?,
                give_up_at: known_by(row.picked_up_at.ok_or_else(|| missing("picked_up_at"))?),
                ringing: true,
            },
            // Nobody takes up a call that another process was talking in: what is read here is only ended, as lost.
            StoredPhase::Answered | StoredPhase::Conversing | StoredPhase::Transferring => {
                let started_at = row.started_at.ok_or_else(|| missing("started_at"))?;
                let longest = started_at.plus_seconds(row.max_duration_seconds.into());
                let is_recorded = row.recording_id.is_some() && row.consent != Consent::Pending;
                Phase::Conversing(ActiveCall {
                    dialed_at: dialed_at()?,
                    started_at,
                    end_by: row.bridged_at.map_or(longest, |since| bridged_until(since, longest)),
                    answered_by: row.answered_by.unwrap_or(AnsweredBy::Human),
                    mode: mode(&row, started_at),
                    quiet_from: started_at,
                    user_speech: None,
                    on_hold: false,
                    recorded_from: is_recorded.then_some(started_at),
                    hold_ends_at: hold_ends_at(&row, started_at),
                })
            }
            StoredPhase::Ended => Phase::Ended(End {
                at: row.ended_at.ok_or_else(|| missing("ended_at"))?,
                status: row.status,
                reason: row.end_reason.ok_or_else(|| missing("end_reason"))?,
                by: row.ended_by.ok_or_else(|| missing("ended_by"))?,
                dialed_at: row.dialed_at,
                picked_up_at: row.picked_up_at,
                started_at: row.started_at,
                answered_by: row.answered_by,
                error: row.error_message.clone(),
            }),
        };
        let version = row.version;
        Ok(Session {
            call: Arc::new(row),
            phase,
            log: Log::default(),
            base_url,
            version,
        })
    }
}

/// A wish that stands in the row stands: it is not told a second time.
fn mode(row: &Row, started_at: Moment) -> CallMode {
    // With somebody else, whatever was wished before.
    if let (StoredPhase::Transferring, Some(to), Some(since)) = (row.phase, &row.to_number, row.bridged_at) {
        return CallMode::Bridged { to: to.clone(), since };
    }
    match (row.phase, row.opted_out_at, row.consent) {
        (StoredPhase::Answered, ..) => CallMode::LeavingMessage,
        (_, Some(at), _) => leaving(row, EndReason::OptOut, at),
        (_, None, Consent::Refused) => leaving(row, EndReason::ConsentRefused, started_at),
        (phase, None, Consent::NotRequired | Consent::Pending | Consent::Granted) => match &row.to_number {
            // To whom is in no row; its time is over, so that the talk is taken back.
            Some(to) if phase == StoredPhase::Transferring => CallMode::Transferring {
                to: to.clone(),
                until: started_at,
            },
            Some(_) | None => CallMode::Talking,
        },
    }
}
