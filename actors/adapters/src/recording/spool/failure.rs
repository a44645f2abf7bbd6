//! Why something could not be spooled: what the log says, and what the tenant is told.
use std::io;

/// Why a call is not recorded, as its tenant may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrecorded {
    #[error("the call could not be recorded: there is no room left for recordings in progress")]
    NoRoom,
    #[error("the call could not be recorded: the recording could not be written")]
    NotWritten,
}

/// What went wrong, for the log only, and what that means for the recording.
#[derive(Debug)]
pub struct Cause {
    pub means: Unrecorded,
    pub why: String,
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        let means = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Unrecorded::NoRoom,
            _ => Unrecorded::NotWritten,
        };
        let why = error.to_string();
        Cause { means, why }
    }
}

impl From<String> for Cause {
    fn from(why: String) -> Self {
        let means = Unrecorded::NotWritten;
        Cause { means, why }
    }
}
