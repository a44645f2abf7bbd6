//! Live calls: sockets, who may speak to them, and one task for each call.
//!
//! A call is one task (`outbound`, `inbound`, then `conversing`) that drives its leg's machine ([`sip::call`]) and its sound
//! (`sound`), and tells the session what becomes of it. Each message finds its task by its Call-ID alone ([`table`]). What a killed
//! process has left on the wire, the next one ends (`orphans`).
mod accepting;
mod account;
mod accounts;
mod admission;
mod agent;
mod answers;
mod bridging;
mod broken;
mod carry;
mod channel;
mod conversing;
pub mod faults;
mod hops;
mod inbound;
mod leg_numbers;
pub mod line;
mod messages;
pub mod moments;
mod numbers;
mod orders;
mod orphans;
mod outbound;
pub mod phones;
mod reply;
mod ringback;
mod said;
mod signalling;
mod sockets;
mod sound;
pub mod sources;
pub mod table;
pub mod trial;
mod turned_away;
