//! `callboard mcp`: the Model Context Protocol over standard input and output, for an assistant on this machine.
mod lines;
mod remote;
mod stdio;

use super::listen::http_url;
use crate::error::CannotStart;
use clap::Args;
use remote::Remote;
use reqwest::Url;
use std::{fs::File, io::Read, path::PathBuf};
use zeroize::Zeroizing;

#[derive(Args)]
pub struct Mcp {
    /// Where Callboard runs
    #[arg(long, value_name = "URL", env = "CALLBOARD_URL", default_value = "http://127.0.0.1:8080", value_parser = http_url)]
    url: Url,
    /// A file whose first line is the API key [default: the environment variable CALLBOARD_API_KEY]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

/// Bytes of a key's file that are read.
const MAX_KEY_FILE: u64 = 4096;
const KEY: &str = "CALLBOARD_API_KEY";

impl Mcp {
    pub async fn run(self) -> Result<(), CannotStart> {
        let remote = Remote::new(self.url.clone(), &self.key()?)?;
        tokio::select! {
            done = stdio::serve(&remote) => done,
            // The way to end it by hand, and no error.
            pressed = tokio::signal::ctrl_c() => pressed.map_err(|error| CannotStart(error.to_string())),
        }
    }

    /// Never an argument: those are shown to everybody on the machine.
    fn key(&self) -> Result<Zeroizing<String>, CannotStart> {
        let (text, whence) = match &self.api_key_file {
            Some(path) => {
                let mut text = Zeroizing::new(String::new());
                let read = File::open(path).and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut text));
                read.map_err(|error| CannotStart(format!("--api-key-file {}: {error}", path.display())))?;
                (text, "--api-key-file")
            }
            None => (Zeroizing::new(std::env::var(KEY).unwrap_or_default()), KEY),
        };
        let key = text.lines().next().unwrap_or_default().trim();
        match key {
            "" => Err(CannotStart(format!(
                "no API key: put it into {KEY}, or name a file with --api-key-file; `callboard keys create --workspace SLUG \
                 --env test --name assistant` makes one"
            ))),
            // Not shown: it is a secret, whatever else it may be.
            _ if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(CannotStart(format!("{whence}: this is not an API key")))
            }
            _ => Ok(Zeroizing::new(key.to_owned())),
        }
    }
}
