//! SIP without input, output, clock or chance: bytes and moments go in, bytes and happenings come out.
//!
//! Headers and URIs are `ezk-sip-types`'; the rest is ours, so that every identifier can be derived
//! and a process that was killed can end what it left behind. Sockets, timers and secrets belong to the caller.
pub mod call;
pub mod dialog;
pub mod digest;
pub mod identity;
pub mod keepalive;
pub mod ladder;
pub mod leg;
pub mod message;
pub mod orphan;
pub mod out_of_dialog;
pub mod registration;
pub mod sdp;
pub mod session_timer;
pub mod targets;
pub mod transaction;

#[cfg(test)]
mod fuzz_tests;
