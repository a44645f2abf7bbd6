//! What Callboard stores. A leaf: rows, the values in them, and every query, each scoped by its tenant.
//!
//! No rules live here (they are the `machine.rs` files of `actors`), and no query lives anywhere else.
//! Times are [`values::Moment`] (milliseconds), JSON is stored as JSON, ids are UUIDv7.

pub mod bulk;
pub mod changes;
pub mod checks;
pub mod connection;
pub mod copy;
pub mod db;
pub mod error;
pub mod fault;
pub mod generation;
pub mod ids;
pub mod invitation;
pub mod keys;
pub mod law;
pub mod lock;
mod owned;
pub mod page;
pub mod values;

pub mod abandonment;
pub mod agent;
pub mod agent_version;
pub mod answer;
pub mod api_key;
pub mod attempt;
pub mod audit_log;
pub mod call_hour;
pub mod caller_rest;
pub mod campaign;
pub mod campaign_brake;
pub mod campaign_hour;
pub mod campaign_move;
pub mod compliance_export;
pub mod consent;
pub mod contact;
pub mod delivery;
pub mod delivery_attempt;
pub mod dial;
pub mod dispatch_block;
pub mod dispatch_pause;
pub mod dnc;
pub mod email_message;
pub mod endpoint_health;
pub mod endpoint_hour;
pub mod erasure;
pub mod evaluation;
pub mod event;
pub mod function;
pub mod idempotency;
pub mod import;
pub mod inbound_call;
pub mod ledger;
pub mod legal_identity;
pub mod login;
pub mod mail;
pub mod membership;
pub mod message;
pub mod message_send;
pub mod meta;
pub mod names;
pub mod node;
pub mod node_end;
pub mod number;
pub mod number_claim;
pub mod number_hour;
pub mod password_reset;
pub mod reassigned;
pub mod recording;
pub mod recovery;
pub mod register;
pub mod rest;
pub mod restored;
pub mod retention;
pub mod room;
pub mod server;
pub mod session;
pub mod sip_leg;
pub mod sip_trunk;
pub mod sms_message;
pub mod suspension;
pub mod tally;
pub mod tenant;
pub mod topup;
pub mod transcript;
pub mod trunk_source;
pub mod user;
pub mod verified_number;
pub mod voice;
pub mod webhook_endpoint;
pub mod workspace_lease;

pub use error::{Error, Result};

/// A function whose future is boxed. Rust compiles a future where it is awaited, with all that it awaits in turn: without a box each
/// query would be compiled once more in each crate above, and most of a build would be that. An argument that the body
/// does not name is dropped at the call.
pub use async_recursion::async_recursion as boxed;
