//! Messages that stand ready for people whom no agent takes in time: those that are there, and those that are being made.
use adapters::recording::messages::{MessageKey, Messages};
use runtime::job::Running;
use std::path::Path;

pub struct Standbys {
    pub(super) messages: Messages,
    pub(super) making: Running<MessageKey>,
}

impl Standbys {
    /// `spools`: the folder of spools; theirs is beside it.
    pub fn beside(spools: &Path) -> Self {
        Standbys {
            messages: Messages::beside(spools),
            making: Running::default(),
        }
    }
}
