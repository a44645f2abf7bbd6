//! The `callboard` binary.
use callboard::cli::{self, Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // First: several TLS stacks are linked, and the first client must not have to guess.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        unreachable!("nothing has run before");
    }
    let cli = Cli::parse();
    let done = actix_rt::System::new().block_on(async {
        match cli.command {
            Command::Serve(serve) => serve.run(cli.config).await,
            Command::Demo(demo) => demo.run(cli.json).await,
            Command::Listen(listen) => listen.run(cli.json).await,
            Command::Webhook(command) => command.run(cli.json),
            Command::Workspace(command) => command.run(cli.config, cli.json).await,
            Command::User(command) => command.run(cli.config, cli.json).await,
            Command::Keys(command) => command.run(cli.config, cli.json).await,
            Command::Tenant(command) => command.run(cli.config, cli.json).await,
            Command::Credits(command) => command.run(cli.config, cli.json).await,
            Command::Dispatch(command) => command.run(cli.config, cli.json).await,
            Command::Clock(command) => command.run(cli.config, cli.json).await,
            Command::Secrets(command) => command.run(cli.config, cli.json).await,
            Command::Audit(command) => command.run(cli.config).await,
            Command::Migrate => cli::commands::migrate(cli.config, cli.json).await,
            Command::Config { defaults } => cli::commands::config(cli.config, cli.json, defaults),
            Command::Openapi => cli::commands::openapi(),
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("callboard: {error}");
            ExitCode::FAILURE
        }
    }
}
