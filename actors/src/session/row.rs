//! A session's row, and the state that a row says.
use super::machine::{End, Phase, Session, code, cost};
use entities::{
    Error, Result,
    session::{AnsweredBy, Model as Row, Phase as StoredPhase},
};
use std::sync::Arc;

impl Session {
    /// The row that says all this.
    pub fn row(&self) -> Row {
        let mut row = (*self.call).clone();
        row.status = self.status();
        row.version = self.version;
        (row.queued_until, row.dialed_at) = (None, None);
        match &self.phase {
            Phase::Scheduled { at } => {
                row.phase = StoredPhase::Scheduled;
                row.scheduled_at = Some(*at);
            }
            Phase::Queued { until } => {
                row.phase = StoredPhase::Queued;
                row.queued_until = Some(*until);
            }
            Phase::Dialing { dialed_at, ringing, .. } => {
                row.phase = if *ringing {
                    StoredPhase::Ringing
                } else {
                    StoredPhase::Dialing
                };
                row.dialed_at = Some(*dialed_at);
            }
            Phase::Conversing {
                dialed_at, started_at, ..
            } => {
                row.phase = StoredPhase::Conversing;
                row.answered_by = Some(AnsweredBy::Human);
                row.dialed_at = Some(*dialed_at);
                row.started_at = Some(*started_at);
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
                row.actual_cost_cents = cost(self.call.price_cents_per_minute, end.duration_seconds());
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
            StoredPhase::Conversing => {
                let started_at = row.started_at.ok_or_else(|| missing("started_at"))?;
                Phase::Conversing {
                    dialed_at: dialed_at()?,
                    started_at,
                    end_by: started_at.plus_seconds(row.max_duration_seconds.into()),
                }
            }
            StoredPhase::Ended => Phase::Ended(End {
                at: row.ended_at.ok_or_else(|| missing("ended_at"))?,
                status: row.status,
                reason: row.end_reason.ok_or_else(|| missing("end_reason"))?,
                by: row.ended_by.ok_or_else(|| missing("ended_by"))?,
                dialed_at: row.dialed_at,
                started_at: row.started_at,
                answered_by: row.answered_by,
                error: row.error_message.clone(),
            }),
        };
        let version = row.version;
        Ok(Session {
            call: Arc::new(row),
            phase,
            turns: Vec::new(),
            base_url,
            version,
        })
    }
}
