//! The whole service from outside: real HTTP, real receivers, SQLite and PostgreSQL, and a clock that the tests advance.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod architecture;
mod audit;
mod bites;
mod bulk;
mod commands;
mod http;
mod law_oracle;
mod law_reference;
mod long_lists;
mod migrations;
mod outbound;
mod phone;
mod process;
mod scenarios;
mod snippets;
mod soak;
mod specification;
mod vault;
mod world;
