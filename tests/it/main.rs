//! The whole service from outside: real HTTP, real receivers, SQLite and PostgreSQL, and a clock that the tests advance.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod architecture;
mod audit;
mod http;
mod outbound;
mod process;
mod scenarios;
#[path = "../load/soak/series.rs"]
mod series;
mod snippets;
mod vault;
mod world;
