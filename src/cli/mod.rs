//! The command line.
pub mod audit;
pub mod clock;
pub mod commands;
pub mod credits;
pub mod demo;
pub mod dispatch;
pub mod keys;
pub mod listen;
mod members;
mod numbers;
pub mod secrets;
pub mod serve;
pub mod tenant;
pub mod user;
pub mod webhook;
pub mod workspace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(
    name = "callboard",
    version,
    about = "Voice-agent calls, campaigns and signed webhooks, self-hosted."
)]
pub struct Cli {
    /// Settings file [default: callboard.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON on standard output and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the service: API, dashboard and workers
    Serve(serve::Serve),
    /// Watch a sandbox campaign run: calls live and end, signed events arrive at a local receiver
    Demo(demo::Demo),
    /// Forward events, as they happen, to a program on this machine, signed as deliveries are
    ///
    /// Events come in order, one at a time, without a webhook endpoint or a public address. None is tried again by itself;
    /// --replay sends one once more. Ctrl-C ends it.
    Listen(listen::Listen),
    /// Find out why a received webhook does not verify
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// Make a workspace with its owner, say who belongs to it as what, list them, open a number for test calls, or give it one
    /// for live use
    #[command(subcommand)]
    Workspace(workspace::Workspace),
    /// Set a user's password anew, or list the users
    #[command(subcommand)]
    User(user::User),
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Stop a workspace's dialling, let it go on, or look at it
    #[command(subcommand)]
    Tenant(tenant::Tenant),
    /// Give credits to a workspace, or show what it has
    #[command(subcommand)]
    Credits(credits::Credits),
    /// Stop all that leaves for people, of all workspaces, or let it go on
    #[command(subcommand)]
    Dispatch(dispatch::Dispatch),
    /// Look at the running server's clock, or say that it is right
    #[command(subcommand)]
    Clock(clock::Clock),
    /// Seal stored secrets anew
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    /// Show what is stored to a program that checks whether it is right, or who changed whose access
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Bring the database's schema up to date
    Migrate,
    /// Print the settings in force, secrets hidden
    Config {
        /// Print the defaults with their explanations instead
        #[arg(long)]
        defaults: bool,
    },
    /// Print the OpenAPI 3.1 document
    Openapi,
}
