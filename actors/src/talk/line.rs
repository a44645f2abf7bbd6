//! The other side of a talk, whoever carries it: a person of the sandbox, a phone, a browser.
use crate::{brain::Speech, carrier::Control};
use entities::values::E164;
use futures_util::future::BoxFuture;

/// What comes from the other side, or from the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Somebody begins to say this; it takes so many milliseconds.
    Words {
        speech: Speech,
        ms: u64,
    },
    /// Keys were pressed.
    Pressed(String),
    HungUp,
    Control(Control),
}

/// How far the agent's words came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Whole,
    /// The other side cut in after so many milliseconds; its words come next.
    CutInAfter(u64),
}

pub trait Line: Send {
    /// How long something really takes that takes so long at the pace of people: the sandbox can hurry.
    fn real_ms(&self, ms: u64) -> u64 {
        ms
    }
    /// Says something that takes so long.
    fn say<'a>(&'a mut self, text: &'a str, ms: u64) -> BoxFuture<'a, Said>;
    /// Waits for the other side, for as long as it takes.
    fn listen(&mut self) -> BoxFuture<'_, Event>;
    /// The other side's words take their time.
    fn hear(&mut self, ms: u64) -> BoxFuture<'_, ()>;
    /// A question of yes or no about being recorded comes next.
    fn expect_consent(&mut self);
    /// The sandbox wants a function to be called that takes longer than it may. Said once.
    fn wants_slow_function(&mut self) -> bool;
    fn press(&mut self, digits: &str);
    /// Calls somebody else to take over; `Err`: why nobody did.
    fn hand_over<'a>(&'a mut self, to: &'a E164) -> BoxFuture<'a, Result<(), String>>;
    /// Waits as a function would that takes too long.
    fn dawdle(&mut self, ms: u64) -> BoxFuture<'_, ()>;
}
