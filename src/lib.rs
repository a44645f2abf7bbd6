//! Callboard: how the outside talks to the actors. Contains no rule and no query.

pub mod access;
pub mod app;
pub mod cli;
pub mod dashboard;
pub mod error;
pub mod http;
pub mod logging;
pub mod mcp;
pub mod settings;
pub mod state;
