//! The carrier of each env.
use super::lines::Sandbox;
use crate::{room::live_rooms::LiveRooms, switchboard::phones::Switchboard};

/// The carrier of each env.
pub struct Carriers {
    pub sandbox: Sandbox,
    /// For live calls; `None`: the operator has set none up.
    pub phones: Option<Switchboard>,
    /// Of both envs: browsers come by themselves.
    pub rooms: LiveRooms,
}
