//! What lives in Callboard: a pure state machine per kind of entity, one shell around all of them, and the services that
//! pace, deliver and supervise. Start reading at [`tree`], then at any `machine.rs`.

pub mod brain;
pub mod calls;
pub mod campaign;
pub mod carrier;
pub mod clock;
pub mod contact;
pub mod delivery;
pub mod deps;
pub mod dispatcher;
pub mod dnc;
pub mod effect;
pub mod eligibility;
pub mod endpoint;
pub mod evaluate;
pub mod event;
pub mod hours;
pub mod housekeeping;
pub mod ids;
pub mod import;
pub mod inbound;
pub mod job;
pub mod keyring;
pub mod mail;
pub mod outbound;
pub mod recording;
pub mod registry;
pub mod session;
pub mod shape;
pub mod shell;
pub mod signature;
pub mod supervise;
pub mod talk;
pub mod tree;
pub mod writer;
pub mod zone;
