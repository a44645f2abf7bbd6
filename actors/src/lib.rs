//! What lives in Callboard: one shell around the state machines of `rules`, and the services that pace, deliver and supervise. Start
//! reading at [`tree`].

pub mod call;
pub mod campaign;
pub mod carrier;
pub mod contact;
pub mod credits;
pub mod delivery;
pub mod deps;
pub mod dispatcher;
pub mod dnc;
pub mod email;
pub mod endpoint;
pub mod evaluate;
pub mod facts;
pub mod fence;
pub mod heartbeat;
pub mod holds;
pub mod housekeeping;
pub mod import;
pub mod inbound;
pub mod mail;
pub mod outgoing;
pub mod people;
mod perform;
pub mod reconcile;
pub mod recording;
pub mod room;
pub mod router;
pub mod session;
pub mod shell;
pub mod slices;
pub mod sms;
pub mod talk;
pub mod tree;
pub mod verify;
pub mod voice_clone;
pub mod writer;
