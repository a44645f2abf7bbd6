//! The `callboard` binary.
use std::process::ExitCode;

fn main() -> ExitCode {
    callboard::cli::main()
}
