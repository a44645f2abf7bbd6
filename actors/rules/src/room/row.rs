//! A room as it is stored.
use super::machine::{Phase, Room, RoomOutcome, next_deadline};
use entities::{
    Error, Result,
    room::{Model as Row, Status},
    values::Moment,
};

impl Room {
    /// The row that says all this.
    pub fn row(&self) -> Row {
        let mut row = self.made.clone();
        row.status = self.status();
        row.viewed_at = self.viewed_at;
        row.participant_id = self.participant();
        row.deleted_at = self.deleted_at;
        row.wake_at = self.next_look();
        row.version = self.version;
        match &self.phase {
            Phase::Open => {}
            Phase::Connecting { by, .. } => row.connect_by = Some(*by),
            Phase::Joined { at, lost_at, .. } => {
                (row.connect_by, row.joined_at, row.lost_at) = (None, Some(*at), *lost_at);
            }
            Phase::Ended { at, joined, outcome } => {
                (row.connect_by, row.lost_at) = (None, None);
                row.joined_at = joined.map(|(_, at)| at);
                row.ended_at = Some(*at);
                if let RoomOutcome::Failed { code, message } = outcome {
                    (row.error_code, row.error_message) = (Some(*code), Some(message.clone()));
                }
            }
        }
        row
    }

    /// An open room always has one, by which it is found again: one that is joined is looked at when its session has ended.
    fn next_look(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Joined { at, lost_at: None, .. } => Some(at.plus_seconds(LONGEST_SECONDS)),
            Phase::Open | Phase::Connecting { .. } | Phase::Joined { .. } | Phase::Ended { .. } => next_deadline(self),
        }
    }

    /// The state that a stored row says.
    pub fn from_row(row: Row) -> Result<Self> {
        let missing = |column| Error::Corrupt {
            table: "rooms",
            column,
            id: row.id.to_string(),
        };
        let participant = || row.participant_id.ok_or_else(|| missing("participant_id"));
        let joined = match row.joined_at {
            Some(at) => Some((participant()?, at)),
            None => None,
        };
        let ended = |outcome| -> Result<Phase> {
            let at = row.ended_at.ok_or_else(|| missing("ended_at"))?;
            Ok(Phase::Ended { at, joined, outcome })
        };
        let phase = match (row.status, row.connect_by) {
            (Status::Created | Status::Viewed, None) => Phase::Open,
            (Status::Created | Status::Viewed, Some(by)) => Phase::Connecting {
                participant: participant()?,
                by,
            },
            (Status::Joined, _) => Phase::Joined {
                participant: participant()?,
                at: row.joined_at.ok_or_else(|| missing("joined_at"))?,
                lost_at: row.lost_at,
            },
            (Status::Completed, _) => ended(RoomOutcome::Completed)?,
            (Status::Expired, _) => ended(RoomOutcome::Expired)?,
            (Status::Failed, _) => ended(RoomOutcome::Failed {
                code: row.error_code.ok_or_else(|| missing("error_code"))?,
                message: row.error_message.clone().unwrap_or_default(),
            })?,
        };
        Ok(Room {
            viewed_at: row.viewed_at,
            phase,
            deleted_at: row.deleted_at,
            version: row.version,
            made: row,
        })
    }
}

/// Far longer than any talk.
const LONGEST_SECONDS: i64 = 30 * 86_400;
