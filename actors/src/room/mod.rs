//! Rooms: a person opens a link in a browser and talks with the agent.
//!
//! The room's machine ([`rules::room::machine`]) keeps its life, its session ([`crate::session`]) what is said. The browser's sound
//! comes over one UDP port ([`media::webrtc`]) to a [`media::wire`], at whose other end the agent talks ([`talk`]), as on the
//! telephone.
pub mod actor;
mod create;
pub mod hearing;
pub mod house;
pub mod join;
pub mod line;
pub mod link;
pub mod live_rooms;
pub mod talk;

pub use create::{New, create};
