//! A campaign's row, and the state that a row says.
use super::machine::{Campaign, Cause, Phase, next_deadline};
use entities::{
    Error, Result,
    campaign::{CompletedReason, Model as Row, PauseReason, Status},
    ids::TenantScoped,
};
use std::sync::Arc;

impl Campaign {
    /// The row that says all this.
    pub fn row(&self) -> Row {
        let mut row = Row {
            id: self.key.id,
            tenant_id: self.key.tenant_id,
            env: self.key.env,
            plan: (*self.plan).clone(),
            agent: self.agent.as_deref().cloned(),
            status: Status::Draft,
            pause_reason: None,
            cancel_requested_at: None,
            armed_at: None,
            next_open_at: None,
            wake_at: next_deadline(self),
            started_at: None,
            paused_at: None,
            completed_at: None,
            completed_reason: None,
            api_key_id: self.api_key_id,
            deleted_at: self.deleted_at,
            rules_version: self.rules_version,
            review_of: self.review_of,
            version: self.version,
            created_at: self.created_at,
        };
        match self.phase {
            Phase::Draft => {}
            Phase::Armed { armed_at } => row.armed_at = Some(armed_at),
            Phase::Running { started_at } => {
                row.status = Status::Running;
                row.started_at = Some(started_at);
            }
            Phase::Paused {
                started_at,
                paused_at,
                cause,
            } => {
                row.status = Status::Paused;
                row.started_at = Some(started_at);
                row.paused_at = Some(paused_at);
                (row.pause_reason, row.next_open_at) = match cause {
                    Cause::Manual => (Some(PauseReason::Manual), None),
                    Cause::QuietHours { next_open_at } => (Some(PauseReason::QuietHours), Some(next_open_at)),
                };
            }
            Phase::Closing {
                started_at,
                since,
                reason,
            } => {
                row.status = Status::Running;
                row.started_at = started_at;
                row.cancel_requested_at = Some(since);
                row.completed_reason = Some(reason);
            }
            Phase::Completed {
                started_at,
                closed_at,
                at,
                reason,
            } => {
                row.status = Status::Completed;
                row.started_at = started_at;
                row.cancel_requested_at = closed_at;
                row.completed_at = Some(at);
                row.completed_reason = Some(reason);
            }
        }
        row
    }

    /// The state that a stored row says.
    pub fn from_row(row: Row) -> Result<Self> {
        let missing = |column| Error::Corrupt {
            table: "campaigns",
            column,
            id: row.id.to_string(),
        };
        let started_at = || row.started_at.ok_or_else(|| missing("started_at"));
        let phase = match (row.status, row.cancel_requested_at) {
            (Status::Draft, _) => match row.armed_at {
                Some(armed_at) => Phase::Armed { armed_at },
                None => Phase::Draft,
            },
            (Status::Completed, closed_at) => Phase::Completed {
                started_at: row.started_at,
                closed_at,
                at: row.completed_at.ok_or_else(|| missing("completed_at"))?,
                reason: row.completed_reason.ok_or_else(|| missing("completed_reason"))?,
            },
            (Status::Running | Status::Paused, Some(since)) => Phase::Closing {
                started_at: row.started_at,
                since,
                reason: row.completed_reason.unwrap_or(CompletedReason::Canceled),
            },
            (Status::Running, None) => Phase::Running {
                started_at: started_at()?,
            },
            (Status::Paused, None) => Phase::Paused {
                started_at: started_at()?,
                paused_at: row.paused_at.ok_or_else(|| missing("paused_at"))?,
                cause: match row.pause_reason.ok_or_else(|| missing("pause_reason"))? {
                    PauseReason::Manual => Cause::Manual,
                    PauseReason::QuietHours => Cause::QuietHours {
                        next_open_at: row.next_open_at.ok_or_else(|| missing("next_open_at"))?,
                    },
                },
            },
        };
        Ok(Campaign {
            key: TenantScoped::new(row.tenant_id, row.env, row.id),
            plan: Arc::new(row.plan),
            agent: row.agent.map(Arc::new),
            phase,
            rules_version: row.rules_version,
            review_of: row.review_of,
            api_key_id: row.api_key_id,
            deleted_at: row.deleted_at,
            created_at: row.created_at,
            version: row.version,
        })
    }
}
