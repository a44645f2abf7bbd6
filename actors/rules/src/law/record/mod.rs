//! What is recorded of each attempt to reach somebody, and how that is checked: years later, by anybody, from the record alone.
//!
//! - `bodies`: what the rows say;
//! - `chain`: how each row holds the hash of the one before;
//! - `line`: a row as it is exported, and the manifest that is signed;
//! - `prove`: what the law said of an attempt is asked once more.
mod bodies;
pub mod chain;
pub mod line;
mod prove;
mod row;

pub use bodies::{
    AttemptBody, Closing, DispositionBody, ErasureBody, LiftedBody, OptOutBody, OptOutContent, OutcomeBody, Person,
    RevocationBody,
};
pub use prove::{Difference, prove};
pub use row::{Hashes, Subject, record};
