//! The sound of phone legs: RTP over a pair of UDP ports each, from and to the same bridge that rooms use.
//!
//! [`session`] is the handle; the leg itself (`leg`) is looked at every 10 ms by one of media's threads. What comes is put in
//! order (`window`), decoded (`codec`) and heard (`hearing`); what is said goes out at its own pace (`speaking`).
mod codec;
mod dtmf;
mod hearing;
mod leg;
mod outlet;
mod packet;
pub mod ports;
mod relay;
mod rtcp;
pub mod session;
mod shared;
mod source;
mod speaking;
mod srtp;
mod window;

pub use codec::Codec;
pub use rtcp::Quality;
pub use srtp::{Keys, Suite};

#[cfg(test)]
mod tests;
