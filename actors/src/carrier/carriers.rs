//! The carrier of each env.
use super::lines::Sandbox;
use crate::room::live_rooms::LiveRooms;

/// The carrier of each env.
pub struct Carriers {
    pub sandbox: Sandbox,
    /// Of both envs: browsers come by themselves.
    pub rooms: LiveRooms,
}
