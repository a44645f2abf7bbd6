//! The command line.
pub mod audit;
mod backup;
pub mod clock;
pub mod commands;
mod compliance;
pub mod credits;
pub mod demo;
pub mod dispatch;
mod doctor;
mod identity;
pub mod keys;
pub mod listen;
mod mcp;
mod members;
pub mod nodes;
mod numbers;
mod recordings;
mod registers;
mod retention;
pub mod secrets;
pub mod serve;
pub mod sip;
pub mod tenant;
pub mod user;
pub mod webhook;
pub mod workspace;

use crate::{
    error::CannotStart,
    logging,
    settings::{LogFormat, Settings},
};
use adapters::outbound::trouble;
use clap::{Parser, Subcommand};
use serde_json::json;
use std::{path::PathBuf, process::ExitCode};

/// The whole program. Here and not in `main.rs`, so that it is compiled once, with the library, and in parallel.
pub fn main() -> ExitCode {
    // First: several TLS stacks are linked, and the first client must not have to guess.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        unreachable!("nothing has run before");
    }
    let cli = Cli::parse();
    let log_format = match &cli.command {
        Command::Serve(_) => Settings::log_format_of(cli.config.clone()),
        _ => LogFormat::Text,
    };
    let done = actix_rt::System::new().block_on(cli.command.run(cli.config, cli.json));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let why = trouble::plain(error.to_string());
            match log_format {
                LogFormat::Text => eprintln!("callboard: {why}"),
                LogFormat::Json => eprintln!("{}", logging::event("ERROR", &json!({ "message": why }))),
            }
            ExitCode::FAILURE
        }
    }
}

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
    /// Print JSON on standard output, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the service: API, dashboard and workers
    ///
    /// Settings come from callboard.toml, then from CALLBOARD_… in the environment, then from the flags below; `callboard config
    /// --defaults` explains each. The first start makes the database, and shows a link with which the first user is created. SIGTERM
    /// or Ctrl-C ends it in order: live calls may end by themselves first, for `drain_seconds`.
    Serve(serve::Serve),
    /// Watch a sandbox campaign run: calls live and end, signed events arrive at a local receiver
    ///
    /// Nobody is called, and nothing that is there is touched: workspace, database and receiver are made for it, in a folder that is
    /// removed at the end. With --keep folder and server stay, until Ctrl-C ends the server.
    Demo(demo::Demo),
    /// Forward events as they happen to a program on this machine, signed like deliveries
    ///
    /// Events come in order, one at a time, without a webhook endpoint or a public address. Failed ones are not retried;
    /// --replay sends one once more. Ctrl-C ends it.
    Listen(listen::Listen),
    /// Let an assistant look things up: the Model Context Protocol on standard input and output
    ///
    /// A program such as Claude Desktop starts it. The API key is read from the environment variable CALLBOARD_API_KEY, or
    /// from a file. What the tools may see follows from the key's scopes; none of them calls anybody, sends or deletes.
    Mcp(mcp::Mcp),
    /// Find out why a received webhook does not verify
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// Create a workspace with its owner, manage and list its members, open a number for test calls, or claim one
    /// for live use
    #[command(subcommand)]
    Workspace(workspace::Workspace),
    /// Set a user's password, or list the users
    #[command(subcommand)]
    User(user::User),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Stop or resume a workspace's dialling, show workspaces, or change their settings
    #[command(subcommand)]
    Tenant(tenant::Tenant),
    /// Give credits to a workspace, or show what it has
    #[command(subcommand)]
    Credits(credits::Credits),
    /// Upload and list registers of numbers that must not be called, for all workspaces
    #[command(subcommand)]
    Registers(registers::Registers),
    /// Stop all calls and messages of all workspaces, or resume them
    #[command(subcommand)]
    Dispatch(dispatch::Dispatch),
    /// List the nodes that serve this database together, or have one hand its workspaces over
    #[command(subcommand)]
    Nodes(nodes::Nodes),
    /// Speak with a SIP trunk's peer, and find out why calls do not go through
    #[command(subcommand)]
    Sip(sip::Sip),
    /// Show the running server's clock, or confirm that it is right
    #[command(subcommand)]
    Clock(clock::Clock),
    /// Make a secret key, or seal stored secrets with a new one
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    /// Say whether a recording is as it was made, and what it says of the machine that speaks in it
    #[command(subcommand)]
    Recordings(recordings::Recordings),
    /// Print what is stored, for a program that checks it, or who changed whose access
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Check what was exported of the record of attempts, without a server
    #[command(subcommand)]
    Compliance(compliance::Compliance),
    /// Find out what would keep the service from its work
    ///
    /// Looks at settings, database, disks, ports and limits, and asks name servers and everybody that the service works with. Changes
    /// nothing and calls nobody. It fails if the service could not work as it is; what is merely unwise is a warning.
    Doctor(doctor::Doctor),
    /// Make a file that holds the whole database and the recordings
    ///
    /// Works beside a running `serve`: the database is copied as it is at one moment. A plain copy of a SQLite file is no backup:
    /// without its WAL it may be torn, or empty. What was written is verified. It does not hold the secret key, without which it is of
    /// no use: keep that elsewhere.
    Backup(backup::Backup),
    /// Put a backup into a new database
    ///
    /// That is the one that the settings name, which must not be there yet; recordings come beside those that are there. The backup does
    /// not know what has run since it was made. With --as-of, calls and messages that may have left until then are put away by the next
    /// start, so that nobody is called twice: who knows better begins them anew. Dispatch is paused until `callboard dispatch resume`,
    /// which must be told, with `--opt-outs-entered`, that whoever has opted out since is entered.
    Restore(backup::Restore),
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

impl Command {
    async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        match self {
            Command::Serve(serve) => serve.run(config).await,
            Command::Demo(demo) => demo.run(json).await,
            Command::Listen(listen) => listen.run(json).await,
            Command::Mcp(mcp) => mcp.run().await,
            Command::Webhook(command) => command.run(json),
            Command::Workspace(command) => command.run(config, json).await,
            Command::User(command) => command.run(config, json).await,
            Command::Keys(command) => command.run(config, json).await,
            Command::Tenant(command) => command.run(config, json).await,
            Command::Credits(command) => command.run(config, json).await,
            Command::Registers(command) => command.run(config, json).await,
            Command::Dispatch(command) => command.run(config, json).await,
            Command::Nodes(command) => command.run(config, json).await,
            Command::Sip(command) => command.run(config, json).await,
            Command::Clock(command) => command.run(config, json).await,
            Command::Secrets(command) => command.run(config, json).await,
            Command::Recordings(command) => command.run(json),
            Command::Audit(command) => command.run(config).await,
            Command::Compliance(command) => command.run(json),
            Command::Doctor(command) => command.run(config, json).await,
            Command::Backup(command) => command.run(config, json).await,
            Command::Restore(command) => command.run(config, json).await,
            Command::Migrate => commands::migrate(config, json).await,
            Command::Config { defaults } => commands::config(config, json, defaults),
            Command::Openapi => commands::openapi(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn help_says_more_than_the_list_of_commands() {
        for (name, words) in [
            ("serve", "drain_seconds"),
            ("demo", "Nobody is called"),
            ("listen", "one at a time"),
            ("mcp", "follows from the key's scopes"),
            ("doctor", "what is merely unwise is a warning"),
            ("backup", "without its WAL"),
            ("restore", "nobody is called twice"),
        ] {
            let mut all = Cli::command();
            let command = all.find_subcommand_mut(name).unwrap();
            // Lines are broken anywhere.
            let told = command.render_long_help().to_string();
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains(words), "{name}: {told}");
        }
    }
}
