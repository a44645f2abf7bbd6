//! The one error type. `src/http/error.rs` holds the table from these variants to status, code and message.
use crate::{fault, values::Moment};
use sea_orm::{DbErr, RuntimeErr, SqlErr, sqlx};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Of one request; whoever has more reads these first.
pub const MOST_FAULTS: usize = 20;

/// One thing that is wrong with what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its path, as `pacing.calls_per_second`; empty: the whole.
    pub field: String,
    pub reason: String,
    pub code: FaultCode,
}

/// For programs; the reason is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCode {
    Required,
    UnknownField,
    DuplicateField,
    InvalidType,
    InvalidValue,
}

impl FaultCode {
    pub const ALL: [FaultCode; 5] = [
        FaultCode::Required,
        FaultCode::UnknownField,
        FaultCode::DuplicateField,
        FaultCode::InvalidType,
        FaultCode::InvalidValue,
    ];
    pub fn as_str(self) -> &'static str {
        match self {
            FaultCode::Required => "required",
            FaultCode::UnknownField => "unknown_field",
            FaultCode::DuplicateField => "duplicate_field",
            FaultCode::InvalidType => "invalid_type",
            FaultCode::InvalidValue => "invalid_value",
        }
    }
}

impl Fault {
    pub fn missing(field: impl Into<String>) -> Self {
        Fault {
            field: field.into(),
            reason: "is required".into(),
            code: FaultCode::Required,
        }
    }
    /// A value that is refused for what it says.
    pub fn of_value(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Fault {
            field: field.into(),
            reason: reason.into(),
            code: FaultCode::InvalidValue,
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No such object for this tenant and env.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A field's value is refused; nothing was changed.
    #[error("{field}: {reason}")]
    Invalid { field: String, reason: String },
    /// The same of what was found wrong, in its order: at least one, at most [`MOST_FAULTS`].
    #[error("{}", .0.first().map_or("", |fault| &fault.reason))]
    Faults(Vec<Fault>),
    /// The object's state does not allow the command.
    #[error("{} {state} {kind} cannot {command}: {hint}", article(state))]
    InvalidState {
        kind: &'static str,
        state: &'static str,
        command: &'static str,
        hint: &'static str,
    },
    /// A unique value is taken.
    #[error("{field} is already taken")]
    AlreadyExists { field: &'static str },
    /// Something else still refers to it.
    #[error("{0}")]
    InUse(String),
    /// A limit of the workspace's plan, or of the service.
    #[error("{0}")]
    PlanLimit(String),
    /// What the operator does not let the workspace do with this value.
    #[error("{field}: {reason}")]
    Forbidden { field: &'static str, reason: String },
    /// The row was changed by somebody else since it was read: load and decide again.
    #[error("the row has changed since it was read")]
    Stale,
    /// Another process serves this database: this one writes nothing more, and ends.
    #[error("another Callboard process has taken over this database")]
    Fenced,
    /// Another node has the workspace, or is about to: nothing was written here.
    #[error("another node has this workspace")]
    Moved,
    /// A key that this service chose itself is taken: an earlier commit, of which the outcome was not known, has landed.
    #[error("one of our own keys is already taken: {0}")]
    Collision(String),
    /// The operator has not configured what this needs.
    #[error("{0}")]
    NotConfigured(String),
    /// All slots are taken and the caller did not want to wait.
    #[error("all {limit} concurrent calls are in use")]
    ConcurrencyFull { limit: i32 },
    /// A test key may only call the sandbox block and verified numbers.
    #[error("test keys may only call +1500[2-9]xxxxxx and verified numbers")]
    NumberNotVerified,
    /// On the do-not-call list.
    #[error("the number is on the do-not-call list")]
    RecipientOnDnc,
    /// A rule of the law does not allow it; which, and who must mend what.
    #[error("the law does not allow it (`{rule}`): {reason}")]
    ComplianceBlocked { rule: String, reason: String },
    /// Nobody may be called there now.
    #[error("outside the calling hours; {}", opens(.next_open_at))]
    OutsideCallingHours { next_open_at: Option<Moment> },
    /// The number was called too often.
    #[error("the number was called as often as the caps allow; it may be called again from {until}")]
    DailyCapReached { until: Moment },
    /// A limit of the API key that asks has no room for one more call; its name, why, and when it may have.
    #[error("{reason}")]
    KeyLimit {
        limit: &'static str,
        reason: String,
        retry_after_seconds: u64,
    },
    /// The prepaid credits do not cover it.
    #[error("the credits do not cover it: see GET /v1/credits, and top up")]
    InsufficientCredits,
    /// The database does not answer, is busy or full, or the part is restarting: try again.
    #[error("temporarily unavailable: {0}")]
    Unavailable(String),
    /// The operator, or a clock in doubt, keeps everything from leaving for people: try again when that is over.
    #[error("{0}")]
    Held(&'static str),
    /// A stored value cannot be read; names table, column and id.
    #[error("bad value in {table}.{column} of {id}")]
    Corrupt {
        table: &'static str,
        column: &'static str,
        id: String,
    },
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

fn opens(next: &Option<Moment>) -> String {
    match next {
        Some(at) => format!("they begin at {at}"),
        None => "they do not begin within a year".into(),
    }
}

/// A message that names its field: "`name` must not be empty". What is not said of the field itself follows a colon.
pub fn sentence(field: &str, reason: &str) -> String {
    const PREDICATES: [&str; 15] = [
        "are", "begins", "cannot", "carries", "contains", "does", "fits", "has", "holds", "is", "lies", "must",
        "needs", "nests", "takes",
    ];
    let first = reason.split(' ').next().unwrap_or_default();
    match PREDICATES.contains(&first) {
        _ if field.is_empty() => reason.to_owned(),
        true => format!("`{field}` {reason}"),
        false if reason.contains(&format!("`{field}`")) => reason.to_owned(),
        false => format!("`{field}`: {reason}"),
    }
}

/// Before a word as it is written.
fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

impl Error {
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Another program has locked the SQLite file. Its words are SQLite's.
    pub fn is_locked(&self) -> bool {
        matches!(self, Error::Unavailable(why) if why.contains("database is locked"))
    }

    /// May the same command succeed later without a change by the caller?
    pub fn retryable(&self) -> bool {
        match self {
            Error::Stale
            | Error::Collision(_)
            | Error::Unavailable(_)
            | Error::Held(_)
            | Error::ConcurrencyFull { .. } => true,
            Error::NotFound(_)
            | Error::Invalid { .. }
            | Error::Faults(_)
            | Error::InvalidState { .. }
            | Error::AlreadyExists { .. }
            | Error::InUse(_)
            | Error::PlanLimit(_)
            | Error::Forbidden { .. }
            | Error::NotConfigured(_)
            | Error::Fenced
            | Error::Moved
            | Error::NumberNotVerified
            | Error::RecipientOnDnc
            | Error::ComplianceBlocked { .. }
            | Error::OutsideCallingHours { .. }
            | Error::DailyCapReached { .. }
            | Error::KeyLimit { .. }
            | Error::InsufficientCredits
            | Error::Corrupt { .. }
            | Error::Internal(_) => false,
        }
    }
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        if let Some(SqlErr::UniqueConstraintViolation(what)) = error.sql_err() {
            return if is_own_key(&error) {
                Error::Collision(what)
            } else {
                Error::AlreadyExists { field: "id" }
            };
        }
        let passing = match &error {
            DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => true,
            DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause)) => is_passing(cause),
            _ => false,
        };
        let words = fault::words(&error);
        if passing {
            Error::Unavailable(words)
        } else {
            Error::Internal(words)
        }
    }
}

/// Is what is taken a primary key, which this service makes from ids and places that nobody else has? Whoever asked for it
/// has chosen none of it. What a client chooses has a unique index of its own, or is the key of a membership.
fn is_own_key(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) = error else {
        return false;
    };
    let sqlx::Error::Database(cause) = &**cause else {
        return false;
    };
    // PostgreSQL names the constraint; SQLite has codes for keys, of rows and of tables without row ids, and names the table.
    let is_key = match cause.constraint() {
        Some(constraint) => constraint.ends_with("_pkey"),
        None => cause.code().is_some_and(|code| matches!(&*code, "1555" | "2579")),
    };
    is_key && !cause.message().contains("memberships")
}

/// Busy, locked, full, unreachable, shutting down: the same statement may succeed later.
fn is_passing(error: &sqlx::Error) -> bool {
    use sqlx::Error::*;
    match error {
        Io(_) | Tls(_) | Protocol(_) | PoolTimedOut | PoolClosed | WorkerCrashed => true,
        Database(error) => error.code().is_some_and(|code| match code.len() {
            // SQLSTATE: connection lost, out of resources, operator's intervention, read-only, a lock not to be had in time, two that waited for each other.
            5 => {
                ["08", "53", "57"].iter().any(|class| code.starts_with(class))
                    || matches!(&*code, "25006" | "55P03" | "40P01")
            }
            // SQLite, extended: busy, locked, read-only, I/O, full, cannot open. The primary code is the low byte.
            _ => code
                .parse::<u32>()
                .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 8 | 10 | 13 | 14)),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
