//! What a state machine is: pure, so that whoever lives it decides when, and what becomes of what it decides.
use crate::effect::Effect;
use entities::{Result, ids::TenantScoped, values::Moment};
use std::{fmt::Debug, hash::Hash};

/// A state machine of one entity: each `machine.rs` is one.
pub trait Machine: Clone + PartialEq + Unpin + Send + 'static {
    type Key: Copy + Eq + Hash + Debug + Send + Unpin + 'static;
    type Command: Clone + Debug + Send + Unpin + 'static;
    const KIND: &'static str;
    const TICK: Self::Command;

    fn owner(&self) -> TenantScoped<Self::Key>;
    fn transition(self, command: Self::Command, now: Moment) -> Result<(Self, Vec<Effect>)>;
    /// The next moment at which a tick can matter.
    fn next_deadline(&self) -> Option<Moment>;
    /// Must the row be written? Details that may be lost with a crash do not count.
    fn differs(&self, before: &Self) -> bool {
        self != before
    }
    /// Nothing to wait for: its actor may go.
    fn is_at_rest(&self) -> bool;
    /// Grows with each commit of its row.
    fn version(&self) -> i32;
    /// Takes over details that are not in the rows from the state that a failed commit made us forget.
    fn carry_over(&mut self, _before: &Self) {}
}
