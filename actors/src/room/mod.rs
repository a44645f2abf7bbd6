//! Rooms: a person opens a link in a browser and talks with the agent.
//!
//! The room's machine ([`rules::room::machine`]) keeps its life, its session ([`crate::session`]) what is said. The browser's sound
//! comes over one UDP port ([`media::webrtc`]) to a [`media::bridge`], at whose other end the agent talks ([`conversation`]), as on the
//! telephone.
pub mod actor;
pub mod conversation;
mod create;
mod erase;
pub mod join;
pub mod lifecycle;
pub mod link;
pub mod live_rooms;

pub use create::{New, create};
pub use erase::erase;
