//! Who Callboard talks to: for each kind one trait, and its adapters. None of them knows an actor.
pub mod brain;
pub mod email;
#[cfg(test)]
mod local_servers;
mod look_up;
pub mod mail;
pub mod mcp_client;
pub mod otlp;
pub mod outbound;
mod pause;
mod provider_http;
mod provider_problem;
mod provider_socket;
pub mod reassigned;
pub mod recording;
pub mod register_api;
pub mod signature;
pub mod sms;
pub mod sound;
pub mod speech;
mod sse;
pub mod stripe;
pub mod transcription;
pub mod trunk;
pub mod voice_clone;
