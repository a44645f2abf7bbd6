//! Registers of numbers that must not be called: uploading and looking into them, asking those that have an API, and what the service
//! for reassigned numbers knows.
//!
//! In uploaded copies a number is kept as eight bytes of its HMAC, under a key of this database's own that outlives the secret key
//! ([`LinkKeys`](runtime::link_keys::LinkKeys)): whoever reads the table learns nobody's number, and a replaced secret key blinds no
//! register. Each register says which key its numbers were hashed with: under another one it counts as not there.
pub mod asking;
pub mod hashes;
pub mod lookup;
pub mod over_api;
pub mod questions;
pub mod reading;
pub mod runs;
pub mod settle;
pub mod shelf;
pub mod spool;
pub mod upload;
pub mod watch;
pub mod writing;
