//! The other side of a dry run.
use super::transport::{CallTransport, Event, Said, Saying, Words};
use entities::values::E164;
use futures_util::future::{BoxFuture, FutureExt, pending, ready};
use std::collections::VecDeque;

/// Lines of a dry run: what was typed, and no time that passes.
pub struct Typed(pub VecDeque<String>);

impl CallTransport for Typed {
    fn say<'a>(&'a mut self, _: Saying<'a>) -> BoxFuture<'a, Said> {
        ready(Said::Whole).boxed()
    }
    fn listen(&mut self) -> BoxFuture<'_, Event> {
        let next = self.0.pop_front().map(|text| Event::Words(Words::now(text)));
        ready(next.unwrap_or(Event::HungUp)).boxed()
    }
    fn wanted(&mut self) -> BoxFuture<'_, E164> {
        pending().boxed()
    }
    fn hand_over<'a>(&'a mut self, _: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        ready(Ok(())).boxed()
    }
    fn dawdle(&mut self, _: u64) -> BoxFuture<'_, Option<(E164, u64)>> {
        ready(None).boxed()
    }
}
